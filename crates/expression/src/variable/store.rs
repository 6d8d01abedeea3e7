//! Where variables lie, and what they count for. Must never know a limit.

use super::{Ledger, Name, Scope};
use crate::sample::{Context, Value};
use std::cell::{OnceCell, RefCell};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Bytes that a variable counts for beside its data, as HAProxy counts them.
pub(super) const OVERHEAD: usize = 88;

/// A value that outlives its evaluation.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A string.
    Str(Vec<u8>),
    /// A block of data.
    Bin(Vec<u8>),
    /// A method.
    Method(Vec<u8>),
}

impl Stored {
    /// Bytes that it counts for.
    fn cost(&self) -> usize {
        match self {
            Self::Str(bytes) | Self::Bin(bytes) | Self::Method(bytes) => OVERHEAD + bytes.len(),
            _ => OVERHEAD,
        }
    }

    /// The value, which lives as long as what is stored.
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

    /// A copy that lives as long as the evaluation.
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

    /// Takes a value over, into the memory that is there.
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

impl From<Value<'_>> for Stored {
    fn from(value: Value<'_>) -> Self {
        let mut stored = Self::Bool(false);
        stored.replace(value);
        stored
    }
}

/// The variables of some scopes.
#[derive(Debug, Default)]
pub struct Store {
    entries: Vec<(Scope, Name, Stored)>,
    /// Bytes that they count for.
    bytes: usize,
    /// Where those bytes are counted together with others; what is given up is given back there.
    ledger: Option<Arc<Ledger>>,
}

impl Store {
    /// The value of a variable.
    pub fn get(&self, scope: Scope, name: Name) -> Option<&Stored> {
        self.entries.iter().find(|entry| entry.0 == scope && entry.1 == name).map(|entry| &entry.2)
    }

    /// Every variable of a scope.
    pub fn iter(&self, scope: Scope) -> impl Iterator<Item = (Name, &Stored)> {
        self.entries.iter().filter(move |entry| entry.0 == scope).map(|entry| (entry.1, &entry.2))
    }

    /// Bytes that its variables count for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those of one scope.
    pub(super) fn bytes_of(&self, scope: Scope) -> usize {
        self.iter(scope).map(|(_, stored)| stored.cost()).sum()
    }

    /// Bytes that a variable would count for in addition, and would not any more, if it had that value.
    pub(super) fn change(&self, scope: Scope, name: Name, value: Value<'_>) -> (usize, usize) {
        let new = OVERHEAD + value.bytes().map_or(0, <[u8]>::len);
        let old = self.get(scope, name).map_or(0, Stored::cost);
        (new.saturating_sub(old), old.saturating_sub(new))
    }

    /// Counts its bytes there from now on, too: those that it has and the `more` that were taken there for it.
    pub(super) fn join(&mut self, ledger: &Arc<Ledger>) {
        if self.ledger.is_none() {
            ledger.add(self.bytes);
            self.ledger = Some(Arc::clone(ledger));
        }
    }

    /// Sets a variable.
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

    /// Removes a variable.
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

    /// Whether there is none.
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

/// The variables of a session: memory only where there is one.
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
        assert_eq!((store.bytes(), store.get(Scope::Transaction, name)), (2 * OVERHEAD, Some(&Stored::Int(7))));
        store.clear_scope(Scope::Request);
        assert_eq!((store.get(Scope::Request, name), store.bytes()), (None, OVERHEAD));
        store.unset(Scope::Transaction, name);
        assert_eq!((store.is_empty(), store.bytes()), (true, 0));
    }
}
