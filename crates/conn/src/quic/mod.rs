//! QUIC connections of clients as links: a listening UDP socket of one worker, and the connections whose datagrams it
//! carries. Must never know what streams carry.
//!
//! The task of a [`Listener`] receives datagrams and hands each to its connection, which processes it at once and wakes the
//! task of its session. That task takes events, reads and writes streams, and sends what the connection has to send
//! ([`Link::poll_send`]). A connection stays on the worker whose socket has received its first datagram.

mod link;
mod listener;
mod observer;
mod socket;
mod view;

pub use link::{HandshakeFailure, Link};
pub use listener::{Arrival, Listener, ListenerCounts};
pub use observer::Observer;
pub use quic::{Closed, Statistics};
pub(crate) use view::Carried;
pub use view::{CloseCode, LinkCounts, StreamView};
