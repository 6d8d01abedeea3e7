//! Terms of handshakes: expected headers, the limit of TLS connections (`maxsslconn`), errors of TLS. Must never read a byte.

use conn::handshake::{Expected, LowerLayers};
use conn::quic::Closed;
use conn::transport::{Insecure, open_tls_connections};
use expression::sample::ConnectionError;
use policy::program::{Bind, ExpectedHeader};
use tls::HandshakeInfo;
use tls::failure::Reason;

/// Converts the header options of a `bind` line for the header reader.
pub(crate) fn expected(header: ExpectedHeader) -> Expected {
    Expected { netscaler: header.netscaler, proxy: header.proxy }
}

/// Returns the expected headers and TLS settings of an address whose connections are not served as clients.
pub fn entrance(bind: &Bind) -> LowerLayers {
    LowerLayers { expected: expected(bind.listening.header), tls: bind.tls.clone() }
}

/// Whether the number of TLS connections, this one included, exceeds `maxsslconn` (0: unlimited). If two threads start one at the
/// same time, the later one counts both.
pub fn are_too_many(most: u32) -> bool {
    most > 0 && open_tls_connections() > u64::from(most)
}

/// Whether one more TLS connection to a server would exceed `maxsslconn`; 0: unlimited.
pub fn is_one_too_many(most: u32) -> bool {
    most > 0 && open_tls_connections() >= u64::from(most)
}

/// Returns the error of a failed handshake, and whether it is always logged.
pub fn tls_error(insecure: &Insecure) -> (ConnectionError, bool) {
    match insecure {
        Insecure::Closed { received } => (ConnectionError::TLS_EMPTY, *received),
        Insecure::Connection(_) => (ConnectionError::TLS_ABORTED, true),
        Insecure::Handshake(failure) => (of_reason(failure.reason()), true),
    }
}

fn of_reason(reason: Reason) -> ConnectionError {
    match reason {
        Reason::UnknownAuthority => ConnectionError::TLS_UNKNOWN_CA,
        Reason::Untrusted => ConnectionError::TLS_UNTRUSTED,
        Reason::WrongName => ConnectionError::TLS_WRONG_NAME,
        Reason::Other => ConnectionError::TLS_HANDSHAKE,
    }
}

/// Returns the error of a failed handshake with a server over QUIC. `info` is what is known of it.
pub fn quic_error(closed: &Closed, info: Option<&HandshakeInfo>) -> ConnectionError {
    if let Some(failure) = info.and_then(|info| info.failure.as_ref()) {
        return of_reason(failure.reason());
    }
    match closed {
        Closed::TimedOut => ConnectionError::TLS_TIMEOUT,
        Closed::Reset | Closed::Local => ConnectionError::TLS_ABORTED,
        _ => ConnectionError::TLS_HANDSHAKE,
    }
}
