//! The index of a cache's file, and the responses to be written to it (`disk`). The file is a ring: new records
//! overwrite the oldest ones. A record contains a checksum of itself. Must never read or write the file, nor trust a
//! record.

use super::{Cache, Lifetime, Object, Signature, Varies};
use base::moment::Moment;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::http::{Framing, Head};

/// Maximum size in bytes of responses waiting to be written.
const MOST_WAITING: u64 = 16 << 20;

/// The index of the file.
#[derive(Debug)]
pub(super) struct Disk {
    /// Maximum size of the file in bytes.
    room: u64,
    ring: Mutex<Ring>,
    /// Size in bytes of responses waiting to be written or being written.
    waiting: AtomicU64,
}

#[derive(Debug, Default)]
struct Ring {
    /// Offset of the next record.
    next: u64,
    places: HashMap<Arc<[u8]>, Vec<Place>>,
    /// The records in the file, the oldest first, including those no longer referenced.
    order: VecDeque<(u64, u64, Arc<[u8]>, u64)>,
    /// Responses to be written.
    leaving: Vec<(Arc<[u8]>, Arc<Object>)>,
    /// Numbers of the records being written, by key: removing a key removes them from here.
    writing: HashMap<Arc<[u8]>, Vec<u64>>,
    number: u64,
}

/// The record of a response, and the metadata needed before it is read.
#[derive(Debug, Clone)]
pub struct Place {
    number: u64,
    /// Offset of the record.
    pub offset: u64,
    /// Length of the record in bytes.
    pub length: u64,
    about: About,
    tags: Box<[Box<[u8]>]>,
}

/// The metadata of a response that its record does not contain.
#[derive(Debug, Clone, Copy)]
struct About {
    life: Lifetime,
    never_stale: bool,
    stale_if_error: Option<Duration>,
    modified: i64,
    variant: (Varies, Signature),
    chunked: bool,
}

/// Responses to be written; their memory is reserved until this is dropped.
#[derive(Debug)]
pub struct PendingWrites {
    cache: Arc<Cache>,
    /// Numbers, keys and responses.
    pub list: Vec<(u64, Arc<[u8]>, Arc<Object>)>,
    bytes: u64,
}

impl Drop for PendingWrites {
    fn drop(&mut self) {
        if let Some(disk) = &self.cache.disk {
            disk.waiting.fetch_sub(self.bytes, Relaxed);
            let mut ring = disk.lock();
            self.list.iter().for_each(|(number, key, _)| {
                ring.end_writing(key, *number);
            });
        }
    }
}

impl Disk {
    pub(super) fn new(room: u64) -> Self {
        Self { room, ring: Mutex::default(), waiting: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an entry evicted from memory for writing. If too much is waiting, the entry is dropped.
    pub(super) fn leave(&self, key: &Arc<[u8]>, object: &Arc<Object>) {
        let bytes = object.head_bytes() + object.length;
        if self.waiting.fetch_add(bytes, Relaxed).saturating_add(bytes) > MOST_WAITING {
            self.waiting.fetch_sub(bytes, Relaxed);
            return;
        }
        self.lock().leaving.push((Arc::clone(key), Arc::clone(object)));
    }

    /// Removes the records of a key.
    pub(super) fn remove(&self, key: &[u8]) -> bool {
        let mut ring = self.lock();
        let mut gone = ring.places.remove(key).is_some();
        gone |= ring.writing.remove(key).is_some();
        let mut freed = 0;
        ring.leaving.retain(|(other, object)| {
            let stays = **other != *key;
            if !stays {
                freed += object.head_bytes() + object.length;
                gone = true;
            }
            stays
        });
        self.waiting.fetch_sub(freed, Relaxed);
        gone
    }

    /// Removes the responses selected by their tags; returns their number.
    pub(super) fn purge(&self, chooses: &impl Fn(&[Box<[u8]>]) -> bool) -> usize {
        let mut ring = self.lock();
        let (mut count, mut freed) = (0, 0);
        // Responses being written may be among them.
        ring.writing.clear();
        ring.places.retain(|_, places| {
            let before = places.len();
            places.retain(|place| !chooses(&place.tags));
            count += before - places.len();
            !places.is_empty()
        });
        ring.leaving.retain(|(_, object)| {
            let stays = !chooses(&object.tags);
            if !stays {
                freed += object.head_bytes() + object.length;
                count += 1;
            }
            stays
        });
        self.waiting.fetch_sub(freed, Relaxed);
        count
    }
}

impl Ring {
    /// Allocates space for a record: records that overlap it are removed. `None`: it is larger than the file.
    fn allocate(&mut self, length: u64, room: u64) -> Option<u64> {
        if length == 0 || length > room {
            return None;
        }
        if self.next + length > room {
            // Records after the last one of this round are from the previous round.
            while self.order.front().is_some_and(|(offset, ..)| *offset >= self.next) {
                self.forget_oldest();
            }
            self.next = 0;
        }
        let (from, to) = (self.next, self.next + length);
        while self.order.front().is_some_and(|(offset, length, ..)| *offset < to && offset + length > from) {
            self.forget_oldest();
        }
        self.next = to;
        Some(from)
    }

    /// Ends writing a response; returns whether its key was not removed since.
    fn end_writing(&mut self, key: &[u8], number: u64) -> bool {
        let Some(numbers) = self.writing.get_mut(key) else { return false };
        let before = numbers.len();
        numbers.retain(|other| *other != number);
        let was = numbers.len() < before;
        if numbers.is_empty() {
            self.writing.remove(key);
        }
        was
    }

    fn forget_oldest(&mut self) {
        let Some((_, _, key, number)) = self.order.pop_front() else { return };
        if let Some(places) = self.places.get_mut(&key) {
            places.retain(|place| place.number != number);
            if places.is_empty() {
                self.places.remove(&key);
            }
        }
    }
}

impl Cache {
    pub fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Takes the responses to be written now.
    pub fn take_leaving(self: &Arc<Self>) -> Option<PendingWrites> {
        let mut ring = self.disk.as_ref()?.lock();
        if ring.leaving.is_empty() {
            return None;
        }
        let (mut list, mut bytes) = (Vec::new(), 0);
        for (key, object) in std::mem::take(&mut ring.leaving) {
            ring.number += 1;
            let number = ring.number;
            ring.writing.entry(Arc::clone(&key)).or_default().push(number);
            bytes += object.head_bytes() + object.length;
            list.push((number, key, object));
        }
        Some(PendingWrites { cache: Arc::clone(self), list, bytes })
    }

    /// Allocates space for a response in the file: returns its record, and where to write it. `None`: it is in the file
    /// already, has expired, or does not fit.
    pub fn record(&self, number: u64, key: &Arc<[u8]>, object: &Object, now: Moment) -> Option<(Vec<u8>, Place)> {
        let disk = self.disk.as_ref()?;
        if object.is_over(now) {
            return None;
        }
        let ring = disk.lock();
        let is_same = |place: &Place| place.about.variant == object.variant && place.about.life == object.life;
        if ring.places.get(key).is_some_and(|places| places.iter().any(is_same)) {
            return None;
        }
        drop(ring);
        let record = encode(number, key, object);
        let length = record.len() as u64;
        let mut ring = disk.lock();
        let offset = ring.allocate(length, disk.room)?;
        ring.order.push_back((offset, length, Arc::clone(key), number));
        let about = About {
            life: object.life,
            never_stale: object.never_stale,
            stale_if_error: object.stale_if_error,
            modified: object.modified,
            variant: object.variant,
            chunked: object.chunked,
        };
        Some((record, Place { number, offset, length, about, tags: object.tags.clone() }))
    }

    /// Records that a response was written: lookups find it from now on, unless its space was reused since.
    pub fn written(&self, key: &Arc<[u8]>, place: Place) {
        let Some(disk) = &self.disk else { return };
        let mut ring = disk.lock();
        if !ring.end_writing(key, place.number) {
            return;
        }
        if !ring.order.iter().rev().any(|(.., number)| *number == place.number) {
            return;
        }
        let places = ring.places.entry(Arc::clone(key)).or_default();
        // A newer response replaces an older one of the same variant.
        places.retain(|old| old.about.variant != place.about.variant);
        if places.len() < self.plan.variants as usize + 1 {
            places.push(place);
        }
    }

    /// Returns the record of a response to a request.
    pub fn place(&self, key: &[u8], request: &Signature, now: Moment) -> Option<Place> {
        let ring = self.disk.as_ref()?.lock();
        let answers = |place: &&Place| {
            let (varies, own) = place.about.variant;
            now.saturating_since(place.about.life.stored) < place.about.life.left && own.answers(varies, request)
        };
        ring.places.get(key)?.iter().find(answers).cloned()
    }

    /// Restores a response from its record; `None`: the record is invalid, or was removed since. An invalid record is
    /// removed from the index.
    pub fn restore(&self, key: &[u8], place: &Place, record: &[u8]) -> Option<Arc<Object>> {
        let disk = self.disk.as_ref()?;
        let found = decode(place.number, key, record);
        let mut ring = disk.lock();
        let places = ring.places.get_mut(key)?;
        let at = places.iter().position(|known| known.number == place.number)?;
        let Some((head, body)) = found else {
            places.swap_remove(at);
            return None;
        };
        drop(ring);
        let About { life, never_stale, stale_if_error, modified, variant, chunked } = place.about;
        let mut object = Object::new(head, life);
        object.length = body.len() as u64;
        object.body = Arc::new(body.chunks(PIECE).map(Into::into).collect());
        (object.never_stale, object.stale_if_error, object.modified) = (never_stale, stale_if_error, modified);
        (object.variant, object.chunked, object.tags) = (variant, chunked, place.tags.clone());
        let object = Arc::new(object);
        self.admit(key, &object);
        Some(object)
    }

    /// The number of responses in the file.
    pub fn on_disk(&self) -> usize {
        self.disk.as_ref().map_or(0, |disk| disk.lock().places.values().map(Vec::len).sum())
    }
}

/// Size of a piece of a body in bytes.
const PIECE: usize = 16 * 1024;
/// The magic number at the start of a record.
const MAGIC: &[u8; 8] = b"WEIRCA01";
/// Length of a checksum in bytes.
const SUM: usize = 32;

/// Encodes a record: magic number, checksum, then the number, the key, the head and the body with their lengths.
fn encode(number: u64, key: &[u8], object: &Object) -> Vec<u8> {
    let size = usize::try_from(object.head_bytes() + object.length).unwrap_or(0);
    let mut record = Vec::with_capacity(size + 256 + key.len());
    record.extend_from_slice(MAGIC);
    record.resize(MAGIC.len() + SUM, 0);
    record.extend_from_slice(&number.to_le_bytes());
    put(&mut record, key);
    let head = &object.head;
    record.extend_from_slice(&head.status().to_le_bytes());
    put(&mut record, head.reason());
    for (name, value) in head.fields() {
        record.push(1);
        put(&mut record, name);
        put(&mut record, value);
    }
    record.push(0);
    record.extend_from_slice(&object.length.to_le_bytes());
    object.body.iter().for_each(|piece| record.extend_from_slice(piece));
    let sum = Sha256::digest(&record[MAGIC.len() + SUM..]);
    record[MAGIC.len()..MAGIC.len() + SUM].copy_from_slice(&sum);
    record
}

fn put(record: &mut Vec<u8>, text: &[u8]) {
    record.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    record.extend_from_slice(text);
}

/// Decodes head and body of a record with that number and key; `None`: it is invalid.
fn decode<'r>(number: u64, key: &[u8], record: &'r [u8]) -> Option<(Head, &'r [u8])> {
    let rest = record.strip_prefix(MAGIC)?;
    let (sum, content) = rest.split_at_checked(SUM)?;
    if Sha256::digest(content)[..] != *sum {
        return None;
    }
    let mut reader = Reader(content);
    if u64::from_le_bytes(reader.take()?) != number || reader.text()? != key {
        return None;
    }
    let status = u16::from_le_bytes(reader.take()?);
    let mut head = Head::new();
    head.set_status(status, reader.text()?);
    while reader.take::<1>()? == [1] {
        let name = reader.text()?;
        head.append(name, reader.text()?);
    }
    let length = u64::from_le_bytes(reader.take()?);
    head.framing = Framing::Length(length);
    (reader.0.len() as u64 == length).then_some((head, reader.0))
}

struct Reader<'r>(&'r [u8]);

impl<'r> Reader<'r> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn text(&mut self) -> Option<&'r [u8]> {
        let length = u32::from_le_bytes(self.take()?);
        let (text, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(text)
    }
}
