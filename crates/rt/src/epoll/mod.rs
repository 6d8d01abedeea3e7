//! The epoll driver: watches a worker's descriptors through the kernel.
//!
//! Streams are added once, edge-triggered, and never changed; listeners level-triggered with EPOLLEXCLUSIVE. A UDP socket
//! is watched for writing only while a sender waits: the kernel would report each datagram that has left. One of a single
//! peer is level-triggered, so that a datagram is received without asking whether there is another one.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use base::Key;

use crate::mailbox::{Descriptors, Remote};
use crate::source::{Events, Watch};
use crate::sys;

/// The token of the worker's own event descriptor. No source has it: it would be the last of 2^32 slots.
const OWN_EVENT: u64 = u64::MAX;

/// A worker's epoll instance and its buffer of events.
pub(crate) struct Poller {
    remote: Arc<Remote>,
    events: RefCell<Vec<libc::epoll_event>>,
}

impl Poller {
    /// Creates a poller over the descriptors that `remote` shares with other threads.
    pub(crate) fn new(remote: Arc<Remote>, max_events: usize) -> std::io::Result<Poller> {
        if let Some(Descriptors { epoll, event }) = &remote.descriptors {
            sys::epoll::add(epoll, event.as_raw_fd(), (libc::EPOLLIN | libc::EPOLLET) as u32, OWN_EVENT)?;
        }
        let room = vec![libc::epoll_event { events: 0, u64: 0 }; max_events.max(1)];
        Ok(Poller { remote, events: RefCell::new(room) })
    }

    pub(crate) fn add(&self, fd: RawFd, watch: Watch, key: Key) -> std::io::Result<()> {
        match &self.remote.descriptors {
            Some(descriptors) => sys::epoll::add(&descriptors.epoll, fd, bits(watch), key.to_bits()),
            None => Ok(()),
        }
    }

    /// Changes how a watched descriptor is watched. Events that are pending then are reported again.
    pub(crate) fn modify(&self, fd: RawFd, watch: Watch, key: Key) -> std::io::Result<()> {
        match &self.remote.descriptors {
            Some(descriptors) => sys::epoll::modify(&descriptors.epoll, fd, bits(watch), key.to_bits()),
            None => Ok(()),
        }
    }

    pub(crate) fn delete(&self, fd: RawFd) {
        self.remote.unwatch(fd);
    }

    /// Waits up to `timeout` milliseconds (-1: without limit), passes every event to `record`, and returns the number
    /// of events.
    #[inline]
    pub(crate) fn wait(&self, timeout: i32, waited: impl FnOnce(), mut record: impl FnMut(Key, Events)) -> usize {
        let Some(descriptors) = &self.remote.descriptors else { return 0 };
        let mut events = self.events.borrow_mut();
        let count = sys::epoll::wait(&descriptors.epoll, &mut events, timeout);
        waited();
        for event in &events[..count] {
            let (bits, token) = (event.events, event.u64);
            if token != OWN_EVENT {
                record(Key::from_bits(token), translate(bits));
            }
        }
        count
    }
}

fn bits(watch: Watch) -> u32 {
    let events = match watch {
        Watch::Edges => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        Watch::Arrivals => libc::EPOLLIN | libc::EPOLLET,
        Watch::Level => libc::EPOLLIN,
        Watch::Listener => libc::EPOLLIN | libc::EPOLLEXCLUSIVE,
    };
    events as u32
}

#[inline]
fn translate(bits: u32) -> Events {
    let mut events = Events::NONE;
    for (bit, event) in [
        (libc::EPOLLIN, Events::READABLE),
        (libc::EPOLLOUT, Events::WRITABLE),
        (libc::EPOLLRDHUP, Events::READ_CLOSED),
        (libc::EPOLLHUP, Events::HANGUP),
        (libc::EPOLLERR, Events::ERROR),
    ] {
        if bits & bit as u32 != 0 {
            events = events.with(event);
        }
    }
    events
}
