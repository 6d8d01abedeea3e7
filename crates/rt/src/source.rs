//! The sources of one worker: watched descriptors, their recorded readiness, and the tasks that wait for more.
//!
//! Events only record and wake; nothing here may read, write or close.

use std::task::{Context, Waker};

use base::Slab;

use crate::calls::are_named;

/// The recorded readiness of one direction of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Unknown: try.
    Unknown,
    /// The last try moved all that its buffer could hold, or there was an event since: try.
    Ready,
    /// The last try moved less than it could have, or nothing: an event will follow.
    Drained,
}

/// Whether an event follows a call that moved fewer bytes than it could have. The kernel sends one for stream sockets (epoll(7));
/// preloaded libraries may move less than they could, and then only a call that moves nothing is followed by one.
#[inline]
fn is_last(count: usize) -> bool {
    count == 0 || !are_named()
}

/// The conditions reported by an event, independent of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events(u8);

impl Events {
    pub(crate) const NONE: Events = Events(0);
    pub(crate) const READABLE: Events = Events(1);
    pub(crate) const WRITABLE: Events = Events(2);
    /// The peer has closed its direction.
    pub(crate) const READ_CLOSED: Events = Events(4);
    /// Both directions are closed.
    pub(crate) const HANGUP: Events = Events(8);
    pub(crate) const ERROR: Events = Events(16);

    /// Conditions of the end of the stream, which persist.
    const LASTING: Events = Events(4 | 8 | 16);

    #[inline]
    pub(crate) const fn any(self, of: Events) -> bool {
        self.0 & of.0 != 0
    }

    #[inline]
    pub(crate) const fn with(self, more: Events) -> Events {
        Events(self.0 | more.0)
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) const fn only(self, of: Events) -> Events {
        Events(self.0 & of.0)
    }
}

/// How a source is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Both directions, edge-triggered.
    Edges,
    /// Reading only, edge-triggered.
    Arrivals,
    /// Reading only, level-triggered.
    Level,
    /// A listener: level-triggered, one of the workers that watch it is woken.
    Listener,
}

/// One watched, or not yet watched, descriptor. An idle connection costs one of these.
#[derive(Debug)]
pub(crate) struct Source {
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
    pub(crate) read: Readiness,
    pub(crate) write: Readiness,
    /// Persistent conditions seen so far.
    seen: Events,
    /// The driver watches it.
    pub(crate) watched: bool,
    /// The reader waits for data too; otherwise only for the end of the stream, and data does not wake it.
    wants_data: bool,
    /// It belongs to a parked stream: events are reported to the worker's reaper.
    pub(crate) parked: bool,
    /// Level-triggered reports since the last accept or receipt.
    pub(crate) unheeded: u8,
    /// The driver watches it level-triggered: a listener, or a UDP socket of one peer.
    pub(crate) is_level: bool,
    /// The number under which the driver watches it; -1 before it was first watched.
    pub(crate) number: i32,
}

const _: () = assert!(std::mem::size_of::<Source>() <= 48);

impl Source {
    pub(crate) fn new() -> Source {
        Source {
            read_waker: None,
            write_waker: None,
            read: Readiness::Unknown,
            write: Readiness::Unknown,
            seen: Events::NONE,
            watched: false,
            wants_data: false,
            parked: false,
            unheeded: 0,
            is_level: false,
            number: -1,
        }
    }

    /// A source that the driver watches level-triggered: what there is already will be reported.
    pub(crate) fn level() -> Source {
        Source { read: Readiness::Drained, is_level: true, ..Source::new() }
    }

    /// Forgets that an error was reported: the call that follows takes it. Only for sockets whose errors do not last. Returns whether
    /// one was.
    pub(crate) fn forget_error(&mut self) -> bool {
        let was_reported = self.seen.any(Events::ERROR);
        self.seen = Events(self.seen.0 & !Events::ERROR.0);
        was_reported
    }

    /// Removes everything that concerns its previous use, except that the driver watches it. Returns the waiters.
    pub(crate) fn renew(&mut self) -> (Option<Waker>, Option<Waker>) {
        let waiters = self.forget_waiters();
        *self = Source { watched: self.watched, number: self.number, ..Source::level() };
        waiters
    }

    /// Records that the driver watches it, under this number.
    pub(crate) fn note_watched(&mut self, number: i32) {
        (self.watched, self.number) = (true, number);
    }

    /// Whether a task waits to read, and whether one waits to write.
    pub(crate) fn waiters(&self) -> (bool, bool) {
        (self.read_waker.is_some(), self.write_waker.is_some())
    }

    /// Whether a read is worth a system call.
    #[inline]
    pub(crate) fn may_read(&self) -> bool {
        self.read != Readiness::Drained || self.seen.any(Events::LASTING)
    }

    /// Whether a write is worth a system call.
    #[inline]
    pub(crate) fn may_write(&self) -> bool {
        self.write != Readiness::Drained || self.seen.any(Events::HANGUP.with(Events::ERROR))
    }

    /// Records a read of `count` bytes into `room` bytes of free space.
    #[inline]
    pub(crate) fn has_read(&mut self, count: usize, room: usize) {
        let is_drained = count < room && !self.ending() && is_last(count);
        self.read = if is_drained { Readiness::Drained } else { Readiness::Ready };
    }

    /// Records a write of `count` of `offered` bytes.
    #[inline]
    pub(crate) fn has_written(&mut self, count: usize, offered: usize) {
        self.write = if count < offered && is_last(count) { Readiness::Drained } else { Readiness::Ready };
    }

    /// Whether the peer closed, or an error is pending.
    #[inline]
    pub(crate) fn ending(&self) -> bool {
        self.seen.any(Events::LASTING)
    }

    /// Returns the persistent conditions seen so far.
    pub(crate) fn seen(&self) -> Events {
        self.seen
    }

    #[inline]
    pub(crate) fn wait_to_read(&mut self, context: &Context<'_>) {
        self.wants_data = true;
        keep_waker(&mut self.read_waker, context);
    }

    /// A pending interest in data is kept: one poll of a task may wait for both.
    pub(crate) fn wait_for_hangup(&mut self, context: &Context<'_>) {
        keep_waker(&mut self.read_waker, context);
    }

    #[inline]
    pub(crate) fn wait_to_write(&mut self, context: &Context<'_>) {
        keep_waker(&mut self.write_waker, context);
    }

    #[inline]
    fn take_reader(&mut self) -> Option<Waker> {
        self.wants_data = false;
        self.read_waker.take()
    }

    /// Removes the waiters, when the source changes owners.
    pub(crate) fn forget_waiters(&mut self) -> (Option<Waker>, Option<Waker>) {
        (self.take_reader(), self.write_waker.take())
    }

    /// Counts level-triggered reports for which no task waits. The driver repeats them in every iteration; after two of
    /// them it must stop watching the returned number, or the worker would never sleep. The next wait resumes watching.
    pub(crate) fn is_unheeded(&mut self) -> Option<i32> {
        let number = (self.is_level && self.read_waker.is_none()).then_some(self.number)?;
        self.unheeded += 1;
        if self.unheeded < 2 {
            return None;
        }
        self.unheeded = 0;
        self.watched = false;
        Some(number)
    }

    /// Records an event and returns the wakers of the tasks that waited for it.
    #[inline]
    pub(crate) fn record(&mut self, events: Events) -> (Option<Waker>, Option<Waker>) {
        if events.any(Events::READABLE) {
            self.read = Readiness::Ready;
        }
        if events.any(Events::WRITABLE) {
            self.write = Readiness::Ready;
        }
        self.seen = self.seen.with(events.only(Events::LASTING));
        let readers = if self.wants_data { Events::LASTING.with(Events::READABLE) } else { Events::LASTING };
        let writers = Events::WRITABLE.with(Events::HANGUP).with(Events::ERROR);
        let reader = if events.any(readers) { self.take_reader() } else { None };
        let writer = if events.any(writers) { self.write_waker.take() } else { None };
        (reader, writer)
    }

    /// Whether an event makes the stream, being parked, unusable. True only once.
    #[inline]
    pub(crate) fn is_spoilt_by(&mut self, events: Events) -> bool {
        let spoilt = self.parked && events.any(Events::LASTING.with(Events::READABLE));
        self.parked &= !spoilt;
        spoilt
    }
}

#[inline]
fn keep_waker(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(context.waker()) => {}
        _ => *place = Some(context.waker().clone()),
    }
}

/// All sources of one worker.
pub(crate) type Sources = Slab<Source>;

const _: () = assert!(Sources::BYTES_A_SLOT <= 64, "an idle connection is small");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_read_drains_unless_the_end_was_seen() {
        let mut source = Source::new();
        source.has_read(5, 10);
        assert!(!source.may_read());
        source.record(Events::READABLE);
        source.has_read(10, 10);
        assert!(source.may_read(), "a filled read leaves more to read");
        source.record(Events::READABLE.with(Events::READ_CLOSED));
        source.has_read(5, 10);
        assert!(source.may_read(), "the end of the stream is still to be read");
        assert!(source.may_write(), "a peer that closed its direction still reads");
    }

    #[test]
    fn an_error_wakes_both_directions_and_lets_both_try() {
        let mut source = Source::new();
        source.has_read(0, 1);
        source.has_written(0, 1);
        assert!(!source.may_read() && !source.may_write());
        let context = Context::from_waker(Waker::noop());
        source.wait_for_hangup(&context);
        source.wait_to_write(&context);
        assert!(matches!(source.record(Events::READABLE), (None, None)), "data does not wake who waits for the end");
        source.wait_to_read(&context);
        source.wait_for_hangup(&context);
        assert!(matches!(source.record(Events::READABLE), (Some(_), None)), "asking for both asks for data");
        source.wait_for_hangup(&context);
        assert!(matches!(source.record(Events::ERROR), (Some(_), Some(_))));
        assert!(source.may_read() && source.may_write());
    }
}
