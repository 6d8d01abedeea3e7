//! The tasks that serve the streams of sessions: a session's own, which serves one stream after the other, and one for each
//! stream of a connection that carries several. Owns what others reach a running stream by: its facts, its waker, the order
//! to end. Must never serve a stream.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;
use std::task::Waker;

use base::slab::Key;
use rt::LocalRc;

use crate::facts::{Cause, Outcome, Phase};
use crate::session::Session;
use crate::stream::{conclude, filter, tracking};
use crate::worker::{SharedFacts, Worker};

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
    facts: Cell<Option<SharedFacts>>,
    waker: Cell<Option<Waker>>,
    /// Its place on the worker; [`NOWHERE`]: none yet, or none any more.
    key: Cell<Key>,
    /// Set when its stream is to end at once, whatever it does; the connection as well where it is the task's own.
    killed: Cell<Option<Cause>>,
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
        Self { owner, facts: Cell::default(), waker: Cell::default(), key, killed: Cell::default() }
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

    /// Begins a stream: its facts are reachable from here until it is concluded.
    pub fn begin(&self) -> SharedFacts {
        let facts = self.worker.take_facts();
        let handshake = self.take_handshake();
        if let Ok(mut facts) = facts.try_borrow_mut() {
            facts.timings.handshake = handshake;
            facts.cost_before = rt::task_cost();
            facts.task = Some(self.key.get());
        }
        self.facts.set(Some(Rc::clone(&facts)));
        facts
    }

    /// The stream that is served now.
    pub fn current(&self) -> Option<SharedFacts> {
        let facts = self.facts.take();
        self.facts.set(facts.clone());
        facts
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

    /// Concludes the stream of a task that was killed. It ends like none that was cut off: always in the same state, as
    /// HAProxy logs it.
    pub fn conclude_killed(&self) {
        let Some(facts) = self.current() else { return };
        if let Ok(mut known) = facts.try_borrow_mut() {
            known.outcome = Outcome::new(self.killed.get().unwrap_or(Cause::Killed), Phase::Connect);
            if self.is_http() {
                known.status = 500;
            }
        }
        conclude::conclude(self, facts);
    }

    /// Concludes the stream of a task that panicked and was dropped: what is known of it is counted and logged as internal.
    pub fn conclude_panicked(&self) {
        let Some(facts) = self.current() else { return };
        if let Ok(mut facts) = facts.try_borrow_mut() {
            facts.outcome = Outcome::new(Cause::Internal, Phase::Done);
        }
        self.facts.set(None);
        conclude::conclude(self, facts);
    }
}

/// Ends a stream: its facts are given back, and its task serves none any more.
pub fn end(worker: &Worker, facts: SharedFacts) {
    if let Ok(mut known) = facts.try_borrow_mut() {
        if let Some(task) = known.task.take().and_then(|key| worker.task(key)) {
            task.facts.set(None);
        }
        if let Some(filters) = known.filters.take() {
            filter::end(&filters);
        }
        tracking::end(known.tracking.get_mut());
    }
    worker.keep_facts(facts);
}
