//! Why a connection failed.

use crate::record::Refused;

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The first bytes are no TLS.
    NotTls,
    /// The first bytes are a request in the clear.
    Http,
    /// No certificate is for the name that was asked for, and `strict-sni` forbids another one.
    UnknownName,
    /// The handshake failed.
    Handshake(rustls::Error),
    /// A record is wrong.
    Record(Refused),
    /// A message behind the handshake is wrong.
    Message,
    /// The keys are of a kind that is not known here.
    Keys,
    /// The server has not taken early data, and chosen another protocol than that of the data.
    OtherProtocol,
    /// The peer ended it with an alert.
    Alert(u8),
}

impl From<rustls::Error> for Failure {
    fn from(error: rustls::Error) -> Self {
        Self::Handshake(error)
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
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
            Self::Message => f.write_str("invalid message after the handshake"),
            Self::OtherProtocol => f.write_str("the server has chosen another protocol"),
            Self::Keys => f.write_str("unknown kind of keys"),
            Self::Alert(number) => write!(f, "alert {number}"),
        }
    }
}

/// What a failure is about, as far as it is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The peer's certificate is not signed by a trusted authority.
    UnknownAuthority,
    /// The peer's certificate is not believed for another reason.
    Untrusted,
    /// The peer's certificate is for other names.
    WrongName,
    /// Something else.
    Other,
}

impl Failure {
    /// Whether a server does not speak the protocol of early data, and has seen nothing of that.
    pub fn refuses_protocol(&self) -> bool {
        use rustls::{AlertDescription, Error};
        matches!(
            self,
            Self::OtherProtocol | Self::Handshake(Error::AlertReceived(AlertDescription::NoApplicationProtocol))
        )
    }

    /// What it is about.
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
