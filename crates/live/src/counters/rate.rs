//! Event rates: the counts of the current second and of the previous one, and the maximum of any second. Each worker
//! counts its own events; a rate is the sum. Must never be written by two threads.
//!
//! A worker that enters a new second sums all workers' counts of the last one and keeps the maximum of the sums seen.
//! The first writer in a second after the last event of the previous one sees all of its events, so that the maximum
//! over the workers is exact, without a word written by two of them.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use base::Moment;

/// One worker's part of a rate.
#[derive(Debug, Default)]
pub struct Rate {
    /// The current second in the upper half, its events in the lower.
    current: AtomicU64,
    /// The last second before it with events, likewise.
    previous: AtomicU64,
    /// The maximum per second seen by this worker.
    most: AtomicU64,
    /// `current` and `previous` when the maximum was reset: their counts are excluded from it, until more is counted in
    /// that second.
    forgotten: [AtomicU64; 2],
}

/// Seconds count from 1, so that a zero word belongs to none.
fn second(now: Moment) -> u64 {
    (now.as_nanos() / 1_000_000_000 + 1) & 0xffff_ffff
}

const fn split(word: u64) -> (u64, u64) {
    (word >> 32, word & 0xffff_ffff)
}

impl Rate {
    /// Counts events. `all` are the parts of all workers, including this one; they are read once per second.
    #[inline]
    pub fn add<'a, I: Iterator<Item = &'a Self>>(&self, now: Moment, events: u64, all: impl FnOnce() -> I) {
        let second = second(now);
        let word = self.current.load(Relaxed);
        let (counted, count) = split(word);
        if counted == second {
            self.current.store((second << 32) | (count + events).min(0xffff_ffff), Relaxed);
        } else {
            self.turn(second, word, events, all());
        }
    }

    #[cold]
    fn turn<'a>(&self, second: u64, word: u64, events: u64, all: impl Iterator<Item = &'a Self>) {
        let (last, _) = split(word);
        if last != 0 && !self.is_forgotten(word) {
            let sum = all.map(|part| part.in_second(last)).sum();
            self.most.store(self.most.load(Relaxed).max(sum), Relaxed);
        }
        // A reader that sees the new second also sees the last one here.
        self.previous.store(word, Release);
        self.current.store((second << 32) | events.min(0xffff_ffff), Release);
    }

    /// Whether nothing was counted in a word's second since the maximum was reset.
    fn is_forgotten(&self, word: u64) -> bool {
        self.forgotten.iter().any(|forgotten| forgotten.load(Relaxed) == word)
    }

    /// Events of a second, if it is one of the two stored.
    fn in_second(&self, second: u64) -> u64 {
        for word in [self.current.load(Acquire), self.previous.load(Acquire)] {
            let (counted, count) = split(word);
            if counted == second {
                return count;
            }
        }
        0
    }

    /// Events in the last second: those of the current second, and the proportionate part of the previous one.
    pub fn read<'a>(now: Moment, parts: impl Iterator<Item = &'a Self>) -> f64 {
        let this = second(now);
        let share = 1.0 - (now.as_nanos() % 1_000_000_000) as f64 / 1e9;
        let (now, before) = parts.fold((0, 0), |(now, before), part| {
            (now + part.in_second(this), before + part.in_second(this.wrapping_sub(1)))
        });
        now as f64 + before as f64 * share
    }

    /// The maximum per second, including the current second; never less than the current rate.
    pub fn most<'a>(now: Moment, parts: impl Iterator<Item = &'a Self> + Clone) -> u64 {
        let this = second(now);
        let seen = parts.clone().map(|part| part.most.load(Relaxed)).max().unwrap_or(0);
        // Seconds after which nothing was counted yet are only in their own words.
        let words = |part: &'a Self| [part.current.load(Acquire), part.previous.load(Acquire)].map(|word| (part, word));
        let forgets = parts.clone().flat_map(words).any(|(part, word)| word != 0 && part.is_forgotten(word));
        let sliding = if forgets { 0 } else { Self::read(now, parts.clone()) as u64 };
        let open = parts.clone().flat_map(words).filter(|(part, word)| !part.is_forgotten(*word));
        let open = open.map(|(_, word)| word);
        let open = open.map(|word| split(word).0).filter(|second| *second != 0 && *second <= this);
        let open = open.map(|second| parts.clone().map(|part| part.in_second(second)).sum()).max().unwrap_or(0);
        seen.max(open).max(sliding)
    }

    /// Resets the maximum. Called by its own worker.
    pub fn reset_most(&self) {
        let words = [&self.current, &self.previous];
        self.forgotten.iter().zip(words).for_each(|(forgotten, word)| forgotten.store(word.load(Relaxed), Relaxed));
        self.most.store(0, Relaxed);
    }

    /// Resets the rate and its maximum. Called by its own worker.
    pub fn reset(&self) {
        [&self.current, &self.previous, &self.most].into_iter().for_each(|word| word.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn rates_slide_over_the_last_second() {
        let parts = [Rate::default(), Rate::default()];
        let all = || parts.iter();
        for _ in 0..10 {
            parts[0].add(at(100), 1, all);
            parts[1].add(at(900), 1, all);
        }
        for (now, expected) in [(950, 20.0), (1_000, 20.0), (1_500, 10.0), (1_999, 0.02), (2_000, 0.0), (9_000, 0.0)] {
            assert!((Rate::read(at(now), all()) - expected).abs() < 0.001, "{now}");
        }
        parts[0].add(at(1_500), 4, all);
        assert!((Rate::read(at(1_500), all()) - 14.0).abs() < 0.001);
    }

    #[test]
    fn the_most_is_never_less_than_the_rate() {
        let parts = [Rate::default(), Rate::default()];
        let all = || parts.iter();
        for (part, when) in [(0, 900), (1, 950), (0, 1_010), (1, 1_020)] {
            parts[part].add(at(when), 50, all);
        }
        for now in [1_030, 1_500, 1_900] {
            let rate = Rate::read(at(now), all()) as u64;
            assert!(rate > 100 && Rate::most(at(now), all()) == rate, "{now}: {rate}");
        }
    }

    #[test]
    fn the_most_is_forgotten_until_something_is_counted() {
        let parts = [Rate::default(), Rate::default()];
        let all = || parts.iter();
        parts[0].add(at(100), 7, all);
        parts[1].add(at(200), 5, all);
        parts[0].add(at(1_100), 2, all);
        assert_eq!(Rate::most(at(1_200), all()), 12);
        parts.iter().for_each(Rate::reset_most);
        for now in [1_200, 2_500, 9_000] {
            assert_eq!(Rate::most(at(now), all()), 0, "{now}");
        }
        // The rate continues, and further events in the same second count for the next maximum, as in HAProxy.
        assert!((Rate::read(at(1_200), all()) - (2.0 + 12.0 * 0.8)).abs() < 0.001);
        parts[0].add(at(1_300), 1, all);
        assert_eq!(Rate::most(at(1_300), all()), 3);
        parts[1].add(at(5_000), 1, all);
        assert_eq!(Rate::most(at(9_000), all()), 3);
    }

    #[test]
    fn a_reset_removes_what_was_counted_in_the_second_that_runs() {
        let parts = [Rate::default(), Rate::default()];
        let all = || parts.iter();
        for (part, when) in [(0, 900), (1, 900), (0, 1_100)] {
            parts[part].add(at(when), 7, all);
        }
        parts.iter().for_each(Rate::reset);
        assert_eq!((Rate::read(at(1_200), all()), Rate::most(at(1_200), all())), (0.0, 0));
        parts[0].add(at(1_300), 2, all);
        assert_eq!((Rate::read(at(1_300), all()), Rate::most(at(1_300), all())), (2.0, 2));
    }

    #[test]
    fn the_most_of_a_second_is_the_sum_of_all_workers_whoever_counts_on() {
        // Which workers continue to count, and when.
        let rows: &[&[(usize, u64)]] = &[&[], &[(0, 1_000)], &[(1, 1_000)], &[(0, 1_000), (1, 1_001)], &[(1, 60_000)]];
        for later in rows {
            let parts = [Rate::default(), Rate::default()];
            let all = || parts.iter();
            parts[0].add(at(10), 50, all);
            parts[1].add(at(990), 60, all);
            for (worker, when) in *later {
                for second in 0..3 {
                    parts[*worker].add(at(when + second * 1_000), 1, all);
                }
            }
            assert_eq!(Rate::most(at(90_000), all()), 110, "{later:?}");
        }
    }
}
