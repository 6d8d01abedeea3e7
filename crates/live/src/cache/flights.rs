//! Requests for something that a cache has not, or that is too old: one of them goes to a server, and the others learn when its
//! response is stored or will not be. Must never hold a response, read a clock, or wake anybody under its lock.

use std::collections::HashMap;
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
    wakers: Vec<Waker>,
}

/// Which part a request has.
#[derive(Debug)]
pub enum Role {
    /// It goes to a server.
    Leads(Lead),
    /// Another one does.
    Follows,
}

/// The request that goes to a server. Dropped, the others go on.
#[derive(Debug)]
pub struct Lead {
    cache: Arc<Cache>,
    key: Box<[u8]>,
    number: u64,
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
        // Those that wait for one that takes too long go on by themselves.
        let wakers = flights.remove(key).map(|flight| flight.wakers).unwrap_or_default();
        flights.insert(key.into(), Flight { number, until, wakers });
        drop(flights);
        Role::Leads(Lead { cache: Arc::clone(self), key: key.into(), number })
    }

    /// Ready once nothing is under way for a key. The task is woken then, which `is_noted` remembers.
    pub fn poll_landed(&self, key: &[u8], cx: &Context<'_>, is_noted: &mut bool) -> Poll<()> {
        match self.flights(key).lock().get_mut(key) {
            None => Poll::Ready(()),
            Some(flight) => {
                if !std::mem::replace(is_noted, true) {
                    flight.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut flights = self.cache.flights(&self.key).lock();
        let is_own = flights.get(&self.key).is_some_and(|flight| flight.number == self.number);
        let flight = if is_own { flights.remove(&self.key) } else { None };
        drop(flights);
        flight.into_iter().flat_map(|flight| flight.wakers).for_each(Waker::wake);
    }
}
