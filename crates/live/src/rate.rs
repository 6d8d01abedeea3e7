//! Rate limits per second (`rate-limit sessions`, `maxconnrate`, `maxsessrate`), exact over all workers. Must never
//! read a clock, and must leave no waiter asleep that could proceed.

use super::{Live, ProcessState, ProxyState};
use base::moment::Moment;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// The measurement period.
const PERIOD: Duration = Duration::from_secs(1);
const NANOS: u64 = 1_000_000_000;

/// Events of the last second, as HAProxy measures them: those of the current period, and the proportionate part of the
/// previous one. A period begins with the first event after a pause.
#[derive(Debug, Default)]
struct Frequency {
    begin: Moment,
    current: u32,
    previous: u32,
}

impl Frequency {
    fn advance(&mut self, now: Moment) {
        let passed = now.saturating_since(self.begin);
        let is_quiet = self.current == 0 && self.previous == 0;
        if passed >= 2 * PERIOD || is_quiet {
            *self = Self { begin: now, current: 0, previous: 0 };
        } else if passed >= PERIOD {
            *self = Self { begin: self.begin + PERIOD, current: 0, previous: self.current };
        }
    }

    /// Must be called after [`Frequency::advance`].
    fn measure(&self, now: Moment) -> u32 {
        let passed = now.saturating_since(self.begin).as_nanos() as u64;
        let share = u64::from(self.previous) * NANOS.saturating_sub(passed) / NANOS;
        self.current.saturating_add(share as u32)
    }

    /// Returns the earliest time at which less than `limit` will be measured, without further events.
    fn next_below(&self, limit: u32) -> Moment {
        // The time into a period until at most `room` of the `events` before it still count: all but a nanosecond of
        // the time in which the share is larger.
        let into = |events: u32, room: u32| {
            let larger = (u64::from(room) * NANOS).div_ceil(u64::from(events.max(1)));
            Duration::from_nanos(NANOS.saturating_sub(larger) + 1)
        };
        if self.current < limit {
            self.begin + into(self.previous, limit - self.current)
        } else {
            self.begin + PERIOD + into(self.current, limit)
        }
    }
}

/// A limit of events per second.
#[derive(Debug)]
pub struct Throttle {
    /// 0: unlimited.
    limit: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    frequency: Frequency,
    /// Events that may be about to happen.
    reserved: u32,
    /// Tasks rejected only because of reservations.
    parked: Vec<(u64, Waker)>,
    /// Tasks that were given a time to retry, at most one entry per task: a new limit wakes them.
    timed: Vec<(u64, Waker)>,
}

impl State {
    /// Stores the waker of `key`, once.
    fn enlist(list: &mut Vec<(u64, Waker)>, key: u64, waker: &Waker) {
        match list.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) => entry.1.clone_from(waker),
            None => list.push((key, waker.clone())),
        }
    }
}

impl Throttle {
    /// `None` and 0: unlimited.
    pub(super) fn new(limit: Option<u32>) -> Self {
        Self { limit: AtomicU32::new(limit.unwrap_or(0)), state: Mutex::default() }
    }

    /// Events per second; 0: unlimited.
    #[inline]
    pub fn limit(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// Changes the limit, and wakes the tasks that wait, to retry.
    pub fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Relaxed);
        let waiting = {
            let mut state = self.state();
            let parked = std::mem::take(&mut state.parked);
            parked.into_iter().chain(std::mem::take(&mut state.timed))
        };
        waiting.for_each(|(_, waker)| waker.wake());
    }

    /// Reserves an event. `Err`: retry at that time; without a time: when woken, since other reservations may not be
    /// used.
    fn reserve(&self, limit: u32, now: Moment, key: u64, waker: &Waker) -> Result<(), Option<Moment>> {
        let mut state = self.state();
        state.frequency.advance(now);
        let measured = state.frequency.measure(now);
        if measured >= limit {
            State::enlist(&mut state.timed, key, waker);
            return Err(Some(state.frequency.next_below(limit)));
        }
        if measured.saturating_add(state.reserved) >= limit {
            State::enlist(&mut state.parked, key, waker);
            return Err(None);
        }
        state.reserved += 1;
        Ok(())
    }

    /// Resolves a reservation: whether the event happened.
    fn resolve(&self, happened: bool) {
        let parked = {
            let mut state = self.state();
            state.reserved -= 1;
            state.frequency.current = state.frequency.current.saturating_add(u32::from(happened));
            std::mem::take(&mut state.parked)
        };
        parked.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Every change is a single step, so a panic elsewhere does not corrupt it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that may be accepted. Dropping it reports that there was none.
#[derive(Debug)]
#[must_use]
pub struct Admission<'a> {
    throttles: [Option<&'a Throttle>; 4],
}

impl Admission<'_> {
    /// Reports that the connection was accepted.
    pub fn confirm(mut self) {
        self.resolve(true);
    }

    fn resolve(&mut self, happened: bool) {
        for throttle in self.throttles.iter_mut().filter_map(Option::take) {
            throttle.resolve(happened);
        }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.resolve(false);
    }
}

impl ProcessState {
    /// `maxconnrate`.
    pub fn connection_throttle(&self) -> &Throttle {
        &self.connections_a_second
    }

    /// `maxsessrate`.
    pub fn session_throttle(&self) -> &Throttle {
        &self.sessions_a_second
    }

    /// `maxsslrate`: sessions of TLS clients.
    pub fn tls_session_throttle(&self) -> &Throttle {
        &self.tls_sessions_a_second
    }
}

impl ProxyState {
    /// `rate-limit sessions`.
    pub fn session_throttle(&self) -> &Throttle {
        &self.front.sessions_a_second
    }
}

impl Live {
    /// Returns the rate limits of connections at an address of a frontend: its own and those of the process.
    #[inline]
    pub(super) fn throttles<'a>(
        &'a self,
        frontend: &'a ProxyState,
        bind: usize,
    ) -> impl Iterator<Item = &'a Throttle> + use<'a> {
        let front = &frontend.front;
        let own = [&front.sessions_a_second, &self.process.connections_a_second, &self.process.sessions_a_second];
        let is_secure = front.secure_binds.get(bind).is_some_and(|is_secure| *is_secure);
        own.into_iter().chain(is_secure.then_some(&self.process.tls_sessions_a_second))
    }

    /// Reserves a connection of proxy `frontend` at address `bind` with all rate limits. A connection is a session as
    /// soon as it is accepted, so both limits of the process apply.
    ///
    /// # Errors
    /// When to retry: at that time; without one when woken. `key` identifies the caller in the whole process.
    pub fn admit(
        &self,
        frontend: usize,
        bind: usize,
        now: Moment,
        key: u64,
        waker: &Waker,
    ) -> Result<Admission<'_>, Option<Moment>> {
        let mut admission = Admission { throttles: [None; 4] };
        let throttles = self.proxies.get(frontend).into_iter().flat_map(|state| self.throttles(state, bind));
        for (place, throttle) in admission.throttles.iter_mut().zip(throttles) {
            let limit = throttle.limit();
            if limit > 0 {
                throttle.reserve(limit, now, key, waker)?;
                *place = Some(throttle);
            }
        }
        Ok(admission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    const WOKEN: &Waker = Waker::noop();

    fn at(millis: u64) -> Moment {
        Moment::ZERO + Duration::from_millis(millis)
    }

    fn happens(throttle: &Throttle, now: Moment) -> Result<(), Option<Moment>> {
        throttle.reserve(throttle.limit(), now, 0, WOKEN).map(|()| throttle.resolve(true))
    }

    /// The times of events with a permanent backlog from `start` on.
    fn course(limit: u32, start: u64, events: usize) -> Vec<u64> {
        let throttle = Throttle::new(Some(limit));
        let (mut now, mut found) = (at(start), Vec::new());
        while found.len() < events {
            match happens(&throttle, now) {
                Ok(()) => found.push(now.millis_since(at(start))),
                Err(next) => {
                    let next = next.unwrap();
                    assert!(next > now, "no spinning");
                    let before = Moment::from_nanos(next.as_nanos() - 1);
                    assert!(happens(&throttle, before).is_err(), "{next:?} is not the first moment");
                    now = next;
                }
            }
        }
        found
    }

    /// Observed with HAProxy 3.5: 35 simultaneous connections and a limit of 10, and 4 and a limit of 1.
    #[test]
    fn connections_come_in_when_haproxy_lets_them_in() {
        for start in [0, 1, 999, 123_456] {
            let expected = [0; 10].into_iter().chain((0..25).map(|event| 1000 + 100 * event));
            assert_eq!(course(10, start, 35), expected.collect::<Vec<u64>>(), "from {start}");
            assert_eq!(course(1, start, 4), [0, 1000, 2000, 3000], "from {start}");
        }
    }

    #[test]
    fn in_the_long_run_no_more_than_the_limit_gets_through() {
        for limit in [1, 2, 3, 7, 100, 999, 1000, 12_345] {
            let events = course(limit, 5, 5 * limit as usize);
            let seconds = events.last().unwrap() / 1000;
            assert!((4..=5).contains(&seconds), "{limit}: {} events in {seconds} s", events.len());
        }
    }

    /// Counts the calls of its waker.
    struct Bell(AtomicU32);

    impl std::task::Wake for Bell {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn what_was_reserved_for_nothing_goes_to_those_who_wait_for_it() {
        let bell = std::sync::Arc::new(Bell(AtomicU32::new(0)));
        let waker = Waker::from(std::sync::Arc::clone(&bell));
        let throttle = Throttle::new(Some(1));
        assert_eq!(throttle.reserve(1, at(0), 1, WOKEN), Ok(()));
        assert_eq!(throttle.reserve(1, at(0), 2, &waker), Err(None));
        assert_eq!(throttle.reserve(1, at(0), 2, &waker), Err(None));
        throttle.resolve(false);
        assert_eq!(bell.0.load(SeqCst), 1);
        assert_eq!(throttle.reserve(1, at(0), 2, &waker), Ok(()));
        throttle.resolve(true);
        let next = throttle.reserve(1, at(0), 1, WOKEN).unwrap_err();
        assert_eq!(next, Some(Moment::from_nanos(NANOS + 1)));
    }

    #[test]
    fn a_new_limit_wakes_tasks_that_wait_by_the_old_one() {
        let bell = std::sync::Arc::new(Bell(AtomicU32::new(0)));
        let waker = Waker::from(std::sync::Arc::clone(&bell));
        let throttle = Throttle::new(Some(1));
        assert_eq!(happens(&throttle, at(0)), Ok(()));
        assert!(matches!(throttle.reserve(1, at(0), 2, &waker), Err(Some(_))));
        throttle.set_limit(5);
        assert_eq!(bell.0.load(SeqCst), 1);
        assert_eq!(throttle.reserve(throttle.limit(), at(0), 2, &waker), Ok(()));
    }

    #[test]
    fn threads_together_get_exactly_the_limit() {
        for round in 0..20 {
            let throttle = Throttle::new(Some(100));
            let happened = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for key in 0..4 {
                    let (throttle, happened) = (&throttle, &happened);
                    scope.spawn(move || {
                        for attempt in 0..200_u32 {
                            let Ok(()) = throttle.reserve(100, at(round), key, WOKEN) else { continue };
                            // Every third time there is nothing to accept.
                            let is_there = attempt % 3 > 0;
                            happened.fetch_add(u32::from(is_there), SeqCst);
                            throttle.resolve(is_there);
                        }
                    });
                }
            });
            while happens(&throttle, at(round)).is_ok() {
                happened.fetch_add(1, SeqCst);
            }
            assert_eq!(happened.load(SeqCst), 100);
        }
    }
}
