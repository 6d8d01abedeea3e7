//! Rules that store servers in stick tables and look them up (configuration manual, section 4.2, `stick`). Must never
//! select a server by load balancing.

use config::spec::{DataKind, ServerKeySpec};
use expression::Expression;
use expression::condition::Condition;
use expression::sample::{Context, RulePlace};
use live::table::{EntryMut, Table, TableKey, Tables};
use std::net::SocketAddr;

/// A `stick` rule.
#[derive(Debug, Clone)]
pub struct StickRule {
    /// It looks up a server (`stick on`, `stick match`).
    pub matches: bool,
    /// It stores the server (`stick on`, `stick store-request`, `stick store-response`).
    pub stores: bool,
    /// It is evaluated for responses.
    pub on_response: bool,
    /// Index of the stick table.
    pub table: usize,
    pub key: Expression,
    /// The condition; `None` for none.
    pub condition: Option<Condition>,
    /// Location in the configuration.
    pub place: RulePlace,
}

/// Compares everything except the location.
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

/// An entry to be stored when the server is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StickStore {
    /// Index of the stick table.
    pub table: usize,
    /// The key in bytes.
    pub key: Box<[u8]>,
}

/// Maximum number of stored entries per message.
pub const MOST_STORES: usize = 8;

/// The server in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// `id` of the server; 0 if none.
    pub id: u32,
    /// Dictionary ID of its name or address; 0 if none.
    pub key: u32,
}

/// A server to be stored or compared.
#[derive(Debug, Clone, Copy)]
pub struct ServerRef<'a> {
    pub id: u32,
    pub name: &'a str,
    pub address: Option<SocketAddr>,
}

impl StickRule {
    /// Returns the key that the rule looks up or stores; `None` if its condition does not match, or the key has no
    /// value.
    pub fn key<'a>(&'a self, context: &Context<'a>, table: &Table) -> Option<TableKey<'a>> {
        if self.condition.as_ref().is_some_and(|condition| !condition.holds(context)) {
            return None;
        }
        TableKey::of_sample(table.plan.key, context, self.key.evaluate(context)?)
    }
}

/// Returns the server in the entry of a key, and refreshes the entry's expiration.
pub fn recall(context: &Context<'_>, table: &Table, key: &TableKey<'_>) -> Option<Remembered> {
    let number = |entry: &EntryMut<'_>, kind| entry.get(kind, 0).and_then(|word| u32::try_from(word).ok()).unwrap_or(0);
    table.refresh(key, context.now, |entry| Remembered {
        id: number(entry, DataKind::ServerId),
        key: number(entry, DataKind::ServerKey),
    })
}

impl Remembered {
    /// Whether it is that server: by name or address if the entry has one, else by `id`.
    pub fn is(&self, table: &Table, server: &ServerRef<'_>) -> bool {
        match table.servers.name(self.key) {
            Some(known) => server_key(table, server).is_some_and(|own| own == *known),
            None => self.id > 0 && self.id == server.id,
        }
    }
}

/// Returns the name or address that identifies a server in a table.
fn server_key(table: &Table, server: &ServerRef<'_>) -> Option<Vec<u8>> {
    match table.plan.server_key {
        ServerKeySpec::Name => Some(server.name.as_bytes().to_vec()),
        ServerKeySpec::Address => server.address.map(|address| address.to_string().into_bytes()),
    }
}

impl StickStore {
    /// Stores the server.
    pub fn perform(&self, tables: &Tables, server: &ServerRef<'_>, now: base::moment::Moment) {
        let Some(table) = tables.get(self.table) else { return };
        let key = server_key(table, server).map_or(0, |key| table.servers.number(&key));
        table.upsert(&TableKey::Long(&self.key), now, |entry| {
            entry.set(DataKind::ServerId, 0, server.id.into());
            entry.set_raw(DataKind::ServerKey, 0, &[key]);
        });
    }
}
