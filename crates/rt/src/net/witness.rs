//! What may still be asked of a stream by who does not hold it. Must never keep a stream open, nor ask a descriptor that
//! may be another's by now.

use std::io;

use base::Key;

use super::{TcpInfo, tcp_info};
use crate::current;
use crate::driver::Driver;
use crate::sys;

/// Names a stream of one worker for as long as that worker has it and uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    pub(super) instance: u32,
    pub(super) key: Key,
    pub(super) number: i32,
}

impl Witness {
    /// What the kernel knows of the connection. A system call.
    ///
    /// # Errors
    /// The socket's; `NotConnected` where the stream is gone, lies idle, belongs to another worker or is simulated.
    pub fn tcp_info(self) -> io::Result<TcpInfo> {
        if !self.is_there() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        tcp_info::read(self.number)
    }

    /// As [`super::Stream::take_saved_syn`].
    ///
    /// # Errors
    /// As for [`Witness::tcp_info`].
    pub fn take_saved_syn(self, place: &mut [u8]) -> io::Result<usize> {
        if !self.is_there() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        sys::socket::option_bytes(self.number, libc::IPPROTO_TCP, libc::TCP_SAVED_SYN, place)
    }

    fn is_there(self) -> bool {
        let found = current::try_with(|worker| {
            let sources = worker.sources.borrow();
            worker.remote.instance == self.instance
                && matches!(worker.driver, Driver::Epoll(_))
                && sources.get(self.key).is_some_and(|source| !source.parked)
        });
        found == Some(true)
    }
}
