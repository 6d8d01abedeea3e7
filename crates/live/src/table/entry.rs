//! One entry, borrowed while its shard is locked: its data by kind. Must never be retained.

use super::Layout;
use super::rate;
use base::moment::Moment;
use config::spec::{DataForm, DataKind};

/// Read access to an entry.
#[derive(Debug, Clone, Copy)]
pub struct EntryView<'a> {
    pub(super) layout: &'a Layout,
    pub(super) words: &'a [u32],
    /// Its key, encoded by the table's type.
    pub key: &'a [u8],
    /// Number of trackers.
    pub trackers: u32,
    /// Its expiry; [`Moment::MAX`]: kept until it is evicted.
    pub until: Moment,
    pub(super) now: Moment,
}

impl<'a> EntryView<'a> {
    /// All words, in the table's layout.
    pub fn words(&self) -> &'a [u32] {
        self.words
    }

    /// Returns an element of a kind of data: a number, or the events of the last period. `None`: not stored.
    #[inline]
    pub fn get(&self, kind: DataKind, element: u32) -> Option<u64> {
        read(self.layout, self.words, kind, element, rate::tick(self.now))
    }

    /// Returns the words of an element, as sent to peers.
    pub fn raw(&self, kind: DataKind, element: u32) -> Option<&[u32]> {
        Some(&self.words[self.layout.place(kind, element)?])
    }
}

/// Write access to an entry.
#[derive(Debug)]
pub struct EntryMut<'a> {
    pub(super) layout: &'a Layout,
    pub(super) words: &'a mut [u32],
    pub(super) now: u32,
}

impl EntryMut<'_> {
    /// Adds to an element of a kind of data; returns the result. `None`: not stored.
    #[inline]
    pub fn add(&mut self, kind: DataKind, element: u32, more: u64) -> Option<u64> {
        let (place, period) = self.layout.find(kind, element)?;
        let words = &mut self.words[place];
        let few = u32::try_from(more).unwrap_or(u32::MAX);
        Some(match kind.form() {
            // Counters wrap as in HAProxy.
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

    /// Adds bytes to a byte counter and to its rate, in which `factor` bytes are one event.
    #[inline]
    pub fn add_bytes(&mut self, count: DataKind, rate: DataKind, bytes: u64, factor: u32) {
        self.add(count, 0, bytes);
        // It is usually one, and a division would dominate the cost.
        let events = if factor == 1 { bytes } else { bytes.div_ceil(factor.into()) };
        self.add(rate, 0, events);
    }

    /// Adds up to `wanted` events to a rate if its limit leaves at least `least`; the error: milliseconds until it
    /// will. `None`: not stored.
    pub fn take(&mut self, kind: DataKind, limit: u32, least: u32, wanted: u32) -> Option<Result<u32, u32>> {
        let (place, period) = self.layout.find(kind, 0)?;
        Some(rate::take(&mut self.words[place], self.now, period, limit, least, wanted))
    }

    /// Removes events of a rate that did not happen.
    pub fn take_back(&mut self, kind: DataKind, events: u32) {
        if let Some(place) = self.layout.place(kind, 0) {
            rate::take_back(&mut self.words[place], events);
        }
    }

    /// Decrements a number; saturates at zero.
    #[inline]
    pub fn decrement(&mut self, kind: DataKind) {
        if let Some(place) = self.layout.place(kind, 0) {
            let words = &mut self.words[place];
            words[0] = words[0].saturating_sub(1);
        }
    }

    /// Sets an element; returns the former value. `None`: not stored.
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

    /// Returns the current value of an element.
    pub fn get(&self, kind: DataKind, element: u32) -> Option<u64> {
        read(self.layout, self.words, kind, element, self.now)
    }

    /// Sets the words of an element, as received from peers, if their number is right.
    pub fn set_raw(&mut self, kind: DataKind, element: u32, from: &[u32]) {
        if let Some(place) = self.layout.place(kind, element) {
            let words = &mut self.words[place];
            if words.len() == from.len() {
                words.copy_from_slice(from);
            }
        }
    }
}

/// Reads an element of an entry's words: a number, or the events of the last period. `None`: not stored.
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
