//! What a peer is told: what happens here, in its order, or everything there is. Must never go through a table in one go.

use super::form::{self, Entry};
use super::names::Sent;
use super::session::{Around, Manner, Reach, define};
use crate::table::Cursor;
use base::moment::Moment;
use wire::peers::{Control, Definition};

/// Places of a table that are looked at in a row.
const PAGE: u32 = 64;
/// Pages that are looked at before others get their turn.
const PAGES: usize = 64;
/// Updates behind which a table is gone through place by place, instead of in the order of its updates.
const FAR: u32 = 4_096;

/// What a connection is told.
#[derive(Debug, Default)]
pub(super) struct Teaching {
    task: Task,
    /// The table that the peer was told of last, and its definition.
    current: Option<(usize, Definition)>,
    /// The table whose turn it is.
    turn: usize,
    names: Sent,
    /// More is left to be told than there was room for.
    pub(super) has_more: bool,
}

#[derive(Debug, Default)]
enum Task {
    /// What happens.
    #[default]
    Follow,
    /// A table in which very much has happened: from a number on, up to another one.
    Catch { table: usize, cursor: Option<Cursor>, after: u32, up_to: u32 },
    /// Everything, table by table.
    Teach { table: usize, cursor: Option<Cursor>, begun: bool },
    /// Everything was told, and is to be confirmed.
    Wait,
}

impl Teaching {
    /// Everything is to be told, unless that is going on.
    pub(super) fn begin(&mut self) {
        if !matches!(self.task, Task::Teach { .. } | Task::Wait) {
            self.task = Task::Teach { table: 0, cursor: None, begun: false };
        }
    }

    /// The peer has heard everything. False: it was not told.
    pub(super) fn confirmed(&mut self, reach: &mut [Reach]) -> bool {
        if !matches!(self.task, Task::Wait) {
            return false;
        }
        for reach in reach {
            // What was told meanwhile in its order stays told.
            if (reach.origin.wrapping_sub(reach.pushed) as i32) > 0 {
                reach.pushed = reach.origin;
            }
            reach.acked = reach.pushed;
        }
        self.task = Task::Follow;
        true
    }

    /// The table that the peer was told of last.
    pub(super) fn current(&self) -> Option<usize> {
        self.current.as_ref().map(|(index, _)| *index)
    }

    /// Names of servers that it was told.
    pub(super) fn names_sent(&self) -> Vec<(u64, Box<[u8]>)> {
        self.names.list()
    }

    /// Appends about `most` bytes.
    pub(super) fn say(&mut self, out: &mut Vec<u8>, around: &mut Around<'_>, most: usize, manner: Manner) {
        self.has_more = false;
        match self.task {
            Task::Wait => {}
            Task::Teach { .. } => self.teach(out, around, most, manner),
            Task::Catch { .. } => self.catch_up(out, around, most, manner),
            Task::Follow => self.follow(out, around, most, manner),
        }
    }

    /// The definition of a table, told if the last one was another.
    fn select(&mut self, out: &mut Vec<u8>, around: &Around<'_>, index: usize) -> Option<Definition> {
        match self.current.take() {
            Some((told, definition)) if told == index => Some(definition),
            _ => define(out, around.tables, index),
        }
    }

    /// Updates in their order, table by table.
    fn follow(&mut self, out: &mut Vec<u8>, around: &mut Around<'_>, most: usize, manner: Manner) {
        for step in 0..around.tables.len() {
            let index = (self.turn + step) % around.tables.len();
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
                form::tell(out, &definition, (index, &around.tables[index].table), &mut self.names, &entry, around.now);
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

    /// One table, place by place: what has happened behind a number.
    fn catch_up(&mut self, out: &mut Vec<u8>, around: &mut Around<'_>, most: usize, manner: Manner) {
        let Task::Catch { table: index, mut cursor, after, up_to } = std::mem::take(&mut self.task) else { return };
        self.has_more = true;
        let Some(definition) = self.select(out, around, index) else { return };
        // Their order is not that of their numbers: none of them is confirmed before all are told.
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
                    form::tell(out, &definition, (index, table), names, &entry, now);
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

    /// Everything, place by place.
    fn teach(&mut self, out: &mut Vec<u8>, around: &mut Around<'_>, most: usize, manner: Manner) {
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
            if !begun {
                around.reach[table].origin = shared.table.last_update();
                (cursor, begun) = (Some(Cursor::default()), true);
            }
            let Some(definition) = self.select(out, around, table) else { break };
            let (names, now, origin) = (&mut self.names, around.now, around.reach[table].origin);
            let mut take = |key: &[u8], words: &[u32], until: Moment| {
                if manner.takes(&shared.table, key) {
                    let entry = Entry { number: origin, key, words, until };
                    form::tell(out, &definition, (table, &shared.table), names, &entry, now);
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
