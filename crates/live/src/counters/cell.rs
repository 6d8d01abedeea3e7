//! Numbers that one worker writes and everybody reads. Must never be written by two threads: adding is a load and a
//! store, which cost nothing beside an atomic addition, and would lose what another writer adds meanwhile.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A sum.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    /// Takes away; sums may pass zero on the way.
    #[inline]
    pub fn subtract(&self, less: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(less), Relaxed);
    }

    /// Sets.
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

/// The largest value that its worker has seen.
#[derive(Debug, Default)]
pub struct Peak(AtomicU64);

impl Peak {
    /// Notes a value.
    #[inline]
    pub fn note(&self, value: u64) {
        if value > self.0.load(Relaxed) {
            self.0.store(value, Relaxed);
        }
    }

    /// The largest so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Forgets it.
    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

/// Things whose averages are told.
const MEASURES: usize = 4;

/// Sliding averages of things that are measured together, over the last values of its worker, [`Averages::WINDOW`] of
/// them at most.
#[derive(Debug, Default)]
pub struct Averages {
    /// The number of values that each of them stands for.
    values: Count,
    /// Each average times that number.
    sums: [Count; MEASURES],
}

impl Averages {
    /// Values that an average stands for at most (management manual, "over the 1024 last requests").
    pub const WINDOW: u64 = 1024;

    /// Adds a value of each.
    #[inline]
    pub fn add(&self, values: [u64; MEASURES]) {
        let known = self.values.get();
        if known < Self::WINDOW {
            self.values.set(known + 1);
            self.sums.iter().zip(values).for_each(|(sum, value)| sum.add(value));
        } else {
            // One value of average size leaves.
            self.sums.iter().zip(values).for_each(|(sum, value)| sum.set(sum.get() - sum.get() / Self::WINDOW + value));
        }
    }

    /// One of the averages, over several workers' values.
    pub fn of<'a>(which: usize, parts: impl Iterator<Item = &'a Self>) -> u64 {
        let (sum, values) = parts.fold((0, 0), |(sum, values), part| {
            (sum + part.sums.get(which).map_or(0, Count::get), values + part.values.get())
        });
        sum.checked_div(values).unwrap_or(0)
    }

    /// Forgets all values.
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
