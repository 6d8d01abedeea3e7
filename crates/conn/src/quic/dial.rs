//! Connections to servers: each has a UDP socket of its own, and its task receives what arrives there. Must never choose a
//! server.
//!
//! With a socket of its own, a connection has the source address, the network device and the namespace of its request, as
//! one over TCP has, and no datagram of one server takes memory of the kernel from those of another.

use std::rc::Rc;

use quic::endpoint::{ConnectFailure, Settings, Target};
use quic::{Endpoint, Transport};
use rt::net::DatagramSocket;

use super::link::Link;
use super::socket::Socket;
use super::timed::TimedEndpoint;

/// Begins a connection to a server over a socket that carries nothing else.
///
/// # Errors
/// The address or the settings do not permit it.
pub fn connect(
    socket: DatagramSocket,
    settings: Settings,
    target: Target,
    transport: &Transport,
) -> Result<Link, ConnectFailure> {
    let mut machine = TimedEndpoint::new(Endpoint::new(settings, None));
    let (handle, connection) = machine.connect(target, transport)?;
    let socket = Rc::new(Socket::new(socket, machine));
    Ok(Link::owning(&socket, handle, connection))
}
