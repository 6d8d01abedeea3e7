//! The streams of a connection, sorted by their identifiers, which only grow. Must never search long if streams end in
//! about the order in which they have begun.

use std::collections::VecDeque;
use std::rc::Rc;

use super::cell::StreamCell;

/// Keys of requests that have no stream identifier yet begin here.
pub(super) const UNOPENED: u32 = 1 << 31;

/// Streams being served, followed by requests that have no identifier yet.
#[derive(Default)]
pub(super) struct Halves {
    list: VecDeque<(u32, Rc<StreamCell>)>,
}

impl Halves {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of entries allocated.
    pub(super) fn capacity(&self) -> usize {
        self.list.capacity()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Rc<StreamCell>> {
        self.list.get(self.place(number)?).map(|(_, cell)| cell)
    }

    /// The index of a stream. Every second identifier is the peer's, so at most half of the identifiers between the
    /// oldest stream and this one come before it; exactly that number, unless streams have ended that began later than
    /// others.
    #[inline]
    fn place(&self, number: u32) -> Option<usize> {
        let (oldest, _) = self.list.front()?;
        let most = if number < UNOPENED { (number.checked_sub(*oldest)? / 2) as usize } else { usize::MAX };
        let place = most.min(self.list.len() - 1);
        if self.list[place].0 == number { Some(place) } else { self.search(number, place) }
    }

    #[inline(never)]
    fn search(&self, number: u32, below: usize) -> Option<usize> {
        let (mut low, mut high) = (0, below + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.list[middle].0.cmp(&number) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Adds a stream whose identifier is the largest.
    pub(super) fn push(&mut self, number: u32, cell: Rc<StreamCell>) {
        debug_assert!(self.list.back().is_none_or(|(last, _)| *last < number), "numbers grow");
        self.list.push_back((number, cell));
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Rc<StreamCell>> {
        let place = self.place(number)?;
        let removed = if place == 0 { self.list.pop_front() } else { self.list.remove(place) };
        removed.map(|(_, cell)| cell)
    }

    /// Assigns that identifier, which is the largest, to a request without one. Returns false if there is no such
    /// request.
    pub(super) fn number(&mut self, key: u32, number: u32) -> bool {
        let is_numbered = |entry: Option<&(u32, Rc<StreamCell>)>| entry.is_none_or(|(number, _)| *number < UNOPENED);
        // Mostly it is the only request that waits.
        let before = self.list.len().checked_sub(2);
        if is_numbered(before.and_then(|before| self.list.get(before)))
            && let Some((place, _)) = self.list.back_mut()
            && *place == key
        {
            *place = number;
            return true;
        }
        self.number_other(key, number).is_some()
    }

    #[inline(never)]
    fn number_other(&mut self, key: u32, number: u32) -> Option<()> {
        let from = self.place(key)?;
        // Requests that have begun before may be waiting for something.
        let to = self.list.partition_point(|(number, _)| *number < UNOPENED);
        if to < from {
            let half = self.list.remove(from)?;
            self.list.insert(to, half);
        }
        let (place, _) = self.list.get_mut(to)?;
        *place = number;
        Some(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Rc<StreamCell>)> {
        self.list.iter().map(|(number, cell)| (*number, cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(halves: &Halves) -> Vec<u32> {
        halves.iter().map(|(number, _)| number).collect()
    }

    /// Streams are found in whatever order others end, and ended ones are not.
    #[test]
    fn every_stream_is_found() {
        for step in 1..40 {
            let mut halves = Halves::default();
            (0..40).for_each(|index| halves.push(2 * index + 1, Rc::new(StreamCell::new())));
            (0..3).for_each(|index| halves.push(UNOPENED + index, Rc::new(StreamCell::new())));
            let mut left = numbers(&halves);
            while !left.is_empty() {
                let gone = left.remove(step * left.len() / 40 % left.len());
                assert!(halves.remove(gone).is_some() && halves.remove(gone).is_none());
                assert_eq!(numbers(&halves), left);
                for number in (0..90).chain(UNOPENED..UNOPENED + 5) {
                    assert_eq!(halves.get(number).is_some(), left.contains(&number), "{number} of {left:?}");
                }
            }
            assert!(halves.is_empty() && halves.get(1).is_none());
        }
    }

    #[test]
    fn requests_get_their_numbers_in_any_order() {
        let mut halves = Halves::default();
        (0..4).for_each(|index| halves.push(UNOPENED + index, Rc::new(StreamCell::new())));
        for (key, number, expected) in
            [(2, 1, [1, UNOPENED, UNOPENED + 1, UNOPENED + 3]), (0, 3, [1, 3, UNOPENED + 1, UNOPENED + 3])]
        {
            assert!(halves.number(UNOPENED + key, number));
            assert_eq!(numbers(&halves), expected);
        }
        assert!(!halves.number(UNOPENED, 5));
        assert!(halves.number(UNOPENED + 3, 5) && halves.number(UNOPENED + 1, 7));
        assert_eq!(numbers(&halves), [1, 3, 5, 7]);
    }
}
