//! Details of a handshake for samples: randoms, session ID, secrets, fingerprints of the ClientHello. Must never keep
//! any of it unless the configuration requires it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rustls::KeyLog;
use wire::client_hello::ClientHello;

use crate::faults::Fault;
use crate::fingerprint;

/// The details to keep of each handshake: a bit set of the constants. Shared by all lines of a configuration.
#[derive(Debug, Default)]
pub struct DetailSet(AtomicU8);

impl DetailSet {
    /// Randoms, the session ID, and the master secret of TLS 1.2.
    pub const DETAILS: u8 = 1;
    /// The secrets of TLS 1.3 (`tune.ssl.keylog`), only together with [`DetailSet::DETAILS`].
    pub const SECRETS: u8 = 2;
    /// JA3 of the ClientHello.
    pub const JA3: u8 = 4;
    /// JA4 of the ClientHello.
    pub const JA4: u8 = 8;

    pub fn add(&self, bits: u8) {
        self.0.fetch_or(bits, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, bit: u8) -> bool {
        self.0.load(Ordering::Relaxed) & bit != 0
    }

    /// Returns empty details for a handshake, if any are to be kept.
    pub(crate) fn begin(&self) -> Option<Box<Details>> {
        (self.0.load(Ordering::Relaxed) & !Self::SECRETS != 0).then(Box::default)
    }
}

impl PartialEq for DetailSet {
    fn eq(&self, other: &Self) -> bool {
        self.0.load(Ordering::Relaxed) == other.0.load(Ordering::Relaxed)
    }
}

/// A secret of a handshake, by its label in key logs (draft-ietf-tls-keylogfile).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secret {
    /// `CLIENT_RANDOM`: the master secret of TLS 1.2.
    Master,
    /// `CLIENT_EARLY_TRAFFIC_SECRET`
    ClientEarly,
    /// `CLIENT_HANDSHAKE_TRAFFIC_SECRET`
    ClientHandshake,
    /// `SERVER_HANDSHAKE_TRAFFIC_SECRET`
    ServerHandshake,
    /// `CLIENT_TRAFFIC_SECRET_0`
    ClientTraffic,
    /// `SERVER_TRAFFIC_SECRET_0`
    ServerTraffic,
    /// `EXPORTER_SECRET`
    Exporter,
    /// `EARLY_EXPORTER_SECRET`
    EarlyExporter,
}

impl Secret {
    fn of(label: &str) -> Option<Self> {
        Some(match label {
            "CLIENT_RANDOM" => Self::Master,
            "CLIENT_EARLY_TRAFFIC_SECRET" => Self::ClientEarly,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Self::ClientHandshake,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Self::ServerHandshake,
            "CLIENT_TRAFFIC_SECRET_0" => Self::ClientTraffic,
            "SERVER_TRAFFIC_SECRET_0" => Self::ServerTraffic,
            "EXPORTER_SECRET" => Self::Exporter,
            "EARLY_EXPORTER_SECRET" => Self::EarlyExporter,
            _ => return None,
        })
    }
}

/// The details kept of a handshake.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The client's random.
    pub client_random: Option<[u8; 32]>,
    /// The server's random.
    pub server_random: Option<[u8; 32]>,
    /// The session ID from the ServerHello; empty if it has none.
    pub session_id: Box<[u8]>,
    /// The text that JA3 hashes.
    pub ja3: Option<Box<str>>,
    pub ja4: Option<Box<str>>,
    secrets: Vec<(Secret, Box<[u8]>)>,
}

impl std::fmt::Debug for Details {
    /// Omits the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Details").field("ja3", &self.ja3).field("ja4", &self.ja4).finish_non_exhaustive()
    }
}

/// The random of a HelloRetryRequest (RFC 8446, section 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
/// Offset of the random in a record that contains a hello: after the record header, the message header, and a version.
const RANDOM_AT: usize = 5 + 4 + 2;

impl Details {
    /// Returns a secret, if it was kept.
    pub fn secret(&self, wanted: Secret) -> Option<&[u8]> {
        self.secrets.iter().find(|(known, _)| *known == wanted).map(|(_, secret)| &**secret)
    }

    /// Records the details of a ClientHello.
    pub(crate) fn note_client(&mut self, hello: &ClientHello<'_>, wanted: &DetailSet) {
        self.client_random = hello.random.try_into().ok();
        if wanted.has(DetailSet::JA3) {
            self.ja3 = Some(fingerprint::ja3(hello).into());
        }
        if wanted.has(DetailSet::JA4) {
            self.ja4 = Some(fingerprint::ja4(hello).into());
        }
    }

    /// Records the random of a hello in a plain record, if it contains one.
    pub(crate) fn note_record(&mut self, record: &[u8]) {
        let (Some(22), Some(kind)) = (record.first(), record.get(5)) else { return };
        let Some(random) = record.get(RANDOM_AT..).and_then(|rest| rest.first_chunk::<32>()) else { return };
        match kind {
            1 if self.client_random.is_none() => self.client_random = Some(*random),
            2 if self.server_random.is_none() && *random != RETRY => {
                self.server_random = Some(*random);
                let rest = &record[RANDOM_AT + 32..];
                let id = rest.first().and_then(|length| rest.get(1..1 + usize::from(*length)));
                self.session_id = id.unwrap_or_default().into();
            }
            _ => {}
        }
    }
}

/// The values that rustls reports during one call.
#[derive(Default)]
struct Reported {
    /// The details that keep secrets, and whether those of TLS 1.3 are kept.
    details: Option<(Box<Details>, bool)>,
    /// The error of the peer's certificate.
    fault: Option<Fault>,
}

thread_local! {
    static TOLD: RefCell<Reported> = RefCell::default();
}

/// Calls rustls and collects what it reports during the call. Returns the error of the peer's certificate, if one was
/// reported.
pub(crate) fn listening<T>(
    details: &mut Option<Box<Details>>,
    with_secrets: bool,
    work: impl FnOnce() -> T,
) -> (T, Option<Fault>) {
    TOLD.set(Reported { details: details.take().map(|details| (details, with_secrets)), fault: None });
    let result = work();
    let told = TOLD.take();
    *details = told.details.map(|(details, _)| details);
    (result, told.fault)
}

/// Records the error of the certificate in the current handshake.
pub(crate) fn note_fault(fault: Fault) {
    TOLD.with_borrow_mut(|told| told.fault = Some(fault));
}

/// Keeps secrets in the details of the current handshake.
#[derive(Debug)]
struct Keeper;

impl KeyLog for Keeper {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if !self.will_log(label) {
            return;
        }
        TOLD.with_borrow_mut(|told| {
            if let (Some((details, _)), Some(kind)) = (&mut told.details, Secret::of(label)) {
                details.secrets.push((kind, secret.into()));
            }
        });
    }

    fn will_log(&self, label: &str) -> bool {
        TOLD.with_borrow(|told| told.details.as_ref().is_some_and(|(_, all)| *all || label == "CLIENT_RANDOM"))
    }
}

/// Returns the key log for all rustls configurations.
pub(crate) fn key_log() -> Arc<dyn KeyLog> {
    Arc::new(Keeper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_that_asks_again_is_not_the_servers() {
        let record = |kind: u8, random: [u8; 32]| {
            let mut record = vec![22, 3, 3, 0, 70, kind, 0, 0, 66, 3, 3];
            record.extend(random);
            record.extend([3, 7, 8, 9]);
            record
        };
        let mut details = Details::default();
        details.note_record(&record(1, [5; 32]));
        details.note_record(&record(2, RETRY));
        assert_eq!((details.client_random, details.server_random), (Some([5; 32]), None));
        let whole = record(2, [6; 32]);
        for length in 0..43 {
            details.note_record(&whole[..length]);
            assert_eq!(details.server_random, None);
        }
        details.note_record(&whole);
        details.note_record(&record(1, [9; 32]));
        assert_eq!((details.client_random, details.server_random), (Some([5; 32]), Some([6; 32])));
        assert_eq!(*details.session_id, [7, 8, 9]);
    }

    #[test]
    fn nothing_is_kept_that_nobody_asks_for() {
        let wanted = DetailSet::default();
        assert!(wanted.begin().is_none());
        wanted.add(DetailSet::SECRETS);
        assert!(wanted.begin().is_none(), "no sample shows them");
        wanted.add(DetailSet::DETAILS);
        let mut details = wanted.begin();
        for all in [false, true] {
            let ((), _) = listening(&mut details, all, || {
                key_log().log("CLIENT_RANDOM", &[], b"master");
                key_log().log("EXPORTER_SECRET", &[], b"exporter");
                key_log().log("UNKNOWN", &[], b"x");
            });
            let kept = details.as_ref().unwrap();
            assert_eq!(kept.secret(Secret::Master), Some(&b"master"[..]));
            assert_eq!(kept.secret(Secret::Exporter).is_some(), all);
        }
        key_log().log("CLIENT_RANDOM", &[], b"another's");
        assert_eq!(details.unwrap().secrets.len(), 3);
    }
}
