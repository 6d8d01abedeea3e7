//! Parameters of sending to a peer: the tables, how far each has got, and the keys that the peer receives. Must never send anything.

use super::encoding;
use super::plan::Shared;
use crate::table::{Origin, Table};
use base::moment::Moment;
use wire::peers::{Definition, definition};

/// The synchronization state of a table with a peer. It outlives connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SyncState {
    /// The last update acknowledged by the peer.
    pub(super) acked: u32,
    /// The last update sent to it.
    pub(super) pushed: u32,
    /// The last update when the full resynchronization began.
    pub(super) origin: u32,
}

/// The environment of a connection.
pub(super) struct SyncContext<'a> {
    pub(super) tables: &'a [Shared],
    pub(super) reach: &'a mut [SyncState],
    /// Maximum length of a message in bytes.
    pub(super) limit: usize,
    /// The number of this process.
    pub(super) process: u64,
    /// The peer as an origin of summed values; `None`: it is another process of this instance.
    pub(super) origin: Option<Origin>,
    pub(super) now: Moment,
}

/// How updates are sent to a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendParameters {
    /// This instance has learned everything.
    pub(super) complete: bool,
    /// The shard of keys that the peer receives, from 1; 0: all.
    pub(super) shard: u32,
    /// Maximum number of consecutive updates.
    pub(super) updates: usize,
}

impl SendParameters {
    /// Whether the peer receives a key of a table.
    pub(super) fn takes(&self, table: &Table, key: &[u8]) -> bool {
        self.shard == 0 || table.plan.shard(key) == self.shard
    }
}

/// Appends the definition of a table.
pub(super) fn define(out: &mut Vec<u8>, tables: &[Shared], index: usize) -> Option<Definition> {
    let told = encoding::definition(tables.get(index)?, index as u64 + 1);
    definition(out, &told);
    Some(told)
}
