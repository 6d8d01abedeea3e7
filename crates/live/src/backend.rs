//! A backend's servers and queues under one short lock: acquired once to assign a request, once to release its slot.
//! Must never call a waker while the lock is held, and its guards must never wait.

use super::queue::WaiterId;
use super::resumption::ServerConfiguration;
use super::server_transitions::{Checker, StateChange};
use super::servers::{Outcome, Servers};
use super::{
    Admin, AdoptedState, BackendPlan, Counts, Ejection, HedgeCounts, Hedged, Observation, ObservePlan, OutageReport,
    PickContext, ProxyState, QueuePositions, Removal, ServerCounts, ServerPlan, ServerStatus, Setting, Transition,
};
use crate::health::{Health, Operation, Pace, Report, Symptom, Verdict};
use crate::lease::slots::SlotReading;
use crate::saved_state::SavedState;
use balance::Load;
use base::moment::Moment;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A reference through which a guard releases its slot: an `Arc`, or a handle that is cheaper to clone, such as
/// [`Local`] or a reference.
pub trait Handle: Deref<Target = ProxyState> + Clone {}

impl<T: Deref<Target = ProxyState> + Clone> Handle for T {}

/// A worker's own handle to a proxy's state. Cloning an `Arc` writes twice per request to a cache line that all workers
/// share; cloning this does not.
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

/// The result of an assignment.
#[derive(Debug)]
pub enum Assignment<H: Handle = Arc<ProxyState>> {
    /// The request has a slot of a server.
    Slot(ServerSlot<H>),
    /// The request is queued.
    Queued(QueueTicket<H>),
    /// No server is available: 503, `SC`.
    Unavailable,
    /// The server that the request is bound to, by its hash or by [`PickContext::server`], has `maxqueue` queued
    /// requests. If persistence bound it and `option redispatch` is on: assign it again without that server. Otherwise
    /// 503, `SQ`, with the name of [`ProxyState::bound_server`].
    QueueFull,
}

/// A slot of a server. Dropping it passes the slot to the next queued request, or frees it.
#[derive(Debug)]
pub struct ServerSlot<H: Handle = Arc<ProxyState>> {
    state: H,
    server: usize,
    /// The counts when the slot was taken, including it.
    entered: Counts,
    held: bool,
}

/// A request's position in a queue. Dropping it leaves the queue; a slot that was granted but not taken is passed to
/// the next request.
#[derive(Debug)]
pub struct QueueTicket<H: Handle = Arc<ProxyState>> {
    state: H,
    waiter: WaiterId,
    /// Set when the slot is taken.
    taken: Option<QueuePositions>,
}

/// The backend part of [`ProxyState`]. Aligned so that two backends never share a cache line.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Backend(Mutex<Servers>);

/// Calls the wakers of requests that may proceed.
fn wake(change: StateChange) -> Option<Transition> {
    change.wakers.into_iter().for_each(Waker::wake);
    change.transition
}

/// Number of attempts to lock before sleeping, with increasing pauses: some microseconds in total.
const LOOKS: u32 = 32;

impl Backend {
    pub(super) fn new(plan: Option<&BackendPlan>) -> Self {
        Self(Mutex::new(Servers::new(plan)))
    }

    /// The lock is held for some tens of nanoseconds, so spinning costs less than sleeping, and the holder need not
    /// wake a sleeper with a system call. After [`LOOKS`] attempts the caller sleeps: the holder was probably
    /// preempted.
    fn lock(&self) -> MutexGuard<'_, Servers> {
        for look in 0..LOOKS {
            match self.0.try_lock() {
                Ok(servers) => return servers,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..look).for_each(|_| std::hint::spin_loop()),
            }
        }
        // A transition can only be interrupted by a bug in it; the remaining state is still the best available.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProxyState {
    /// Selects a server for a request and takes a slot of it, or queues the request.
    pub fn assign(self: &Arc<Self>, request: &PickContext) -> Assignment {
        Self::assign_with(Arc::clone(self), request)
    }

    /// The same with a given handle for the guards.
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

    /// Selects the server for a log line, without taking a slot; `None`: no server is available.
    pub fn choose(&self, request: &PickContext) -> Option<usize> {
        self.backend.lock().choose(request)
    }

    /// Returns the server that a request is bound to, by its hash or by [`PickContext::server`]: the server to log
    /// after [`Assignment::QueueFull`].
    pub fn bound_server(&self, request: &PickContext) -> Option<usize> {
        self.backend.lock().bound_server(request)
    }

    /// Returns the current counts; `srv_conn` is 0 without a server. To release a slot as well, [`ServerSlot::release`]
    /// is cheaper, and returns them as HAProxy logs them.
    pub fn counts(&self, server: Option<usize>) -> Counts {
        self.backend.lock().counts(server)
    }

    /// Whether requests bound to a server may be sent there: it is not in maintenance.
    pub fn is_usable(&self, server: usize) -> bool {
        self.backend.lock().is_usable(server)
    }

    /// Returns the settings of a server.
    pub fn setting(&self, server: usize) -> Option<Setting> {
        self.backend.lock().setting(server)
    }

    /// Returns the lengths of the backend's own queue and of a server's queue.
    pub fn queued(&self, server: Option<usize>) -> (u32, u32) {
        self.backend.lock().queued(server)
    }

    /// Returns a server's load, and whether the load balancing algorithm selects it.
    pub fn load(&self, server: usize) -> Option<(Load, bool)> {
        self.backend.lock().load(server)
    }

    /// Changes a server's weight. A static algorithm distinguishes only zero and non-zero weights, as in HAProxy.
    pub fn set_weight(&self, server: usize, weight: u32) {
        let wakers = self.backend.lock().set_weight(server, weight);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether weights other than 0 and the configured ones have an effect.
    pub fn heeds_weights(&self) -> bool {
        self.backend.lock().heeds_weights()
    }

    /// Changes a server's `maxconn`. Requests beyond a lowered limit are not interrupted.
    pub fn set_maxconn(&self, server: usize, maxconn: Option<u32>) {
        let wakers = self.backend.lock().set_limit(server, maxconn);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Sets the slots that a server may use at most (`maxconn-store`); `u32::MAX`: as many as it has. Requests beyond that are not
    /// interrupted. Returns its load; `None`: it was removed.
    pub fn lease_slots(&self, server: usize, slots: u32) -> Option<SlotReading> {
        let leased = self.backend.lock().lease(server, slots);
        let (reading, wakers) = leased?;
        wakers.into_iter().for_each(Waker::wake);
        Some(reading)
    }

    /// Sets the administrative state of a server. In maintenance its queue is moved to the backend's. Leaving
    /// maintenance starts its `slowstart`: call [`ProxyState::advance`] until it is complete. `None`: no such server.
    pub fn set_admin(&self, server: usize, admin: Admin, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().set_admin(server, admin, now))
    }

    /// Restores a server's state from the previous process. Must be called before requests are sent to it.
    pub fn resume(&self, server: &ServerPlan, saved: &SavedState, now: Moment) -> Option<Transition> {
        self.backend.lock().resume(server.index, ServerConfiguration::of(server), saved, now)
    }

    /// Sets a column of the statistics of a server, or of all servers, before anything was counted.
    pub fn preset(&self, server: Option<usize>, column: &str, value: u64, now: Moment) {
        self.backend.lock().preset(server, column, value, now);
    }

    /// Applies the state of the tracked server to this one.
    pub(super) fn follow(&self, server: usize, leader: AdoptedState, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().follow(server, leader, now))
    }

    /// Returns the state that tracking servers adopt.
    pub fn standing(&self, server: usize) -> Option<AdoptedState> {
        self.backend.lock().standing(server)
    }

    /// Forces the operational state of a server on behalf of one of its checks, by a command.
    pub fn force(&self, server: usize, checker: Checker, operation: Operation, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().force(server, checker, operation, now))
    }

    /// Pauses or resumes one of a server's checks. False: the server has no such check.
    pub fn enable_check(&self, server: usize, checker: Checker, enabled: bool) -> bool {
        self.backend.lock().enable(server, checker, enabled)
    }

    /// Sets whether a server has an address. Without one it is in maintenance.
    pub fn set_resolved(&self, server: usize, resolved: bool, now: Moment) -> Option<Transition> {
        wake(self.backend.lock().set_resolved(server, resolved, now))
    }

    /// Registers a task that advances `slowstart` of all servers, and supersedes the previous one. Returns its number.
    pub fn attend(&self) -> u32 {
        self.attendants.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Whether no other task has been registered since.
    pub fn is_attended_by(&self, attendant: u32) -> bool {
        self.attendants.load(Ordering::Relaxed) == attendant
    }

    /// Advances servers in `slowstart` to their weight as of `now`. Returns the time of the next step; `None`: all are
    /// complete.
    pub fn advance(&self, now: Moment) -> Option<Moment> {
        let (next, wakers) = self.backend.lock().advance(now);
        wakers.into_iter().for_each(Waker::wake);
        next
    }

    /// Begins a check of a server. False: it must not be checked, because it is in maintenance or the check is paused.
    pub fn begin_check(&self, server: usize, checker: Checker) -> bool {
        self.backend.lock().begin_check(server, checker)
    }

    /// Ends a check of a server: returns whether to log the result, and what it changed.
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
        let (told, change) = self.backend.lock().end_check(server, checker, report, now);
        (told, wake(change))
    }

    /// Ready when the next health check of a server is due earlier than scheduled.
    pub fn poll_hurry(&self, server: usize, cx: &Context<'_>) -> Poll<()> {
        self.backend.lock().poll_hurry(server, cx)
    }

    /// Records the result of a connection to a server, or of a response (`observe`). After too many consecutive errors:
    /// returns whether to log it, and what it changed.
    pub fn observe(
        &self,
        server: usize,
        observed: &ObservePlan,
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
        let (told, change) = self.backend.lock().suspect(server, observed.on_error, errors, symptom.text(), now);
        Some((told, wake(change)))
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

    /// Returns the health of a server by one of its checks; `None`: it has no such check.
    pub fn health(&self, server: usize, checker: Checker) -> Option<Health> {
        self.backend.lock().health(server, checker)
    }

    /// Returns the interval to the next check; `None`: the server has no such check.
    pub fn interval(&self, server: usize, checker: Checker, pace: &Pace) -> Option<Duration> {
        self.backend.lock().interval(server, checker, pace)
    }

    /// Reports the outages of the backend (no usable server), as of `now`.
    pub fn outages(&self, now: Moment) -> OutageReport {
        self.backend.lock().outages(now)
    }

    /// Records the start of the process: servers that are unusable count as unusable since then.
    pub fn begin(&self, now: Moment) {
        self.backend.lock().begin(now);
    }

    /// Clears the number of transitions to down, their last time, and the number of failed checks: of one server, or of
    /// all and the backend itself.
    pub fn clear_changes(&self, server: Option<usize>) {
        self.backend.lock().clear_changes(server);
    }

    /// The total time that a server was unusable since the start.
    pub fn downtime(&self, server: usize, now: Moment) -> Duration {
        self.backend.lock().downtime(server, now)
    }

    /// Adds a server, in maintenance, at the next index. False: its index is another one.
    pub fn add_server(&self, server: &ServerPlan, now: Moment) -> bool {
        self.backend.lock().add(server, now) && self.symptoms.push(|_| AtomicU32::new(0)) == Ok(server.index)
    }

    /// Whether a server may be removed.
    pub fn removal(&self, server: usize) -> Removal {
        self.backend.lock().removal(server)
    }

    /// Removes a server if possible. No requests are sent to it after that.
    pub fn remove_server(&self, server: usize, now: Moment) -> Removal {
        self.backend.lock().remove(server, now)
    }

    /// Returns when a server was removed; `None`: it was not.
    pub fn removed(&self, server: usize) -> Option<Moment> {
        self.backend.lock().removed(server)
    }

    /// The number of servers that had this index before the current one.
    pub fn occupant(&self, server: usize) -> u32 {
        self.backend.lock().occupant(server)
    }

    /// Replaces a removed server with a new one, which begins in maintenance. False: none was removed at that index.
    /// The caller guarantees that there are no references to the removed server left.
    pub fn replace_server(&self, server: &ServerPlan, now: Moment) -> bool {
        let replaced = self.backend.lock().replace(server, now);
        if replaced && let Some(symptoms) = self.symptoms.get(server.index) {
            symptoms.store(0, Ordering::Relaxed);
        }
        replaced
    }

    /// Records a response or a failure of a server. Used by `eject-outliers` and `balance ewma`.
    pub fn heed(&self, server: usize, seen: Observation, now: Moment) -> Option<Ejection> {
        let (ejection, wakers) = self.backend.lock().heed(server, seen, now);
        wakers.into_iter().for_each(Waker::wake);
        ejection
    }

    /// Ends the ejection of a server that was scheduled to end at `until`. False: it has ended already.
    pub fn end_ejection(&self, server: usize, until: Moment, now: Moment) -> bool {
        let (ended, wakers) = self.backend.lock().end_ejection(server, until, now);
        wakers.into_iter().for_each(Waker::wake);
        ended
    }

    /// Takes a free slot of another server than [`PickContext::exclude`], for a request that has a slot already or is a
    /// copy. Only if the algorithm selects one with a free slot; never queues.
    pub fn assign_spare<H: Handle>(handle: H, request: &PickContext) -> Option<ServerSlot<H>> {
        let mut servers = handle.backend.lock();
        let (server, wakers) = servers.assign_spare(request);
        let entered = servers.counts(server);
        drop(servers);
        wakers.into_iter().for_each(Waker::wake);
        server.map(|server| ServerSlot { state: handle, server, entered, held: true })
    }

    /// Counts a request (`retry-budget`, `hedge-requests`).
    #[inline]
    pub fn note_request(&self, now: Moment) {
        if let Some(budget) = &self.budget {
            budget.note_request(now);
        }
        if let Some(hedging) = &self.hedging {
            hedging.note_request(now);
        }
    }

    /// The delay after which a request is hedged to a second server; `None`: never, or too few responses are known.
    #[inline]
    pub fn hedge_delay(&self) -> Option<Duration> {
        self.hedging.as_ref()?.delay()
    }

    /// Whether another request may be hedged; if so, it is counted.
    pub fn may_hedge(&self, now: Moment) -> bool {
        self.hedging.as_ref().is_some_and(|hedging| hedging.take(now))
    }

    /// Records the latency of a response, or a lower bound of it.
    #[inline]
    pub fn note_latency(&self, took: impl FnOnce() -> Option<Duration>, now: Moment) {
        if let Some(hedging) = &self.hedging
            && let Some(took) = took()
        {
            hedging.note_latency(took, now);
        }
    }

    /// Records the result of a hedged request, or why it was not hedged.
    pub fn note_hedge(&self, hedged: Hedged) {
        if let Some(hedging) = &self.hedging {
            hedging.count(hedged);
        }
    }

    /// Returns the counters of hedged requests; `None`: not configured.
    pub fn hedge_counts(&self) -> Option<HedgeCounts> {
        Some(self.hedging.as_ref()?.counts())
    }

    /// Whether the budget allows another retry; if so, it is counted.
    #[inline]
    pub fn may_retry(&self, now: Moment) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.take(now))
    }

    /// Returns the full status of a server.
    pub fn status(&self, server: usize) -> Option<ServerStatus> {
        self.backend.lock().status(server)
    }

    /// Returns how many of its servers serve. The lock is held for a bounded number of servers at a time.
    pub fn server_counts(&self) -> ServerCounts {
        /// Servers per lock.
        const BATCH: usize = 64;
        let (mut counts, mut from) = (ServerCounts::default(), 0);
        while self.backend.lock().count_servers(from..from + BATCH, &mut counts) {
            from += BATCH;
        }
        counts
    }
}

impl<H: Handle> ServerSlot<H> {
    pub fn server(&self) -> usize {
        self.server
    }

    /// Returns the counts when the slot was taken, including this request.
    pub fn entered(&self) -> Counts {
        self.entered
    }

    /// Releases the slot and returns the counts for the log line without a second lock: as of when the slot was free,
    /// before the next request got it.
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
    /// Ready with the slot when it is granted. Pending forever after that.
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

    /// Returns the request's positions in the queues for the log, whether it was granted a slot or gives up.
    pub fn positions(&self) -> QueuePositions {
        self.taken.unwrap_or_else(|| self.state.backend.lock().positions(self.waiter))
    }

    /// Returns the server in whose queue it waits, for the log; `None`: in the backend's queue.
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
