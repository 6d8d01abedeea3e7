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

/// A stream as seen by its connection.
pub(super) struct Half {
    pub(super) arrival: Arrival,
    pub(super) head: Head,
    /// Heads after that one: of interim answers, and the answer's.
    pub(super) later: VecDeque<QueuedHead>,
    /// Whether the last head was received: further blocks are trailers.
    pub(super) has_head: bool,
    /// Received payload, of which `taken` bytes were taken.
    pub(super) incoming: Vec<u8>,
    pub(super) taken: usize,
    /// Progress of frames of payload.
    pub(super) progress: FrameProgress,
    /// Bytes of payload announced by the head and not received yet.
    pub(super) announced: Option<u64>,
    /// Trailers received after the payload.
    pub(super) trailers: Option<Box<Fields>>,
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
            later: VecDeque::new(),
            has_head: false,
            incoming: Vec::new(),
            taken: 0,
            progress: FrameProgress::default(),
            announced: None,
            trailers: None,
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
            later,
            has_head,
            incoming,
            taken,
            progress,
            announced,
            trailers,
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
        if !later.is_empty() {
            later.clear();
        }
        incoming.clear();
        (*taken, *announced, *trailers) = (0, None, None);
        *progress = FrameProgress::default();
        (*has_head, *ended, *failed, *refused, *complete, *queued) = (false, false, false, false, false, false);
        *malformed = false;
        (*own_credit, *owed, *share, *own_window) = (i64::from(credit), 0, 0, window);
        (*draining, *task, *stalled, *priority) = (None, None, false, Priority::default());
    }

    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Payload that was not taken.
    pub(super) fn payload(&self) -> &[u8] {
        &self.incoming[self.taken..]
    }

    /// Consumes payload.
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken == self.incoming.len() {
            self.taken = 0;
            if self.incoming.capacity() > LARGE {
                self.incoming = Vec::new();
            } else {
                self.incoming.clear();
            }
        } else if self.taken >= SMALL && self.taken >= self.incoming.len() / 2 {
            // If a peer always sends more, it never becomes empty. No more bytes are moved than were taken.
            self.incoming.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Releases memory beyond the needs of small messages, before it is kept for a later stream.
    pub(super) fn shrink(&mut self) {
        if self.incoming.capacity() > SMALL {
            self.incoming = Vec::new();
        }
        if self.head.fields.capacity() > 2 * SMALL {
            self.head = Head::new();
        }
    }

    /// Releases everything after the task has released the stream; `left` more bytes are read and dropped.
    pub(super) fn rest(&mut self, left: Option<usize>) {
        (self.incoming, self.taken) = (Vec::new(), 0);
        (self.head, self.later, self.trailers) = (Head::new(), VecDeque::new(), None);
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
    pub(super) fn take_head(&mut self, head: &mut Head) -> Arrival {
        std::mem::swap(&mut self.head, head);
        if self.later.is_empty() {
            return std::mem::replace(&mut self.arrival, Arrival::Nothing);
        }
        let next = self.later.pop_front();
        let arrival = next.as_ref().map_or(Arrival::Nothing, |next| next.arrival);
        if let Some(next) = next {
            self.head = next.head;
        }
        std::mem::replace(&mut self.arrival, arrival)
    }

    /// Ends the stream before its messages have ended.
    pub(super) fn fail(&mut self) {
        self.failed = true;
        self.wake();
    }

    /// Bytes of memory that it holds.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        let later: usize = self.later.iter().map(|later| later.head.fields.capacity()).sum();
        let trailers = self.trailers.as_ref().map_or(0, |trailers| trailers.capacity());
        size_of::<Self>() + self.head.fields.capacity() + later + trailers + self.incoming.capacity()
    }
}
