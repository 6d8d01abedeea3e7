//! What the tasks of one section share: the section, and who has to be woken when something changes. Must never hold the
//! section while anything is awaited.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

use live::peers::Section;

use engine::peering::Party;
use engine::worker::Worker;

/// The tasks of a section.
pub(super) struct Circle {
    pub(super) worker: Rc<Worker>,
    /// Its place among those that listen and connect.
    place: usize,
    /// Connections, by peer.
    connections: RefCell<Vec<Option<Waker>>>,
    /// The task that calls.
    keeper: RefCell<Option<Waker>>,
}

impl Circle {
    pub(super) fn new(worker: Rc<Worker>, place: usize) -> Self {
        Self { worker, place, connections: RefCell::default(), keeper: RefCell::default() }
    }

    pub(super) fn party(&self) -> &Party {
        &self.worker.process.exchange.parties()[self.place]
    }

    /// Works on the section. `None`: it has not begun.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Section) -> T) -> Option<T> {
        self.party().lock().as_mut().map(work)
    }

    /// The task waits for what happens on its connection with a peer.
    pub(super) fn wait(&self, peer: usize, cx: &Context<'_>) {
        let mut connections = self.connections.borrow_mut();
        if connections.len() <= peer {
            connections.resize(peer + 1, None);
        }
        match &mut connections[peer] {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            place => *place = Some(cx.waker().clone()),
        }
    }

    /// The calling task keeps the others going.
    pub(super) fn keep(&self, cx: &Context<'_>) {
        *self.keeper.borrow_mut() = Some(cx.waker().clone());
    }

    /// A peer has connected or disconnected.
    pub(super) fn wake_keeper(&self) {
        if let Some(waker) = &*self.keeper.borrow() {
            waker.wake_by_ref();
        }
    }

    /// There is something to send, or connections are not wanted any more.
    pub(super) fn wake_connections(&self) {
        for waker in self.connections.borrow().iter().flatten() {
            waker.wake_by_ref();
        }
    }
}
