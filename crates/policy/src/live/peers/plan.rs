//! A `peers` section with the tables that it shares, as the exchange needs them. Must never change.

use crate::live::table::{Table, Tables};
use crate::program::{Peers, Program};
use std::sync::Arc;

/// A table that is shared.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Its entries.
    pub table: Arc<Table>,
    /// What peers call it.
    pub name: Box<str>,
}

/// A section.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What was written.
    pub section: Arc<Peers>,
    /// The tables in the order of [`Peers::tables`].
    pub tables: Box<[Shared]>,
}

impl Plan {
    /// That of a section, with tables of the same program.
    pub fn new(section: &Arc<Peers>, tables: &Tables) -> Self {
        let shared = section.tables.iter().filter_map(|shared| {
            let table = tables.get(shared.table)?;
            Some(Shared { table: Arc::clone(table), name: shared.name.clone() })
        });
        Self { section: Arc::clone(section), tables: shared.collect() }
    }

    /// Those of all sections that listen and connect.
    pub fn of(program: &Program, tables: &Tables) -> Vec<Self> {
        program.peers.iter().filter(|section| section.is_active()).map(|section| Self::new(section, tables)).collect()
    }
}
