//! An index of numbers and ranges: numbers are found by hash, ranges one after the other. Must never return another
//! result than comparing one after the other would.

use super::hash::Key;
use super::index::{Alive, PatternIndex};
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Numbers and ranges, of which the first one in the list wins.
#[derive(Debug, Clone)]
pub struct Numbers {
    /// Single numbers; of equal ones the first.
    single: HashMap<i64, PatternIndex, Key>,
    /// Ranges of several numbers, and repeated numbers; in order.
    ranges: Vec<(RangeInclusive<i64>, PatternIndex)>,
}

impl Numbers {
    /// Creates an empty index.
    pub fn new(key: Key) -> Self {
        Self { single: HashMap::with_hasher(key), ranges: Vec::new() }
    }

    /// Reserves capacity for `count` numbers.
    pub fn reserve(&mut self, count: usize) {
        self.single.reserve(count);
    }

    /// Releases unused capacity.
    pub fn shrink(&mut self) {
        self.single.shrink_to_fit();
    }

    /// Adds a range at a list index, which must be greater than all others.
    pub fn insert(&mut self, range: RangeInclusive<i64>, at: PatternIndex) {
        if range.start() == range.end() && !self.single.contains_key(range.start()) {
            self.single.insert(*range.start(), at);
        } else {
            self.ranges.push((range, at));
        }
    }

    /// Returns the index of the first range that contains the number.
    pub fn find(&self, number: i64, alive: Alive<'_>) -> Option<PatternIndex> {
        let single = if self.single.is_empty() { None } else { self.single.get(&number).copied() };
        let single = single.filter(|at| alive(*at));
        let before = self.ranges.iter().take_while(|(_, at)| single.is_none_or(|single| *at < single));
        before.clone().find(|(range, at)| range.contains(&number) && alive(*at)).map(|(_, at)| *at).or(single)
    }

    /// Returns the indexes of exactly that range.
    pub fn like(&self, range: &RangeInclusive<i64>) -> Vec<PatternIndex> {
        let single = self.single.get(range.start()).filter(|_| range.start() == range.end());
        let ranges = self.ranges.iter().filter(|(known, _)| known == range).map(|(_, at)| at);
        single.into_iter().chain(ranges).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_counts() {
        let mut numbers = Numbers::new(Key::default());
        for (at, range) in [5..=5, 1..=9, 5..=5, 7..=7, i64::MIN..=-1, 0..=0].into_iter().enumerate() {
            numbers.insert(range, at as PatternIndex);
        }
        for (number, dead, expected) in [
            (5, 9, Some(0)),
            (5, 0, Some(1)),
            (7, 9, Some(1)),
            (7, 1, Some(3)),
            (-3, 9, Some(4)),
            (0, 9, Some(5)),
            (0, 5, None),
            (10, 9, None),
        ] {
            assert_eq!(numbers.find(number, &|at| at != dead), expected, "{number} without {dead}");
        }
        assert_eq!(numbers.find(5, &|at| at > 1), Some(2));
        assert_eq!((numbers.like(&(5..=5)), numbers.like(&(1..=9))), (vec![0, 2], vec![1]));
    }
}
