//! Rules that remember servers in stick tables, and find them there (configuration manual, section 4.2, `stick`). Must never
//! choose a server that the balance is to choose.

use config::spec::{DataKind, ServerKeySpec};
use expression::Expression;
use expression::condition::Condition;
use expression::sample::{Context, RulePlace};
use live::table::{EntryMut, Table, TableKey, Tables};
use std::net::SocketAddr;

/// One `stick` rule.
#[derive(Debug, Clone)]
pub struct StickRule {
    /// It looks for a server (`stick on`, `stick match`).
    pub matches: bool,
    /// It remembers the server (`stick on`, `stick store-request`, `stick store-response`).
    pub stores: bool,
    /// It looks at answers.
    pub on_response: bool,
    /// Index of the table.
    pub table: usize,
    /// The key.
    pub key: Expression,
    /// When it is taken; `None`: always.
    pub condition: Option<Condition>,
    /// Where it is written.
    pub place: RulePlace,
}

/// Where it is written makes no difference.
impl PartialEq for StickRule {
    fn eq(&self, other: &Self) -> bool {
        self.matches == other.matches
            && self.stores == other.stores
            && self.on_response == other.on_response
            && self.table == other.table
            && self.key == other.key
            && self.condition == other.condition
    }
}

/// What is to be remembered once the server is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StickStore {
    /// Index of the table.
    pub table: usize,
    /// The key's bytes.
    pub key: Box<[u8]>,
}

/// What is remembered of one message at most.
pub const MOST_STORES: usize = 8;

/// A server as an entry knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// Its `id`; 0: none.
    pub id: u32,
    /// The number of its name or address; 0: none.
    pub key: u32,
}

/// A server that is to be remembered.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Its `id`.
    pub id: u32,
    /// Its name.
    pub name: &'a str,
    /// Where it is.
    pub address: Option<SocketAddr>,
}

impl StickRule {
    /// The key that the rule wants to look up or to remember; `None`: its turn does not come, or there is none.
    pub fn key<'a>(&'a self, context: &Context<'a>, table: &Table) -> Option<TableKey<'a>> {
        if self.condition.as_ref().is_some_and(|condition| !condition.holds(context)) {
            return None;
        }
        TableKey::of_sample(table.plan.key, context, self.key.evaluate(context)?)
    }
}

/// The server that the entry of a key remembers; the entry lives longer for it.
pub fn recall(context: &Context<'_>, table: &Table, key: &TableKey<'_>) -> Option<Remembered> {
    let number = |entry: &EntryMut<'_>, kind| entry.get(kind, 0).and_then(|word| u32::try_from(word).ok()).unwrap_or(0);
    table.refresh(key, context.now, |entry| Remembered {
        id: number(entry, DataKind::ServerId),
        key: number(entry, DataKind::ServerKey),
    })
}

impl Remembered {
    /// Whether it is that server: by its name or address where the entry has one, else by its number.
    pub fn is(&self, table: &Table, server: &Known<'_>) -> bool {
        match table.servers.name(self.key) {
            Some(known) => server_key(table, server).is_some_and(|own| own == *known),
            None => self.id > 0 && self.id == server.id,
        }
    }
}

/// What a server is known by in a table.
fn server_key(table: &Table, server: &Known<'_>) -> Option<Vec<u8>> {
    match table.plan.server_key {
        ServerKeySpec::Name => Some(server.name.as_bytes().to_vec()),
        ServerKeySpec::Address => server.address.map(|address| address.to_string().into_bytes()),
    }
}

impl StickStore {
    /// Remembers the server.
    pub fn perform(&self, tables: &Tables, server: &Known<'_>, now: base::moment::Moment) {
        let Some(table) = tables.get(self.table) else { return };
        let key = server_key(table, server).map_or(0, |key| table.servers.number(&key));
        table.upsert(&TableKey::Long(&self.key), now, |entry| {
            entry.set(DataKind::ServerId, 0, server.id.into());
            entry.set_raw(DataKind::ServerKey, 0, &[key]);
        });
    }
}
