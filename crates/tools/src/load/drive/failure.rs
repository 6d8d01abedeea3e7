//! Reasons why requests and connections end early. Must never decide what follows.

use std::fmt;
use std::io;

use conn::transport::Insecure;

/// Reason why a request, or the connection, ended before its response was complete.
#[derive(Debug)]
pub(super) enum Failure {
    Connect(io::Error),
    Timeout,
    /// An error, or a premature end.
    Reset(Option<io::Error>),
    NoHttp,
    /// The server did not negotiate HTTP/2.
    NoH2,
    /// The server violates HTTP/3 or QUIC, in the described way.
    InvalidH3(String),
    /// The run has ended.
    Over,
}

/// Classifies an error: on an unused connection it is a failure to connect, unless the peer accepted and closed it.
pub(super) fn failure_of(error: io::Error, fresh: bool) -> Failure {
    let thrown_away = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    if fresh && !thrown_away.contains(&error.kind()) { Failure::Connect(error) } else { Failure::Reset(Some(error)) }
}

/// Classifies an error of a handshake.
pub(super) fn insecure(error: Insecure) -> Failure {
    match error {
        Insecure::Connection(error) => failure_of(error, true),
        Insecure::Handshake(failure) => Failure::Connect(io::Error::other(format!("no handshake of TLS: {failure:?}"))),
        Insecure::Closed { .. } => Failure::Connect(io::Error::other("closed within the handshake of TLS")),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                write!(f, "no source port is free: {error}")
            }
            Self::Connect(error) | Self::Reset(Some(error)) => write!(f, "{error}"),
            Self::Reset(None) => f.write_str("closed before the answer was complete"),
            Self::Timeout => f.write_str("nothing came in time"),
            Self::NoHttp => f.write_str("the answer is no HTTP"),
            Self::NoH2 => f.write_str("the server has not agreed on HTTP/2 by ALPN"),
            Self::InvalidH3(why) => f.write_str(why),
            Self::Over => f.write_str("the run was over"),
        }
    }
}
