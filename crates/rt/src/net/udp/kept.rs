//! UDP sockets that were connected to a peer, kept to be connected to another one: to create, watch and close a socket costs three
//! times as much.
//!
//! A kept socket must never be bound to a port, nor give its next user a datagram of the previous one.

use std::os::fd::AsRawFd;

use base::{Key, Moment};

use super::kept_datagrams::Kept;
use crate::sys::descriptor::Descriptor;
use crate::worker::Worker;
use crate::{current, sys};

/// Maximum number of sockets of one family that a worker keeps.
const MOST: usize = 128;
/// Maximum number of sockets that a worker keeps, of both families.
pub const KEPT_SOCKETS: usize = 2 * MOST;
/// Maximum number of datagrams and errors of its previous use that a socket is freed of. One with more is closed.
const MOST_LEFT: usize = 4;

/// A socket that can be connected.
pub(super) struct Reusable {
    pub(super) descriptor: Descriptor,
    /// The worker and the source under which its driver watches it.
    pub(super) source: Option<(u32, Key)>,
}

/// Keeps a socket whose options are those of a new one, or closes it. `source`: the worker and the source that watch it.
pub(super) fn keep(descriptor: Descriptor, v6: bool, source: Option<(u32, Key)>) {
    current::try_with(|worker| {
        let own = source.filter(|(instance, _)| *instance == worker.remote.instance).map(|(_, key)| key);
        let has_room = worker.spares.borrow_mut().datagrams().of(v6).len() < MOST;
        // A source of another worker cannot be moved.
        if !has_room || own.is_some() != source.is_some() || sys::socket::disconnect(descriptor.as_raw_fd()).is_err() {
            return close(worker, Kept { descriptor, source: own, since: Moment::ZERO });
        }
        let _waiters = own.and_then(|key| Some(worker.sources.borrow_mut().get_mut(key)?.renew()));
        let kept = Kept { descriptor, source: own, since: worker.now.get() };
        worker.spares.borrow_mut().datagrams().of(v6).push_back(kept);
    });
}

/// Takes a kept socket of a family. One that was kept in this iteration may still get a datagram that was on its way.
pub(super) fn take(v6: bool) -> Option<Reusable> {
    current::try_with(|worker| {
        let now = worker.now.get();
        loop {
            let kept = {
                let mut spares = worker.spares.borrow_mut();
                let kept = spares.datagrams().of(v6);
                kept.front().filter(|first| first.since < now)?;
                kept.pop_front()?
            };
            if is_drained(&kept.descriptor) {
                let source = kept.source.map(|key| (worker.remote.instance, key));
                return Some(Reusable { descriptor: kept.descriptor, source });
            }
            close(worker, kept);
        }
    })
    .flatten()
}

/// Closes a socket and removes its source.
fn close(worker: &Worker, kept: Kept) {
    drop(kept.descriptor);
    let _source = kept.source.and_then(|key| worker.sources.borrow_mut().remove(key));
}

/// Removes what a socket has received. Returns whether nothing is left.
fn is_drained(descriptor: &Descriptor) -> bool {
    let receive = || sys::socket::receive(descriptor.as_raw_fd(), &mut [0], libc::MSG_DONTWAIT);
    (0..MOST_LEFT).any(|_| matches!(receive(), Ok(None)))
}
