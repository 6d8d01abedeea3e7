//! Connection counts with limits: of the process, a frontend, a listening address. A worker that reaches the limit
//! parks; a freed slot wakes exactly one parked worker, the one that has waited longest. Must never hand a slot over
//! without its guard.

use super::{ProcessState, ProxyState};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// A count with a limit, and the workers that wait for it to fall. Aligned so that no two of them share a cache line.
#[derive(Debug)]
#[repr(align(128))]
pub struct Gate {
    inside: AtomicU32,
    bound: AtomicU32,
    /// Length of `parked`, so that a release need not lock when there is no waiter.
    waiting: AtomicU32,
    parked: Mutex<VecDeque<(u64, Waker)>>,
}

impl Gate {
    /// Creates an empty gate with that limit.
    pub fn new(bound: u32) -> Self {
        Self {
            inside: AtomicU32::new(0),
            bound: AtomicU32::new(bound),
            waiting: AtomicU32::new(0),
            parked: Mutex::new(VecDeque::new()),
        }
    }

    /// The current count.
    pub fn inside(&self) -> u32 {
        self.inside.load(SeqCst)
    }

    /// The limit.
    pub fn bound(&self) -> u32 {
        self.bound.load(SeqCst)
    }

    /// Changes the limit. No holder is removed; new capacity wakes that many waiters.
    pub fn set_bound(&self, bound: u32) {
        self.bound.store(bound, SeqCst);
        let room = bound.saturating_sub(self.inside());
        for _ in 0..room {
            if !self.wake_one() {
                break;
            }
        }
    }

    /// Enters if there is no waiter and a slot is free.
    #[inline]
    pub(super) fn enter_freely(&self) -> Option<Inside<'_>> {
        (self.waiting.load(SeqCst) == 0 && self.enter()).then(|| Inside(self))
    }

    fn has_room(&self) -> bool {
        self.inside() < self.bound()
    }

    fn enter(&self) -> bool {
        let bound = self.bound();
        self.inside.fetch_update(SeqCst, SeqCst, |inside| (inside < bound).then(|| inside + 1)).is_ok()
    }

    /// Enters, or parks `waker` under `key`. Both happen under the lock, and a release decrements the count before it
    /// reads `waiting`: whichever comes second sees the other, so no wake-up is lost.
    pub(super) fn enter_or_park(&self, key: u64, waker: &Waker) -> Option<Inside<'_>> {
        // Without a parked waiter there is nothing to cancel.
        if let Some(inside) = self.enter_freely() {
            return Some(inside);
        }
        let mut parked = self.parked();
        match parked.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) => entry.1.clone_from(waker),
            None => parked.push_back((key, waker.clone())),
        }
        self.waiting.store(parked.len() as u32, SeqCst);
        let entered = self.enter();
        if entered {
            parked.retain(|entry| entry.0 != key);
            self.waiting.store(parked.len() as u32, SeqCst);
        }
        entered.then(|| Inside(self))
    }

    /// Removes the waiter `key`. If it has been woken already, passes the wake-up on to the next.
    fn unpark(&self, key: u64) {
        if self.waiting.load(SeqCst) == 0 {
            return;
        }
        {
            let mut parked = self.parked();
            let before = parked.len();
            parked.retain(|entry| entry.0 != key);
            self.waiting.store(parked.len() as u32, SeqCst);
            if parked.len() != before {
                return;
            }
        }
        if self.has_room() {
            self.wake_one();
        }
    }

    #[inline]
    pub(super) fn leave(&self) {
        let before = self.inside.fetch_sub(1, SeqCst);
        // After the limit was lowered there may be no free slot yet.
        if self.waiting.load(SeqCst) != 0 && before <= self.bound() {
            self.wake_one();
        }
    }

    fn wake_one(&self) -> bool {
        if self.waiting.load(SeqCst) == 0 {
            return false;
        }
        let waker = {
            let mut parked = self.parked();
            let entry = parked.pop_front();
            self.waiting.store(parked.len() as u32, SeqCst);
            entry
        };
        let woken = waker.is_some();
        if let Some((_, waker)) = waker {
            waker.wake();
        }
        woken
    }

    /// The list is consistent after every single operation, so a panic elsewhere does not corrupt it.
    fn parked(&self) -> MutexGuard<'_, VecDeque<(u64, Waker)>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot of a gate. Dropping it releases the slot.
#[derive(Debug)]
#[must_use]
pub struct Inside<'a>(&'a Gate);

impl Inside<'_> {
    /// Transfers the slot to another owner, which must call [`Gate::leave`].
    pub(super) fn hand_over(self) {
        std::mem::forget(self);
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl ProcessState {
    /// The current connections of the process (`actconn` of the log).
    pub fn actconn(&self) -> u32 {
        self.gate.inside()
    }

    /// Returns the gate, to read or change its limit.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Counts one connection, or parks it: `waker` is woken once when a slot is free. A second call with the same `key`
    /// replaces the waker. After a wake-up, call it again.
    pub fn enter_or_park(&self, key: u64, waker: &Waker) -> Option<Inside<'_>> {
        self.gate.enter_or_park(key, waker)
    }

    /// Cancels a parked waiter: removes `key`, and passes on a pending wake-up.
    pub fn unpark(&self, key: u64) {
        self.gate.unpark(key);
    }
}

impl ProxyState {
    /// The current connections of the frontend (`feconn` of the log).
    pub fn feconn(&self) -> u32 {
        self.front.gate.inside()
    }

    /// Returns the frontend's gate, to read or change its limit.
    pub fn frontend_gate(&self) -> &Gate {
        &self.front.gate
    }

    /// Counts one connection, or parks it: see [`ProcessState::enter_or_park`].
    pub fn enter_frontend_or_park(&self, key: u64, waker: &Waker) -> Option<Inside<'_>> {
        self.front.gate.enter_or_park(key, waker)
    }

    /// See [`ProcessState::unpark`].
    pub fn unpark_frontend(&self, key: u64) {
        self.front.gate.unpark(key);
    }

    /// Counts one connection at the listening address `bind`, or parks it: see [`ProcessState::enter_or_park`]. An
    /// address without its own `maxconn` is unlimited and counts nothing: inner `None`.
    pub fn enter_bind_or_park(&self, bind: usize, key: u64, waker: &Waker) -> Option<Option<Inside<'_>>> {
        match self.bind_gate(bind) {
            Some(gate) => gate.enter_or_park(key, waker).map(Some),
            None => Some(None),
        }
    }

    /// Returns the gate of a listening address with its own `maxconn`.
    #[inline]
    pub(super) fn bind_gate(&self, bind: usize) -> Option<&Gate> {
        self.front.binds.get(bind).and_then(Option::as_ref)
    }

    /// See [`ProcessState::unpark`].
    pub fn unpark_bind(&self, bind: usize, key: u64) {
        if let Some(gate) = self.bind_gate(bind) {
            gate.unpark(key);
        }
    }
}
