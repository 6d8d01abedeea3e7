//! A `peers` section with the tables that it shares, as the exchange needs them. Must never change.

use super::section::{Remote, Setting};
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
    /// The table that gets what peers tell of it.
    pub write_to: Option<Arc<Table>>,
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
            let write_to = table.plan.write_to.and_then(|target| tables.get(target)).cloned();
            Some(Shared { table: Arc::clone(table), name: shared.name.clone(), write_to })
        });
        Self { section: Arc::clone(section), tables: shared.collect() }
    }

    /// What the exchange of the section is about. A message has `limit` bytes at most; `pid` is this process. `None`: it
    /// is about nothing, as this instance is not in it.
    pub fn setting(&self, limit: usize, pid: u32) -> Option<Setting> {
        let section = &self.section;
        let remotes = section.remotes.iter().map(|peer| Remote { name: peer.name.clone(), shard: peer.shard });
        Some(Setting {
            name: section.name.clone(),
            local: section.local.clone()?,
            remotes: remotes.collect(),
            tables: self.tables.to_vec(),
            updates: section.max_updates,
            limit,
            pid,
        })
    }

    /// Those of all sections that listen and connect.
    pub fn of(program: &Program, tables: &Tables) -> Vec<Self> {
        program.peers.iter().filter(|section| section.is_active()).map(|section| Self::new(section, tables)).collect()
    }
}
