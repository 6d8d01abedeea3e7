//! HTTP/2 with clients (RFC 9113): a connection, and the streams on it. Must never know what a request asks for.
//!
//! One task moves the frames of a connection ([`Connection`]), and one serves each stream ([`Stream`]). What they share
//! ([`state`]) lies in a cell of the worker that is borrowed for one step at a time. Streams put whole frames behind each other
//! into one output, and wait where that is full; so frames of many streams leave in one write.

mod connection;
mod half;
mod handle;
mod reader;
mod state;
mod stream;

pub use connection::Connection;
pub use stream::Stream;

/// What a frontend grants its clients (`tune.h2.*`, and the limits of messages).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Streams at a time that are announced (`tune.h2.fe.max-concurrent-streams`).
    pub max_streams: usize,
    /// Bytes of payload that a stream may send before it is told of more (`tune.h2.fe.initial-window-size`).
    pub window: u32,
    /// Bytes of fields that a peer's blocks may refer to (`tune.h2.header-table-size`).
    pub table_size: usize,
    /// Streams in all after which no other one is taken (`tune.h2.fe.max-total-streams`). 0: no limit.
    pub max_total: u32,
    /// Bytes of a head.
    pub max_head: usize,
    /// `option accept-unsafe-violations-in-http-request`.
    pub accept_unsafe: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            max_streams: 100,
            window: wire::h2::INITIAL_WINDOW,
            table_size: 4096,
            max_total: 0,
            max_head: 16384 - 1024,
            accept_unsafe: false,
        }
    }
}
