//! The qlog of a connection: what its machine and its link do is recorded, and passed on in blocks. Must never wait for a file.

use std::cell::{Cell, RefCell};

use quic::qlog::{Subject, Trace};
use quic::{Closed, Connection, Event, Transmit};

/// The destination of a connection's records.
pub trait QlogSink {
    /// Takes whole records, without waiting. Their order is that of the calls.
    fn write(&self, records: String);

    /// Whether it takes no more.
    fn is_full(&self) -> bool;
}

/// The qlog of a connection.
pub(super) struct LinkTrace {
    trace: RefCell<Trace>,
    sink: Box<dyn QlogSink>,
    is_full: Cell<bool>,
}

impl LinkTrace {
    /// Begins with a connection that exists since now.
    pub(super) fn new(subject: &Subject, sink: Box<dyn QlogSink>) -> Self {
        let trace = RefCell::new(Trace::new(subject, rt::read_clock(), rt::wall()));
        Self { trace, sink, is_full: Cell::new(false) }
    }

    /// Records something, and passes a block on if there is a whole one.
    fn note(&self, record: impl FnOnce(&mut Trace)) {
        if self.is_full.get() {
            return;
        }
        let trace = &mut *self.trace.borrow_mut();
        record(trace);
        if let Some(records) = trace.take_chunk() {
            self.sink.write(records);
            self.is_full.set(self.sink.is_full());
        }
    }

    pub(super) fn note_received(&self, connection: &Connection) {
        self.note(|trace| trace.note_received(rt::read_clock(), connection));
    }

    pub(super) fn note_sent(&self, transmit: &Transmit, connection: &Connection) {
        self.note(|trace| trace.note_sent(rt::read_clock(), transmit, connection));
    }

    pub(super) fn note_event(&self, event: &Event) {
        self.note(|trace| trace.note_event(rt::read_clock(), event));
    }
}

impl Drop for LinkTrace {
    /// Passes the last records on.
    fn drop(&mut self) {
        self.note(|trace| trace.note_closed(rt::read_clock(), &Closed::Local));
        if !self.is_full.get() {
            self.sink.write(self.trace.get_mut().take_rest());
        }
    }
}
