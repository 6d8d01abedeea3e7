//! One entry, lent while its shard is locked: its data by kind. Must never be kept.

use super::Layout;
use super::rate;
use base::moment::Moment;
use config::spec::{DataForm, DataKind};

/// An entry that may be read.
#[derive(Debug, Clone, Copy)]
pub struct EntryView<'a> {
    pub(super) layout: &'a Layout,
    pub(super) words: &'a [u32],
    /// Its key, as the table's type says.
    pub key: &'a [u8],
    /// Who tracks it.
    pub trackers: u32,
    /// It is there until then; [`Moment::MAX`]: until there is no room.
    pub until: Moment,
    pub(super) now: Moment,
}

impl<'a> EntryView<'a> {
    /// All of them, as the table's layout says.
    pub fn words(&self) -> &'a [u32] {
        self.words
    }

    /// An element of a kind of data: a number, or the events of the last period. `None`: it is not stored.
    #[inline]
    pub fn get(&self, kind: DataKind, element: u32) -> Option<u64> {
        read(self.layout, self.words, kind, element, rate::tick(self.now))
    }

    /// The words of an element, as peers are told them.
    pub fn raw(&self, kind: DataKind, element: u32) -> Option<&[u32]> {
        Some(&self.words[self.layout.place(kind, element)?])
    }
}

/// An entry that may be changed.
#[derive(Debug)]
pub struct EntryMut<'a> {
    pub(super) layout: &'a Layout,
    pub(super) words: &'a mut [u32],
    pub(super) now: u32,
}

impl EntryMut<'_> {
    /// Adds to an element of a kind of data; what came out. `None`: it is not stored.
    #[inline]
    pub fn add(&mut self, kind: DataKind, element: u32, more: u64) -> Option<u64> {
        let (place, period) = self.layout.find(kind, element)?;
        let words = &mut self.words[place];
        let few = u32::try_from(more).unwrap_or(u32::MAX);
        Some(match kind.form() {
            // Counters wrap as HAProxy's do.
            DataForm::Number | DataForm::Server => {
                words[0] = words[0].wrapping_add(more as u32);
                words[0].into()
            }
            DataForm::Large => {
                let sum = large(words).wrapping_add(more);
                (words[0], words[1]) = (sum as u32, (sum >> 32) as u32);
                sum
            }
            DataForm::Rate => {
                rate::add(words, self.now, period, few);
                rate::read(words, self.now, period).into()
            }
        })
    }

    /// Adds bytes to a count of them, and to their rate, of which `factor` bytes are one event.
    #[inline]
    pub fn add_bytes(&mut self, count: DataKind, rate: DataKind, bytes: u64, factor: u32) {
        self.add(count, 0, bytes);
        // It is one as a rule, and a division takes longer than all the rest.
        let events = if factor == 1 { bytes } else { bytes.div_ceil(factor.into()) };
        self.add(rate, 0, events);
    }

    /// Adds up to `wanted` events to a rate while a limit leaves `least`; the error: in how many milliseconds it will.
    /// `None`: it is not stored.
    pub fn take(&mut self, kind: DataKind, limit: u32, least: u32, wanted: u32) -> Option<Result<u32, u32>> {
        let (place, period) = self.layout.find(kind, 0)?;
        Some(rate::take(&mut self.words[place], self.now, period, limit, least, wanted))
    }

    /// Takes events of a rate back that did not happen.
    pub fn take_back(&mut self, kind: DataKind, events: u32) {
        if let Some(place) = self.layout.place(kind, 0) {
            rate::take_back(&mut self.words[place], events);
        }
    }

    /// Takes one from a number; below nothing it does not go.
    #[inline]
    pub fn decrement(&mut self, kind: DataKind) {
        if let Some(place) = self.layout.place(kind, 0) {
            let words = &mut self.words[place];
            words[0] = words[0].saturating_sub(1);
        }
    }

    /// Makes it that much; what it was. `None`: it is not stored.
    pub fn set(&mut self, kind: DataKind, element: u32, value: u64) -> Option<u64> {
        let (place, period) = self.layout.find(kind, element)?;
        let words = &mut self.words[place];
        Some(match kind.form() {
            DataForm::Number | DataForm::Server => std::mem::replace(&mut words[0], value as u32).into(),
            DataForm::Large => {
                let before = large(words);
                (words[0], words[1]) = (value as u32, (value >> 32) as u32);
                before
            }
            DataForm::Rate => {
                let before = rate::read(words, self.now, period);
                rate::set(words, self.now, u32::try_from(value).unwrap_or(u32::MAX));
                before.into()
            }
        })
    }

    /// An element as it is now.
    pub fn get(&self, kind: DataKind, element: u32) -> Option<u64> {
        read(self.layout, self.words, kind, element, self.now)
    }

    /// The words of an element, as peers tell them; as many as it has.
    pub fn set_raw(&mut self, kind: DataKind, element: u32, from: &[u32]) {
        if let Some(place) = self.layout.place(kind, element) {
            let words = &mut self.words[place];
            if words.len() == from.len() {
                words.copy_from_slice(from);
            }
        }
    }
}

/// An element of an entry's words: a number, or the events of the last period. `None`: it is not stored.
#[inline]
pub(super) fn read(layout: &Layout, words: &[u32], kind: DataKind, element: u32, now: u32) -> Option<u64> {
    let (place, period) = layout.find(kind, element)?;
    let words = &words[place];
    Some(match kind.form() {
        DataForm::Number | DataForm::Server => words[0].into(),
        DataForm::Large => large(words),
        DataForm::Rate => rate::read(words, now, period).into(),
    })
}

/// A number of two words, the lower one first.
#[inline]
fn large(words: &[u32]) -> u64 {
    u64::from(words[0]) | u64::from(words[1]) << 32
}
