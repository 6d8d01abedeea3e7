//! HTTP/2 (RFC 9113): connections of clients and to servers, and the streams on them. Must never know what a request
//! asks for.
//!
//! One task moves the frames of a connection ([`Connection`], [`ServerConnection`]), and each stream has a task: it
//! serves a client's ([`Stream`]), or reads its answer from a server ([`Request`]). Their shared state ([`state`]) is
//! in a cell of the worker that is borrowed for one step at a time, and each stream has a cell of its own ([`cell`]), so
//! that its task does not search for it. Streams append whole frames to one output, and wait while that is full; so
//! frames of many streams are sent in one write.

#[cfg(test)]
mod attacks;
mod block;
#[cfg(test)]
mod budgets;
mod cell;
mod connection;
mod control;
mod counts;
mod faults;
mod handle;
mod kill;
#[cfg(any(test, feature = "machine"))]
mod machine;
mod mover;
mod output;
mod packed;
#[cfg(test)]
mod priorities;
mod queue;
mod rare_list;
mod reader;
mod request;
mod schedule;
mod server;
mod shared_terms;
mod state;
mod step;
mod stream;
mod stream_half;
mod stream_memory;
mod stream_table;
mod traffic;
mod traffic_access;

use base::moment::Moment;
use wire::h2::Capacity;

use crate::glitches::GlitchLimits;

pub(crate) use cell::Extension;
pub use connection::Connection;
pub use control::Requests;
pub use counts::Counts;
pub(crate) use kill::Kill;
#[cfg(any(test, feature = "machine"))]
pub use machine::Machine;
pub use request::Request;
pub use server::{MovedConnection, ServerConnection};
pub use stream::Stream;

/// The role of this side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The peer sends requests.
    Server,
    /// This side sends requests.
    Client,
}

/// Points of a client's budget if the configuration sets no threshold for glitches: 1,000 streams that all fail, or the
/// same number of frames without use beyond the free ones.
pub const BUDGET: u32 = 1000;

/// The state of PINGs on an idle connection (`idle-ping`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ping {
    /// The next one is due at that time.
    Due(Moment),
    /// One was just sent.
    Sent,
    /// The last one was not acknowledged before the next one was due.
    Unanswered,
}

/// The limits of a connection (`tune.h2.*`, and the limits of messages).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Concurrent streams (`tune.h2.fe.max-concurrent-streams`, `tune.h2.be.max-concurrent-streams`).
    pub max_streams: usize,
    /// Initial window of a stream in bytes (`tune.h2.fe.initial-window-size`, `tune.h2.be.initial-window-size`).
    pub window: u32,
    /// Total bytes of payload that may wait, which are shared among streams in addition to their initial windows
    /// (`tune.h2.fe.rxbuf`, `tune.h2.be.rxbuf`).
    pub shared_window: u32,
    /// Size in bytes of the dynamic table for the peer's field blocks (`tune.h2.header-table-size`).
    pub table_size: usize,
    /// Total number of streams after which no other one begins (`tune.h2.fe.max-total-streams`, `max-reuse`). 0: no
    /// limit.
    pub max_total: u32,
    /// The most bytes of a head.
    pub max_head: usize,
    /// The most fields of a head (`tune.http.maxhdr`).
    pub max_fields: usize,
    /// Whether extended CONNECT is announced to clients (RFC 8441); not with `h2-workaround-bogus-websocket-clients`.
    pub extends: bool,
    /// `option accept-unsafe-violations-in-http-request`.
    pub accept_unsafe: bool,
    /// Limits of glitches.
    pub glitches: GlitchLimits,
    /// Points that the peer's faults may cost before the connection ends ([`BUDGET`]). 0: no limit.
    pub budget: u32,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            max_streams: 100,
            window: 16384,
            shared_window: 100 * 16384,
            table_size: 4096,
            max_total: 0,
            max_head: 16384 - 1024,
            max_fields: 101,
            extends: true,
            accept_unsafe: false,
            glitches: GlitchLimits::default(),
            budget: 0,
        }
    }
}

impl Terms {
    /// The limits of a head's fields.
    fn capacity(&self) -> Capacity {
        Capacity { bytes: self.max_head, fields: self.max_fields }
    }
}
