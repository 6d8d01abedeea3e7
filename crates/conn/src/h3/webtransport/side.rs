//! One side of a session: what the task of its connection has received for it, until its relay takes that. Must never read or write a
//! stream.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeSet, VecDeque};
use std::task::{Context, Waker};

use bytes::Bytes;
use quic::StreamId;

use super::MOST_DATAGRAMS;

/// A stream that the peer has opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) id: StreamId,
    /// Bytes after its beginning.
    pub(super) unread: Bytes,
}

/// Streams, events and datagrams that a side has received.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Streams that the peer has opened.
    pub(super) opened: VecDeque<Opened>,
    /// Streams with events.
    pub(super) touched: BTreeSet<StreamId>,
    /// The payload of datagrams.
    pub(super) datagrams: VecDeque<Bytes>,
    /// Datagrams that were dropped because others waited.
    pub(super) dropped: u32,
    /// Whether the peer may permit more streams now.
    pub(super) may_open: bool,
    /// Whether the session has ended.
    pub(super) is_over: bool,
    task: Option<Waker>,
}

impl Received {
    /// Wakes the relay.
    pub(super) fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Wakes the relay at the next event.
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

/// One side of a session.
#[derive(Debug)]
pub(super) struct Side {
    /// The number of the stream of its request.
    pub(super) session: u64,
    received: RefCell<Received>,
}

impl Side {
    pub(super) fn new(session: u64) -> Self {
        Self { session, received: RefCell::default() }
    }

    /// Borrows what was received.
    pub(super) fn received(&self) -> RefMut<'_, Received> {
        self.received.borrow_mut()
    }

    /// Adds a stream that the peer has opened.
    pub(super) fn open(&self, opened: Opened) {
        let received = &mut *self.received();
        received.opened.push_back(opened);
        received.wake();
    }

    /// Notes an event of a stream.
    pub(super) fn touch(&self, id: StreamId) {
        let received = &mut *self.received();
        received.touched.insert(id);
        received.wake();
    }

    /// Adds a datagram. The oldest one is dropped if too many wait.
    pub(super) fn receive(&self, payload: Bytes) {
        let received = &mut *self.received();
        if received.is_over {
            return;
        }
        if received.datagrams.len() >= MOST_DATAGRAMS {
            received.datagrams.pop_front();
            received.dropped += 1;
        }
        received.datagrams.push_back(payload);
        received.wake();
    }

    /// Notes that the peer may permit more streams.
    pub(super) fn note_room(&self) {
        let received = &mut *self.received();
        received.may_open = true;
        received.wake();
    }
}
