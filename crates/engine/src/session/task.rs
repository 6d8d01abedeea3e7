//! The tasks that serve the streams of sessions: a session's own, which serves one stream after the other, and one for each
//! stream of a multiplexed connection. Owns the access of others to a running stream: its state, its waker, the order to end.
//! Must never serve a stream.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use std::task::Waker;

use base::slab::Key;
use rt::LocalRc;

use super::Session;
use crate::stream_state::Cause;
use crate::worker::SharedStreamState;

/// Key of a task that has no slot; a worker never has that many tasks.
const NOWHERE: Key = Key { slot: u32::MAX, generation: u32::MAX };

/// The session whose streams a task serves.
enum Owner {
    /// The task owns the session.
    Own(Session),
    /// The session is owned by this other task.
    Other(LocalRc<StreamTask>),
}

/// A task that serves streams, one at a time. Dereferences to its session.
pub struct StreamTask {
    owner: Owner,
    /// The stream that is served now.
    pub(crate) state: Cell<Option<SharedStreamState>>,
    waker: Cell<Option<Waker>>,
    /// Its slot in the worker's list of tasks; [`NOWHERE`]: not registered.
    key: Cell<Key>,
    /// Set when its stream has to end at once; if the task owns the session, its connection ends as well.
    pub(crate) killed: Cell<Option<Cause>>,
}

impl Deref for StreamTask {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        match &self.owner {
            Owner::Own(session) => session,
            // `another` never stores a task that does not own its session: this recursion has depth 1.
            Owner::Other(task) => task,
        }
    }
}

impl StreamTask {
    fn of(owner: Owner) -> Self {
        let key = Cell::new(NOWHERE);
        Self { owner, state: Cell::default(), waker: Cell::default(), key, killed: Cell::default() }
    }

    /// Creates the task of a session, which it owns.
    #[inline]
    pub fn own(session: Session) -> Self {
        Self::of(Owner::Own(session))
    }

    /// Creates a task for one further stream of that session, and registers it on the session's worker.
    pub fn another(session: &LocalRc<Self>) -> LocalRc<Self> {
        let owner = match &session.owner {
            Owner::Own(_) => session.clone(),
            Owner::Other(task) => task.clone(),
        };
        let task = LocalRc::new(|| Self::of(Owner::Other(owner)));
        task.worker.enter_stream();
        Self::enter(&task);
        task
    }

    /// Registers a task in its worker's list, in a slot that was reserved before.
    pub fn enter(task: &LocalRc<Self>) {
        task.key.set(task.worker.enter(task.clone()));
    }

    /// Removes it from its worker's list.
    pub fn leave(&self) {
        self.waker.take();
        let key = self.key.replace(NOWHERE);
        if key != NOWHERE {
            self.worker.leave(key);
        }
    }

    /// Returns its key in the worker's list, as a number.
    pub fn tag(&self) -> u64 {
        self.key.get().to_bits()
    }

    /// Whether it owns the session, which then ends with this task.
    pub fn owns_session(&self) -> bool {
        matches!(self.owner, Owner::Own(_))
    }

    /// Begins a stream, whose state can be accessed through this task until the stream is concluded.
    pub fn begin(&self) -> SharedStreamState {
        let state = self.worker.take_stream_state();
        let handshake = self.take_handshake();
        if let Ok(mut state) = state.try_borrow_mut() {
            state.timings.handshake = handshake;
            state.accounting.costs.before = rt::task_cost();
            state.features = self.features();
            state.info.task = Some(self.key.get());
        }
        self.state.set(Some(Rc::clone(&state)));
        state
    }

    /// Begins the only stream of a session that has no requests: it started when the session was accepted.
    pub fn begin_without_requests(&self) -> SharedStreamState {
        let state = self.begin();
        if let Ok(mut state) = state.try_borrow_mut() {
            state.info.number = self.worker.process.number_stream();
            state.timings.start = self.accepted;
            state.answer.status = 0;
            state.info.start_date = self.accept_date();
        }
        state
    }

    /// Returns the stream that is served now.
    pub fn current(&self) -> Option<SharedStreamState> {
        let state = self.state.take();
        self.state.set(state.clone());
        state
    }

    /// Stores the waker of the calling task.
    pub fn register(&self) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(|cx| {
            self.waker.set(Some(cx.waker().clone()));
            std::task::Poll::Ready(())
        })
    }

    /// Wakes its task.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake_by_ref();
            self.waker.set(Some(waker));
        }
    }

    /// Ends its stream at once (`shutdown session`, `on-marked-down`). Returns false if it has none.
    pub fn kill(&self, why: Cause) -> bool {
        let has_stream = self.current().is_some();
        if has_stream {
            self.killed.set(Some(why));
            self.wake();
        }
        has_stream
    }

    /// Ends the task at once because it has not yielded to other tasks for too long.
    pub fn cut_off(&self) {
        self.killed.set(Some(Cause::Internal));
        self.wake();
    }

    /// Whether it has to end at once.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.killed.get().is_some()
    }
}
