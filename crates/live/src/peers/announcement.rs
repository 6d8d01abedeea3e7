//! Announcements of Weir to Weir at the start of a connection: which tables it sums itself, and a number of its process.
//! Each is the definition of a table with a name that no configuration can contain: HAProxy ignores it. Must never be
//! sent by an instance that sums nothing.

use super::plan::{Role, Shared};
use wire::peers::{Definition, KeyKind, definition};

/// Before the name of a table of sums.
const SUM: &str = "@weir sum ";
/// Before the number of the process, in hexadecimal digits. The last announcement.
const PROCESS: &str = "@weir process ";

/// An announcement of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announcement {
    /// It sums a table itself: the index of the table that it sends.
    Sums(usize),
    /// It sums a table that is not summed here.
    Other,
    /// The number of its process.
    Process(u64),
}

/// Appends the announcements of this instance.
pub(super) fn append(out: &mut Vec<u8>, tables: &[Shared], process: u64) {
    let id = tables.len() as u64 + 1;
    let mut announce = |name: String| {
        let (name, stores) = (name.into_bytes(), Vec::new());
        definition(out, &Definition { id, name, key: KeyKind::Integer, key_length: 4, stores, expire: 0 });
    };
    for shared in tables.iter().filter(|shared| matches!(shared.role, Role::Sum(_))) {
        announce(format!("{SUM}{}", shared.name));
    }
    announce(format!("{PROCESS}{process:016x}"));
}

/// Returns what a definition announces. `None`: it defines a table.
pub(super) fn parse(payload: &[u8], tables: &[Shared]) -> Option<Announcement> {
    let definition = Definition::decode(payload).ok()?;
    let name = std::str::from_utf8(&definition.name).ok()?;
    if let Some(number) = name.strip_prefix(PROCESS) {
        return u64::from_str_radix(number, 16).ok().map(Announcement::Process);
    }
    let name = name.strip_prefix(SUM)?;
    let addend = tables.iter().find(|shared| *shared.name == *name).and_then(|shared| match shared.role {
        Role::Sum(addend) => Some(addend),
        _ => None,
    });
    Some(addend.map_or(Announcement::Other, Announcement::Sums))
}

/// Whether a table is sent to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Send,
    Skip,
    /// The peer has not announced yet what it sums.
    Later,
}

/// The progress of the announcements on a connection.
#[derive(Debug)]
pub(super) struct Announcements {
    /// Those of this instance were sent, or there are none.
    pub(super) sent: bool,
    /// The peer has announced everything, or announces nothing.
    pub(super) received: bool,
    /// By table: the peer sums it itself.
    sums: Vec<bool>,
}

impl Announcements {
    /// Before any message. `is_local`: the peer is another process of this instance, with which nothing is announced.
    pub(super) fn new(tables: &[Shared], is_local: bool) -> Self {
        let needless = is_local || tables.iter().all(|shared| shared.role == Role::Plain);
        Self { sent: needless, received: needless, sums: vec![false; tables.len()] }
    }

    /// Records that the peer sums a table.
    pub(super) fn note(&mut self, addend: usize) {
        if let Some(sums) = self.sums.get_mut(addend) {
            *sums = true;
        }
    }

    /// Returns which tables are sent to the peer. A peer that sums a table receives the values of this instance, one
    /// that does not receives the sums: its own values must not be overwritten.
    pub(super) fn flows(&self, tables: &[Shared], is_local: bool) -> Vec<Flow> {
        let flow = |(index, shared): (usize, &Shared)| match shared.role {
            Role::Plain => Flow::Send,
            _ if !self.received => Flow::Later,
            Role::Addend(_) if is_local || self.sums[index] => Flow::Send,
            Role::Sum(addend) if !is_local && !self.sums[addend] => Flow::Send,
            _ => Flow::Skip,
        };
        tables.iter().enumerate().map(flow).collect()
    }
}
