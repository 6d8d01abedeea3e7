//! Server names on a connection: each is sent once with an id, then by its id only. Must never hold more than both
//! sides remember.

use crate::table::ServerNames;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use wire::peers::NAMES;

/// A table and the number of a name in it.
type Owner = (usize, u32);

/// Names sent to the peer.
#[derive(Debug, Default)]
pub(super) struct SentNames {
    /// The id on the connection, by the table and the number in that table.
    numbers: FxHashMap<Owner, u64>,
    /// By the id on the connection, from 1: its owner, and the name.
    slots: Vec<(Owner, Arc<[u8]>)>,
    /// The slot to be reused next when all are taken.
    next: usize,
}

/// How a name is sent.
pub(super) enum ServerKeyForm {
    /// No name.
    Nothing,
    /// By an id that was sent to the peer before.
    Known(u64),
    /// With its id, the first time.
    New(u64, Arc<[u8]>),
}

impl SentNames {
    /// Returns how to send the name with a table's number.
    pub(super) fn tell(&mut self, table: usize, number: u32, names: &ServerNames) -> ServerKeyForm {
        if number == 0 {
            return ServerKeyForm::Nothing;
        }
        let owner = (table, number);
        if let Some(known) = self.numbers.get(&owner) {
            return ServerKeyForm::Known(*known);
        }
        let Some(name) = names.name(number) else { return ServerKeyForm::Nothing };
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
        ServerKeyForm::New(told, name)
    }

    /// All names, by id.
    pub(super) fn list(&self) -> Vec<(u64, Box<[u8]>)> {
        self.slots.iter().zip(1..).map(|((_, name), number)| (number, Box::from(&**name))).collect()
    }
}

/// Names received from the peer.
#[derive(Debug, Default)]
pub(super) struct Learned(Vec<Option<Arc<[u8]>>>);

impl Learned {
    /// Records a name. The decoder bounds the ids.
    pub(super) fn note(&mut self, number: u64, name: &[u8]) {
        let at = number.min(NAMES) as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(name.into());
    }

    /// Returns the name of an id received before.
    pub(super) fn name(&self, number: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(number).ok()?)?.as_deref()
    }

    /// All names, by id.
    pub(super) fn list(&self) -> Vec<(u64, Box<[u8]>)> {
        let known = self.0.iter().zip(0..).filter_map(|(name, number)| Some((number, Box::from(name.as_deref()?))));
        known.collect()
    }
}
