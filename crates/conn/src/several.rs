//! Connections that carry several streams at a time. Owns the choice between their protocols; must never serve a stream.

use std::task::{Context, Poll};

use crate::downstream::Downstream;
#[cfg(feature = "fakes")]
use crate::pairs;

/// A client's connection whose protocol carries several streams.
///
/// Its task polls it and starts a task for each stream. It is polled until it has ended; then the streams are told, and it
/// is kept until they have let go.
pub enum Connection<'a> {
    /// The protocol that tests have.
    #[cfg(feature = "fakes")]
    Pairs(pairs::Connection<'a>),
    /// There is none in the product yet.
    #[cfg(not(feature = "fakes"))]
    Never(std::convert::Infallible, std::marker::PhantomData<&'a ()>),
}

/// Calls the protocol.
macro_rules! on {
    ($connection:expr, $protocol:ident => $call:expr) => {
        match $connection {
            #[cfg(feature = "fakes")]
            Self::Pairs($protocol) => $call,
            #[cfg(not(feature = "fakes"))]
            Self::Never(never, _) => match *never {},
        }
    };
}

#[cfg_attr(not(feature = "fakes"), expect(unused_variables, reason = "there is no protocol yet"))]
impl<'a> Connection<'a> {
    /// Goes on with a connection that has begun with the preface of such a protocol
    /// ([`crate::h1::Reuse::Several`]). `None`: it has not.
    pub fn of(client: &'a mut Downstream) -> Option<Self> {
        match client {
            #[cfg(feature = "fakes")]
            Downstream::H1(server) if crate::h1::preface::begins(server.received()) == Some(true) => {
                Some(Self::Pairs(pairs::Connection::new(server)))
            }
            _ => None,
        }
    }

    /// Moves what can be moved in both directions. Ready with a stream that the client has opened, or with `None`: the
    /// connection has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Downstream>> {
        on!(self, protocol => protocol.poll(cx).map(|stream| stream.map(|stream| Downstream::Pair(Box::new(stream)))))
    }

    /// Whether no stream is open and nothing waits to be written.
    pub fn is_idle(&self) -> bool {
        on!(self, protocol => protocol.is_idle())
    }

    /// Streams that the client has opened so far.
    pub fn opened(&self) -> u32 {
        on!(self, protocol => protocol.opened())
    }

    /// The client is told that no stream begins any more.
    pub fn refuse(&mut self) {
        on!(self, protocol => protocol.refuse());
    }

    /// Tells the streams that the connection has ended.
    pub fn close(&mut self) {
        on!(self, protocol => protocol.close());
    }

    /// Ready when the last stream has been let go.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on!(self, protocol => protocol.poll_settled(cx))
    }
}
