//! A shared stick table, as the synchronization needs it. Must never change.

use crate::table::Table;
use config::spec::TableSpec;
use std::sync::Arc;

/// A shared stick table.
#[derive(Debug, Clone)]
pub struct Shared {
    pub table: Arc<Table>,
    /// Its name in the protocol.
    pub name: Box<str>,
    /// The table of `write-to`, which receives learned entries.
    pub write_to: Option<Arc<Table>>,
    pub role: Role,
}

/// The part of a shared table in a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    #[default]
    Plain,
    /// Its values are summed over all peers: the index of the table with the sums.
    Addend(usize),
    /// It holds sums: the index of the table whose values are summed.
    Sum(usize),
}

impl Shared {
    /// Sets the roles of tables: that named `X.agg` holds the sums of `X`, if its plan says that it holds sums.
    pub fn assign_roles(tables: &mut [Self]) {
        for sum in 0..tables.len() {
            let bare = tables[sum].name.strip_suffix(TableSpec::SUM_SUFFIX).filter(|_| tables[sum].table.plan.summed);
            let Some(addend) = bare.and_then(|bare| tables.iter().position(|shared| *shared.name == *bare)) else {
                continue;
            };
            tables[sum].role = Role::Sum(addend);
            tables[addend].role = Role::Addend(sum);
        }
    }
}
