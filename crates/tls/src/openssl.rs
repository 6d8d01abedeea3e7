//! Failures as codes and messages of OpenSSL 3, as in HAProxy's logs (`ssl_fc_err`, `ssl_fc_err_str`). Must never
//! reveal more than what failed.

use rustls::{Error, PeerIncompatible};

use crate::failure::Failure;
use crate::record::RecordError;

/// OpenSSL's number of the SSL library, to which the reasons belong.
const LIBRARY: u32 = 20 << 23;
/// Added to an alert's number to form its reason.
const ALERT: u16 = 1_000;

/// Returns the reason of a failure: its number, and OpenSSL's text.
fn reason(failure: &Failure) -> (u16, &'static str) {
    match failure {
        Failure::Http => (156, "http request"),
        Failure::NotTls | Failure::Record(RecordError::Version) => (267, "wrong version number"),
        Failure::UnknownName => (234, "callback failed"),
        Failure::Record(RecordError::BadMac) => (281, "decryption failed or bad record mac"),
        Failure::Record(RecordError::Overflow) => (150, "encrypted length too long"),
        Failure::Record(RecordError::Unexpected) => (244, "unexpected message"),
        Failure::Message => (159, "length mismatch"),
        Failure::OtherProtocol => (235, "no application protocol"),
        Failure::TooLarge => (152, "excessive message size"),
        Failure::Keys => (236, "bad handshake state"),
        Failure::Alert(number) => alert(*number),
        Failure::Handshake(error) => of_handshake(error),
    }
}

fn of_handshake(error: &Error) -> (u16, &'static str) {
    match error {
        Error::NoCertificatesPresented => (199, "peer did not return a certificate"),
        Error::InvalidCertificate(_) => (134, "certificate verify failed"),
        Error::NoApplicationProtocol => (235, "no application protocol"),
        Error::DecryptError => (281, "decryption failed or bad record mac"),
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => (244, "unexpected message"),
        Error::InvalidMessage(_) => (159, "length mismatch"),
        Error::PeerSentOversizedRecord => (198, "packet length too long"),
        Error::AlertReceived(description) => alert(u8::from(*description)),
        Error::PeerMisbehaved(_) => (110, "bad extension"),
        Error::PeerIncompatible(what) => match what {
            PeerIncompatible::NoCipherSuitesInCommon => (193, "no shared cipher"),
            PeerIncompatible::NoKxGroupsInCommon | PeerIncompatible::NamedGroupsExtensionRequired => {
                (101, "no suitable key share")
            }
            PeerIncompatible::NoSignatureSchemesInCommon
            | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => {
                (118, "no suitable signature algorithm")
            }
            PeerIncompatible::NoEcPointFormatsInCommon | PeerIncompatible::UncompressedEcPointsRequired => {
                (157, "invalid ecpoint format list")
            }
            // Clients without signature algorithms support at most TLS 1.1.
            _ => (258, "unsupported protocol"),
        },
        _ => (236, "bad handshake state"),
    }
}

/// Returns the reason for an alert of the peer.
fn alert(number: u8) -> (u16, &'static str) {
    let words = match number {
        10 => "sslv3 alert unexpected message",
        20 => "sslv3 alert bad record mac",
        22 => "tlsv1 alert record overflow",
        40 => "sslv3 alert handshake failure",
        42 => "sslv3 alert bad certificate",
        43 => "sslv3 alert unsupported certificate",
        44 => "sslv3 alert certificate revoked",
        45 => "sslv3 alert certificate expired",
        46 => "sslv3 alert certificate unknown",
        47 => "sslv3 alert illegal parameter",
        48 => "tlsv1 alert unknown ca",
        49 => "tlsv1 alert access denied",
        50 => "tlsv1 alert decode error",
        51 => "tlsv1 alert decrypt error",
        70 => "tlsv1 alert protocol version",
        71 => "tlsv1 alert insufficient security",
        80 => "tlsv1 alert internal error",
        86 => "tlsv1 alert inappropriate fallback",
        90 => "tlsv1 alert user cancelled",
        100 => "tlsv1 alert no renegotiation",
        109 => "tlsv13 alert missing extension",
        110 => "tlsv1 unsupported extension",
        112 => "tlsv1 unrecognized name",
        113 => "tlsv1 bad certificate status response",
        116 => "tlsv13 alert certificate required",
        120 => "tlsv1 alert no application protocol",
        _ => "unknown alert type",
    };
    (ALERT + u16::from(number), words)
}

/// Returns OpenSSL's code of a failure.
pub fn number(failure: &Failure) -> u32 {
    LIBRARY + u32::from(reason(failure).0)
}

/// Returns OpenSSL's message of a failure.
pub fn sentence(failure: &Failure) -> String {
    format!("error:{:08X}:SSL routines::{}", number(failure), reason(failure).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{AlertDescription, CertificateError};

    /// As logged by HAProxy 3.5 with OpenSSL 3.0.
    #[test]
    fn numbers_and_sentences_are_those_of_openssl() {
        let rows = [
            (
                Failure::Handshake(Error::NoCertificatesPresented),
                "0A0000C7:SSL routines::peer did not return a certificate",
            ),
            (
                Failure::Handshake(Error::InvalidCertificate(CertificateError::Expired)),
                "0A000086:SSL routines::certificate verify failed",
            ),
            (Failure::UnknownName, "0A0000EA:SSL routines::callback failed"),
            (
                Failure::Handshake(Error::PeerIncompatible(PeerIncompatible::Tls13RequiredForQuic)),
                "0A000102:SSL routines::unsupported protocol",
            ),
            (
                Failure::Handshake(Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon)),
                "0A0000C1:SSL routines::no shared cipher",
            ),
            (
                Failure::Handshake(Error::AlertReceived(AlertDescription::UnknownCA)),
                "0A000418:SSL routines::tlsv1 alert unknown ca",
            ),
            (Failure::Alert(48), "0A000418:SSL routines::tlsv1 alert unknown ca"),
            (
                Failure::Handshake(Error::PeerIncompatible(PeerIncompatible::NoSignatureSchemesInCommon)),
                "0A000076:SSL routines::no suitable signature algorithm",
            ),
            (Failure::Http, "0A00009C:SSL routines::http request"),
            (Failure::NotTls, "0A00010B:SSL routines::wrong version number"),
        ];
        for (failure, expected) in rows {
            assert_eq!(sentence(&failure), format!("error:{expected}"));
        }
    }
}
