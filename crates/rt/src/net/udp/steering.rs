//! Sockets of one address whose datagrams are steered by QUIC's connection IDs. Must never move a datagram.

use std::io;
use std::os::fd::AsRawFd;

use super::DatagramSocket;
use crate::net::Socket;
use crate::sys::steer;

/// Makes the kernel choose a socket of a group ([`DatagramSocket::bind_group`]) for a datagram by the first byte of its
/// destination connection ID, modulo the number of sockets. An ID that the client of a new connection has chosen selects
/// a socket as well, always the same one. A socket that is closed changes the order of the others.
///
/// # Errors
/// `InvalidInput`: no socket, or more than 256. From the kernel: it cannot. Then it chooses by addresses and ports.
pub fn steer_by_connection_id(group: &[DatagramSocket]) -> io::Result<()> {
    let first = group.first().ok_or(io::ErrorKind::InvalidInput)?;
    match &*first.socket {
        Socket::Os(fd) => steer::attach(fd.as_raw_fd(), group.len()),
        Socket::Sim(socket) => socket.steer(group.len()),
    }
}

/// Returns the index of the socket that [`steer_by_connection_id`] selects for a datagram in a group of `count` sockets.
pub fn steered_index(datagram: &[u8], count: usize) -> usize {
    steer::index(datagram, count)
}
