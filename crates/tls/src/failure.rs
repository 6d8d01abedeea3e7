//! Why a connection failed.

use crate::record::Refused;

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// The first bytes are no TLS.
    NotTls,
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
