//! Storage of variables, and their sizes. Must never check a limit.

use super::{Ledger, Name, Scope};
use crate::sample::{Context, Value};
use std::cell::{OnceCell, RefCell};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Size in bytes charged for a variable in addition to its data, as in HAProxy.
pub(super) const OVERHEAD: usize = 88;

/// An owned value that outlives its evaluation.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredValue {
    Bool(bool),
    Int(i64),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Str(Vec<u8>),
    /// Binary.
    Bin(Vec<u8>),
    /// An HTTP method.
    Method(Vec<u8>),
}

impl StoredValue {
    /// The size charged, in bytes.
    fn cost(&self) -> usize {
        match self {
            Self::Str(bytes) | Self::Bin(bytes) | Self::Method(bytes) => OVERHEAD + bytes.len(),
            _ => OVERHEAD,
        }
    }

    /// Borrows the value.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Int(*number),
            Self::Ipv4(address) => Value::Ipv4(*address),
            Self::Ipv6(address) => Value::Ipv6(*address),
            Self::Str(bytes) => Value::Str(bytes),
            Self::Bin(bytes) => Value::Bin(bytes),
            Self::Method(bytes) => Value::Method(bytes),
        }
    }

    /// Copies the value into the evaluation's memory.
    pub(super) fn load<'a>(&self, context: &Context<'a>) -> Option<Value<'a>> {
        Some(match self.value() {
            Value::Bool(flag) => Value::Bool(flag),
            Value::Int(number) => Value::Int(number),
            Value::Ipv4(address) => Value::Ipv4(address),
            Value::Ipv6(address) => Value::Ipv6(address),
            Value::Str(bytes) => Value::Str(context.copy(bytes)?),
            Value::Bin(bytes) => Value::Bin(context.copy(bytes)?),
            Value::Method(bytes) => Value::Method(context.copy(bytes)?),
        })
    }

    /// Replaces the value, reusing its memory.
    fn replace(&mut self, value: Value<'_>) {
        let mut memory = match self {
            Self::Str(bytes) | Self::Bin(bytes) | Self::Method(bytes) => std::mem::take(bytes),
            _ => Vec::new(),
        };
        let mut keep = |bytes: &[u8]| {
            memory.clear();
            memory.extend_from_slice(bytes);
            std::mem::take(&mut memory)
        };
        *self = match value {
            Value::Bool(flag) => Self::Bool(flag),
            Value::Int(number) => Self::Int(number),
            Value::Ipv4(address) => Self::Ipv4(address),
            Value::Ipv6(address) => Self::Ipv6(address),
            Value::Str(bytes) => Self::Str(keep(bytes)),
            Value::Bin(bytes) => Self::Bin(keep(bytes)),
            Value::Method(bytes) => Self::Method(keep(bytes)),
        };
    }
}

impl From<Value<'_>> for StoredValue {
    fn from(value: Value<'_>) -> Self {
        let mut stored = Self::Bool(false);
        stored.replace(value);
        stored
    }
}

/// The variables of some scopes.
#[derive(Debug, Default)]
pub struct Store {
    entries: Vec<(Scope, Name, StoredValue)>,
    /// The total size charged, in bytes.
    bytes: usize,
    /// The ledger that also includes those bytes; released bytes are released there, too.
    ledger: Option<Arc<Ledger>>,
}

impl Store {
    /// Returns the value of a variable.
    pub fn get(&self, scope: Scope, name: Name) -> Option<&StoredValue> {
        self.entries.iter().find(|entry| entry.0 == scope && entry.1 == name).map(|entry| &entry.2)
    }

    /// Returns every variable of a scope.
    pub fn iter(&self, scope: Scope) -> impl Iterator<Item = (Name, &StoredValue)> {
        self.entries.iter().filter(move |entry| entry.0 == scope).map(|entry| (entry.1, &entry.2))
    }

    /// The total size of its variables in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The size of the variables of one scope in bytes.
    pub(super) fn bytes_of(&self, scope: Scope) -> usize {
        self.iter(scope).map(|(_, stored)| stored.cost()).sum()
    }

    /// Returns the bytes that would be charged additionally, and those that would be released, if a variable had that
    /// value.
    pub(super) fn change(&self, scope: Scope, name: Name, value: Value<'_>) -> (usize, usize) {
        let new = OVERHEAD + value.bytes().map_or(0, <[u8]>::len);
        let old = self.get(scope, name).map_or(0, StoredValue::cost);
        (new.saturating_sub(old), old.saturating_sub(new))
    }

    /// Adds the store's present bytes to a ledger, which from now on includes them. The caller charges pending changes.
    pub(super) fn join(&mut self, ledger: &Arc<Ledger>) {
        if self.ledger.is_none() {
            ledger.add(self.bytes);
            self.ledger = Some(Arc::clone(ledger));
        }
    }

    pub fn set(&mut self, scope: Scope, name: Name, value: Value<'_>) {
        let (more, less) = self.change(scope, name, value);
        self.bytes = self.bytes + more - less;
        if let Some(ledger) = self.ledger.as_ref().filter(|_| less > 0) {
            ledger.give(less);
        }
        match self.entries.iter_mut().find(|entry| entry.0 == scope && entry.1 == name) {
            Some(entry) => entry.2.replace(value),
            None => self.entries.push((scope, name, value.into())),
        }
    }

    pub fn unset(&mut self, scope: Scope, name: Name) {
        if let Some(at) = self.entries.iter().position(|entry| entry.0 == scope && entry.1 == name) {
            let (_, _, old) = self.entries.swap_remove(at);
            self.give_back(old.cost());
        }
    }

    /// Removes every variable of a scope.
    pub fn clear_scope(&mut self, scope: Scope) {
        let bytes = self.bytes_of(scope);
        if bytes > 0 {
            self.entries.retain(|entry| entry.0 != scope);
            self.give_back(bytes);
        }
    }

    /// Removes everything and keeps the capacity.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.give_back(self.bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        if let Some(ledger) = &self.ledger {
            ledger.give(bytes);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

/// The variables of a session, allocated on first use.
#[derive(Debug, Default)]
pub struct SessionStore(OnceCell<Box<RefCell<Store>>>);

impl SessionStore {
    pub(super) fn get(&self) -> Option<&RefCell<Store>> {
        self.0.get().map(|store| &**store)
    }

    pub(super) fn get_or_make(&self) -> &RefCell<Store> {
        self.0.get_or_init(Box::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_count_their_bytes() {
        let (mut store, name) = (Store::default(), Name::of("a"));
        store.set(Scope::Transaction, name, Value::Str(b"12345"));
        assert_eq!(store.bytes(), OVERHEAD + 5);
        store.set(Scope::Request, name, Value::Int(1));
        assert_eq!((store.bytes(), store.bytes_of(Scope::Request)), (2 * OVERHEAD + 5, OVERHEAD));
        store.set(Scope::Transaction, name, Value::Int(7));
        assert_eq!((store.bytes(), store.get(Scope::Transaction, name)), (2 * OVERHEAD, Some(&StoredValue::Int(7))));
        store.clear_scope(Scope::Request);
        assert_eq!((store.get(Scope::Request, name), store.bytes()), (None, OVERHEAD));
        store.unset(Scope::Transaction, name);
        assert_eq!((store.is_empty(), store.bytes()), (true, 0));
    }
}
