//! The state of sums over peers (tables `X.agg`): the progress of this instance's own values, the processes of peers, and
//! events to be logged. Must never scan a table in one go.

use super::plan::{Role, Shared};
use super::status::OriginStatus;
use crate::table::{Cursor, Origin, Table, TableKey};
use base::moment::Moment;
use std::fmt;
use std::time::Duration;

/// Number of table slots scanned at a time.
const PAGE: u32 = 64;
/// Maximum number of pages scanned, and of updates added, before the task yields.
const PAGES: usize = 64;
/// Maximum number of slots and origins examined under one lock, and before the task yields.
const REMOVALS: u32 = 256;
const MOST_REMOVALS: u32 = 4_096;
const UPDATES: u32 = 4_096;
/// A peer that has not learned everything itself is asked again after this time.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Two processes with one name are reported again after this time.
const REPORT_AGAIN: Duration = Duration::from_secs(60);
/// Maximum number of other events of a peer that are reported in that time.
const REPORTS: u32 = 8;
/// Maximum number of notices that wait to be logged.
const NOTICES: usize = 64;

/// An event that an administrator must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Two running processes use the name of a peer.
    Duplicate { section: Box<str>, peer: Box<str> },
    /// A peer's table lacks data of the sum.
    Unlike { section: Box<str>, peer: Box<str>, table: Box<str>, why: String },
    /// A peer's table has all data of the sum again.
    Alike { section: Box<str>, peer: Box<str>, table: Box<str> },
}

impl fmt::Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { section, peer } => write!(
                out,
                "Peers section {section}: two running processes use the name of peer {peer}. They are summed as one: \
                 give each its own name (localpeer, or -L)."
            ),
            Self::Unlike { section, peer, table, why } => {
                write!(out, "Peers section {section}: table {table} of peer {peer} {why}.")
            }
            Self::Alike { section, peer, table } => {
                write!(out, "Peers section {section}: table {table} of peer {peer} is summed completely again.")
            }
        }
    }
}

/// A peer whose values are summed.
#[derive(Debug, Default)]
pub(super) struct PeerOrigin {
    /// The number of its session: values that were received in it have this epoch.
    pub(super) epoch: u16,
    /// The process ID of the hello, if the peer has connected.
    pub(super) pid: Option<u32>,
    /// The process, and the one before it.
    process: Option<u64>,
    former: Option<u64>,
    /// The process of which all values are known.
    pub(super) known: Option<u64>,
    /// All values were requested.
    pub(super) asked: bool,
    /// When they are to be requested again.
    pub(super) ask_at: Option<Moment>,
    reported: Option<Moment>,
    /// Reports since a time.
    reports: Option<(Moment, u32)>,
    /// By table: why it is not summed completely.
    unlike: Vec<Option<String>>,
}

impl PeerOrigin {
    /// Records a new connection.
    pub(super) fn begin(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        (self.asked, self.ask_at) = (false, None);
    }

    /// Returns which of the peer's values are known.
    pub(super) fn status(&self) -> OriginStatus {
        match self.known {
            _ if self.asked || self.ask_at.is_some() => OriginStatus::Asked,
            Some(_) => OriginStatus::Known,
            None => OriginStatus::Unknown,
        }
    }

    /// Whether all values must be requested from a process. That of a peer that announces none may be a new one.
    pub(super) fn must_ask(&self, process: Option<u64>) -> bool {
        process.is_none() || process != self.known
    }

    /// Records that all values of the running process are known.
    pub(super) fn learned(&mut self) {
        self.known = self.process.or(Some(0));
    }

    /// Whether two processes with the name of the peer are to be reported now.
    pub(super) fn may_report_duplicate(&mut self, now: Moment) -> bool {
        let may = self.reported.is_none_or(|then| now >= then + REPORT_AGAIN);
        if may {
            self.reported = Some(now);
        }
        may
    }

    /// Whether another event of the peer may be logged: a faulty peer must not fill the log.
    pub(super) fn may_report(&mut self, now: Moment) -> bool {
        let (since, reports) = self.reports.filter(|(since, _)| now < *since + REPORT_AGAIN).unwrap_or((now, 0));
        self.reports = Some((since, reports.saturating_add(1)));
        reports < REPORTS
    }

    /// Records why a table is not summed completely. True: it is not what was recorded before.
    pub(super) fn note_unlike(&mut self, table: usize, why: Option<&String>) -> bool {
        if self.unlike.len() <= table {
            self.unlike.resize(table + 1, None);
        }
        let changes = self.unlike[table].as_ref() != why;
        self.unlike[table] = why.cloned();
        changes
    }

    /// Records the process of the peer. True: a process that was replaced by another one is back.
    pub(super) fn identify(&mut self, process: Option<u64>) -> bool {
        // HAProxy does not announce a number: the process ID, if it is known.
        let found = process.or(self.pid.map(|pid| 1 << 63 | u64::from(pid)));
        if found.is_none() || found == self.process {
            return false;
        }
        let is_back = found == self.former;
        self.former = std::mem::replace(&mut self.process, found);
        is_back
    }
}

/// The progress of this instance's own values in a sum.
#[derive(Debug)]
struct OwnValues {
    addend: usize,
    sum: usize,
    /// The last update that was added.
    after: u32,
    /// A scan for very many updates, up to a number.
    scan: Option<(Cursor, u32)>,
}

/// The removal of a former process's values.
#[derive(Debug)]
struct Removal {
    sum: usize,
    present: Origin,
    cursor: Cursor,
}

/// The sums of a section.
#[derive(Debug, Default)]
pub(super) struct Sums {
    own: Vec<OwnValues>,
    /// At most one by sum and peer.
    removals: Vec<Removal>,
    notices: Vec<Notice>,
}

impl Sums {
    pub(super) fn new(tables: &[Shared]) -> Self {
        let own = tables.iter().enumerate().filter_map(|(addend, shared)| match shared.role {
            Role::Addend(sum) => Some(OwnValues { addend, sum, after: 0, scan: None }),
            _ => None,
        });
        Self { own: own.collect(), ..Self::default() }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Adds changes of this instance's own values, whose origin is `own`, and removes values of former processes. True:
    /// there is more to do.
    pub(super) fn advance(&mut self, tables: &[Shared], own: Origin, now: Moment) -> bool {
        let mut has_more = false;
        for values in &mut self.own {
            has_more |= values.follow(tables, own, now);
        }
        let Some(removal) = self.removals.last_mut() else { return has_more };
        let table = &tables[removal.sum].table;
        let (mut next, mut cost) = (Some(removal.cursor), 0);
        while let Some(from) = next.filter(|_| cost < MOST_REMOVALS) {
            let removed = table.drop_former(from, REMOVALS, removal.present, now);
            (next, cost) = (removed.next, cost + removed.cost.max(1));
        }
        match next {
            Some(cursor) => removal.cursor = cursor,
            None => drop(self.removals.pop()),
        }
        has_more || !self.removals.is_empty()
    }

    /// Begins to remove the values of a peer's former processes from all sums.
    pub(super) fn remove_former(&mut self, present: Origin) {
        for values in &self.own {
            let sum = values.sum;
            self.removals.retain(|other| other.sum != sum || other.present.index != present.index);
            self.removals.push(Removal { sum, present, cursor: Cursor::default() });
        }
    }

    /// Returns the events to be logged since the last call.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        if self.notices.len() < NOTICES {
            self.notices.push(notice);
        }
    }
}

impl OwnValues {
    /// Adds some updates. True: there are more.
    fn follow(&mut self, tables: &[Shared], origin: Origin, now: Moment) -> bool {
        let (addend, sum) = (&tables[self.addend].table, &tables[self.sum].table);
        if let Some((cursor, up_to)) = self.scan.take() {
            let mut next = Some(cursor);
            for _ in 0..PAGES {
                let Some(from) = next else { break };
                next = addend.page_updates(from, PAGE, self.after, now, |view| {
                    add_own(addend, sum, origin, view.key, view.words(), view.until, now);
                });
            }
            match next {
                Some(cursor) => self.scan = Some((cursor, up_to)),
                None => self.after = up_to,
            }
            return true;
        }
        let last = addend.last_update();
        if last.wrapping_sub(self.after) > UPDATES {
            self.scan = Some((Cursor::default(), last));
            return true;
        }
        if last == self.after {
            return false;
        }
        let batch = addend.updates(self.after, UPDATES as usize);
        for update in &batch.updates {
            add_own(addend, sum, origin, &update.key, &update.words, update.until, now);
        }
        self.after = batch.up_to;
        false
    }
}

/// Adds an entry of this instance to a sum.
fn add_own(addend: &Table, sum: &Table, origin: Origin, key: &[u8], words: &[u32], until: Moment, now: Moment) {
    let elements = sum.plan.layout.stores.iter().flat_map(|store| (0..store.elements).map(|at| (store.kind, at)));
    let data = elements.filter_map(|(kind, at)| Some((kind, at, words.get(addend.plan.layout.place(kind, at)?)?)));
    let life = sum.plan.expire.map_or(Moment::MAX, |life| now.saturating_add(life));
    sum.add_origin(&TableKey::Long(key), origin, now, until.min(life), data);
}
