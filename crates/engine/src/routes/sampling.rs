//! Sampling of log lines (`sample`): which lines of each round a target gets. Must never look at a line.

use policy::program::Sample;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sampling state of a target, shared by all workers.
#[derive(Debug)]
pub struct Sampling {
    sample: Sample,
    seen: AtomicU64,
}

impl Sampling {
    /// Starts with the first line of a round.
    pub fn new(sample: Sample) -> Self {
        Self { sample, seen: AtomicU64::new(0) }
    }

    /// Whether its sample specification is `sample`.
    pub fn is_of(&self, sample: &Sample) -> bool {
        self.sample == *sample
    }

    /// Counts a line; returns whether the target gets it.
    pub fn takes(&self) -> bool {
        let number = self.seen.fetch_add(1, Ordering::Relaxed) % u64::from(self.sample.size.max(1)) + 1;
        self.sample.ranges.iter().any(|&(first, last)| (u64::from(first)..=u64::from(last)).contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that HAProxy sends out of twelve with `sample 1,3-4:5`.
    #[test]
    fn lines_of_each_round_are_picked_by_number() {
        let sampling = Sampling::new(Sample { ranges: vec![(1, 1), (3, 4)], size: 5 });
        let taken: Vec<u32> = (0..12).filter(|_| sampling.takes()).collect();
        assert_eq!(taken, [0, 2, 3, 5, 7, 8, 10]);
    }

    #[test]
    fn an_empty_round_takes_nothing() {
        assert!(!Sampling::new(Sample { ranges: Vec::new(), size: 0 }).takes());
    }
}
