//! Ports for programs that bind them themselves. Must never return one that another program may get.

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Mutex;

/// Returns a closed port that is reserved for the duration of the tests: a socket is bound to it that does not listen.
/// Programs that set `SO_REUSEADDR`, as servers do, may listen there; the system assigns it to no other program.
pub fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    set_socket_reuseaddr(&socket, true).expect("a socket");
    bind(&socket, &address).expect("a port");
    let bound = SocketAddr::try_from(getsockname(&socket).expect("an address")).expect("an internet address");
    RESERVED.lock().expect("no panic").push(socket);
    bound.port()
}
