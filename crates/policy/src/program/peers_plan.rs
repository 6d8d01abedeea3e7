//! A `peers` section with the live tables that it shares. Must never change.

use super::{Peers, Program};
use live::peers::{Remote, Setting, Shared};
use live::table::Tables;
use std::sync::Arc;

/// A section.
#[derive(Debug, Clone)]
pub struct PeersPlan {
    /// What was written.
    pub section: Arc<Peers>,
    /// The tables in the order of [`Peers::tables`].
    pub tables: Box<[Shared]>,
}

impl PeersPlan {
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
