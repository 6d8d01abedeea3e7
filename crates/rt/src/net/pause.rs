//! Pausing a listening socket, so that another process may bind its address, and resuming it.
//!
//! Nothing here may touch a socket that another process shares.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::listener::listen;
use super::{Address, ListeningSocket, Socket};
use crate::sys;

impl ListeningSocket {
    /// Stops listening: another process can bind the address if the system lets two sockets be bound to it. Connections
    /// that wait to be accepted are reset. No effect on a UNIX socket with a path, which another process replaces
    /// anyway, nor on one that another process shares. No worker may watch the socket while it is paused.
    ///
    /// # Errors
    /// From the kernel.
    pub fn pause(&self) -> io::Result<()> {
        let Some(fd) = self.pausable() else { return Ok(()) };
        match &self.address {
            // An abstract name is released only when its socket is closed.
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
    /// `AddrInUse` if another process listens there now, otherwise from the kernel.
    pub fn resume(&self) -> io::Result<()> {
        let Some(fd) = self.pausable() else { return Ok(()) };
        if matches!(self.address, Address::Abstract(_)) {
            sys::socket::bind(fd, &self.address)?;
        }
        listen(fd, self.backlog, self.no_quick_ack)
    }

    /// Marks the socket as shared with another process: it is no longer paused.
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
