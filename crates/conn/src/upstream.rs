//! The other end of an exchange, seen from the client's: a server's connection, or a service inside. Must never choose one.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;

use crate::flow::ByteSource;
use crate::link::Link;
use crate::service::{Payload, Service};

/// Who answers a request.
pub enum Upstream<'a> {
    /// A server over HTTP/1.
    H1(&'a mut Link),
    /// A service of this process.
    Service(&'a mut dyn Service),
}

impl Upstream<'_> {
    /// The server's connection.
    pub fn link(&mut self) -> Option<&mut Link> {
        match self {
            Self::H1(link) => Some(link),
            Self::Service(_) => None,
        }
    }

    /// Reads what comes next: bytes of HTTP/1, or payload of a service; 0 is the end.
    ///
    /// # Errors
    /// The connection's, or that of a service that cannot go on.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        match self {
            Self::H1(link) => link.stream.poll_read(cx, buffer),
            Self::Service(service) => Payload(&mut **service).poll_read(cx, buffer),
        }
    }
}
