//! Names of servers on a connection: each is told once with a number, then by the number alone. Must never hold more than
//! both sides remember.

use crate::table::ServerNames;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use wire::peers::NAMES;

/// A table and the number that a name has in it.
type Owner = (usize, u32);

/// Those that the peer was told.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The number on the connection, by the table and the number that it has there.
    numbers: FxHashMap<Owner, u64>,
    /// By the number on the connection, from 1: who has it, and the name.
    slots: Vec<(Owner, Arc<[u8]>)>,
    /// The slot that goes next when all are taken.
    next: usize,
}

/// How a name is told.
pub(super) enum Told {
    /// There is none.
    Nothing,
    /// By a number that is known.
    Known(u64),
    /// The first time.
    New(u64, Arc<[u8]>),
}

impl Sent {
    /// How to tell the name that a table knows by a number.
    pub(super) fn tell(&mut self, table: usize, number: u32, names: &ServerNames) -> Told {
        if number == 0 {
            return Told::Nothing;
        }
        let owner = (table, number);
        if let Some(known) = self.numbers.get(&owner) {
            return Told::Known(*known);
        }
        let Some(name) = names.name(number) else { return Told::Nothing };
        let slot = if self.slots.len() < NAMES as usize {
            self.slots.push((owner, Arc::clone(&name)));
            self.slots.len() - 1
        } else {
            let slot = self.next % self.slots.len();
            self.next = slot + 1;
            let before = std::mem::replace(&mut self.slots[slot], (owner, Arc::clone(&name)));
            self.numbers.remove(&before.0);
            slot
        };
        let told = slot as u64 + 1;
        self.numbers.insert(owner, told);
        Told::New(told, name)
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<(u64, Box<[u8]>)> {
        self.slots.iter().zip(1..).map(|((_, name), number)| (number, Box::from(&**name))).collect()
    }
}

/// Those that the peer has told.
#[derive(Debug, Default)]
pub(super) struct Learned(Vec<Option<Arc<[u8]>>>);

impl Learned {
    /// Remembers one. The reader bounds the numbers.
    pub(super) fn note(&mut self, number: u64, name: &[u8]) {
        let at = number.min(NAMES) as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(name.into());
    }

    /// The one of a number that was told before.
    pub(super) fn name(&self, number: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(number).ok()?)?.as_deref()
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<(u64, Box<[u8]>)> {
        let known = self.0.iter().zip(0..).filter_map(|(name, number)| Some((number, Box::from(name.as_deref()?))));
        known.collect()
    }
}
