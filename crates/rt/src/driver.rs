//! The driver of a worker: where its events and its time come from.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use base::{Key, Moment, WallTime};

use crate::epoll::Poller;
use crate::net::Socket;
use crate::sim::SimDriver;
use crate::source::Watch;
use crate::sys;

/// Chosen when the worker starts; one predicted branch a call.
pub(crate) enum Driver {
    Epoll(Poller),
    Sim(SimDriver),
}

impl Driver {
    pub(crate) fn now(&self) -> Moment {
        match self {
            Driver::Epoll(_) => sys::clock::monotonic(),
            Driver::Sim(driver) => driver.now(),
        }
    }

    /// The clock as a task reads it that wants to know how long it has run. In a simulation that may take time.
    pub(crate) fn measure(&self) -> Moment {
        match self {
            Driver::Epoll(_) => sys::clock::monotonic(),
            Driver::Sim(driver) => driver.measure(),
        }
    }

    /// The processor time of the calling thread; in a simulation the time.
    pub(crate) fn processor_time(&self) -> Duration {
        match self {
            Driver::Epoll(_) => sys::clock::of_thread(),
            Driver::Sim(driver) => driver.now().saturating_since(Moment::ZERO),
        }
    }

    pub(crate) fn wall(&self) -> WallTime {
        match self {
            Driver::Epoll(_) => sys::clock::wall(),
            Driver::Sim(driver) => driver.wall(),
        }
    }

    /// Watches a socket; its events come back under `key`.
    pub(crate) fn watch(&self, socket: &Socket, watch: Watch, key: Key) -> io::Result<()> {
        match (self, socket) {
            (Driver::Epoll(poller), Socket::Os(fd)) => poller.add(fd.as_raw_fd(), watch, key),
            (Driver::Sim(driver), Socket::Sim(socket)) => {
                driver.watch(socket, watch, key);
                Ok(())
            }
            // A socket that was opened outside of the worker's world.
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Stops watching a socket. Closing the last descriptor of it does the same.
    pub(crate) fn unwatch(&self, socket: &Socket) {
        self.unwatch_number(socket.number());
    }

    /// The same by the socket's number.
    pub(crate) fn unwatch_number(&self, number: i32) {
        match self {
            Driver::Epoll(poller) => poller.delete(number),
            Driver::Sim(driver) => driver.unwatch(number),
        }
    }
}
