//! The QUIC connections of a worker, for those that show them. Must never change a connection.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;
use std::time::Duration;

use conn::quic::Observer;
use policy::program::QuicServerLimits;

use crate::generation::FrontendHandle;

/// Identifies a connection among those of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuicKey {
    /// Of a client: the tag of its session.
    Client(u64),
    /// To a server: its number.
    Server(u64),
}

/// A connection that may be shown.
#[derive(Clone)]
pub struct QuicConnection {
    peer: QuicPeer,
    pub observer: Observer,
}

/// The peer of a connection.
#[derive(Clone)]
enum QuicPeer {
    Client(Rc<FrontendHandle>),
    Server(Rc<ServerEntry>),
}

/// The server of a connection, which may have been removed since.
struct ServerEntry {
    proxy: Box<str>,
    name: Box<str>,
    limits: QuicServerLimits,
}

/// The limits that Weir announces to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnouncedLimits {
    pub idle_timeout: Option<Duration>,
    /// Bytes of all streams, and of one, that may be received before they are read.
    pub connection_window: u32,
    pub stream_window: u32,
    /// Request streams.
    pub streams: u32,
}

impl QuicConnection {
    pub(crate) fn of_client(frontend: Rc<FrontendHandle>, observer: Observer) -> Self {
        Self { peer: QuicPeer::Client(frontend), observer }
    }

    pub(crate) fn of_server(proxy: &str, name: &str, limits: QuicServerLimits, observer: Observer) -> Self {
        let server = ServerEntry { proxy: proxy.into(), name: name.into(), limits };
        Self { peer: QuicPeer::Server(Rc::new(server)), observer }
    }

    /// Returns the name of its proxy.
    pub fn proxy(&self) -> &str {
        match &self.peer {
            QuicPeer::Client(frontend) => &frontend.proxy.name,
            QuicPeer::Server(server) => &server.proxy,
        }
    }

    /// Returns the name of its server. `None`: its peer is a client.
    pub fn server(&self) -> Option<&str> {
        match &self.peer {
            QuicPeer::Client(_) => None,
            QuicPeer::Server(server) => Some(&server.name),
        }
    }

    /// Returns the limits that were announced to its peer.
    pub fn limits(&self) -> AnnouncedLimits {
        match &self.peer {
            QuicPeer::Client(frontend) => {
                let limits = &frontend.generation.program.global.quic;
                AnnouncedLimits {
                    idle_timeout: limits.idle_timeout,
                    connection_window: limits.streams.connection_window,
                    stream_window: limits.streams.stream_window,
                    streams: limits.streams.concurrent,
                }
            }
            QuicPeer::Server(server) => AnnouncedLimits {
                idle_timeout: server.limits.idle_timeout,
                connection_window: server.limits.connection_window,
                stream_window: server.limits.stream_window,
                // A server opens none (RFC 9114, section 6.1).
                streams: 0,
            },
        }
    }
}

/// The connections of a worker.
#[derive(Default)]
pub struct QuicConnections {
    connections: RefCell<BTreeMap<QuicKey, QuicConnection>>,
    /// The number of the newest connection to a server.
    number: Cell<u64>,
}

impl QuicConnections {
    /// Adds a connection.
    pub(crate) fn enter(&self, key: QuicKey, connection: QuicConnection) {
        self.connections.borrow_mut().insert(key, connection);
    }

    /// Adds a connection to a server, and returns its key.
    pub(crate) fn enter_server(&self, connection: QuicConnection) -> QuicKey {
        self.number.set(self.number.get().wrapping_add(1));
        let key = QuicKey::Server(self.number.get());
        self.enter(key, connection);
        key
    }

    /// Removes a connection.
    pub(crate) fn leave(&self, key: QuicKey) {
        let ended = self.connections.borrow_mut().remove(&key);
        drop(ended);
    }

    /// Returns at most `most` connections after a key, in the order of their keys; `None`: from the first on.
    pub fn after(&self, key: Option<QuicKey>, most: usize) -> Vec<(QuicKey, QuicConnection)> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        let connections = self.connections.borrow();
        connections.range((from, Bound::Unbounded)).take(most).map(|(key, one)| (*key, one.clone())).collect()
    }
}
