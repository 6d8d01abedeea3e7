//! The view of a connection for those that count or show it. Must never change the connection.

use std::net::SocketAddr;
use std::rc::Rc;

pub use quic::Statistics;

use super::link::{Link, State};
use super::views::{CloseCode, LinkCounts, SocketCounts, StreamView};

/// A view of a connection, also after its end.
#[derive(Clone)]
pub struct Observer(pub(super) Rc<State>);

impl Observer {
    /// Returns the counts since this was called before.
    pub fn take_counts(&self) -> LinkCounts {
        let counts = LinkCounts::of(&self.0.connection.borrow().statistics(), self.0.migrations.get());
        counts.since(&self.0.counted.replace(counts))
    }

    /// Returns the counts of the socket since this was called before, if it is the connection's own.
    pub fn take_socket_counts(&self) -> Option<SocketCounts> {
        self.0.owns_socket.then(|| self.0.socket.take_counts())
    }

    /// Returns the code with which the peer has closed the connection, if it has.
    pub fn close_code(&self) -> Option<CloseCode> {
        self.0.close_code.get()
    }

    /// Whether the handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        self.0.connection.borrow().is_handshaking()
    }

    /// Whether the connection is closing or has ended.
    pub fn is_closed(&self) -> bool {
        self.0.connection.borrow().is_closed()
    }

    /// Returns what was measured.
    pub fn statistics(&self) -> Statistics {
        self.0.connection.borrow().statistics()
    }

    /// Returns the local and the peer's address.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        let (connection, listening) = (self.0.connection.borrow(), self.0.listening());
        [SocketAddr::new(connection.local().unwrap_or(listening.ip()), listening.port()), connection.peer()]
    }

    /// Returns the request streams from the oldest on, at most `most` of them, and the number of all. `None`: the
    /// connection carries no protocol yet, or has ended.
    pub fn streams(&self, most: usize) -> Option<(Vec<StreamView>, usize)> {
        let carried = self.0.carried.borrow().as_ref()?.upgrade()?;
        Some(carried.streams(most))
    }
}

impl Link {
    /// Returns a view of the connection, also after this was dropped.
    pub fn observer(&self) -> Observer {
        Observer(Rc::clone(&self.0))
    }
}
