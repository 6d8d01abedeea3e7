//! Why a connection failed.

use crate::record::RecordError;

/// The reason why a connection failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The first bytes are not TLS.
    NotTls,
    /// The first bytes are a plaintext HTTP request.
    Http,
    /// No certificate is valid for the requested name, and `strict-sni` forbids a default one.
    UnknownName,
    /// The handshake failed.
    Handshake(rustls::Error),
    /// A record is invalid.
    Record(RecordError),
    /// A post-handshake message is invalid.
    Message,
    /// The keys are of an unsupported type.
    Keys,
    /// The server has rejected early data, and selected another protocol than that of the data.
    OtherProtocol,
    /// A ClientHello is larger than any legitimate one.
    TooLarge,
    /// The peer sent a fatal alert.
    Alert(u8),
}

impl From<rustls::Error> for Failure {
    fn from(error: rustls::Error) -> Self {
        Self::Handshake(error)
    }
}

impl From<RecordError> for Failure {
    fn from(refused: RecordError) -> Self {
        Self::Record(refused)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotTls | Self::Http => f.write_str("the peer does not speak TLS"),
            Self::UnknownName => f.write_str("no certificate for that name"),
            Self::Handshake(error) => error.fmt(f),
            Self::Record(_) => f.write_str("invalid record"),
            Self::TooLarge => f.write_str("the ClientHello is too large"),
            Self::Message => f.write_str("invalid message after the handshake"),
            Self::OtherProtocol => f.write_str("the server has chosen another protocol"),
            Self::Keys => f.write_str("unknown kind of keys"),
            Self::Alert(number) => write!(f, "alert {number}"),
        }
    }
}

/// The category of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The peer's certificate is not signed by a trusted authority.
    UnknownAuthority,
    /// The peer's certificate was rejected for another reason.
    Untrusted,
    /// The peer's certificate is valid for other names only.
    WrongName,
    /// Another reason.
    Other,
}

impl Failure {
    /// Whether a server does not support the protocol of early data, and has not processed that data.
    pub fn refuses_protocol(&self) -> bool {
        use rustls::{AlertDescription, Error};
        matches!(
            self,
            Self::OtherProtocol | Self::Handshake(Error::AlertReceived(AlertDescription::NoApplicationProtocol))
        )
    }

    /// Returns the category.
    pub fn reason(&self) -> Reason {
        use rustls::CertificateError as Certificate;
        let Self::Handshake(rustls::Error::InvalidCertificate(error)) = self else { return Reason::Other };
        match error {
            Certificate::UnknownIssuer => Reason::UnknownAuthority,
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => Reason::WrongName,
            _ => Reason::Untrusted,
        }
    }
}
