//! What ends requests and connections before their time. Must never decide what follows.

use std::fmt;
use std::io;

use conn::transport::Insecure;

/// What ended a request, or the connection, before its answer was whole.
#[derive(Debug)]
pub(super) enum Failure {
    Connect(io::Error),
    Timeout,
    /// By an error, or by an end that came too early.
    Reset(Option<io::Error>),
    NoHttp,
    /// The server has not agreed on HTTP/2.
    NoH2,
    /// The run was over.
    Over,
}

/// A connection that was never used fails to connect, unless the peer took it and threw it away.
pub(super) fn failure_of(error: io::Error, fresh: bool) -> Failure {
    let thrown_away = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    if fresh && !thrown_away.contains(&error.kind()) { Failure::Connect(error) } else { Failure::Reset(Some(error)) }
}

/// The same of a handshake.
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
            Self::Over => f.write_str("the run was over"),
        }
    }
}
