//! Why a connection has ended.

use quinn_proto::ConnectionError;

/// The codes of errors of a TLS handshake: this plus the number of an alert (RFC 9000, section 20.1).
const CRYPTO_ERRORS: u64 = 0x100;

/// Why a connection has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The application of the peer has closed it.
    ByPeer { code: u64, reason: Box<[u8]> },
    /// The transport of the peer has closed it: it found an error.
    PeerTransport { code: u64, reason: Box<[u8]> },
    /// The peer has violated the protocol, or its handshake has failed: the code sent to it.
    Transport { code: u64, reason: Box<str> },
    /// The peer does not know the connection (a stateless reset).
    Reset,
    /// Nothing was received for the idle timeout.
    TimedOut,
    /// The peer supports no version of this side.
    Version,
    /// It was closed here.
    Local,
}

impl Closed {
    pub(crate) fn of(error: &ConnectionError) -> Self {
        match error {
            ConnectionError::VersionMismatch => Self::Version,
            ConnectionError::TransportError(error) => {
                Self::Transport { code: error.code.into(), reason: error.reason.as_str().into() }
            }
            ConnectionError::ConnectionClosed(close) => {
                Self::PeerTransport { code: close.error_code.into(), reason: (&*close.reason).into() }
            }
            ConnectionError::ApplicationClosed(close) => {
                Self::ByPeer { code: close.error_code.into(), reason: (&*close.reason).into() }
            }
            ConnectionError::Reset => Self::Reset,
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => Self::Local,
        }
    }

    /// Returns the number of the TLS alert that was sent or received.
    pub fn alert(&self) -> Option<u8> {
        match self {
            Self::PeerTransport { code, .. } | Self::Transport { code, .. } => {
                u8::try_from(code.checked_sub(CRYPTO_ERRORS)?).ok()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_the_codes_of_handshakes() {
        let own = |code| Closed::Transport { code, reason: "".into() };
        let peer = |code| Closed::PeerTransport { code, reason: [].into() };
        let rows = [
            (own(0x178), Some(120)),
            (peer(0x128), Some(40)),
            (own(0xa), None),
            (peer(0x200), None),
            (Closed::Reset, None),
        ];
        for (closed, expected) in rows {
            assert_eq!(closed.alert(), expected, "{closed:?}");
        }
    }
}
