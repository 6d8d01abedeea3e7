//! A backend's servers and queues under one short lock: one lock to assign a request, one to release its slot. Must
//! never call a waker while the lock is held, and its guards must never wait.

use super::ProxyState;
use crate::program::Proxy;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What choosing a server may depend on.
#[derive(Debug, Clone, Copy, Default)]
pub struct PickContext {
    /// The client's address, for `balance source`.
    pub source: Option<IpAddr>,
    /// A random number, for `balance random`.
    pub random: u64,
    /// The server to avoid while another one will do: the one that failed, on a redispatch.
    pub exclude: Option<usize>,
    /// The server it has to be: a retry on the same server, later persistence. Ignored when that server is disabled.
    pub server: Option<usize>,
}

/// What became of a request.
#[derive(Debug)]
pub enum Assignment {
    /// A server took it.
    Slot(ServerSlot),
    /// It waits.
    Queued(QueueTicket),
    /// No server takes part at all: 503, `SC`.
    Unavailable,
    /// The server it needs has its `maxqueue` of requests waiting, and no other may be used: 503, `SQ`.
    QueueFull,
}

/// How many requests of each queue were served while one request waited there (configuration manual, section 8.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueuePositions {
    /// `srv_queue`.
    pub server: u32,
    /// `backend_queue`.
    pub backend: u32,
}

/// Counts for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Requests that the backend holds, served or waiting (`beconn`).
    pub beconn: u32,
    /// Requests that the server serves (`srv_conn`).
    pub srv_conn: u32,
}

/// A request's place at a server. Dropping it hands the place to the next who waits, or frees it.
#[derive(Debug)]
pub struct ServerSlot {
    state: Arc<ProxyState>,
    server: usize,
}

/// A request's place in a queue. Dropping it leaves the queue; a place at a server that was granted to it and not
/// taken goes to the next.
#[derive(Debug)]
pub struct QueueTicket {
    state: Arc<ProxyState>,
}

/// The backend side of [`ProxyState`].
#[derive(Debug)]
pub(super) struct Backend {}

impl Backend {
    pub(super) fn new(_proxy: &Proxy) -> Self {
        Self {}
    }
}

impl ProxyState {
    /// Chooses a server for a request and takes a slot of it, or queues the request.
    pub fn assign(self: &Arc<Self>, request: &PickContext) -> Assignment {
        let _ = request;
        Assignment::Unavailable
    }

    /// Counts as of now; `srv_conn` is 0 without a server. After a release, [`ServerSlot::release`] tells them for
    /// less.
    pub fn counts(&self, server: Option<usize>) -> Counts {
        let _ = server;
        Counts::default()
    }
}

impl ServerSlot {
    /// The server's index in its backend.
    pub fn server(&self) -> usize {
        self.server
    }

    /// The proxy whose server it is.
    pub fn proxy(&self) -> &Arc<ProxyState> {
        &self.state
    }

    /// Gives the place back as dropping does, and tells the counts that the log line wants, without a second lock.
    pub fn release(self) -> Counts {
        Counts::default()
    }
}

impl QueueTicket {
    /// Ready with the slot once it is this request's turn. Must not be polled again after that.
    pub fn poll_granted(&mut self, cx: &mut Context<'_>) -> Poll<ServerSlot> {
        let _ = (cx, &self.state);
        Poll::Pending
    }

    /// How many requests its queue served while it waited; of use when it was granted as well as when it gave up.
    pub fn positions(&self) -> QueuePositions {
        QueuePositions::default()
    }
}
