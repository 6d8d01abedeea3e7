//! The state of a session as commands show it. Must never change one.

use std::net::Ipv4Addr;
use std::time::Duration;

use base::moment::Moment;

use super::State;

/// The state of a session.
#[derive(Debug, Clone)]
pub struct SessionStatus {
    pub state: State,
    /// When the session entered the state.
    pub since: Moment,
    /// Negotiated hold time; `None` before the session is established. Zero: the session has none.
    pub hold_time: Option<Duration>,
    /// Identifier of the router, once it has sent it.
    pub router_id: Option<Ipv4Addr>,
    /// Number of routes that the router was sent and that were not withdrawn.
    pub announced: usize,
    /// Number of times that the session was established.
    pub established: u64,
    pub sent: MessageCounts,
    pub received: MessageCounts,
    /// Number of routes that the router has announced; all are dropped.
    pub dropped: u64,
    /// Number of messages with malformed attributes (RFC 7606).
    pub faulty: u64,
    /// Reason for the last end.
    pub last_end: Option<Box<str>>,
    /// The next attempt to connect, while there is no connection.
    pub next_attempt: Option<Moment>,
}

/// Numbers of messages in one direction, over all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageCounts {
    pub all: u64,
    pub updates: u64,
}
