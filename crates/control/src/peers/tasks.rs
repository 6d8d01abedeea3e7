//! State shared by the tasks of one section: the section, and the wakers of its tasks. Must never hold the section's
//! lock while anything is awaited.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

use live::peers::Section;

use engine::peering::Exchange;
use engine::peering::PeersState;
use engine::worker::Worker;

pub(super) struct PeerTasks {
    pub(super) worker: Rc<Worker>,
    /// Index in the process's list of sections.
    place: usize,
    /// Wakers of connections, by peer.
    connections: RefCell<Vec<Option<Waker>>>,
    /// Waker of the task that connects to peers.
    keeper: RefCell<Option<Waker>>,
}

impl PeerTasks {
    pub(super) fn new(worker: Rc<Worker>, place: usize) -> Self {
        Self { worker, place, connections: RefCell::default(), keeper: RefCell::default() }
    }

    pub(super) fn party(&self) -> &PeersState {
        &self.worker.process.service::<Exchange>().parties()[self.place]
    }

    /// Calls `work` with the locked section. `None`: it has not been started.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Section) -> T) -> Option<T> {
        self.party().lock().as_mut().map(work)
    }

    /// Whether the section's exchange ends. One that sums ends it before `grace`: a newer process has the same name, and peers
    /// would sum the values of either in turn.
    pub(super) fn is_over(&self) -> bool {
        let process = &self.worker.process;
        process.is_stopping() || (process.is_leaving() && self.party().plan.has_sums())
    }

    /// Registers the task that serves the connection with a peer.
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

    /// Registers the task that connects to peers.
    pub(super) fn keep(&self, cx: &Context<'_>) {
        *self.keeper.borrow_mut() = Some(cx.waker().clone());
    }

    /// Called when a peer has connected or disconnected.
    pub(super) fn wake_keeper(&self) {
        if let Some(waker) = &*self.keeper.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Called when there are updates to send, or connections must be closed.
    pub(super) fn wake_connections(&self) {
        for waker in self.connections.borrow().iter().flatten() {
            waker.wake_by_ref();
        }
    }
}
