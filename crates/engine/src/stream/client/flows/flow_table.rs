//! The flows of one UDP socket: found by their ends, and ordered by their last datagram. Must never grow beyond what the limits of
//! connections permit.

use std::collections::HashMap;
use std::hash::RandomState;
use std::net::{IpAddr, SocketAddr};

/// No slot.
const NONE: u32 = u32::MAX;

/// The client's end of a flow, and the address that it has sent to. `local` is `None` if the kernel does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FlowKey {
    pub(super) peer: SocketAddr,
    pub(super) local: Option<IpAddr>,
}

/// A place in the table, which is never that of another flow later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FlowPlace {
    slot: u32,
    generation: u32,
}

/// How much a flow is worth when one has to be evicted. An address may be forged as long as nothing shows that its owner receives
/// answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The client has sent nothing after an answer.
    New,
    /// The client has sent a datagram after an answer.
    Proven,
}

#[derive(Debug)]
struct Slot<T> {
    /// `None`: further datagrams of the client do not belong to it.
    key: Option<FlowKey>,
    generation: u32,
    standing: Standing,
    /// Neighbours in the list of its standing; towards older ones, towards younger ones.
    older: u32,
    younger: u32,
    /// `None`: the slot is free.
    flow: Option<T>,
}

/// A list of slots, in the order of their last use.
#[derive(Debug, Clone, Copy)]
struct Order {
    oldest: u32,
    youngest: u32,
}

/// The flows of a socket.
pub(super) struct FlowTable<T> {
    /// Addresses are chosen by clients: the hashes need a secret.
    places: HashMap<FlowKey, u32, RandomState>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    new: Order,
    proven: Order,
}

impl<T> Default for FlowTable<T> {
    fn default() -> Self {
        let empty = Order { oldest: NONE, youngest: NONE };
        Self { places: HashMap::default(), slots: Vec::new(), free: Vec::new(), new: empty, proven: empty }
    }
}

impl<T> FlowTable<T> {
    /// Returns the number of flows.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a flow as the youngest one; datagrams with that key belong to it from now on.
    pub(super) fn insert(&mut self, key: FlowKey, flow: T) -> FlowPlace {
        let slot = self.free.pop().unwrap_or_else(|| {
            let empty =
                Slot { key: None, generation: 0, standing: Standing::New, older: NONE, younger: NONE, flow: None };
            self.slots.push(empty);
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[slot as usize];
        (entry.key, entry.flow, entry.standing) = (Some(key), Some(flow), Standing::New);
        let generation = entry.generation;
        if let Some(former) = self.places.insert(key, slot) {
            self.slots[former as usize].key = None;
        }
        self.append(slot);
        FlowPlace { slot, generation }
    }

    /// Returns the flow of a key and its place.
    pub(super) fn find(&self, key: &FlowKey) -> Option<(FlowPlace, &T)> {
        let slot = *self.places.get(key)?;
        let entry = &self.slots[slot as usize];
        Some((FlowPlace { slot, generation: entry.generation }, entry.flow.as_ref()?))
    }

    /// Returns the flow of a place, also one that was detached from its key.
    pub(super) fn get(&self, place: FlowPlace) -> Option<&T> {
        let entry = self.slots.get(place.slot as usize)?;
        entry.flow.as_ref().filter(|_| entry.generation == place.generation)
    }

    /// Makes a flow the youngest one of its standing, which is at least `standing`.
    pub(super) fn touch(&mut self, place: FlowPlace, standing: Standing) {
        let Some(entry) = self.entry(place) else { return };
        let is_better = standing == Standing::Proven && entry.standing == Standing::New;
        if !is_better && entry.younger == NONE {
            return;
        }
        self.unlink(place.slot);
        if is_better {
            self.slots[place.slot as usize].standing = Standing::Proven;
        }
        self.append(place.slot);
    }

    /// Makes further datagrams of its client begin another flow.
    pub(super) fn detach(&mut self, place: FlowPlace) {
        let Some(entry) = self.entry(place) else { return };
        if let Some(key) = entry.key.take() {
            self.places.remove(&key);
        }
    }

    /// Removes a flow.
    pub(super) fn remove(&mut self, place: FlowPlace) -> Option<T> {
        self.entry(place)?;
        self.detach(place);
        self.unlink(place.slot);
        let entry = &mut self.slots[place.slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(place.slot);
        entry.flow.take()
    }

    /// Returns the flow to be evicted first: of those whose clients have proven nothing, the one that was used least recently; then
    /// of the others.
    pub(super) fn oldest(&self) -> Option<FlowPlace> {
        let slot = [self.new.oldest, self.proven.oldest].into_iter().find(|slot| *slot != NONE)?;
        Some(FlowPlace { slot, generation: self.slots[slot as usize].generation })
    }

    /// Returns the entry of a place that is still the same flow's.
    fn entry(&mut self, place: FlowPlace) -> Option<&mut Slot<T>> {
        let entry = self.slots.get_mut(place.slot as usize)?;
        (entry.generation == place.generation && entry.flow.is_some()).then_some(entry)
    }

    fn order(&mut self, standing: Standing) -> &mut Order {
        match standing {
            Standing::New => &mut self.new,
            Standing::Proven => &mut self.proven,
        }
    }

    fn append(&mut self, slot: u32) {
        let order = self.order(self.slots[slot as usize].standing);
        let older = std::mem::replace(&mut order.youngest, slot);
        if older == NONE {
            order.oldest = slot;
        } else {
            self.slots[older as usize].younger = slot;
        }
        let entry = &mut self.slots[slot as usize];
        (entry.older, entry.younger) = (older, NONE);
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { older, younger, standing, .. } = self.slots[slot as usize];
        match older {
            NONE => self.order(standing).oldest = younger,
            older => self.slots[older as usize].younger = younger,
        }
        match younger {
            NONE => self.order(standing).youngest = older,
            younger => self.slots[younger as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        FlowKey { peer: SocketAddr::from(([192, 0, 2, 1], port)), local: None }
    }

    /// Evicts all flows; returns them in their order.
    fn evicted(table: &mut FlowTable<u16>) -> Vec<u16> {
        std::iter::from_fn(|| table.oldest().and_then(|place| table.remove(place))).collect()
    }

    #[test]
    fn the_least_recently_used_flow_is_evicted_first() {
        let mut table = FlowTable::default();
        let places: Vec<_> = (0..4).map(|port| table.insert(key(port), port)).collect();
        table.touch(places[0], Standing::New);
        table.touch(places[2], Standing::New);
        assert_eq!(evicted(&mut table), [1, 3, 0, 2]);
        assert_eq!((table.len(), table.find(&key(1)).is_some()), (0, false));
    }

    #[test]
    fn flows_whose_clients_have_proven_their_addresses_are_evicted_last() {
        let mut table = FlowTable::default();
        let places: Vec<_> = (0..4).map(|port| table.insert(key(port), port)).collect();
        table.touch(places[1], Standing::Proven);
        table.touch(places[0], Standing::Proven);
        // What is proven once stays so.
        table.touch(places[1], Standing::New);
        assert_eq!(evicted(&mut table), [2, 3, 0, 1]);
    }

    #[test]
    fn a_detached_flow_leaves_its_key_to_another_one() {
        let mut table = FlowTable::default();
        let first = table.insert(key(1), 10);
        table.detach(first);
        assert!(table.find(&key(1)).is_none());
        let second = table.insert(key(1), 11);
        assert_eq!(table.find(&key(1)).map(|found| *found.1), Some(11));
        assert_eq!([first, second].map(|place| table.get(place).copied()), [Some(10), Some(11)]);
        assert_eq!((table.remove(first), table.remove(second), table.len()), (Some(10), Some(11), 0));
        assert_eq!(table.get(first), None);
    }

    #[test]
    fn a_place_is_never_that_of_another_flow() {
        let mut table = FlowTable::default();
        let first = table.insert(key(1), 10);
        assert_eq!(table.remove(first), Some(10));
        let second = table.insert(key(2), 11);
        assert_eq!(table.remove(first), None);
        table.touch(first, Standing::Proven);
        table.detach(first);
        assert_eq!(table.find(&key(2)).map(|found| found.0), Some(second));
    }

    #[test]
    fn flows_of_one_client_to_two_addresses_are_two() {
        let mut table = FlowTable::default();
        let to = |last| FlowKey { local: Some(IpAddr::from([127, 0, 0, last])), ..key(1) };
        table.insert(to(1), 1);
        table.insert(to(2), 2);
        assert_eq!([1, 2].map(|last| table.find(&to(last)).map(|found| *found.1)), [Some(1), Some(2)]);
    }
}
