//! Counters written by one worker and read by all. Must never be written by two threads: an addition is a load and a
//! store, far cheaper than an atomic addition, and would lose concurrent additions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A cumulative count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Subtracts; may wrap below zero temporarily.
    #[inline]
    pub fn subtract(&self, less: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(less), Relaxed);
    }

    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// The value now.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The maximum value recorded by its worker.
#[derive(Debug, Default)]
pub struct Peak(AtomicU64);

impl Peak {
    /// Records a value.
    #[inline]
    pub fn note(&self, value: u64) {
        if value > self.0.load(Relaxed) {
            self.0.store(value, Relaxed);
        }
    }

    /// The maximum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

/// Number of averages.
const MEASURES: usize = 4;

/// Moving averages of values that are measured together, over the last values of its worker, at most
/// [`Averages::WINDOW`].
#[derive(Debug, Default)]
pub struct Averages {
    /// The number of values included in each average.
    values: Count,
    /// Each average multiplied by that number.
    sums: [Count; MEASURES],
}

impl Averages {
    /// Maximum number of values included in an average (management manual, "over the 1024 last requests").
    pub const WINDOW: u64 = 1024;

    /// Adds a value to each average.
    #[inline]
    pub fn add(&self, values: [u64; MEASURES]) {
        let known = self.values.get();
        if known < Self::WINDOW {
            self.values.set(known + 1);
            self.sums.iter().zip(values).for_each(|(sum, value)| sum.add(value));
        } else {
            // Removes one value of average size.
            self.sums.iter().zip(values).for_each(|(sum, value)| sum.set(sum.get() - sum.get() / Self::WINDOW + value));
        }
    }

    /// Returns one of the averages over the values of several workers.
    pub fn of<'a>(which: usize, parts: impl Iterator<Item = &'a Self>) -> u64 {
        let (sum, values) = parts.fold((0, 0), |(sum, values), part| {
            (sum + part.sums.get(which).map_or(0, Count::get), values + part.values.get())
        });
        sum.checked_div(values).unwrap_or(0)
    }

    pub fn reset(&self) {
        self.sums.iter().for_each(|sum| sum.set(0));
        self.values.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_peaks() {
        let (count, peak) = (Count::default(), Peak::default());
        for value in [3, 1, 5, 2] {
            count.add(value);
            peak.note(value);
        }
        count.increment();
        assert_eq!((count.get(), peak.get()), (12, 5));
        peak.reset();
        assert_eq!(peak.get(), 0);
    }

    #[test]
    fn averages_slide_and_join() {
        let (one, two) = (Averages::default(), Averages::default());
        let both = |which| Averages::of(which, [&one, &two].into_iter());
        assert_eq!((both(0), both(1)), (0, 0));
        one.add([10, 1, 0, 0]);
        two.add([20, 1, 0, 0]);
        two.add([60, 4, 0, 0]);
        assert_eq!((both(0), both(1)), (30, 2));
        for _ in 0..20 * Averages::WINDOW {
            one.add([100, 7, 0, 0]);
        }
        let first = |which| Averages::of(which, [&one].into_iter());
        assert_eq!((first(0), first(1), first(9)), (100, 7, 0));
        one.reset();
        assert_eq!((first(0), first(1)), (0, 0));
    }
}
