//! The connection's part of a stream: received data that was not taken, and the progress of both messages. Must never
//! read or write the connection.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use wire::h2::MAX_WINDOW;
use wire::http::priority::Priority;
use wire::http::{Fields, Head};

use crate::progress::FrameProgress;

/// The most bytes of a buffer that is kept for a later stream, or not compacted.
const SMALL: usize = 4096;

/// The most bytes of payload whose memory a stream keeps between two pieces: two frames.
const LARGE: usize = 2 * wire::h2::MAX_FRAME_SIZE;

/// The most heads of an answer that wait to be taken: all but the last one are interim.
const MOST_LATER: usize = 8;

/// The arrival of a message's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It was received, in a block of `length` bytes; `alone`: the message ends with it.
    Here { length: usize, alone: bool },
    /// It is answered with that status.
    Refused { status: u16 },
    /// No head was received that the task has not taken.
    Nothing,
}

/// The head of an answer, after others that were not taken yet.
pub(super) struct QueuedHead {
    pub(super) head: Head,
    pub(super) arrival: Arrival,
}

/// Parts of a message that few messages have.
#[derive(Default)]
pub(super) struct Rare {
    /// Heads after the first one: of interim answers, and the answer's.
    pub(super) later: VecDeque<QueuedHead>,
    /// Trailers received after the payload.
    pub(super) trailers: Option<Box<Fields>>,
}

/// ReadResult payload.
pub(super) struct Incoming {
    /// The bytes received, of which `taken` bytes were taken.
    bytes: Vec<u8>,
    taken: usize,
    /// Progress of its frames.
    pub(super) progress: FrameProgress,
    /// Bytes announced by the head and not received yet.
    pub(super) announced: Option<u64>,
}

impl Incoming {
    const fn new() -> Self {
        Self { bytes: Vec::new(), taken: 0, progress: FrameProgress::new(), announced: None }
    }

    /// The bytes that were not taken.
    #[inline]
    pub(super) fn data(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Appends received bytes.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Consumes bytes.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken == self.bytes.len() && self.bytes.capacity() <= LARGE {
            self.taken = 0;
            self.bytes.clear();
        } else {
            self.compact();
        }
    }

    /// Releases the memory of consumed bytes if it is worth it.
    #[inline(never)]
    fn compact(&mut self) {
        if self.taken == self.bytes.len() {
            (self.bytes, self.taken) = (Vec::new(), 0);
        } else if self.taken >= SMALL && self.taken >= self.bytes.len() / 2 {
            // If a peer always sends more, it never becomes empty. No more bytes are moved than were taken.
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Bytes of memory that it holds.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// A stream as seen by its connection.
pub(super) struct Half {
    pub(super) arrival: Arrival,
    pub(super) head: Head,
    /// Whether the last head was received: further blocks are trailers.
    pub(super) has_head: bool,
    pub(super) incoming: Incoming,
    /// Parts of the message that few messages have.
    pub(super) rare: Option<Box<Rare>>,
    /// Whether the peer has ended its message.
    pub(super) ended: bool,
    /// Whether the stream was reset, or the connection has ended.
    pub(super) failed: bool,
    /// Whether the peer has sent an invalid message.
    pub(super) malformed: bool,
    /// Whether the peer has not begun the request, so that it can be sent again (RFC 9113, section 8.7).
    pub(super) refused: bool,
    /// Whether our message has ended.
    pub(super) complete: bool,
    /// The receive window: bytes that the peer may still send.
    pub(super) credit: i64,
    /// Bytes taken that are not credited to the receive window yet.
    pub(super) owed: u32,
    /// Its share of the shared receive window, in bytes.
    pub(super) share: u32,
    /// The send window: bytes of payload that may still be sent to the peer.
    pub(super) window: i64,
    /// The priority of the answer, set by the client.
    pub(super) priority: Priority,
    /// Whether it is in the queue for free space in the output.
    pub(super) queued: bool,
    /// Whether payload has waited for free space or for a window since the last was sent.
    pub(super) stalled: bool,
    /// The number of bytes that are still read and dropped, if the task has released the stream and the peer still
    /// sends.
    pub(super) draining: Option<usize>,
    task: Option<Waker>,
}

impl Half {
    pub(super) fn new() -> Self {
        Self {
            arrival: Arrival::Nothing,
            head: Head::new(),
            has_head: false,
            incoming: Incoming::new(),
            rare: None,
            ended: false,
            failed: false,
            malformed: false,
            refused: false,
            complete: false,
            credit: 0,
            owed: 0,
            share: 0,
            window: 0,
            priority: Priority::default(),
            queued: false,
            stalled: false,
            draining: None,
            task: None,
        }
    }

    /// Resets a stream's state for a new stream, keeping its memory. Every field is named, so that none is forgotten.
    pub(super) fn renew(&mut self, credit: u32, window: i64) {
        let Self {
            arrival,
            head: _,
            has_head,
            incoming,
            rare,
            ended,
            failed,
            malformed,
            refused,
            complete,
            credit: own_credit,
            owed,
            share,
            window: own_window,
            priority,
            queued,
            stalled,
            draining,
            task,
        } = self;
        // The head is overwritten when it is decoded.
        *arrival = Arrival::Nothing;
        incoming.bytes.clear();
        (incoming.taken, incoming.progress, incoming.announced) = (0, FrameProgress::new(), None);
        (*rare, *task) = (None, None);
        (*has_head, *ended, *failed, *malformed, *refused, *complete) = (false, false, false, false, false, false);
        (*queued, *stalled) = (false, false);
        (*own_credit, *owed, *share, *own_window) = (i64::from(credit), 0, 0, window);
        (*draining, *priority) = (None, Priority::default());
    }

    #[inline]
    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    #[inline]
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Payload that was not taken.
    #[inline]
    pub(super) fn payload(&self) -> &[u8] {
        self.incoming.data()
    }

    /// Releases memory beyond the needs of small messages, before it is kept for a later stream.
    pub(super) fn shrink(&mut self) {
        if self.incoming.bytes.capacity() > SMALL {
            self.incoming.bytes = Vec::new();
        }
        if self.head.fields.capacity() > 2 * SMALL {
            self.head = Head::new();
        }
    }

    /// Releases everything after the task has released the stream; `left` more bytes are read and dropped.
    pub(super) fn rest(&mut self, left: Option<usize>) {
        (self.incoming.bytes, self.incoming.taken) = (Vec::new(), 0);
        (self.head, self.rare) = (Head::new(), None);
        self.draining = left;
    }

    /// Changes the send window. Returns false if it becomes larger than allowed (RFC 9113, section 6.9.1). The task is woken
    /// only if the window was used up.
    pub(super) fn enlarge_window(&mut self, by: i64) -> bool {
        let was_closed = self.window <= 0;
        self.window += by;
        if was_closed && self.window > 0 {
            self.wake();
        }
        self.window <= i64::from(MAX_WINDOW)
    }

    /// Takes the first head received.
    #[inline]
    pub(super) fn take_head(&mut self, head: &mut Head) -> Arrival {
        std::mem::swap(&mut self.head, head);
        let arrival = std::mem::replace(&mut self.arrival, Arrival::Nothing);
        if self.rare.is_some() {
            self.advance();
        }
        arrival
    }

    /// Makes the next head the first one.
    #[cold]
    fn advance(&mut self) {
        if let Some(next) = self.rare.as_mut().and_then(|rare| rare.later.pop_front()) {
            (self.head, self.arrival) = (next.head, next.arrival);
        }
    }

    /// Adds a head after others that were not taken. Returns false if there are too many.
    pub(super) fn add_head(&mut self, head: Head, arrival: Arrival) -> bool {
        let later = &mut self.rare.get_or_insert_default().later;
        let fits = later.len() < MOST_LATER;
        if fits {
            later.push_back(QueuedHead { head, arrival });
        }
        fits
    }

    /// Whether trailers were received that were not taken.
    pub(super) fn has_trailers(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.trailers.is_some())
    }

    /// Takes the trailers received after the payload.
    pub(super) fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.rare.as_mut()?.trailers.take()
    }

    /// Ends the stream before its messages have ended.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.wake();
    }

    /// Bytes of memory that it holds.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        let rare = self.rare.as_ref().map_or(0, |rare| {
            let later: usize = rare.later.iter().map(|later| later.head.fields.capacity()).sum();
            later + rare.trailers.as_ref().map_or(0, |trailers| trailers.capacity())
        });
        size_of::<Self>() + self.head.fields.capacity() + rare + self.incoming.capacity()
    }
}
