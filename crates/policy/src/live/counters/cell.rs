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

    /// Sets.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// The value now.
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

/// A sliding average over the last values of its worker, [`Average::WINDOW`] of them at most.
#[derive(Debug, Default)]
pub struct Average {
    /// The average times the number of values it stands for.
    sum: Count,
    values: Count,
}

impl Average {
    /// Values that an average stands for at most (management manual, "over the 1024 last requests").
    pub const WINDOW: u64 = 1024;

    /// Adds a value.
    #[inline]
    pub fn add(&self, value: u64) {
        let (sum, values) = (self.sum.get(), self.values.get());
        if values < Self::WINDOW {
            self.values.set(values + 1);
            self.sum.set(sum + value);
        } else {
            // One value of average size leaves.
            self.sum.set(sum - sum / Self::WINDOW + value);
        }
    }

    /// The average of several workers' values.
    pub fn of<'a>(parts: impl Iterator<Item = &'a Self>) -> u64 {
        let (sum, values) =
            parts.fold((0, 0), |(sum, values), part| (sum + part.sum.get(), values + part.values.get()));
        sum.checked_div(values).unwrap_or(0)
    }

    /// Forgets all values.
    pub fn reset(&self) {
        self.sum.set(0);
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
        let (one, two) = (Average::default(), Average::default());
        assert_eq!(Average::of([&one, &two].into_iter()), 0);
        one.add(10);
        two.add(20);
        two.add(60);
        assert_eq!(Average::of([&one, &two].into_iter()), 30);
        for _ in 0..20 * Average::WINDOW {
            one.add(100);
        }
        assert_eq!(Average::of([&one].into_iter()), 100);
        one.reset();
        assert_eq!(Average::of([&one].into_iter()), 0);
    }
}
