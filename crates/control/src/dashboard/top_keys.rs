//! The keys of a stick table with the highest values of a column. Must never hold a table's lock for more than a bounded
//! number of entries, and never keep more entries than the answer has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use config::spec::{DataForm, DataKind};
use live::table::{Cursor, Table};

use super::answer::Answer;
use super::json::{Commas, Quoted};
use super::request::DashboardRequest;
use super::tables::{PAGE, entry, members, named};
use crate::runtime::process::{column, shown_datum, write_key};

/// Default and maximum of `limit`: entries per answer.
const USUAL: usize = 20;
const MOST: usize = 100;
/// Maximum number of entries that are read.
const MOST_READ: usize = 1_000_000;

/// A column with numbers: its name, without a period, and its place.
struct Ranking {
    name: String,
    kind: DataKind,
    element: u32,
}

/// Returns the columns of a table by which its keys can be ranked.
fn rankings(table: &Table) -> Vec<Ranking> {
    let stores = table.plan.layout.stores.iter().filter(|store| !matches!(store.kind.form(), DataForm::Server));
    let all = stores.flat_map(|store| (0..store.elements).map(|element| (store.kind, element)));
    all.map(|(kind, element)| Ranking { name: column(kind, element), kind, element }).collect()
}

/// The highest values, at most a number of them.
struct Highest<T> {
    most: usize,
    /// The lowest first.
    heap: BinaryHeap<Reverse<Ranked<T>>>,
}

/// An item by its value; of equal values, the one that was seen first precedes.
struct Ranked<T> {
    value: u64,
    order: Reverse<usize>,
    item: T,
}

impl<T> Ranked<T> {
    fn rank(&self) -> (u64, Reverse<usize>) {
        (self.value, self.order)
    }
}

impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<T> Eq for Ranked<T> {}

impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ranked<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl<T> Highest<T> {
    fn new(most: usize) -> Self {
        Self { most, heap: BinaryHeap::new() }
    }

    /// Offers a value; `item` is called if it is one of the highest so far.
    fn offer(&mut self, value: u64, order: usize, item: impl FnOnce() -> T) {
        let is_full = self.heap.len() >= self.most;
        if is_full && self.heap.peek().is_none_or(|lowest| value <= lowest.0.value) {
            return;
        }
        if is_full {
            self.heap.pop();
        }
        self.heap.push(Reverse(Ranked { value, order: Reverse(order), item: item() }));
    }

    /// Returns the items, the highest value first.
    fn into_items(self) -> Vec<T> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| ranked.0.item).collect()
    }
}

/// `tables/{name}/top`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let Some(table) = named(&asked) else { return answer.refuse(404, "there is no such table") };
    let rankings = rankings(&table);
    let by = asked.target.parameter("by");
    let Some(ranking) = rankings.iter().find(|ranking| by.is_none_or(|by| *by == *ranking.name)) else {
        let names: Vec<&str> = rankings.iter().map(|ranking| &*ranking.name).collect();
        return answer.refuse(400, &format!("'by' is one of the table's columns: {}", names.join(", ")));
    };
    let mut highest = Highest::new(asked.target.number("limit", USUAL, MOST));
    let (mut read, mut cursor) = (0, Some(Cursor::default()));
    while let Some(from) = cursor.filter(|_| read < MOST_READ) {
        cursor = table.page(from, PAGE, rt::now(), |_, view| {
            let value = shown_datum(&view, &table, ranking.kind, ranking.element).unwrap_or(0);
            highest.offer(value, read, || {
                let (mut key, mut text) = (String::new(), String::new());
                write_key(&mut key, table.plan.key, view.key);
                entry(&table, &view, &key, &mut text);
                text
            });
            read += 1;
        });
        answer.relieve().await;
    }
    let mut text = "{".to_owned();
    members(&table, &mut text);
    answer.begin_json();
    answer.push(&text);
    answer.push(&format!(",\"by\":{},\"scanned\":{read},\"entries\":[", Quoted(&ranking.name)));
    let mut commas = Commas::default();
    for text in highest.into_items() {
        answer.push(commas.next());
        answer.push(&text);
        answer.relieve().await;
    }
    answer.push(&format!("],\"complete\":{}}}\n", cursor.is_none()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_values_are_kept_in_order() {
        let highest = |values: &[u64], most| {
            let (mut highest, mut made) = (Highest::new(most), 0);
            for (order, value) in values.iter().enumerate() {
                highest.offer(*value, order, || {
                    made += 1;
                    (*value, order)
                });
            }
            (highest.into_items(), made)
        };
        assert_eq!(highest(&[3, 1, 4, 1, 5, 9, 2, 6], 3), (vec![(9, 5), (6, 7), (5, 4)], 6));
        assert_eq!(highest(&[1, 1, 1, 1], 2), (vec![(1, 0), (1, 1)], 2));
        assert_eq!(highest(&[2, 3], 5), (vec![(3, 1), (2, 0)], 2));
        assert_eq!(highest(&[2, 3], 0), (vec![], 0));
    }
}
