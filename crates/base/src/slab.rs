//! A slab: values in numbered, reused slots, with keys that become stale when their value is removed.
//!
//! It must never let a stale key access a later value of the slot.

use std::fmt;

/// Identifies one value of a [`Slab`] until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The slot's number, from 0.
    pub slot: u32,
    /// The number of values removed from the slot before this one was inserted.
    pub generation: u32,
}

impl Key {
    /// Packs both parts into one number: generation in the upper half, slot in the lower.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// Unpacks a key packed by [`Key::to_bits`].
    #[inline]
    pub const fn from_bits(bits: u64) -> Key {
        Key { slot: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Values of one type in reused slots. All operations on a single value are O(1); memory never shrinks.
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
}

struct Entry<T> {
    generation: u32,
    place: SlabEntry<T>,
}

enum SlabEntry<T> {
    Taken(T),
    /// The next free slot, or [`NONE`].
    Free(u32),
}

const NONE: u32 = u32::MAX;

impl<T> Slab<T> {
    /// Size of a slot in bytes.
    pub const BYTES_A_SLOT: usize = std::mem::size_of::<Entry<T>>();

    /// Creates an empty slab; allocates nothing.
    pub const fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: NONE, len: 0 }
    }

    /// Creates an empty slab with capacity for `capacity` values.
    pub fn with_capacity(capacity: usize) -> Slab<T> {
        Slab { entries: Vec::with_capacity(capacity), free: NONE, len: 0 }
    }

    /// Returns the number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of slots, including free ones: the upper bound of slots for [`Slab::at`].
    pub fn places(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts `value` into a free slot.
    ///
    /// # Panics
    /// If 2^32 - 1 slots are in use.
    #[inline]
    pub fn insert(&mut self, value: T) -> Key {
        self.len += 1;
        let slot = self.free;
        if let Some(entry) = self.entries.get_mut(slot as usize) {
            if let SlabEntry::Free(next) = std::mem::replace(&mut entry.place, SlabEntry::Taken(value)) {
                self.free = next;
            }
            return Key { slot, generation: entry.generation };
        }
        self.append(value)
    }

    #[cold]
    fn append(&mut self, value: T) -> Key {
        let slot = self.entries.len() as u32;
        assert!(slot < NONE, "a slab has fewer than 2^32 - 1 slots");
        self.entries.push(Entry { generation: 0, place: SlabEntry::Taken(value) });
        Key { slot, generation: 0 }
    }

    /// Removes and returns the value; `None` if the key is stale.
    #[inline]
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        if entry.generation != key.generation || matches!(entry.place, SlabEntry::Free(_)) {
            return None;
        }
        let old = std::mem::replace(&mut entry.place, SlabEntry::Free(self.free));
        entry.generation = entry.generation.wrapping_add(1);
        self.free = key.slot;
        self.len -= 1;
        match old {
            SlabEntry::Taken(value) => Some(value),
            SlabEntry::Free(_) => None,
        }
    }

    /// Returns the value; `None` if the key is stale.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        match self.entries.get(key.slot as usize) {
            Some(Entry { generation, place: SlabEntry::Taken(value) }) if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// Returns the value of a slot of any generation; `None` if the slot is free.
    pub fn at(&self, slot: u32) -> Option<&T> {
        match self.entries.get(slot as usize) {
            Some(Entry { place: SlabEntry::Taken(value), .. }) => Some(value),
            _ => None,
        }
    }

    /// Returns the value, for changes; `None` if the key is stale.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.entries.get_mut(key.slot as usize) {
            Some(Entry { generation, place: SlabEntry::Taken(value) }) if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    /// Whether the key is not stale.
    #[inline]
    pub fn contains(&self, key: Key) -> bool {
        self.get(key).is_some()
    }

    /// Returns all values in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.entries.iter().enumerate().filter_map(|(slot, entry)| match &entry.place {
            SlabEntry::Taken(value) => Some((Key { slot: slot as u32, generation: entry.generation }, value)),
            SlabEntry::Free(_) => None,
        })
    }

    /// Returns all values, for changes, in the order of their slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.entries.iter_mut().enumerate().filter_map(|(slot, entry)| match &mut entry.place {
            SlabEntry::Taken(value) => Some((Key { slot: slot as u32, generation: entry.generation }, value)),
            SlabEntry::Free(_) => None,
        })
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab::new()
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("len", &self.len).field("slots", &self.entries.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_misses_the_next_tenant() {
        let mut slab = Slab::new();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(second.slot, first.slot);
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut "second"));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn slots_are_used_again_before_new_ones() {
        let mut slab = Slab::with_capacity(4);
        let keys: Vec<Key> = (0..4).map(|n| slab.insert(n)).collect();
        slab.remove(keys[1]);
        slab.remove(keys[2]);
        assert_eq!(slab.insert(12).slot, 2);
        assert_eq!(slab.insert(11).slot, 1);
        assert_eq!(slab.insert(14).slot, 4);
        let values: Vec<i32> = slab.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [0, 11, 12, 3, 14]);
    }

    #[test]
    fn a_key_survives_packing() {
        let key = Key { slot: 0xdead_beef, generation: 0x1234_5678 };
        assert_eq!(Key::from_bits(key.to_bits()), key);
    }
}
