//! HTTP/3 (RFC 9114): connections of clients and to servers, and the streams on them. Must never know what a request asks
//! for.
//!
//! One task processes the events of a connection and sends what it has to send ([`Connection`], [`ServerConnection`]); each
//! stream has a task that serves it ([`Stream`]), or that sends its request and reads its answer ([`Request`]). Flow control and
//! the order of streams are those of QUIC ([`crate::quic::Link`]) or QMux ([`crate::qmux::Link`]); a stream's task reads frames
//! directly from its stream, and writes frames to it.

mod cell;
mod connection;
mod control;
mod counts;
mod early;
mod grant;
mod handle;
mod link;
mod reading;
mod request;
mod server;
mod state;
mod stream;
mod webtransport;

use wire::h2::Capacity;

use crate::glitches::GlitchLimits;

pub use connection::Connection;
pub use counts::{Counts, ErrorCounts};
pub use early::Unshaken;
pub use grant::INITIAL_STREAMS;
pub use request::Request;
pub use server::{Requests, ServerConnection};
pub use stream::Stream;
pub use webtransport::{Relay, RelayStep};

/// The limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Concurrent streams.
    pub max_streams: usize,
    /// Total number of streams after which no other one begins. 0: no limit.
    pub max_total: u32,
    /// The most bytes of a head.
    pub max_head: usize,
    /// The most fields of a head (`tune.http.maxhdr`).
    pub max_fields: usize,
    /// Whether extended CONNECT is announced to clients (RFC 9220).
    pub extends: bool,
    /// Whether WebTransport sessions are announced, over QUIC.
    pub webtransport: bool,
    /// `option accept-unsafe-violations-in-http-request`.
    pub accept_unsafe: bool,
    /// Limits of glitches.
    pub glitches: GlitchLimits,
    /// Points that the client's faults may cost before the connection ends ([`crate::h2::BUDGET`]). 0: no limit.
    pub budget: u32,
}

impl Terms {
    /// The limits of a head's fields.
    fn capacity(&self) -> Capacity {
        Capacity { bytes: self.max_head, fields: self.max_fields }
    }
}
