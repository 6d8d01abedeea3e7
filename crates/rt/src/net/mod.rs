//! Sockets: streams, listeners, datagrams, parked streams and splice pipes, on whichever driver the worker has.
//!
//! Nothing here may block, and nothing may know a protocol above the transport.

mod address;
mod connect;
mod datagram;
mod listener;
mod parked;
mod pipe;
mod socket;
mod stream;

pub use address::Address;
pub use connect::{ConnectOptions, Connecting};
pub use datagram::{Datagram, Family};
pub use listener::{BindOptions, Listener, ListeningSocket};
pub use parked::{ParkedId, ParkedStream, poll_parked_events};
pub use pipe::Pipe;
pub use socket::OwnedSocket;
pub use stream::{Hangup, Stream};

pub(crate) use pipe::RawPipe;
pub(crate) use socket::Socket;
