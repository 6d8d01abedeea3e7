//! The tasks that serve the streams of sessions: a session's own, which serves one stream after the other, and one for each
//! stream of a connection that carries several. Owns what others reach a running stream by: its state, its waker, the order
//! to end. Must never serve a stream.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use std::task::Waker;

use base::slab::Key;
use rt::LocalRc;

use super::Session;
use crate::stream_state::Cause;
use crate::worker::SharedStreamState;

/// The place of a task that has none: a worker has fewer tasks.
const NOWHERE: Key = Key { slot: u32::MAX, generation: u32::MAX };

/// Whose streams a task serves.
enum Owner {
    /// Those of its own session.
    Own(Session),
    /// One of the session that this task owns.
    Other(LocalRc<StreamTask>),
}

/// A task that serves streams, one at a time. Dereferences to their session.
pub struct StreamTask {
    owner: Owner,
    /// The stream that it serves now.
    pub(crate) state: Cell<Option<SharedStreamState>>,
    waker: Cell<Option<Waker>>,
    /// Its place on the worker; [`NOWHERE`]: none yet, or none any more.
    key: Cell<Key>,
    /// Set when its stream is to end at once, whatever it does; the connection as well where it is the task's own.
    pub(crate) killed: Cell<Option<Cause>>,
}

impl Deref for StreamTask {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        match &self.owner {
            Owner::Own(session) => session,
            // One task owns the session, and all others name that one.
            Owner::Other(task) => task,
        }
    }
}

impl StreamTask {
    fn of(owner: Owner) -> Self {
        let key = Cell::new(NOWHERE);
        Self { owner, state: Cell::default(), waker: Cell::default(), key, killed: Cell::default() }
    }

    /// The task of a session, which it owns from here on.
    #[inline]
    pub fn own(session: Session) -> Self {
        Self::of(Owner::Own(session))
    }

    /// A task of its own for one stream of that session, entered on the session's worker.
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

    /// Gives a task its place on the worker, which reserved one.
    pub fn enter(task: &LocalRc<Self>) {
        task.key.set(task.worker.enter(task.clone()));
    }

    /// Gives the place back.
    pub fn leave(&self) {
        self.waker.take();
        let key = self.key.replace(NOWHERE);
        if key != NOWHERE {
            self.worker.leave(key);
        }
    }

    /// The tag of its task.
    pub fn tag(&self) -> u64 {
        self.key.get().to_bits()
    }

    /// Whether the session ends with this task.
    pub fn owns_session(&self) -> bool {
        matches!(self.owner, Owner::Own(_))
    }

    /// Begins a stream: its state is reachable from here until it is concluded.
    pub fn begin(&self) -> SharedStreamState {
        let state = self.worker.take_stream_state();
        let handshake = self.take_handshake();
        if let Ok(mut state) = state.try_borrow_mut() {
            state.timings.handshake = handshake;
            state.costs.before = rt::task_cost();
            state.features = self.features();
            state.task = Some(self.key.get());
        }
        self.state.set(Some(Rc::clone(&state)));
        state
    }

    /// The stream that is served now.
    pub fn current(&self) -> Option<SharedStreamState> {
        let state = self.state.take();
        self.state.set(state.clone());
        state
    }

    /// Keeps the waker of the task that calls.
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

    /// Ends its stream at once, whatever that does (`shutdown session`, `on-marked-down`). False: it has none.
    pub fn kill(&self, why: Cause) -> bool {
        let has_stream = self.current().is_some();
        if has_stream {
            self.killed.set(Some(why));
            self.wake();
        }
        has_stream
    }

    /// Ends it at once: it has kept the worker from all others for too long.
    pub fn cut_off(&self) {
        self.killed.set(Some(Cause::Internal));
        self.wake();
    }

    /// Whether it is to end at once.
    #[inline]
    pub fn is_killed(&self) -> bool {
        self.killed.get().is_some()
    }
}
