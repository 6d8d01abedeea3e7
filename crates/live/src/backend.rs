//! A backend's servers and queues behind one short lock: once to assign a request, once to release its slot. Must
//! never call a waker while the lock is held, and its guards must never wait.

use super::judging::{self, Checker};
use super::queue::WaiterId;
use super::resumption::Written;
use super::servers::{Outcome, Servers};
use super::{
    Admin, BackendPlan, Counts, Ejection, HedgeCounts, Hedged, Observed, OutageReport, PickContext, ProxyState,
    QueuePositions, Removal, Seen, ServerPlan, ServerStatus, Setting, Standing, Transition,
};
use crate::health::{Health, Operation, Pace, Report, Symptom, Verdict};
use crate::saved_state::SavedState;
use balance::Load;
use base::moment::Moment;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How a guard holds the state that it gives its place back to: an `Arc`, or what costs less to clone, such as [`Local`]
/// or a reference.
pub trait Handle: Deref<Target = ProxyState> + Clone {}

impl<T: Deref<Target = ProxyState> + Clone> Handle for T {}

/// A worker's own handle to a proxy's state. Cloning an `Arc` writes to a cache line that all workers share, twice a
/// request; cloning this does not.
#[derive(Debug, Clone)]
pub struct Local(Rc<Anchor>);

/// Keeps the state alive for one worker.
#[derive(Debug)]
struct Anchor(Arc<ProxyState>);

impl Local {
    /// A handle for the calling worker.
    pub fn new(state: Arc<ProxyState>) -> Self {
        Self(Rc::new(Anchor(state)))
    }
}

impl Deref for Local {
    type Target = ProxyState;

    fn deref(&self) -> &ProxyState {
        &self.0.0
    }
}

/// What became of a request.
#[derive(Debug)]
pub enum Assignment<H: Handle = Arc<ProxyState>> {
    /// A server took it.
    Slot(ServerSlot<H>),
    /// It waits.
    Queued(QueueTicket<H>),
    /// No server takes part at all: 503, `SC`.
    Unavailable,
    /// The server that it is bound to, by its hash or by [`PickContext::server`], has `maxqueue` requests waiting.
    /// Where persistence bound it and `option redispatch` is on: assign it anew without. Else 503, `SQ`, with the name
    /// of [`ProxyState::bound_server`].
    QueueFull,
}

/// A request's place at a server. Dropping it hands the place to the next who waits, or frees it.
#[derive(Debug)]
pub struct ServerSlot<H: Handle = Arc<ProxyState>> {
    state: H,
    server: usize,
    /// The counts when it was taken, itself included.
    entered: Counts,
    held: bool,
}

/// A request's place in a queue. Dropping it leaves the queue; a place at a server that was granted to it and not
/// taken goes to the next.
#[derive(Debug)]
pub struct QueueTicket<H: Handle = Arc<ProxyState>> {
    state: H,
    waiter: WaiterId,
    /// Once the slot was taken.
    taken: Option<QueuePositions>,
}

/// The backend side of [`ProxyState`]. Aligned so that two backends never share a cache line.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Backend(Mutex<Servers>);

/// Calls those whose turn it is.
fn wake((transition, wakers): judging::Outcome) -> Option<Transition> {
    wakers.into_iter().for_each(Waker::wake);
    transition
}

/// Looks at a lock that is held, with longer and longer pauses: some microseconds.
const LOOKS: u32 = 32;

impl Backend {
    pub(super) fn new(plan: Option<&BackendPlan>) -> Self {
        Self(Mutex::new(Servers::new(plan)))
    }

    /// The lock is held for some tens of nanoseconds, so looking again beats sleeping, and the holder is spared the
    /// system call that wakes a sleeper. A caller that has looked long enough sleeps: the holder lost its processor.
    fn lock(&self) -> MutexGuard<'_, Servers> {
        for look in 0..LOOKS {
            match self.0.try_lock() {
                Ok(servers) => return servers,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..look).for_each(|_| std::hint::spin_loop()),
            }
        }
        // A transition cannot stop half way except by a fault in it; what is left is still the best there is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProxyState {
    /// Chooses a server for a request and takes a slot of it, or queues the request.
    pub fn assign(self: &Arc<Self>, request: &PickContext) -> Assignment {
        Self::assign_with(Arc::clone(self), request)
    }

    /// The same with another handle for the guards to keep.
    pub fn assign_with<H: Handle>(handle: H, request: &PickContext) -> Assignment<H> {
        let mut servers = handle.backend.lock();
        let (outcome, wakers) = servers.assign(request);
        let entered = match outcome {
            Outcome::Slot(server) => servers.counts(Some(server)),
            _ => Counts::default(),
        };
        drop(servers);
        wakers.into_iter().for_each(Waker::wake);
        match outcome {
            Outcome::Slot(server) => Assignment::Slot(ServerSlot { state: handle, server, entered, held: true }),
            Outcome::Queued(waiter) => Assignment::Queued(QueueTicket { state: handle, waiter, taken: None }),
            Outcome::Unavailable => Assignment::Unavailable,
            Outcome::QueueFull => Assignment::QueueFull,
        }
    }

    /// The server that a log line goes to, without taking a place there; `None`: no server takes part.
    pub fn choose(&self, request: &PickContext) -> Option<usize> {
        self.backend.lock().choose(request)
    }

    /// The server that a request is bound to, by its hash or by [`PickContext::server`]: the one to name in the log
    /// after [`Assignment::QueueFull`].
    pub fn bound_server(&self, request: &PickContext) -> Option<usize> {
        self.backend.lock().bound_server(request)
    }

    /// Counts as of now; `srv_conn` is 0 without a server. After a release, [`ServerSlot::release`] tells them for
    /// less, and as HAProxy logs them.
    pub fn counts(&self, server: Option<usize>) -> Counts {
        self.backend.lock().counts(server)
    }

    /// Whether requests that are bound to a server may go there: it is not in maintenance.
    pub fn is_usable(&self, server: usize) -> bool {
        self.backend.lock().is_usable(server)
    }

    /// What is set of a server.
    pub fn setting(&self, server: usize) -> Option<Setting> {
        self.backend.lock().setting(server)
    }

    /// Requests that wait in the backend's own queue, and in the one of a server.
    pub fn queued(&self, server: Option<usize>) -> (u32, u32) {
        self.backend.lock().queued(server)
    }

    /// What a server has to do, and whether the balance gives it requests.
    pub fn load(&self, server: usize) -> Option<(Load, bool)> {
        self.backend.lock().load(server)
    }

    /// Changes a server's weight. With a static algorithm only 0 and "not 0" make a difference, as in HAProxy.
    pub fn set_weight(&self, server: usize, weight: u32) {
        let wakers = self.backend.lock().set_weight(server, weight);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether weights other than 0 and the configured ones have an effect.
    pub fn heeds_weights(&self) -> bool {
        self.backend.lock().heeds_weights()
    }

    /// Changes a server's `maxconn`. Requests beyond a lower one are served to their end.
    pub fn set_maxconn(&self, server: usize, maxconn: Option<u32>) {
        let wakers = self.backend.lock().set_limit(server, maxconn);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What the administrator wants of a server. In maintenance its queue goes over to the backend's. Coming back starts
    /// its `slowstart`: call [`ProxyState::advance`] until that is over. `None`: there is no such server.
    pub fn set_admin(&self, server: usize, admin: Admin, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().set_admin(server, admin, now))
    }

    /// A server goes on where it was in the process before this one. Nothing has been sent there yet.
    pub fn resume(&self, server: &ServerPlan, saved: &SavedState, now: Moment) -> Option<Transition> {
        self.backend.lock().resume(server.index, Written::of(server), saved, now)
    }

    /// Sets what a column of the statistics tells of a server, or of all of them, before anything has happened.
    pub fn preset(&self, server: Option<usize>, column: &str, value: u64, now: Moment) {
        self.backend.lock().preset(server, column, value, now);
    }

    /// The server that this one tracks stands like that.
    pub(super) fn follow(&self, server: usize, leader: Standing, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().follow(server, leader, now))
    }

    /// What servers that track this one follow.
    pub fn standing(&self, server: usize) -> Option<Standing> {
        self.backend.lock().standing(server)
    }

    /// An order says what a server does, in the name of one of its checks.
    pub fn force(&self, server: usize, checker: Checker, operation: Operation, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().force(server, checker, operation, now))
    }

    /// Pauses or resumes one of a server's checks. False: it has none of the kind.
    pub fn enable_check(&self, server: usize, checker: Checker, enabled: bool) -> bool {
        self.backend.lock().enable(server, checker, enabled)
    }

    /// Whether a server has an address. Without one it is in maintenance.
    pub fn set_resolved(&self, server: usize, resolved: bool, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().set_resolved(server, resolved, now))
    }

    /// A task begins to serve all servers that warm up, in place of the one before. Returns its number.
    pub fn attend(&self) -> u32 {
        self.attendants.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Whether no other task has begun to since.
    pub fn is_attended_by(&self, attendant: u32) -> bool {
        self.attendants.load(Ordering::Relaxed) == attendant
    }

    /// Gives servers that warm up (`slowstart`) what is due by now. When the next step is due; `None`: all are warm.
    pub fn advance(&self, now: Moment) -> Option<Moment> {
        let (next, wakers) = self.backend.lock().advance(now);
        wakers.into_iter().for_each(Waker::wake);
        next
    }

    /// A check of a server begins. False: it is not to be checked, for it is in maintenance or its checks are paused.
    pub fn begin_check(&self, server: usize, checker: Checker) -> bool {
        self.backend.lock().begin_check(server, checker)
    }

    /// A check of a server ended: whether that is worth a line of the log, and what it changed.
    pub fn end_check(
        &self,
        server: usize,
        checker: Checker,
        report: Report,
        now: Moment,
    ) -> (bool, Option<Transition>) {
        // A success ends a row of errors.
        if checker == Checker::Health && report.status.verdict() == Some(Verdict::Passed) {
            self.forget_errors(server);
        }
        let (told, change, wakers) = self.backend.lock().end_check(server, checker, report, now);
        (told, wake((change, wakers)))
    }

    /// Ready once the next health check of a server is to come sooner than it was to.
    pub fn poll_hurry(&self, server: usize, cx: &Context<'_>) -> Poll<()> {
        self.backend.lock().poll_hurry(server, cx)
    }

    /// A connection to a server, or an answer of it, was as it should be, or not (`observe`). Where too many in a row were
    /// not: whether that is worth a line of the log, and what it changed.
    pub fn observe(
        &self,
        server: usize,
        observed: &Observed,
        symptom: Option<Symptom>,
        now: Moment,
    ) -> Option<(bool, Option<Transition>)> {
        let Some(symptom) = symptom else {
            self.forget_errors(server);
            return None;
        };
        let counter = self.symptoms.get(server)?;
        let errors = counter.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if errors < observed.limit || counter.swap(0, Ordering::Relaxed) < observed.limit {
            return None;
        }
        let found = (errors, symptom.text());
        let (told, change, wakers) = self.backend.lock().suspect(server, observed.on_error, found, now);
        Some((told, wake((change, wakers))))
    }

    /// Errors of a server are no longer in a row with those to come.
    fn forget_errors(&self, server: usize) {
        // Most of the time it is zero already, and no other processor has to fetch a line that was not written.
        if let Some(counter) = self.symptoms.get(server)
            && counter.load(Ordering::Relaxed) != 0
        {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// What one of a server's checks says; `None`: it has none of the kind.
    pub fn health(&self, server: usize, checker: Checker) -> Option<Health> {
        self.backend.lock().health(server, checker)
    }

    /// The time from one of a server's checks to the next; `None`: it has none of the kind.
    pub fn interval(&self, server: usize, checker: Checker, pace: &Pace) -> Option<Duration> {
        self.backend.lock().interval(server, checker, pace)
    }

    /// When no server could be used, as of `now`.
    pub fn outages(&self, now: Moment) -> OutageReport {
        self.backend.lock().outages(now)
    }

    /// The process begins to serve: servers that cannot be used have been out of use since then.
    pub fn begin(&self, now: Moment) {
        self.backend.lock().begin(now);
    }

    /// Clears how often servers went down, when they last did, and how often checks failed: of one server, or of all and
    /// the backend itself.
    pub fn clear_changes(&self, server: Option<usize>) {
        self.backend.lock().clear_changes(server);
    }

    /// How long a server was not usable since the start.
    pub fn downtime(&self, server: usize, now: Moment) -> Duration {
        self.backend.lock().downtime(server, now)
    }

    /// Adds a server, in maintenance: the one whose place is the next one. False: it is not.
    pub fn add_server(&self, server: &ServerPlan, now: Moment) -> bool {
        self.backend.lock().add(server, now) && self.symptoms.push(|_| AtomicU32::new(0)) == Ok(server.index)
    }

    /// Whether a server may be removed.
    pub fn removal(&self, server: usize) -> Removal {
        self.backend.lock().removal(server)
    }

    /// Removes a server if that is possible. Nothing is sent there any more.
    pub fn remove_server(&self, server: usize, now: Moment) -> Removal {
        self.backend.lock().remove(server, now)
    }

    /// When a server was removed; `None`: it was not.
    pub fn removed(&self, server: usize) -> Option<Moment> {
        self.backend.lock().removed(server)
    }

    /// How many servers had a place before the one that has it now.
    pub fn occupant(&self, server: usize) -> u32 {
        self.backend.lock().occupant(server)
    }

    /// Gives the place of a server that was removed to another one, which begins in maintenance. False: none was. Whoever
    /// calls this knows that nobody speaks of the one before any more.
    pub fn replace_server(&self, server: &ServerPlan, now: Moment) -> bool {
        let replaced = self.backend.lock().replace(server, now);
        if replaced && let Some(symptoms) = self.symptoms.get(server.index) {
            symptoms.store(0, Ordering::Relaxed);
        }
        replaced
    }

    /// A server has answered, or failed to. Of use with `eject-outliers` and `balance ewma`.
    pub fn heed(&self, server: usize, seen: Seen, now: Moment) -> Option<Ejection> {
        let (ejection, wakers) = self.backend.lock().heed(server, seen, now);
        wakers.into_iter().for_each(Waker::wake);
        ejection
    }

    /// The ejection of a server that was to end at that moment is over. False: it was before.
    pub fn end_ejection(&self, server: usize, until: Moment, now: Moment) -> bool {
        let (ended, wakers) = self.backend.lock().end_ejection(server, until, now);
        wakers.into_iter().for_each(Waker::wake);
        ended
    }

    /// A slot of another server than [`PickContext::exclude`], for a request that has one already or is a copy: where the balance has
    /// one that is free, and nowhere else. It never waits.
    pub fn assign_spare<H: Handle>(handle: H, request: &PickContext) -> Option<ServerSlot<H>> {
        let mut servers = handle.backend.lock();
        let (server, wakers) = servers.assign_spare(request);
        let entered = servers.counts(server);
        drop(servers);
        wakers.into_iter().for_each(Waker::wake);
        server.map(|server| ServerSlot { state: handle, server, entered, held: true })
    }

    /// A request begins (`retry-budget`, `hedge-requests`).
    #[inline]
    pub fn note_request(&self, now: Moment) {
        if let Some(budget) = &self.budget {
            budget.note_request(now);
        }
        if let Some(hedging) = &self.hedging {
            hedging.note_request(now);
        }
    }

    /// How long a server has until a second one is asked as well; `None`: for ever, or too little is known.
    #[inline]
    pub fn hedge_delay(&self) -> Option<Duration> {
        self.hedging.as_ref()?.delay()
    }

    /// Whether one more request may go to a second server; it counts then.
    pub fn may_hedge(&self, now: Moment) -> bool {
        self.hedging.as_ref().is_some_and(|hedging| hedging.take(now))
    }

    /// An answer took so long to begin, or at least so long.
    #[inline]
    pub fn note_latency(&self, took: impl FnOnce() -> Option<Duration>, now: Moment) {
        if let Some(hedging) = &self.hedging
            && let Some(took) = took()
        {
            hedging.note_latency(took, now);
        }
    }

    /// Something came of a second attempt, or there was none.
    pub fn note_hedge(&self, hedged: Hedged) {
        if let Some(hedging) = &self.hedging {
            hedging.count(hedged);
        }
    }

    /// What came of second attempts; `None`: they are not configured.
    pub fn hedge_counts(&self) -> Option<HedgeCounts> {
        Some(self.hedging.as_ref()?.counts())
    }

    /// Whether the budget allows that one more request is sent again; it counts then.
    #[inline]
    pub fn may_retry(&self, now: Moment) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.take(now))
    }

    /// Everything about a server.
    pub fn status(&self, server: usize) -> Option<ServerStatus> {
        self.backend.lock().status(server)
    }
}

impl<H: Handle> ServerSlot<H> {
    /// The server's index in its backend.
    pub fn server(&self) -> usize {
        self.server
    }

    /// The counts of the moment when the place was taken, this request included.
    pub fn entered(&self) -> Counts {
        self.entered
    }

    /// Gives the place back as dropping does, and tells the counts that the log line wants, without a second lock: as
    /// they were when the place was free, before the next request got it.
    pub fn release(mut self) -> Counts {
        self.give_back()
    }

    fn give_back(&mut self) -> Counts {
        self.held = false;
        let (counts, waker) = self.state.backend.lock().release(self.server);
        if let Some(waker) = waker {
            waker.wake();
        }
        counts
    }
}

impl<H: Handle> Drop for ServerSlot<H> {
    fn drop(&mut self) {
        if self.held {
            self.give_back();
        }
    }
}

impl<H: Handle> QueueTicket<H> {
    /// Ready with the slot once it is this request's turn. After that it stays pending for ever.
    pub fn poll_granted(&mut self, cx: &mut Context<'_>) -> Poll<ServerSlot<H>> {
        if self.taken.is_some() {
            return Poll::Pending;
        }
        let mut servers = self.state.backend.lock();
        if !servers.poll(self.waiter, cx.waker()) {
            return Poll::Pending;
        }
        let (granted, positions) = servers.take(self.waiter);
        let entered = servers.counts(granted);
        drop(servers);
        self.taken = Some(positions);
        match granted {
            Some(server) => Poll::Ready(ServerSlot { state: self.state.clone(), server, entered, held: true }),
            None => Poll::Pending,
        }
    }

    /// The request's positions in the queues for the log; of use when it was granted as well as when it gives up.
    pub fn positions(&self) -> QueuePositions {
        self.taken.unwrap_or_else(|| self.state.backend.lock().positions(self.waiter))
    }

    /// The server whose own queue it waits in, for the log; `None` in the backend's queue.
    pub fn server(&self) -> Option<usize> {
        match self.taken {
            Some(_) => None,
            None => self.state.backend.lock().queued_at(self.waiter),
        }
    }
}

impl<H: Handle> Drop for QueueTicket<H> {
    fn drop(&mut self) {
        if self.taken.is_some() {
            return;
        }
        let waker = self.state.backend.lock().give_up(self.waiter);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
