//! Bounded lists that most connections never use. Must never take more than a pointer until their first item.

use std::collections::VecDeque;

/// The latest items, at most as many as its owner allows.
#[expect(clippy::box_collection, reason = "one pointer for each connection, not four words")]
pub(super) struct RareList<T>(Option<Box<VecDeque<T>>>);

impl<T> Default for RareList<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> RareList<T> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|list| list.is_empty())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|list| list.iter())
    }

    /// Adds an item; if there are `most` already, the oldest one is dropped.
    pub(super) fn push(&mut self, item: T, most: usize) {
        let list = self.0.get_or_insert_default();
        if list.len() >= most {
            list.pop_front();
        }
        list.push_back(item);
    }

    /// Removes and returns the oldest item that `is_wanted` accepts.
    pub(super) fn take(&mut self, is_wanted: impl FnMut(&T) -> bool) -> Option<T> {
        let list = self.0.as_mut()?;
        let at = list.iter().position(is_wanted)?;
        list.remove(at)
    }

    /// Bytes of memory that it holds.
    #[cfg(any(test, feature = "machine"))]
    pub(super) fn held(&self) -> usize {
        self.0.as_ref().map_or(0, |list| size_of::<T>() * list.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_items_are_dropped_beyond_the_limit() {
        let mut list = RareList::default();
        assert!(list.is_empty() && list.take(|_| true).is_none() && list.held() == 0);
        (1..=4).for_each(|item| list.push(item, 3));
        assert_eq!(list.iter().copied().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!((list.take(|item| *item == 3), list.take(|item| *item == 3)), (Some(3), None));
        assert_eq!(list.iter().copied().collect::<Vec<_>>(), [2, 4]);
        assert!(!list.is_empty() && size_of::<RareList<u32>>() == size_of::<usize>());
    }
}
