//! Streams parked without a task, mostly idle connections to servers.
//!
//! A parked stream is plain data that any worker may adopt; one with an event on it must never be adopted.

use std::fmt;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};

use base::Key;

use super::parked_id::ParkedId;
use super::stream::is_clean;
use super::{Socket, Stream};
use crate::executor::report_parked;
use crate::mailbox::{self, Message};
use crate::source::{Readiness, Source, Watch};
use crate::worker::Worker;
use crate::{WorkerId, current};

/// A connected stream without a task, still watched by the worker on which it was parked. Dropping it closes it.
pub struct ParkedStream {
    socket: Socket,
    key: Key,
    /// The instance of the worker that watches it, unique within the process.
    instance: u32,
    /// That worker's index in the registry.
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

    /// Reports a stream that was unusable when it was parked.
    fn spoil(&self, worker: &Worker) {
        if let Some(source) = worker.sources.borrow_mut().get_mut(self.key) {
            source.read = Readiness::Ready;
            source.parked = false;
        }
        report_parked(worker, self.key);
    }

    /// Returns the ID that [`poll_parked_events`] reports.
    pub fn id(&self) -> ParkedId {
        ParkedId::new(self.instance, self.key)
    }

    /// Returns the number of its descriptor.
    pub fn number(&self) -> i32 {
        self.socket.number()
    }

    /// Returns the worker that watches it.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Adopts the stream on the current worker; `None`, and the stream closed, if there was an event on it: the peer
    /// closed, or sent unsolicited bytes. Costs no system call on the worker on which it was parked.
    pub fn adopt(self) -> Option<Stream> {
        current::with(|worker| {
            if worker.remote.instance == self.instance { self.adopt_here(worker) } else { self.adopt_from_afar(false) }
        })
    }

    /// Adopts the stream on the current worker, regardless of events on it. `None`, and the stream closed, if its
    /// worker has lost it.
    pub fn take_over(self) -> Option<Stream> {
        if current::with(|worker| worker.remote.instance == self.instance) {
            self.resume()
        } else {
            self.adopt_from_afar(true)
        }
    }

    /// Adopts the stream on the worker on which it was parked, regardless of events on it: for protocols in which an
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

impl Stream {
    /// Parks the stream without a task: it stays watched by this worker, and any event on it is reported by
    /// [`crate::net::poll_parked_events`].
    pub fn park(self) -> ParkedStream {
        ParkedStream::park(self)
    }
}

/// Appends the IDs of this worker's parked streams that had events: their owner must drop them. IDs of streams that
/// were adopted or dropped since are to be ignored. One task per worker may wait here.
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
