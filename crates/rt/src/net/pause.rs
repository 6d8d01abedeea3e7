//! Listening that stops for a while, so that another process may bind the address, and begins again.
//!
//! Nothing here may touch a socket that another process has, too.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::listener::listen;
use super::{Address, ListeningSocket, Socket};
use crate::sys;

impl ListeningSocket {
    /// Stops listening: the address is free for another process where the system lets two sockets be bound to it.
    /// Connections that wait to be accepted are reset. No effect on a UNIX socket with a path, which another process
    /// replaces anyway, nor on one that another process has as well. No worker may watch the socket meanwhile.
    ///
    /// # Errors
    /// The kernel's.
    pub fn pause(&self) -> io::Result<()> {
        let Some(fd) = self.pausable() else { return Ok(()) };
        match &self.address {
            // A name is given free by the end of its socket alone.
            Address::Abstract(_) => {
                let fresh = sys::socket::create(libc::AF_UNIX, libc::SOCK_STREAM)?;
                sys::process::replace(&fresh, fd.as_fd())
            }
            _ => sys::socket::disconnect(fd.as_raw_fd()),
        }
    }

    /// Listens again after [`ListeningSocket::pause`].
    ///
    /// # Errors
    /// `AddrInUse` when another process listens there now, else the kernel's.
    pub fn resume(&self) -> io::Result<()> {
        let Some(fd) = self.pausable() else { return Ok(()) };
        if matches!(self.address, Address::Abstract(_)) {
            sys::socket::bind(fd, &self.address)?;
        }
        listen(fd, self.backlog, self.no_quick_ack)
    }

    /// From now on another process has this socket, too, so that it is not paused any more.
    pub fn set_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    fn pausable(&self) -> Option<&OwnedFd> {
        let has_path = matches!(self.address, Address::Unix(_) | Address::Unnamed | Address::Carrier(_));
        match &self.socket {
            Socket::Os(fd) if !has_path && !self.is_shared.load(Ordering::Relaxed) => Some(&**fd),
            _ => None,
        }
    }
}
