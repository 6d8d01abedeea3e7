//! Requests for something that a cache has not, or that is too old: one of them goes to a server, and the others learn when its
//! response is stored or will not be. Must never hold a response, read a clock, or wake anybody under its lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use base::moment::Moment;

use super::Cache;

/// What is under way, by key.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Box<[u8]>, Flight>>);

#[derive(Debug)]
struct Flight {
    /// Tells those apart that follow one another.
    number: u64,
    /// Another request may go from then on.
    until: Moment,
    /// It has ended with a response that is stored, or known not to be.
    is_known: Arc<AtomicBool>,
    wakers: Vec<Waker>,
}

/// A request that waits for the one that leads.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Its number, and whether its response became known.
    flight: Option<(u64, Arc<AtomicBool>)>,
}

/// How a wait for another request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landed {
    /// Its response is stored, or will not be: each request goes on by itself.
    Known,
    /// It has failed, or another one leads in its place: one of those that wait takes over.
    Open,
}

/// Which part a request has.
#[derive(Debug)]
pub enum Role {
    /// It goes to a server.
    Leads(Lead),
    /// Another one does.
    Follows,
}

/// The request that goes to a server. Dropped, one of the others does, or all where its response is known not to be stored.
#[derive(Debug)]
pub struct Lead {
    cache: Arc<Cache>,
    key: Box<[u8]>,
    number: u64,
    is_known: bool,
}

impl Lead {
    /// Whether its response is stored, or will not be: those that wait need not take over then.
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
    /// A request asks for that key: until when it goes alone, if it is the first one.
    pub fn join(self: &Arc<Self>, key: &[u8], now: Moment, until: Moment) -> Role {
        let number = self.next_turn();
        let mut flights = self.flights(key).lock();
        if flights.get(key).is_some_and(|flight| now < flight.until) {
            return Role::Follows;
        }
        // Those that wait for one that takes too long wait for this one.
        let (wakers, is_known) = flights.remove(key).map(|flight| (flight.wakers, flight.is_known)).unwrap_or_default();
        flights.insert(key.into(), Flight { number, until, is_known, wakers });
        drop(flights);
        Role::Leads(Lead { cache: Arc::clone(self), key: key.into(), number, is_known: false })
    }

    /// Ready once the request has ended that was under way for a key when this was called first with `waiting`. The task is woken then.
    pub fn poll_landed(&self, key: &[u8], cx: &Context<'_>, waiting: &mut Waiting) -> Poll<Landed> {
        let mut flights = self.flights(key).lock();
        let (flight, known) = (flights.get_mut(key), waiting.flight.as_ref());
        match (flight, known) {
            (Some(flight), None) => {
                waiting.flight = Some((flight.number, Arc::clone(&flight.is_known)));
                flight.wakers.push(cx.waker().clone());
                Poll::Pending
            }
            (Some(flight), Some((number, _))) if flight.number == *number => Poll::Pending,
            (_, Some((_, is_known))) if is_known.load(Ordering::Acquire) => Poll::Ready(Landed::Known),
            _ => Poll::Ready(Landed::Open),
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut flights = self.cache.flights(&self.key).lock();
        // What has become known is known to those as well that wait for another one in its place.
        let ends = flights.get(&self.key).is_some_and(|flight| self.is_known || flight.number == self.number);
        let flight = if ends { flights.remove(&self.key) } else { None };
        if let Some(flight) = &flight {
            flight.is_known.store(self.is_known, Ordering::Release);
        }
        drop(flights);
        flight.into_iter().flat_map(|flight| flight.wakers).for_each(Waker::wake);
    }
}
