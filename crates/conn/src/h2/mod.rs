//! HTTP/2 (RFC 9113): connections of clients and to servers, and the streams on them. Must never know what a request asks for.
//!
//! One task moves the frames of a connection ([`Connection`], [`ServerConnection`]), and one has each stream: it serves a
//! client's ([`Stream`]), or has its answer from a server ([`Request`]). What they share
//! ([`state`]) lies in a cell of the worker that is borrowed for one step at a time. Streams put whole frames behind each other
//! into one output, and wait where that is full; so frames of many streams leave in one write.

#[cfg(test)]
mod attacks;
mod block;
#[cfg(test)]
mod budgets;
mod connection;
mod counts;
mod faults;
mod half;
mod halves;
mod handle;
#[cfg(any(test, feature = "machine"))]
mod machine;
mod mover;
#[cfg(test)]
mod priorities;
mod queue;
mod reader;
mod request;
mod schedule;
mod server;
mod solo;
mod spare;
mod state;
mod stream;

use base::moment::Moment;
use wire::h2::Capacity;

use crate::glitches::GlitchLimits;

pub use connection::Connection;
pub use counts::Counts;
pub(crate) use handle::Kill;
#[cfg(any(test, feature = "machine"))]
pub use machine::Machine;
pub use request::Request;
pub use server::{Parcel, Requests, ServerConnection};
pub use solo::Solo;
pub use stream::Stream;

/// Which side of a connection we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The peer asks.
    Server,
    /// We ask.
    Client,
}

/// Points of a client's budget where the configuration sets no threshold for glitches: 1,000 streams that all fail, or as many
/// frames without use beyond the free ones.
pub const BUDGET: u32 = 1000;

/// How the questions stand whether the peer of an idle connection is there (`idle-ping`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ping {
    /// The next one is due then.
    Due(Moment),
    /// One was just asked.
    Sent,
    /// The last one was not answered before the next one was due.
    Unanswered,
}

/// What a peer is granted (`tune.h2.*`, and the limits of messages).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Streams at a time (`tune.h2.fe.max-concurrent-streams`, `tune.h2.be.max-concurrent-streams`).
    pub max_streams: usize,
    /// Bytes of payload that a stream may send before it is told of more (`tune.h2.fe.initial-window-size`,
    /// `tune.h2.be.initial-window-size`).
    pub window: u32,
    /// Bytes of payload that may wait in all, which are shared out among streams beyond that (`tune.h2.fe.rxbuf`,
    /// `tune.h2.be.rxbuf`).
    pub shared_window: u32,
    /// Bytes of fields that a peer's blocks may refer to (`tune.h2.header-table-size`).
    pub table_size: usize,
    /// Streams in all after which no other one begins (`tune.h2.fe.max-total-streams`, `max-reuse`). 0: no limit.
    pub max_total: u32,
    /// Bytes of a head.
    pub max_head: usize,
    /// Fields of a head (`tune.http.maxhdr`).
    pub max_fields: usize,
    /// Clients are told that they may ask for other protocols (RFC 8441); not with `h2-workaround-bogus-websocket-clients`.
    pub extends: bool,
    /// `option accept-unsafe-violations-in-http-request`.
    pub accept_unsafe: bool,
    /// What follows from glitches.
    pub glitches: GlitchLimits,
    /// Points that faults of the peer may cost before the connection ends ([`BUDGET`]). 0: no limit.
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
    /// What the fields of a head may take.
    fn capacity(&self) -> Capacity {
        Capacity { bytes: self.max_head, fields: self.max_fields }
    }
}
