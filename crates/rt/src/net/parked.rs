//! Streams that lie down without a task, mostly idle connections to servers.
//!
//! A parked stream is plain data that any worker may take up; one on which anything happened must never be taken up.

use std::fmt;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};

use base::Key;

use super::stream::is_clean;
use super::{Socket, Stream};
use crate::executor::report_parked;
use crate::mailbox::{self, Message};
use crate::source::{Readiness, Source, Watch};
use crate::worker::Worker;
use crate::{WorkerId, current};

/// Names a parked stream for as long as it is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParkedId {
    instance: u32,
    key: Key,
}

impl ParkedId {
    pub(crate) fn new(instance: u32, key: Key) -> ParkedId {
        ParkedId { instance, key }
    }

    /// A small number, unique among the streams that are parked on one worker: an index for tables beside them.
    pub fn slot(self) -> usize {
        self.key.slot as usize
    }
}

/// A connected stream without a task, still watched by the worker that it was parked on. Dropping it closes it.
pub struct ParkedStream {
    socket: Socket,
    key: Key,
    /// Which worker of all that ever were watches it.
    instance: u32,
    /// That worker's place in the registry.
    index: u16,
    worker: WorkerId,
}

impl ParkedStream {
    pub(super) fn park(stream: Stream) -> ParkedStream {
        let (socket, key) = stream.into_parts();
        current::with(|worker| {
            let clean = match worker.sources.borrow_mut().get_mut(key) {
                Some(source) => {
                    if !source.watched && worker.driver.watch(&socket, Watch::Edges, key).is_ok() {
                        source.note_watched(socket.number());
                    }
                    source.parked = true;
                    source.forget_waiters();
                    source.watched && is_clean(&socket, source)
                }
                None => false,
            };
            let remote = &worker.remote;
            let parked =
                ParkedStream { socket, key, instance: remote.instance, index: remote.index, worker: remote.worker };
            if !clean {
                parked.spoil(worker);
            }
            parked
        })
    }

    /// Reports a stream that is of no use from the start.
    fn spoil(&self, worker: &Worker) {
        if let Some(source) = worker.sources.borrow_mut().get_mut(self.key) {
            source.read = Readiness::Ready;
            source.parked = false;
        }
        report_parked(worker, self.key);
    }

    /// The name under which [`poll_parked_events`] reports it.
    pub fn id(&self) -> ParkedId {
        ParkedId { instance: self.instance, key: self.key }
    }

    /// The number of its descriptor.
    pub fn number(&self) -> i32 {
        self.socket.number()
    }

    /// The worker that watches it.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Takes the stream up on the current worker; `None`, and the stream closed, when anything happened on it: the
    /// peer closed, or sent bytes that were not asked for. On the worker that it was parked on this costs no system call.
    pub fn adopt(self) -> Option<Stream> {
        current::with(|worker| {
            if worker.remote.instance == self.instance { self.adopt_here(worker) } else { self.adopt_from_afar(false) }
        })
    }

    /// Takes the stream up on the current worker, whatever happened on it. `None`, and the stream closed, where its worker has
    /// lost it.
    pub fn take_over(self) -> Option<Stream> {
        if current::with(|worker| worker.remote.instance == self.instance) {
            self.resume()
        } else {
            self.adopt_from_afar(true)
        }
    }

    /// Takes the stream up again on the worker that it was parked on, whatever happened on it: for protocols in which an
    /// event on an idle connection is not its end. `None`, and the stream closed, on another worker.
    pub fn resume(self) -> Option<Stream> {
        current::with(|worker| {
            if worker.remote.instance != self.instance {
                return None;
            }
            worker.sources.borrow_mut().get_mut(self.key)?.parked = false;
            let (socket, key) = self.into_parts();
            Some(Stream::resume(socket, key))
        })
    }

    fn adopt_here(self, worker: &Worker) -> Option<Stream> {
        {
            let mut sources = worker.sources.borrow_mut();
            let source = sources.get_mut(self.key)?;
            if source.may_read() {
                return None;
            }
            source.parked = false;
        }
        let (socket, key) = self.into_parts();
        Some(Stream::resume(socket, key))
    }

    fn adopt_from_afar(self, whatever: bool) -> Option<Stream> {
        let home = mailbox::find(self.index).filter(|home| home.instance == self.instance);
        if let Some(home) = &home {
            match &self.socket {
                Socket::Os(fd) => home.unwatch(fd.as_raw_fd()),
                Socket::Sim(socket) => socket.unwatch(self.instance),
            }
        }
        if !whatever && self.socket.has_something() {
            return None;
        }
        let (socket, key) = self.into_parts();
        if let Some(home) = home {
            home.send(Message::Forget(key));
        }
        let mut source = Source::new();
        if !whatever {
            source.read = Readiness::Drained;
        }
        Some(Stream::enter(socket, source))
    }

    /// Takes it apart without closing the socket or freeing its source.
    fn into_parts(self) -> (Socket, Key) {
        let parked = ManuallyDrop::new(self);
        // SAFETY: the parked stream is not used again and its `drop` never runs, so the socket has one owner.
        (unsafe { std::ptr::read(&parked.socket) }, parked.key)
    }
}

impl Drop for ParkedStream {
    fn drop(&mut self) {
        let key = self.key;
        let here = current::try_with(|worker| {
            let here = worker.remote.instance == self.instance;
            here.then(|| worker.sources.borrow_mut().remove(key))
        });
        if here.flatten().is_none()
            && let Some(home) = mailbox::find(self.index)
            && home.instance == self.instance
        {
            home.send(Message::Forget(key));
        }
    }
}

impl fmt::Debug for ParkedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParkedStream").field("id", &self.id()).field("worker", &self.worker).finish()
    }
}

/// Appends the names of this worker's parked streams on which something happened: their owner must drop them.
/// A name whose stream was taken up or dropped meanwhile means nothing. One task of a worker may wait here.
pub fn poll_parked_events(context: &mut Context<'_>, spoilt: &mut Vec<ParkedId>) -> Poll<()> {
    current::with(|worker| {
        let mut events = worker.parked_events.borrow_mut();
        if events.ids.is_empty() {
            events.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        spoilt.append(&mut events.ids);
        Poll::Ready(())
    })
}
