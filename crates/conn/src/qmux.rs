//! QMux connections as links: the machine of one connection, over a transport that its owner passes to each call. Must never
//! know what streams carry.

use std::cell::{Cell, RefCell, RefMut};
use std::io::IoSlice;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use quic::Event;
use quic::qmux::Connection;

pub use quic::qmux::Settings;

use crate::quic::{CloseCode, LinkCounts};
use crate::transport::Transport;

/// The transport of a connection, and the bytes read from it that were not processed.
pub struct Wire<'a> {
    pub transport: &'a mut Transport,
    pub input: &'a mut Buffer,
}

/// The counts of a connection that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndCounts {
    pub frames: LinkCounts,
    /// The code with which the peer has closed the connection, if it has.
    pub close_code: Option<CloseCode>,
}

/// A connection to a peer. Dropping it sends nothing: the transport is its owner's.
pub struct Link {
    machine: RefCell<Connection>,
    /// The connection's task.
    task: RefCell<Option<Waker>>,
    timer: RefCell<rt::Timer>,
    /// Reads that have returned bytes.
    heard: Cell<u64>,
    /// Bytes passed to the transport.
    sent: Cell<u64>,
    /// Whether the transport has failed or ended.
    is_broken: Cell<bool>,
    close_code: Cell<Option<CloseCode>>,
}

impl Link {
    /// Begins a connection on a transport that is ready.
    pub fn new(is_server: bool, settings: Settings) -> Self {
        Self {
            machine: RefCell::new(Connection::new(is_server, settings, rt::now())),
            task: RefCell::default(),
            timer: RefCell::new(rt::Timer::new()),
            heard: Cell::new(0),
            sent: Cell::new(0),
            is_broken: Cell::new(false),
            close_code: Cell::new(None),
        }
    }

    /// Borrows the machine, to read and write streams.
    #[inline]
    pub(crate) fn machine(&self) -> RefMut<'_, Connection> {
        self.machine.borrow_mut()
    }

    /// Wakes the connection's task: something has to be sent.
    pub(crate) fn wake(&self) {
        if let Some(task) = self.task.borrow_mut().take() {
            task.wake();
        }
    }

    /// The number of reads that have returned bytes.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.get()
    }

    /// The number of bytes passed to the transport.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Whether the peer receives nothing more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.get()
    }

    /// Begins a step of the connection's task.
    pub(crate) fn begin(&self, cx: &Context<'_>) {
        match &mut *self.task.borrow_mut() {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        self.machine().expire(rt::now());
    }

    /// Returns the next event.
    pub(crate) fn poll_event(&self) -> Option<Event> {
        let event = self.machine().poll_event();
        if let Some(Event::Closed(closed)) = &event {
            self.close_code.set(CloseCode::of(closed));
        }
        event
    }

    /// Returns the counts of the connection, which has ended.
    pub(crate) fn end_counts(&self) -> EndCounts {
        let frames = LinkCounts::of_frames(self.machine().received_frames());
        EndCounts { frames, close_code: self.close_code.get() }
    }

    /// Sends what can be sent, reads once, and waits for the deadline. Ready when an event may have happened.
    pub(crate) fn poll_wait(&self, cx: &mut Context<'_>, wire: &mut Wire<'_>) -> Poll<()> {
        self.send(cx, wire);
        if self.machine().has_event() {
            return Poll::Ready(());
        }
        let Wire { transport, input } = wire;
        if !input.is_empty() {
            self.receive(input);
            return Poll::Ready(());
        }
        if rt::slice_is_over() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if rt::poll_memory(cx, rt::Stage::Underway).is_pending() {
            return Poll::Pending;
        }
        crate::flow::expand(input);
        match transport.poll_read(cx, input) {
            Poll::Ready(Ok(1..)) => {
                self.receive(input);
                Poll::Ready(())
            }
            Poll::Ready(_) => {
                self.fail();
                Poll::Ready(())
            }
            Poll::Pending => {
                **input = Buffer::empty();
                let deadline = self.machine().deadline();
                let timer = &mut *self.timer.borrow_mut();
                timer.arm(deadline);
                timer.poll_expired(cx)
            }
        }
    }

    /// Processes the bytes that were read.
    fn receive(&self, input: &mut Buffer) {
        self.heard.set(self.heard.get().wrapping_add(1));
        self.machine().receive(rt::now(), input.data());
        input.clear();
    }

    /// Sends what the transport accepts.
    pub(crate) fn send(&self, cx: &mut Context<'_>, wire: &mut Wire<'_>) {
        let machine = &mut *self.machine();
        while !self.is_broken.get() {
            let bytes = machine.output();
            if bytes.is_empty() {
                return;
            }
            match wire.transport.poll_write_slices(cx, &[IoSlice::new(bytes)], false) {
                Poll::Pending => return,
                Poll::Ready(Ok(written)) => {
                    machine.note_sent(rt::now(), written);
                    self.sent.set(self.sent.get().wrapping_add(written as u64));
                }
                Poll::Ready(Err(_)) => {
                    self.is_broken.set(true);
                    machine.end_input();
                }
            }
        }
    }

    /// Sends what is left of a connection that was closed. Ready when nothing is left.
    pub(crate) fn poll_rest(&self, cx: &mut Context<'_>, wire: &mut Wire<'_>) -> Poll<()> {
        self.send(cx, wire);
        if self.is_broken.get() || !self.machine().has_output() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn fail(&self) {
        self.is_broken.set(true);
        self.machine().end_input();
    }
}
