//! The indices of stick tables that a program takes over from another one. Must never touch an entry.

use live::table::StickTable;
use std::collections::HashMap;

/// The use of an index among the tables of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TableSeat {
    /// The table with that name.
    Stays(Box<str>),
    /// A removed table.
    Removed(Box<StickTable>),
}

impl TableSeat {
    /// Assigns indices to the tables of a program that replaces another one; `None` if they have the right ones
    /// already. A table with different parameters is removed and added with the same name.
    pub(super) fn following(former: &[StickTable], next: &[StickTable]) -> Option<Vec<Self>> {
        let bare = |table: &StickTable| StickTable { write_to: None, ..table.clone() };
        let named = |tables: &[StickTable], table: &StickTable| tables.get(table.write_to?).map(bare);
        let mut by_name: HashMap<&str, Vec<&StickTable>> = HashMap::new();
        for after in next {
            by_name.entry(&after.name).or_default().push(after);
        }
        let stays = |before: &StickTable| {
            let mut found = by_name.get(&*before.name).into_iter().flatten();
            found.any(|after| bare(before) == bare(after) && named(former, before) == named(next, after))
        };
        let seat = |before: &StickTable| match stays(before) {
            _ if before.is_removed() => Self::Removed(Box::new(before.clone())),
            true => Self::Stays(before.name.clone()),
            false => Self::Removed(Box::new(before.removed())),
        };
        let seats: Vec<Self> = former.iter().map(seat).collect();
        let is_there = |(at, seat): (usize, &Self)| matches!((seat, next.get(at)), (Self::Stays(name), Some(after)) if *name == after.name);
        (seats.len() > next.len() || !seats.iter().enumerate().all(is_there)).then_some(seats)
    }
}
