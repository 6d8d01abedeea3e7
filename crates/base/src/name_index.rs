//! An index of the names in a list, built after a number of searches. Must never change the list.

use std::cell::RefCell;
use std::collections::HashMap;

/// Number of linear searches before the index is built: they cost less than building it.
const SCANS: usize = 8;

/// Finds the first entry of each name in a list that only grows at its end. All searches must be in the same list.
#[derive(Debug, Default)]
pub struct NameIndex(RefCell<Index>);

#[derive(Debug, Default)]
struct Index {
    searches: usize,
    /// Number of entries in the index.
    indexed: usize,
    places: HashMap<Box<str>, usize>,
    /// Number of entries visited by searches.
    visits: usize,
}

impl NameIndex {
    /// Returns the index of the first entry for which `name` returns that name. Entries without a name are never found.
    pub fn find<T>(&self, list: &[T], wanted: &str, name: impl Fn(&T) -> Option<&str>) -> Option<usize> {
        let mut index = self.0.borrow_mut();
        let index = &mut *index;
        index.searches = index.searches.saturating_add(1);
        if index.searches <= SCANS {
            let found = list.iter().position(|entry| name(entry) == Some(wanted));
            index.visits += found.map_or(list.len(), |place| place + 1);
            return found;
        }
        for (place, entry) in list.iter().enumerate().skip(index.indexed) {
            index.visits += 1;
            if let Some(name) = name(entry)
                && !index.places.contains_key(name)
            {
                index.places.insert(name.into(), place);
            }
        }
        index.indexed = list.len();
        index.places.get(wanted).copied()
    }

    /// Discards the index, for use with another list.
    pub fn clear(&self) {
        self.0.replace(Index::default());
    }

    /// Returns the number of entries that all searches have visited.
    pub fn visits(&self) -> usize {
        self.0.borrow().visits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_name_is_found_while_the_list_grows() {
        let index = NameIndex::default();
        let mut list: Vec<String> = Vec::new();
        for number in 0..100 {
            list.push(format!("n{}", number % 60));
            let named = |name: &String| (name != "n7").then_some(name.clone());
            for wanted in 0..70 {
                let wanted = format!("n{wanted}");
                let expected = list.iter().position(|name| named(name) == Some(wanted.clone()));
                let found = index.find(&list, &wanted, |name| Some(name.as_str()).filter(|name| *name != "n7"));
                assert_eq!(found, expected, "{wanted} of {}", list.len());
            }
        }
        index.clear();
        assert_eq!(index.find(&["n1"], "n1", |name| Some(name)), Some(0));
    }

    #[test]
    fn many_searches_look_at_each_entry_a_few_times() {
        let list: Vec<String> = (0..10_000).map(|number| format!("n{number}")).collect();
        let index = NameIndex::default();
        for (place, wanted) in list.iter().enumerate().rev() {
            assert_eq!(index.find(&list, wanted, |name| Some(name)), Some(place));
        }
        assert!(index.visits() <= (SCANS + 1) * list.len(), "{}", index.visits());
    }
}
