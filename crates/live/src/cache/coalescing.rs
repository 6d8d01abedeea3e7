//! Request coalescing: of several requests for a response that is missing or stale, one is sent to a server, and the
//! others are woken when its response is stored or known not to be. Must never hold a response, read a clock, or call a
//! waker under its lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use base::moment::Moment;

use super::Cache;

/// The requests in flight, by key.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Box<[u8]>, Flight>>);

#[derive(Debug)]
struct Flight {
    /// Distinguishes successive requests for one key.
    number: u64,
    /// Another request may be sent from then on.
    until: Moment,
    /// It ended with a response that is stored, or is known not to be.
    is_known: Arc<AtomicBool>,
    wakers: Vec<Waker>,
}

/// The state of a request that waits for the leading one.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The leading request's number, and whether its response has become known.
    flight: Option<(u64, Arc<AtomicBool>)>,
}

/// How a wait for the leading request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlightResult {
    /// Its response is stored, or will not be: all waiting requests proceed by themselves.
    Known,
    /// It failed, or was replaced by another one: one of the waiting requests takes over.
    Open,
}

/// The role of a request.
#[derive(Debug)]
pub enum Role {
    /// It is sent to a server.
    Leads(Lead),
    /// It waits for the leading one.
    Follows,
}

/// The leading request. When dropped, one of the waiting requests takes over, or all proceed if its response is known
/// not to be stored.
#[derive(Debug)]
pub struct Lead {
    cache: Arc<Cache>,
    key: Box<[u8]>,
    number: u64,
    is_known: bool,
}

impl Lead {
    /// Sets whether its response is stored or known not to be: then no waiting request needs to take over.
    pub fn set_known(&mut self, is_known: bool) {
        self.is_known = is_known;
    }
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// Joins the requests for a key: the first one leads, alone until `until`.
    pub fn join(self: &Arc<Self>, key: &[u8], now: Moment, until: Moment) -> Role {
        let number = self.next_turn();
        let mut flights = self.flights(key).lock();
        if flights.get(key).is_some_and(|flight| now < flight.until) {
            return Role::Follows;
        }
        // Requests waiting for one that took too long wait for this one.
        let (wakers, is_known) = flights.remove(key).map(|flight| (flight.wakers, flight.is_known)).unwrap_or_default();
        flights.insert(key.into(), Flight { number, until, is_known, wakers });
        drop(flights);
        Role::Leads(Lead { cache: Arc::clone(self), key: key.into(), number, is_known: false })
    }

    /// Ready when the request for a key ends that was in flight at the first call with `waiting`. Wakes the task then.
    pub fn poll_landed(&self, key: &[u8], cx: &Context<'_>, waiting: &mut Waiting) -> Poll<FlightResult> {
        let mut flights = self.flights(key).lock();
        let (flight, known) = (flights.get_mut(key), waiting.flight.as_ref());
        match (flight, known) {
            (Some(flight), None) => {
                waiting.flight = Some((flight.number, Arc::clone(&flight.is_known)));
                flight.wakers.push(cx.waker().clone());
                Poll::Pending
            }
            (Some(flight), Some((number, _))) if flight.number == *number => Poll::Pending,
            (_, Some((_, is_known))) if is_known.load(Ordering::Acquire) => Poll::Ready(FlightResult::Known),
            _ => Poll::Ready(FlightResult::Open),
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut flights = self.cache.flights(&self.key).lock();
        // A known result also ends the wait for a successor of the request.
        let ends = flights.get(&self.key).is_some_and(|flight| self.is_known || flight.number == self.number);
        let flight = if ends { flights.remove(&self.key) } else { None };
        if let Some(flight) = &flight {
            flight.is_known.store(self.is_known, Ordering::Release);
        }
        drop(flights);
        flight.into_iter().flat_map(|flight| flight.wakers).for_each(Waker::wake);
    }
}
