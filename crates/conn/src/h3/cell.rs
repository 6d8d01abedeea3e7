//! A request stream as its connection and the task that serves or sends its request share it: what was received and not
//! taken, and the progress of both messages. Must never read or write the connection.

use std::any::Any;
use std::cell::{Cell, RefCell, RefMut};
use std::task::{Context, Waker};

use bytes::Bytes;
use quic::StreamId;
use wire::h3::MessageReader;
use wire::http::priority::Priority;
use wire::http::{Fields, Head};

use crate::h2::Extension;
use crate::progress::FrameProgress;

/// The arrival of a message's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It was received, in a field section of `length` bytes.
    Here { length: usize },
    /// A request that is answered with that status, or an answer that is invalid.
    Refused { status: u16 },
    /// No head was received that the task has not taken.
    Nothing,
}

/// A request stream. Its half is borrowed before the state of its connection, never after.
pub(super) struct StreamCell {
    /// The identifier of the stream.
    pub(super) id: StreamId,
    half: RefCell<Half>,
    /// Whether the last read has completed a frame.
    pub(super) completes: Cell<bool>,
    /// Whether the stream is reset as rejected if it is released before its answer is complete.
    pub(super) refuses: Cell<bool>,
    /// Whether the head of a prepared answer was sent: the rest is payload.
    pub(super) answering: Cell<bool>,
    /// A guard that is dropped when the stream is released.
    pub(super) kept: RefCell<Option<Box<dyn Any>>>,
    /// Whether a server has not processed the request.
    pub(super) refused: Cell<bool>,
    /// Whether the server needs no more of the request (STOP_SENDING).
    pub(super) stopped: Cell<bool>,
    /// Whether the answer to a request was read to its end.
    pub(super) answered: Cell<bool>,
    /// The connection's counter of datagrams when a request began.
    pub(super) heard: Cell<u64>,
    /// Whether a request asks for another protocol.
    pub(super) extension: Cell<Extension>,
}

impl StreamCell {
    /// `reader` is that of the peer's message.
    pub(super) fn new(id: StreamId, reader: MessageReader) -> Self {
        Self {
            id,
            half: RefCell::new(Half::new(reader)),
            completes: Cell::new(false),
            refuses: Cell::new(false),
            answering: Cell::new(false),
            kept: RefCell::new(None),
            refused: Cell::new(false),
            stopped: Cell::new(false),
            answered: Cell::new(false),
            heard: Cell::new(0),
            extension: Cell::new(Extension::None),
        }
    }

    /// Borrows the shared part.
    #[inline]
    pub(super) fn half(&self) -> RefMut<'_, Half> {
        self.half.borrow_mut()
    }
}

/// How bytes are written to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// They are sent.
    Direct,
    /// They are early data to a server, which may reject it.
    Early,
    /// Nothing is sent: the stream was reset, or the connection has ended.
    Failed,
}

/// The shared part of a stream.
pub(super) struct Half {
    pub(super) reader: MessageReader,
    /// Bytes of the stream whose frames were not read.
    pub(super) unread: Bytes,
    /// Payload that was not taken.
    pub(super) payload: Bytes,
    pub(super) arrival: Arrival,
    pub(super) head: Head,
    /// Whether the head was received, which is the final one of an answer.
    pub(super) has_head: bool,
    /// Trailers received after the payload.
    pub(super) trailers: Option<Box<Fields>>,
    /// Bytes of payload announced by the head and not received; `None`: the end of the stream ends the payload.
    pub(super) announced: Option<u64>,
    /// Progress of the payload.
    pub(super) progress: FrameProgress,
    /// Whether the peer has ended its message.
    pub(super) ended: bool,
    pub(super) access: Access,
    /// Whether the peer has sent an invalid message.
    pub(super) malformed: bool,
    /// The priority of the answer, set by the client.
    pub(super) priority: Priority,
    /// Bytes of frames that are sent before anything else.
    pub(super) prefix: Vec<u8>,
    /// The rest of a DATA frame that was accepted whole: it is sent after `prefix`.
    pub(super) waiting: Bytes,
    /// Bytes of payload that complete the DATA frame whose header was sent.
    pub(super) frame_left: u64,
    /// Whether our message has ended.
    pub(super) complete: bool,
    /// Whether the end of the stream was sent.
    pub(super) finished: bool,
    /// Whether the task has released the stream.
    pub(super) released: bool,
    task: Option<Waker>,
}

impl Half {
    fn new(reader: MessageReader) -> Self {
        Self {
            reader,
            unread: Bytes::new(),
            payload: Bytes::new(),
            arrival: Arrival::Nothing,
            head: Head::new(),
            has_head: false,
            trailers: None,
            announced: None,
            progress: FrameProgress::new(),
            ended: false,
            access: Access::Direct,
            malformed: false,
            priority: Priority::default(),
            prefix: Vec::new(),
            waiting: Bytes::new(),
            frame_left: 0,
            complete: false,
            finished: false,
            released: false,
            task: None,
        }
    }

    /// Moves the rest of a DATA frame to the frames that are sent first, so that another one can follow it.
    pub(super) fn queue_waiting(&mut self) {
        self.prefix.extend_from_slice(&std::mem::take(&mut self.waiting));
    }

    /// Wakes the stream's task.
    #[inline]
    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Wakes the stream's task at the next event.
    #[inline]
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Ends the stream before its messages have ended.
    pub(super) fn fail(&mut self) {
        self.access = Access::Failed;
        self.wake();
    }

    /// Whether the stream was reset, or the connection has ended.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.access == Access::Failed
    }

    /// Sends what is written from now on: the handshake is complete.
    pub(super) fn end_early(&mut self) {
        if self.access == Access::Early {
            self.access = Access::Direct;
        }
    }

    /// Takes the head that was received.
    pub(super) fn take_head(&mut self, head: &mut Head) -> Arrival {
        std::mem::swap(&mut self.head, head);
        std::mem::replace(&mut self.arrival, Arrival::Nothing)
    }

    /// Releases what was received, after the task has released the stream.
    pub(super) fn rest(&mut self) {
        (self.unread, self.payload) = (Bytes::new(), Bytes::new());
        (self.head, self.trailers, self.task) = (Head::new(), None, None);
        self.released = true;
    }
}
