//! QUIC (RFC 9000) without I/O: endpoints take datagrams apart, connections carry streams, and both say what is to be sent.
//! The library that implements the protocol is not visible outside. Must never read a clock or a random source, nor know
//! a socket or what streams carry.
//!
//! A caller catches panics per datagram: the library treats some states as impossible. The connection is dropped then, and
//! [`Endpoint::forget`] frees its place.

pub mod cid;
pub mod closed;
pub mod congestion;
pub mod connection;
mod crypto;
pub mod endpoint;
pub mod endpoint_counts;
mod failures;
pub mod half_open;
pub mod handle;
pub mod qlog;
pub mod qmux;
pub mod secrets;
pub mod statistics;
pub mod stream;
pub mod time;
pub mod transmit;
pub mod transport;

pub use bytes::Bytes;
pub use closed::Closed;
pub use connection::{Connection, Event};
pub use endpoint::{Endpoint, Incoming, Received};
pub use endpoint_counts::EndpointCounts;
pub use half_open::HalfOpen;
pub use handle::{Handle, Input};
pub use secrets::Secrets;
pub use statistics::Statistics;
pub use stream::{Direction, StreamId};
pub use time::Clock;
pub use transmit::{Datagram, Transmit};
pub use transport::Transport;
