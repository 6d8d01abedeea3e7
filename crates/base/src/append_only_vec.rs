//! A list that grows at its end while other threads read it, and whose entries never move: an index remains valid.
//! Entries can be removed; a removed entry is skipped, not freed, and can be restored. Must never reuse an index for
//! another entry.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Length of the first block of added entries; each block is twice as long as the previous one. Most lists that grow
/// need one or two.
const FIRST_BLOCK: usize = 2;

/// Number of block pointers allocated once a list grows.
const SHORT_BLOCKS: usize = 4;

/// Number of further block pointers, allocated for long lists only.
const LONG_BLOCKS: usize = 24;

/// Maximum number of entries that can be added to the initial ones.
pub const MOST_ADDED: usize = FIRST_BLOCK * ((1 << (SHORT_BLOCKS + LONG_BLOCKS)) - 1);

#[cfg(debug_assertions)]
thread_local! {
    static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the number of entries that this thread has visited, in all lists, since its start; 0 in builds that do not
/// count them. For tests of how work grows.
pub fn visits() -> usize {
    #[cfg(debug_assertions)]
    return VISITS.get();
    #[cfg(not(debug_assertions))]
    0
}

/// An added entry.
struct Entry<T> {
    value: T,
    struck: AtomicBool,
}

impl<T> Entry<T> {
    fn new(value: T) -> Self {
        Self { value, struck: AtomicBool::new(false) }
    }
}

type Block<T> = OnceLock<Box<[OnceLock<Entry<T>>]>>;

/// The blocks of added entries.
struct Blocks<T> {
    short: [Block<T>; SHORT_BLOCKS],
    long: OnceLock<Box<[Block<T>; LONG_BLOCKS]>>,
}

impl<T> Blocks<T> {
    fn new() -> Self {
        Self { short: [const { OnceLock::new() }; SHORT_BLOCKS], long: OnceLock::new() }
    }

    fn get(&self, block: usize) -> Option<&Block<T>> {
        match self.short.get(block) {
            Some(found) => Some(found),
            None => self.long.get()?.get(block - SHORT_BLOCKS),
        }
    }

    fn get_mut(&mut self, block: usize) -> Option<&mut Block<T>> {
        match block.checked_sub(SHORT_BLOCKS) {
            None => self.short.get_mut(block),
            Some(block) => self.long.get_mut()?.get_mut(block),
        }
    }

    /// Like [`Self::get`], allocating the pointers of long blocks if it is one.
    fn make(&self, block: usize) -> Option<&Block<T>> {
        if block >= SHORT_BLOCKS {
            self.long.get_or_init(|| Box::new([const { OnceLock::new() }; LONG_BLOCKS]));
        }
        self.get(block)
    }
}

/// The part of a list that most lists never need: entries that were added or removed.
struct ListChanges<T> {
    /// Removal marks of the initial entries: separate, so that the entries are laid out as in a vector. Allocated when the first of
    /// them is removed.
    first_struck: OnceLock<Box<[AtomicBool]>>,
    /// Number of removed entries.
    struck: AtomicUsize,
    /// Serializes additions.
    adding: Mutex<()>,
    blocks: Blocks<T>,
}

impl<T> ListChanges<T> {
    fn new() -> Self {
        let (first_struck, struck, adding) = Default::default();
        Self { first_struck, struck, adding, blocks: Blocks::new() }
    }
}

/// A list that grows at its end while other threads read it.
pub struct AppendOnlyVec<T> {
    first: Box<[T]>,
    /// Allocated for the first change.
    later: OnceLock<Box<ListChanges<T>>>,
    /// Number of indices in use, including those of removed entries.
    places: AtomicUsize,
}

/// The error when the list cannot hold another entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Returns the block of an added entry, and the index in it.
const fn place(index: usize) -> (usize, usize) {
    let block = (index / FIRST_BLOCK + 1).ilog2() as usize;
    (block, index - FIRST_BLOCK * ((1 << block) - 1))
}

impl<T> AppendOnlyVec<T> {
    /// Creates a list of these entries.
    pub fn new(first: impl IntoIterator<Item = T>) -> Self {
        let first: Box<[T]> = first.into_iter().collect();
        let places = AtomicUsize::new(first.len());
        Self { first, later: OnceLock::new(), places }
    }

    /// Returns the part for changes, allocating it for the first one.
    fn change(&self) -> &ListChanges<T> {
        self.later.get_or_init(|| Box::new(ListChanges::new()))
    }

    #[cold]
    fn later(&self, index: usize) -> Option<&Entry<T>> {
        let (block, at) = place(index.checked_sub(self.first.len())?);
        self.later.get()?.blocks.get(block)?.get()?.get(at)?.get()
    }

    /// Returns the entry at an index, even if it is removed: holders of an index may still access it.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match self.first.get(index) {
            Some(value) => Some(value),
            None => self.later(index).map(|entry| &entry.value),
        }
    }

    /// Returns the removal mark of the entry at an index, allocating those of the initial entries; `None`: there is none.
    fn mark(&self, index: usize) -> Option<&AtomicBool> {
        if index >= self.first.len() {
            return self.later(index).map(|entry| &entry.struck);
        }
        let marks = || self.first.iter().map(|_| AtomicBool::new(false)).collect();
        self.change().first_struck.get_or_init(marks).get(index)
    }

    /// Like [`AppendOnlyVec::get`], for the owner of the list.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let first = self.first.len();
        if index < first {
            return self.first.get_mut(index);
        }
        let (block, at) = place(index - first);
        Some(&mut self.later.get_mut()?.blocks.get_mut(block)?.get_mut()?.get_mut(at)?.get_mut()?.value)
    }

    /// Adds an entry at the end, and returns its index, which is also passed to `make`.
    ///
    /// # Errors
    /// [`Full`] after [`MOST_ADDED`] additions, including removed entries.
    pub fn push(&self, make: impl FnOnce(usize) -> T) -> Result<usize, Full> {
        let later = self.change();
        let _one = later.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let index = self.places.load(Ordering::Relaxed);
        let (block, at) = place(index - self.first.len());
        let block_length = FIRST_BLOCK << block.min(SHORT_BLOCKS + LONG_BLOCKS);
        let block = later.blocks.make(block).ok_or(Full)?;
        let block = block.get_or_init(|| (0..block_length).map(|_| OnceLock::new()).collect());
        let room = block.get(at).ok_or(Full)?;
        let _ = room.set(Entry::new(make(index)));
        self.places.store(index + 1, Ordering::Release);
        Ok(index)
    }

    /// Removes an entry. False: there is none, or it was removed before.
    pub fn strike(&self, index: usize) -> bool {
        let newly = self.mark(index).is_some_and(|mark| !mark.swap(true, Ordering::AcqRel));
        if newly {
            self.change().struck.fetch_add(1, Ordering::AcqRel);
        }
        newly
    }

    /// Restores a removed entry. False: there is none, or it is not removed.
    pub fn restore(&self, index: usize) -> bool {
        let restored = self.mark(index).is_some_and(|mark| mark.swap(false, Ordering::AcqRel));
        if restored {
            self.change().struck.fetch_sub(1, Ordering::AcqRel);
        }
        restored
    }

    /// Returns the removed entries, in order.
    pub fn struck(&self) -> impl Iterator<Item = &T> {
        (0..self.places()).filter(|index| !self.is_present(*index)).filter_map(|index| self.get(index))
    }

    /// Whether there is an entry at an index that is not removed.
    pub fn is_present(&self, index: usize) -> bool {
        #[cfg(debug_assertions)]
        VISITS.set(VISITS.get().wrapping_add(1));
        if index >= self.first.len() {
            return self.later(index).is_some_and(|entry| !entry.struck.load(Ordering::Acquire));
        }
        let marks = self.later.get().and_then(|later| later.first_struck.get());
        marks.and_then(|marks| marks.get(index)).is_none_or(|mark| !mark.load(Ordering::Acquire))
    }

    /// Returns the number of entries that are not removed.
    pub fn len(&self) -> usize {
        let struck = self.later.get().map_or(0, |later| later.struck.load(Ordering::Acquire));
        self.places().saturating_sub(struck)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the upper bound of all indices.
    pub fn places(&self) -> usize {
        self.places.load(Ordering::Acquire)
    }

    /// Returns the entries that are not removed, with their indices, in order.
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (usize, &T)> + Clone {
        (0..self.places()).filter(|index| self.is_present(*index)).filter_map(|index| Some((index, self.get(index)?)))
    }

    /// Returns the entries that are not removed, in order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { roster: self, next: 0, end: self.places() }
    }
}

/// See [`AppendOnlyVec::iter`].
pub struct Iter<'a, T> {
    roster: &'a AppendOnlyVec<T>,
    next: usize,
    end: usize,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { roster: self.roster, next: self.next, end: self.end }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        while self.next < self.end {
            let index = self.next;
            self.next += 1;
            if self.roster.is_present(index) {
                return self.roster.get(index);
            }
        }
        None
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        while self.next < self.end {
            self.end -= 1;
            if self.roster.is_present(self.end) {
                return self.roster.get(self.end);
            }
        }
        None
    }
}

impl<'a, T> IntoIterator for &'a AppendOnlyVec<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> FromIterator<T> for AppendOnlyVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self::new(entries)
    }
}

impl<T> From<Vec<T>> for AppendOnlyVec<T> {
    fn from(entries: Vec<T>) -> Self {
        Self::new(entries)
    }
}

impl<T> Default for AppendOnlyVec<T> {
    fn default() -> Self {
        Self::new([])
    }
}

impl<T> Index<usize> for AppendOnlyVec<T> {
    type Output = T;

    /// # Panics
    /// If there is no entry at that index.
    #[inline]
    #[allow(clippy::panic)]
    fn index(&self, index: usize) -> &T {
        match self.get(index) {
            Some(value) => value,
            None => panic!("no entry has the place {index}"),
        }
    }
}

impl<T> IndexMut<usize> for AppendOnlyVec<T> {
    #[allow(clippy::panic)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        match self.get_mut(index) {
            Some(value) => value,
            None => panic!("no entry has the place {index}"),
        }
    }
}

/// Indices are preserved, so that structures that hold indices can be copied too.
impl<T: Clone> Clone for AppendOnlyVec<T> {
    fn clone(&self) -> Self {
        let places = self.places();
        let copy = Self::new((0..places).filter_map(|index| self.get(index).cloned()));
        (0..places).filter(|index| !self.is_present(*index)).for_each(|index| {
            copy.strike(index);
        });
        copy
    }
}

impl<T: PartialEq> PartialEq for AppendOnlyVec<T> {
    fn eq(&self, other: &Self) -> bool {
        self.enumerate().eq(other.enumerate())
    }
}

impl<T: Eq> Eq for AppendOnlyVec<T> {}

impl<T: fmt::Debug> fmt::Debug for AppendOnlyVec<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_places_while_others_come_and_go() {
        let list: AppendOnlyVec<String> = ["a", "b"].map(str::to_owned).into_iter().collect();
        let (a, b) = (list.get(0).unwrap(), &list[1]);
        for number in 2..100 {
            assert_eq!(list.push(|place| place.to_string()), Ok(number));
        }
        assert!(list.strike(1) && !list.strike(1) && list.strike(50) && !list.strike(100));
        assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
        assert_eq!((list.len(), list.places(), list.is_present(1), list.is_present(2)), (98, 100, false, true));
        let expected: Vec<String> = (0..100)
            .filter(|n| ![1, 50].contains(n))
            .map(|n| if n == 0 { "a".into() } else { n.to_string() })
            .collect();
        assert!(list.iter().eq(&expected));
        assert!(list.iter().rev().eq(expected.iter().rev()));
        assert_eq!(list.get(50).map(String::as_str), Some("50"));
        assert_eq!(list.get(100), None);
        let copy = list.clone();
        assert_eq!(copy, list);
        assert_eq!((copy.len(), copy.places(), &*copy[99]), (98, 100, "99"));
    }

    /// Very large configurations have ten of these for each backend.
    #[test]
    fn a_list_that_never_changed_takes_its_entries_and_little_else() {
        let list: AppendOnlyVec<u64> = AppendOnlyVec::new([1, 2]);
        assert!(size_of_val(&list) <= 40, "{}", size_of_val(&list));
        assert!(list.is_present(1) && !list.is_present(2) && list.len() == 2 && list.iter().eq(&[1, 2]));
        assert!(list.later.get().is_none());
        assert!(list.push(|_| 3) == Ok(2) && list.later.get().is_some_and(|later| later.first_struck.get().is_none()));
    }

    #[test]
    fn what_was_struck_off_comes_back_where_it_was() {
        let list: AppendOnlyVec<usize> = AppendOnlyVec::new([0]);
        for number in 1..20 {
            assert_eq!(list.push(|place| place), Ok(number));
        }
        assert!([0, 7, 18].into_iter().all(|place| list.strike(place)));
        assert!(list.struck().eq(&[0, 7, 18]));
        assert!(list.restore(7) && !list.restore(7) && !list.restore(8) && !list.restore(20));
        assert!(list.struck().eq(&[0, 18]));
        assert_eq!((list.len(), list.places(), list.is_present(7)), (18, 20, true));
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes there")]
    fn very_many_come_and_go() {
        let list: AppendOnlyVec<usize> = AppendOnlyVec::new([7]);
        for number in 1..=200_000 {
            assert_eq!(list.push(|place| place), Ok(number));
            assert!(list.strike(number));
        }
        assert!(list.iter().eq(&[7]) && list.get(200_000) == Some(&200_000));
    }

    #[test]
    fn places_follow_each_other_in_blocks_of_growing_length() {
        let last = place(MOST_ADDED - 1);
        assert_eq!(last, (SHORT_BLOCKS + LONG_BLOCKS - 1, (FIRST_BLOCK << last.0) - 1));
        assert_eq!([0, 1, 2, 5, 6].map(place), [(0, 0), (0, 1), (1, 0), (1, 3), (2, 0)]);
    }

    #[test]
    fn readers_see_whole_entries_while_four_threads_add() {
        const EACH: usize = if cfg!(miri) { 10 } else { 500 };
        let list: AppendOnlyVec<[usize; 4]> = AppendOnlyVec::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let list = &list;
                scope.spawn(move || {
                    for number in 0..EACH {
                        let place = list.push(|place| [place; 4]).unwrap();
                        if number % 3 == thread % 3 {
                            assert!(list.strike(place));
                        }
                        assert!(list.enumerate().all(|(at, entry)| *entry == [at; 4]));
                    }
                });
            }
        });
        assert_eq!(list.places(), 4 * EACH);
    }
}
