//! The driver of a worker: the source of its events and its time.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use base::{Key, Moment, WallTime};

use crate::epoll::Poller;
use crate::net::Socket;
use crate::sim::SimDriver;
use crate::source::Watch;
use crate::sys;

/// Chosen when the worker starts; costs one predicted branch per call.
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

    /// Reads the clock for a task that measures its own running time. In a simulation the reading may advance the time.
    pub(crate) fn measure(&self) -> Moment {
        match self {
            Driver::Epoll(_) => sys::clock::monotonic(),
            Driver::Sim(driver) => driver.measure(),
        }
    }

    /// Returns the processor time of the calling thread; in a simulation the current time.
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

    /// Watches a socket; its events are reported under `key`.
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

    /// Changes how a watched socket is watched. Events that are pending then are reported again.
    pub(crate) fn watch_otherwise(&self, socket: &Socket, watch: Watch, key: Key) -> io::Result<()> {
        match (self, socket) {
            (Driver::Epoll(poller), Socket::Os(fd)) => poller.modify(fd.as_raw_fd(), watch, key),
            (Driver::Sim(_), Socket::Sim(socket)) => {
                socket.report();
                Ok(())
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Stops watching a socket. Closing its last descriptor has the same effect.
    pub(crate) fn unwatch(&self, socket: &Socket) {
        self.unwatch_number(socket.number());
    }

    /// Like [`Driver::unwatch`], by the socket's number.
    pub(crate) fn unwatch_number(&self, number: i32) {
        match self {
            Driver::Epoll(poller) => poller.delete(number),
            Driver::Sim(driver) => driver.unwatch(number),
        }
    }
}
