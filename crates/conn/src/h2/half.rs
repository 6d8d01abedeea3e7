//! What a connection keeps of a stream: what has come and was not taken, and how far both messages are. Must never read or
//! write the connection.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use wire::h2::MAX_WINDOW;
use wire::http::priority::Priority;
use wire::http::{Fields, Head};

use crate::progress::FrameProgress;

/// Bytes of a buffer that is kept for a later stream, or not compacted.
const SMALL: usize = 4096;

/// Bytes of payload whose memory a stream keeps between two pieces: two frames.
const LARGE: usize = 2 * wire::h2::MAX_FRAME_SIZE;

/// Whether the head of a message is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is; `length` bytes of a block told it, and the message ends with it where it is `alone`.
    Here { length: usize, alone: bool },
    /// It is answered with that status.
    Refused { status: u16 },
    /// None has come that its task does not have.
    Nothing,
}

/// The head of an answer behind others that nobody has taken yet.
pub(super) struct Later {
    pub(super) head: Head,
    pub(super) arrival: Arrival,
}

/// A stream, for its connection.
pub(super) struct Half {
    pub(super) arrival: Arrival,
    pub(super) head: Head,
    /// Heads behind that one: of interim answers, and the answer's.
    pub(super) later: VecDeque<Later>,
    /// The last head has come: what follows are trailers.
    pub(super) has_head: bool,
    /// Payload that has come, of which `taken` bytes were taken.
    pub(super) incoming: Vec<u8>,
    pub(super) taken: usize,
    /// Whether frames of it are whole.
    pub(super) progress: FrameProgress,
    /// Bytes of payload that the head announced and that have not come.
    pub(super) announced: Option<u64>,
    /// Fields that came behind the payload.
    pub(super) trailers: Option<Box<Fields>>,
    /// The peer has sent all of its message.
    pub(super) ended: bool,
    /// The stream was reset, or the connection is gone.
    pub(super) failed: bool,
    /// What the peer has sent on it is no message.
    pub(super) malformed: bool,
    /// The peer has not begun with the request, so that it can be sent again (RFC 9113, section 8.7).
    pub(super) refused: bool,
    /// Our message has ended.
    pub(super) complete: bool,
    /// Bytes that the peer may still send.
    pub(super) credit: i64,
    /// Bytes that were taken and are not among those yet.
    pub(super) owed: u32,
    /// Bytes that it has of what streams share.
    pub(super) share: u32,
    /// Bytes of payload that may still go out.
    pub(super) window: i64,
    /// How urgent the client says that its answer is.
    pub(super) priority: Priority,
    /// It stands in the queue for room in the output.
    pub(super) queued: bool,
    /// Payload waits for room or for a window since the last one went out.
    pub(super) stalled: bool,
    /// Nobody has it any more, but the peer still sends: so many bytes are read and dropped.
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

    /// Begins a stream anew, with the memory of a former one. Every field is named, so that none is forgotten.
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
        // Whoever takes the head writes it anew.
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

    /// Takes payload.
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
            // A peer that always has more on the way never lets it become empty. No more bytes move than were taken.
            self.incoming.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// Keeps no more memory for a later stream than small messages need.
    pub(super) fn shrink(&mut self) {
        if self.incoming.capacity() > SMALL {
            self.incoming = Vec::new();
        }
        if self.head.fields.capacity() > 2 * SMALL {
            self.head = Head::new();
        }
    }

    /// The task has let go of the stream, and `left` bytes more are read and dropped: nothing else of it is needed.
    pub(super) fn rest(&mut self, left: Option<usize>) {
        (self.incoming, self.taken) = (Vec::new(), 0);
        (self.head, self.later, self.trailers) = (Head::new(), VecDeque::new(), None);
        self.draining = left;
    }

    /// The peer takes so much more, or less. False: more than a window may be (RFC 9113, section 6.9.1). Only a stream that
    /// had no window waits for one.
    pub(super) fn enlarge_window(&mut self, by: i64) -> bool {
        let was_closed = self.window <= 0;
        self.window += by;
        if was_closed && self.window > 0 {
            self.wake();
        }
        self.window <= i64::from(MAX_WINDOW)
    }

    /// Takes the first head that is here.
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

    /// It ends before its messages do.
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
