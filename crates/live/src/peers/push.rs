//! The entries sent to a peer: updates in their order, or everything. Must never scan a table in one go.

use super::announcement::Flow;
use super::encoding::{self, Entry};
use super::names::SentNames;
use super::send_parameters::{SendParameters, SyncContext, SyncState, define};
use crate::table::Cursor;
use base::moment::Moment;
use wire::peers::{Control, Definition};

/// Number of table slots scanned at a time.
const PAGE: u32 = 64;
/// Maximum number of pages scanned before the task yields.
const PAGES: usize = 64;
/// Number of pending updates beyond which a table is scanned slot by slot, instead of in the order of its updates.
const FAR: u32 = 4_096;

/// The state of sending on one connection.
#[derive(Debug, Default)]
pub(super) struct PushState {
    task: Task,
    /// The table selected last, and its definition.
    current: Option<(usize, Definition)>,
    /// The table to be served next.
    turn: usize,
    names: SentNames,
    /// By table, whether it is sent.
    pub(super) flows: Vec<Flow>,
    /// More is left to be sent than there was space for.
    pub(super) has_more: bool,
}

#[derive(Debug, Default)]
enum Task {
    /// Sends updates as they occur.
    #[default]
    Follow,
    /// Scans a table with very many updates: those after one number, up to another one.
    Catch { table: usize, cursor: Option<Cursor>, after: u32, up_to: u32 },
    /// Sends everything, table by table.
    Teach { table: usize, cursor: Option<Cursor>, begun: bool },
    /// Everything was sent, and the confirmation is pending.
    Wait,
}

impl PushState {
    pub(super) fn new(flows: Vec<Flow>) -> Self {
        Self { flows, ..Self::default() }
    }

    /// Begins to send everything, unless that is in progress.
    pub(super) fn begin(&mut self) {
        if !matches!(self.task, Task::Teach { .. } | Task::Wait) {
            self.task = Task::Teach { table: 0, cursor: None, begun: false };
        }
    }

    /// Records that the peer has confirmed everything. False: nothing was pending.
    pub(super) fn confirmed(&mut self, reach: &mut [SyncState]) -> bool {
        if !matches!(self.task, Task::Wait) {
            return false;
        }
        for reach in reach {
            // Updates sent in order since then are not sent again.
            if (reach.origin.wrapping_sub(reach.pushed) as i32) > 0 {
                reach.pushed = reach.origin;
            }
            reach.acked = reach.pushed;
        }
        self.task = Task::Follow;
        true
    }

    /// The table selected last.
    pub(super) fn current(&self) -> Option<usize> {
        self.current.as_ref().map(|(index, _)| *index)
    }

    /// Names of servers sent.
    pub(super) fn names_sent(&self) -> Vec<(u64, Box<[u8]>)> {
        self.names.list()
    }

    /// Appends about `most` bytes.
    pub(super) fn say(&mut self, out: &mut Vec<u8>, around: &mut SyncContext<'_>, most: usize, manner: SendParameters) {
        self.has_more = false;
        match self.task {
            Task::Wait => {}
            Task::Teach { .. } => self.teach(out, around, most, manner),
            Task::Catch { .. } => self.catch_up(out, around, most, manner),
            Task::Follow => self.follow(out, around, most, manner),
        }
    }

    fn sends(&self, table: usize) -> bool {
        self.flows.get(table) == Some(&Flow::Send)
    }

    /// Selects a table: appends its definition if another one was selected.
    fn select(&mut self, out: &mut Vec<u8>, around: &SyncContext<'_>, index: usize) -> Option<Definition> {
        match self.current.take() {
            Some((told, definition)) if told == index => Some(definition),
            _ => define(out, around.tables, index),
        }
    }

    /// Appends updates in their order, table by table.
    fn follow(&mut self, out: &mut Vec<u8>, around: &mut SyncContext<'_>, most: usize, manner: SendParameters) {
        for step in 0..around.tables.len() {
            let index = (self.turn + step) % around.tables.len();
            if !self.sends(index) {
                continue;
            }
            let (table, reach) = (&around.tables[index].table, &mut around.reach[index]);
            let last = table.last_update();
            if last == reach.pushed {
                continue;
            }
            if last.wrapping_sub(reach.pushed) > FAR && !table.plan.recv_only {
                self.task =
                    Task::Catch { table: index, cursor: Some(Cursor::default()), after: reach.pushed, up_to: last };
                return self.catch_up(out, around, most, manner);
            }
            let told = table.updates(reach.pushed, manner.updates.clamp(1, FAR as usize));
            let has_confirmed_all = reach.acked == reach.pushed;
            reach.pushed = told.up_to;
            if !told.updates.iter().any(|update| manner.takes(table, &update.key)) {
                if has_confirmed_all {
                    reach.acked = reach.pushed;
                }
                self.has_more |= told.up_to != last;
                continue;
            }
            let Some(definition) = self.select(out, around, index) else { continue };
            for update in told.updates.iter().filter(|update| manner.takes(&around.tables[index].table, &update.key)) {
                let entry =
                    Entry { number: update.number, key: &update.key, words: &update.words, until: update.until };
                encoding::append_entry(
                    out,
                    &definition,
                    index,
                    &around.tables[index].table,
                    &mut self.names,
                    &entry,
                    around.now,
                );
            }
            self.current = Some((index, definition));
            if out.len() >= most {
                (self.turn, self.has_more) = (index, true);
                return;
            }
            if told.up_to != last {
                self.has_more = true;
            }
        }
    }

    /// Scans one table slot by slot for updates after a number.
    fn catch_up(&mut self, out: &mut Vec<u8>, around: &mut SyncContext<'_>, most: usize, manner: SendParameters) {
        let Task::Catch { table: index, mut cursor, after, up_to } = std::mem::take(&mut self.task) else { return };
        self.has_more = true;
        let Some(definition) = self.select(out, around, index) else { return };
        // They are not in the order of their numbers: none of them is acknowledged before all are sent.
        let tables = around.tables;
        for _ in 0..PAGES {
            if out.len() >= most {
                break;
            }
            let Some(from) = cursor else { break };
            let (names, now) = (&mut self.names, around.now);
            let table = &tables[index].table;
            cursor = table.page_updates(from, PAGE, after, now, |view| {
                if manner.takes(table, view.key) {
                    let entry = Entry { number: after, key: view.key, words: view.words(), until: view.until };
                    encoding::append_entry(out, &definition, index, table, names, &entry, now);
                }
            });
            if cursor.is_none() {
                around.reach[index].pushed = up_to;
                self.current = Some((index, definition));
                return;
            }
        }
        self.current = Some((index, definition));
        self.task = Task::Catch { table: index, cursor, after, up_to };
    }

    /// Scans all tables slot by slot.
    fn teach(&mut self, out: &mut Vec<u8>, around: &mut SyncContext<'_>, most: usize, manner: SendParameters) {
        let Task::Teach { mut table, mut cursor, mut begun } = std::mem::take(&mut self.task) else { return };
        self.has_more = true;
        let tables = around.tables;
        for _ in 0..PAGES {
            let Some(shared) = tables.get(table) else {
                let end = if manner.complete { Control::ResyncFinished } else { Control::ResyncPartial };
                end.encode(out);
                (self.task, self.has_more) = (Task::Wait, false);
                return;
            };
            if out.len() >= most {
                break;
            }
            if !self.sends(table) {
                (table, cursor, begun) = (table + 1, None, false);
                continue;
            }
            if !begun {
                around.reach[table].origin = shared.table.last_update();
                (cursor, begun) = (Some(Cursor::default()), true);
            }
            let Some(definition) = self.select(out, around, table) else { break };
            let (names, now, origin) = (&mut self.names, around.now, around.reach[table].origin);
            let mut take = |key: &[u8], words: &[u32], until: Moment| {
                if manner.takes(&shared.table, key) {
                    let entry = Entry { number: origin, key, words, until };
                    encoding::append_entry(out, &definition, table, &shared.table, names, &entry, now);
                }
            };
            cursor = cursor.and_then(|from| {
                shared.table.page(from, PAGE, now, |_, view| take(view.key, view.words(), view.until))
            });
            self.current = Some((table, definition));
            if cursor.is_none() {
                (table, begun) = (table + 1, false);
            }
        }
        self.task = Task::Teach { table, cursor, begun };
    }
}
