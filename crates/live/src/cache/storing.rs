//! A response being stored: it holds blocks of its cache, and can be found only when it is complete. If dropped before,
//! it is discarded. Must never hold more than the reserved blocks.

use super::blocks::blocks;
use super::entry::{Freed, Newcomer};
use super::{Cache, Entry, Lead, Object, Signature};
use std::sync::Arc;

/// Size of a piece in bytes, for a body that is long or of unknown length.
const PIECE: usize = 16 * 1024;

/// A response being stored.
#[derive(Debug)]
pub struct Storing {
    cache: Arc<Cache>,
    key: Box<[u8]>,
    request: Signature,
    /// `None`: moved to the cache.
    object: Option<Object>,
    /// The piece being filled.
    piece: Vec<u8>,
    /// Length of the body in bytes, if known.
    length: Option<u64>,
    /// How often its key was requested.
    frequency: u8,
    /// Reserved blocks.
    blocks: u32,
    /// Set if other requests wait for this one.
    lead: Option<Lead>,
}

impl Storing {
    pub(super) fn new(
        cache: Arc<Cache>,
        key: Box<[u8]>,
        request: Signature,
        object: Object,
        length: Option<u64>,
        frequency: u8,
    ) -> Self {
        Self { cache, key, request, object: Some(object), piece: Vec::new(), length, frequency, blocks: 0, lead: None }
    }

    /// Reserves blocks; `None`: there is no space.
    pub(super) fn with_room(mut self, needed: u32) -> Option<Self> {
        if !self.cache.reserve(needed, &Newcomer { blocks: needed, frequency: self.frequency }) {
            return None;
        }
        self.blocks = needed;
        Some(self)
    }

    /// Marks it as the response that other requests wait for.
    #[must_use]
    pub fn led_by(mut self, lead: Option<Lead>) -> Self {
        self.lead = lead;
        self.set_known(false);
        self
    }

    /// Sets whether the result is known to the waiting requests.
    fn set_known(&mut self, is_known: bool) {
        if let Some(lead) = &mut self.lead {
            lead.set_known(is_known);
        }
    }

    /// Appends payload. False: it is too large, or there is no space left; it must be dropped.
    pub fn push(&mut self, data: &[u8]) -> bool {
        let fits = self.add(data);
        if !fits {
            self.set_known(true);
        }
        fits
    }

    fn add(&mut self, mut data: &[u8]) -> bool {
        let (cache, expected) = (Arc::clone(&self.cache), self.length);
        let Some(object) = &mut self.object else { return false };
        object.length += data.len() as u64;
        let bytes = object.head_bytes().saturating_add(object.length);
        if bytes > cache.plan().largest || expected.is_some_and(|length| object.length > length) {
            return false;
        }
        let needed = blocks(bytes);
        if needed > self.blocks {
            if !cache.reserve(needed - self.blocks, &Newcomer { blocks: needed, frequency: self.frequency }) {
                return false;
            }
            self.blocks = needed;
        }
        while !data.is_empty() {
            if self.piece.capacity() == 0 {
                let left = expected.map_or(PIECE, |length| usize::try_from(length).unwrap_or(PIECE).min(PIECE));
                self.piece.reserve_exact(left.max(1));
            }
            let room = self.piece.capacity() - self.piece.len();
            let (part, rest) = data.split_at(room.min(data.len()));
            self.piece.extend_from_slice(part);
            data = rest;
            if self.piece.len() == self.piece.capacity() {
                Arc::make_mut(&mut object.body).push(std::mem::take(&mut self.piece).into());
            }
        }
        true
    }

    /// Completes it: lookups find it from now on, unless bytes are missing.
    pub fn finish(mut self) {
        let Some(mut object) = self.object.take() else { return };
        if self.length.is_some_and(|length| length != object.length) {
            return;
        }
        if !self.piece.is_empty() {
            Arc::make_mut(&mut object.body).push(std::mem::take(&mut self.piece).into());
        }
        self.set_known(true);
        let blocks = std::mem::take(&mut self.blocks);
        let entry = Entry::new(Arc::new(object), blocks, self.cache.next_turn(), self.cache.entrance(blocks));
        self.cache.add(&self.key, entry);
        // The response in the file is older.
        if let Some(disk) = &self.cache.disk {
            disk.remove(&self.key);
        }
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        self.cache.shard(&self.key).disclaim(&self.key, &self.request);
        self.cache.give_back(Freed { probation: self.blocks, ..Freed::default() });
    }
}
