//! A stream as shared by its connection and the task that serves or sends its request: each finds it without a search.
//! Must never outlive its use by both: its memory is then kept for another stream.

use std::any::Any;
use std::cell::{Cell, RefCell, RefMut};

use super::stream_half::Half;

/// The identifier of a stream that its connection has forgotten.
pub(super) const FORGOTTEN: u32 = u32::MAX;

/// Whether a request asks for another protocol on its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extension {
    None,
    /// It may be sent if the server supports extended CONNECT.
    Asked,
    /// It cannot be expressed in HTTP/2.
    Impossible,
}

/// A stream. Its half is borrowed after the state of its connection, never before.
pub(super) struct StreamCell {
    half: RefCell<Half>,
    /// The stream identifier; that of a request is assigned when it is sent.
    pub(super) number: Cell<u32>,
    /// Bytes that the peer may still send after the stream was released and our message has ended. `None`: the stream
    /// is then reset.
    pub(super) rest: Cell<Option<usize>>,
    /// Whether the last read has completed a frame.
    pub(super) completes: Cell<bool>,
    /// Whether the stream is reset as refused if it is released before its answer is complete.
    pub(super) refuses: Cell<bool>,
    /// Whether the head of a prepared answer was sent: the rest is payload.
    pub(super) answering: Cell<bool>,
    /// A guard that is dropped when the stream is released.
    pub(super) kept: RefCell<Option<Box<dyn Any>>>,
    /// Whether the answer to a request was read to its end.
    pub(super) answered: Cell<bool>,
    /// Bytes of that answer's payload not received yet, if its head contains a length.
    pub(super) left: Cell<Option<u64>>,
    /// The connection's counter of reads when a request began.
    pub(super) heard: Cell<u64>,
    /// Whether a request asks for another protocol.
    pub(super) extension: Cell<Extension>,
}

impl StreamCell {
    pub(super) fn new() -> Self {
        Self {
            half: RefCell::new(Half::new()),
            number: Cell::new(FORGOTTEN),
            rest: Cell::new(None),
            completes: Cell::new(false),
            refuses: Cell::new(false),
            answering: Cell::new(false),
            kept: RefCell::new(None),
            answered: Cell::new(false),
            left: Cell::new(None),
            heard: Cell::new(0),
            extension: Cell::new(Extension::None),
        }
    }

    /// Resets the state for a new stream, keeping its memory. Every field is named, so that none is forgotten. `kept`
    /// was taken when the former stream was released.
    pub(super) fn renew(&self, credit: u32, window: i64) {
        let Self { half, number, rest, completes, refuses, answering, kept: _, answered, left, heard, extension } =
            self;
        half.borrow_mut().renew(credit, window);
        number.set(FORGOTTEN);
        rest.set(None);
        completes.set(false);
        refuses.set(false);
        answering.set(false);
        answered.set(false);
        left.set(None);
        heard.set(0);
        extension.set(Extension::None);
    }

    /// Borrows the connection's part.
    #[inline]
    pub(super) fn half(&self) -> RefMut<'_, Half> {
        self.half.borrow_mut()
    }
}
