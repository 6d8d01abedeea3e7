//! QUIC connections as links: a listening UDP socket of one worker with the connections of clients whose datagrams it
//! carries, and connections to servers, each with a socket of its own. Must never know what streams carry.
//!
//! The task of a [`Listener`] receives datagrams and hands each to its connection, which processes it at once and wakes the
//! task of its session. That task takes events, reads and writes streams, and sends what the connection has to send
//! ([`Link::poll_wait`]). A connection stays on the worker whose socket has received its first datagram.
//!
//! The machines are given the time of each call ([`TimedEndpoint`], [`TimedConnection`]).

mod closing;
mod dial;
mod link;
mod listener;
mod observer;
mod socket;
#[cfg(test)]
mod test_endpoint;
mod timed;
mod trace;
mod views;

pub use dial::connect;
pub use link::{HandshakeFailure, Link};
pub use listener::{Arrival, Listener, Reception};
pub use observer::{Observer, Statistics};
pub use quic::Closed;
pub use timed::{TimedConnection, TimedEndpoint};
pub use trace::QlogSink;
pub(crate) use views::Carried;
pub use views::{CloseCode, LinkCounts, SocketCounts, StreamView};
