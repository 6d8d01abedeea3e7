//! A `peers` section with its live synchronized tables. Must never change.

use super::{Peers, Program};
use live::peers::{Remote, Role, Setting, Shared};
use live::table::Tables;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct PeersPlan {
    /// The compiled section.
    pub section: Arc<Peers>,
    /// The tables in the order of [`Peers::tables`].
    pub tables: Box<[Shared]>,
}

impl PeersPlan {
    /// Creates the plan of a section with tables of the same program.
    pub fn new(section: &Arc<Peers>, tables: &Tables) -> Self {
        let shared = section.tables.iter().filter_map(|shared| {
            let table = tables.get(shared.table)?;
            let write_to = table.plan.write_to.and_then(|target| tables.get(target)).cloned();
            Some(Shared { table: Arc::clone(table), name: shared.name.clone(), write_to, role: Role::Plain })
        });
        let mut tables: Box<[Shared]> = shared.collect();
        Shared::assign_roles(&mut tables);
        Self { section: Arc::clone(section), tables }
    }

    /// Whether a table of the section holds sums over the peers.
    pub fn has_sums(&self) -> bool {
        self.tables.iter().any(|shared| matches!(shared.role, Role::Sum(_)))
    }

    /// Returns the parameters of the section's synchronization. `limit` is the maximum length of a message in bytes,
    /// `pid` the ID of this process, `process` a random number of it. `None` if this instance is not a member.
    pub fn setting(&self, limit: usize, pid: u32, process: u64) -> Option<Setting> {
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
            process,
        })
    }

    /// Returns the plans of all active sections.
    pub fn of(program: &Program, tables: &Tables) -> Vec<Self> {
        program.peers.iter().filter(|section| section.is_active()).map(|section| Self::new(section, tables)).collect()
    }
}
