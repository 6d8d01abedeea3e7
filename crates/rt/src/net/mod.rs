//! Sockets: streams, listeners, datagrams, parked streams, splice pipes, on the worker's driver; channels between
//! processes.
//!
//! Nothing here may block, and nothing may know a protocol above the transport.

mod carrier;
mod connect;
mod datagram;
mod descriptors;
mod foreign_datagram;
mod keep_alive;
mod kept_sockets;
mod listener;
mod namespace;
mod parked;
mod parked_id;
mod passing;
mod pause;
mod pipe;
mod raw_pipe;
mod set_up;
mod socket;
mod socket_query;
mod spares;
mod stream;
mod tcp_info;
mod udp;

pub use crate::address::{Address, is_local};
pub use connect::{ConnectFailure, ConnectOptions, ConnectStep, Connecting, Shortage};
pub use datagram::{Datagram, Family};
pub use descriptors::{
    DescriptorInfo, DescriptorKind, WatchedDescriptor, describe_descriptor, descriptor_limit, watched_descriptors,
};
pub use foreign_datagram::ForeignDatagrams;
pub use keep_alive::KeepAlive;
pub use listener::{BindOptions, Listener, ListeningSocket};
pub use namespace::Namespace;
pub use parked::{ParkedStream, poll_parked_events};
pub use parked_id::ParkedId;
pub use passing::{
    Channel, ForeignListener, MOST_DESCRIPTORS, channel_pair, is_channel, receive_descriptors, send_descriptors,
    stream_pair,
};
pub use pipe::Pipe;
pub use raw_pipe::{limit_pipes, set_pipe_capacity};
pub use socket::OwnedSocket;
pub use socket_query::SocketQuery;
pub use spares::reset;
pub use stream::{Hangup, Stream};
pub use tcp_info::TcpInfo;
pub use udp::{
    DatagramCounts, DatagramSocket, Datagrams, Ecn, KEPT_SOCKETS, PeerRejected, ReceiveBatch, Rejection, Transmit,
    steer_by_connection_id, steered_index,
};

pub(crate) use kept_sockets::Spares;
pub(crate) use raw_pipe::RawPipe;
pub(crate) use socket::Socket;
pub(crate) use udp::{KeptDatagrams, ReceiveSpace, ReceiveSpaces};

/// The error when the process has reached its limit of descriptors.
pub const NO_DESCRIPTORS_OF_PROCESS: i32 = libc::EMFILE;
/// The error when the system has reached its limit of descriptors.
pub const NO_DESCRIPTORS_OF_SYSTEM: i32 = libc::ENFILE;

/// Whether an error is the exhaustion of a resource that becomes available again: descriptors, memory, source ports.
pub fn is_exhaustion(error: &std::io::Error) -> bool {
    let Some(code) = error.raw_os_error() else { return false };
    [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS, libc::EADDRNOTAVAIL].contains(&code)
}
