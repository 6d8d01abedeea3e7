//! Idle time of a worker: the percentage of the last window of at least half a second, as in HAProxy's `Idle_pct`. Must
//! never read a clock: it is given the times that the worker reads already.

use std::cell::Cell;
use std::time::Duration;

use base::Moment;

/// The minimum length of a window.
const WINDOW: Duration = Duration::from_millis(500);

/// The idle time of one worker.
#[derive(Debug)]
pub(crate) struct Idleness {
    /// Start of the window.
    began: Cell<Moment>,
    /// Nanoseconds of the window spent waiting.
    waited: Cell<u64>,
    /// Number of waits in the window: one per iteration.
    waits: Cell<u32>,
    /// Percentage of the last complete window.
    percent: Cell<u32>,
    /// Microseconds that an iteration of that window took without its wait, on average.
    average_micros: Cell<u32>,
}

impl Idleness {
    /// Starts a window. Until the first complete one, a worker counts as idle.
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            began: Cell::new(now),
            waited: Cell::new(0),
            waits: Cell::new(0),
            percent: Cell::new(100),
            average_micros: Cell::new(0),
        }
    }

    /// Records a wait, possibly of zero length, and ends the window if it is long enough.
    #[inline]
    pub(crate) fn note(&self, slept: Option<Moment>, woke: Moment) {
        if let Some(slept) = slept {
            self.waited.set(self.waited.get() + woke.saturating_since(slept).as_nanos() as u64);
        }
        let waits = self.waits.get().saturating_add(1);
        self.waits.set(waits);
        let whole = woke.saturating_since(self.began.get());
        if whole >= WINDOW {
            let worked = (whole.as_nanos() as u64).saturating_sub(self.waited.get());
            self.average_micros.set(u32::try_from(worked / 1_000 / u64::from(waits)).unwrap_or(u32::MAX));
            self.waits.set(0);
            let percent = u128::from(self.waited.get()) * 100 / whole.as_nanos();
            self.percent.set(percent.min(100) as u32);
            self.began.set(woke);
            self.waited.set(0);
        }
    }

    /// Returns the idle time of the last complete window, 0 to 100.
    pub(crate) fn percent(&self) -> u32 {
        self.percent.get()
    }

    /// Returns the average time of an iteration of the last complete window without its wait, in microseconds.
    pub(crate) fn average_micros(&self) -> u32 {
        self.average_micros.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_tells_what_part_of_it_was_waiting() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let idleness = Idleness::new(at(0));
        // The start of the wait, its end, and the expected percentage and average.
        let rows = [
            (Some(100), 300, 100, 0),
            (None, 499, 100, 0),
            (Some(500), 600, 50, 100_000),
            (Some(600), 700, 50, 100_000),
            (None, 1_100, 20, 200_000),
            (Some(1_100), 60_000, 100, 0),
            (None, 60_500, 0, 500_000),
        ];
        for (slept, woke, percent, micros) in rows {
            idleness.note(slept.map(at), at(woke));
            assert_eq!((idleness.percent(), idleness.average_micros()), (percent, micros), "until {woke}");
        }
    }
}
