//! Responses that are kept for later requests (configuration manual, section 6). A cache is split by the hash of the key into
//! shards, each under a short lock of its own; its size is counted over all of them in blocks of a kilobyte. Only whole responses
//! are found. Must never hold more than its size says, never compare a key by its hash alone, never judge a message, and never
//! read a clock.

mod disk;
mod entry;
mod flights;
mod room;
mod shard;
mod sketch;
mod storing;
#[cfg(test)]
mod tests;
mod vary;

pub use disk::{Leaving, Place};
pub use entry::{Entry, Listed, Object};
pub use flights::{Landed, Lead, Role, Waiting};
pub use storing::Storing;
pub use vary::{Codings, Signature, Varies};

use base::moment::Moment;
use config::spec::EarlyHints;
use entry::Segment;
use expression::pattern::Key;
use room::Newcomer;
use shard::Shard;
use std::hash::BuildHasher;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::http::Head;

/// Bytes of a block, in which room is counted.
const BLOCK: u64 = 1_024;
/// Bytes that an entry takes beside its head and its body.
const OVERHEAD: u64 = 256;
/// Shards: so many workers seldom meet.
const SHARDS: usize = 16;

/// What a cache is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePlan {
    /// Its name.
    pub name: Box<str>,
    /// Blocks that it holds at most.
    pub blocks: u32,
    /// Bytes of a head and a body at most.
    pub largest: u64,
    /// Seconds that an entry is used at most.
    pub age: u32,
    /// Responses that vary are stored.
    pub varies: bool,
    /// Variants of one key at most.
    pub variants: u32,
    /// What is remembered for 103 responses.
    pub hints: EarlyHints,
    /// Blocks that entries of hints alone may take, where responses are stored as well.
    pub hint_blocks: u32,
    /// `coalesce`: how long a request waits for another one that asks for the same.
    pub coalesce: Option<Duration>,
    /// `stale-while-revalidate`: how long a response that is over is used while another one is fetched.
    pub stale: Duration,
    /// `stale-if-error`: how long a response that is over is used where its server fails.
    pub stale_if_error: Duration,
    /// `ranges`.
    pub ranges: bool,
    /// `rfc9111`: what it says is done, beyond what HAProxy does.
    pub standard: bool,
    /// The path of that file.
    pub disk_path: Option<Box<str>>,
    /// `disk`: bytes of the file for what leaves the memory; 0: there is none.
    pub disk: u64,
    /// `tag-header`: the field that names the tags of a response, in lower case.
    pub tag_field: Option<Box<[u8]>>,
}

/// The caches of a program, by index.
#[derive(Debug, Default)]
pub struct Caches(Vec<Arc<Cache>>);

impl Caches {
    /// Empty ones. `random` keys their hashes.
    pub fn new(plans: &[CachePlan], random: u64) -> Self {
        let key = |at: usize| Key::new(random.wrapping_add((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Self(plans.iter().enumerate().map(|(at, plan)| Arc::new(Cache::new(plan.clone(), key(at)))).collect())
    }

    /// The cache of that index.
    pub fn get(&self, index: usize) -> Option<&Arc<Cache>> {
        self.0.get(index)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Cache>> {
        self.0.iter()
    }
}

/// What a request wants of a stored response (RFC 9111, section 5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// It is no older.
    pub max_age: Option<Duration>,
    /// It is used for at least so long from now on.
    pub min_fresh: Duration,
    /// It may have been over for so long.
    pub max_stale: Duration,
}

/// What becomes of a stored response that its server was asked about.
pub enum Update {
    /// Nothing.
    Keep,
    /// It is this one from now on, with the same body.
    Replace(Box<Object>),
    /// It is gone.
    Remove,
}

/// What a cache has for a request.
#[derive(Debug)]
pub enum Found {
    /// A response.
    Hit(Arc<Object>),
    /// A response that is over, and may be used while another one is fetched.
    Stale(Arc<Object>),
    /// Values of Link fields that a response had, which is not there any more.
    Hints(Arc<Object>),
    /// Nothing.
    Nothing,
}

/// One cache.
#[derive(Debug)]
pub struct Cache {
    plan: CachePlan,
    key: Key,
    shards: Box<[Mutex<Shard>]>,
    /// Requests under way, split in the same way.
    flights: Box<[flights::Flights]>,
    /// Blocks that are taken: by entries, and for responses that are still coming.
    used: AtomicU32,
    /// Of these, blocks of entries that hold hints alone.
    hints: AtomicU32,
    /// Blocks of what came last.
    window: AtomicU32,
    /// Blocks of what was used since it came.
    protected: AtomicU32,
    /// How often keys were asked for.
    sketch: sketch::Sketch,
    /// Its file.
    disk: Option<disk::Disk>,
    /// The number of the last use: of entries, the one with the smallest number was not used for the longest time.
    turn: AtomicU64,
}

/// Blocks for so many bytes.
fn blocks(bytes: u64) -> u32 {
    u32::try_from((bytes + OVERHEAD).div_ceil(BLOCK)).unwrap_or(u32::MAX)
}

impl Cache {
    fn new(plan: CachePlan, key: Key) -> Self {
        // Not the key that chooses the shard: what is in one has a part of that hash in common.
        let within = Key::new(key.bytes(b"within a shard"));
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(within))).collect();
        let flights = (0..SHARDS).map(|_| flights::Flights::default()).collect();
        let [used, hints, window, protected] = std::array::from_fn(|_| AtomicU32::new(0));
        let disk = (plan.disk > 0).then(|| disk::Disk::new(plan.disk));
        let (sketch, turn) = (sketch::Sketch::new(plan.blocks), AtomicU64::new(0));
        Self { plan, key, shards, flights, used, hints, window, protected, sketch, disk, turn }
    }

    /// What it is made of.
    pub fn plan(&self) -> &CachePlan {
        &self.plan
    }

    /// Blocks that are free.
    pub fn available(&self) -> u32 {
        self.plan.blocks.saturating_sub(self.used.load(Acquire))
    }

    /// Blocks of entries that are not being read: they may be used for others.
    pub fn idle_blocks(&self) -> u32 {
        (0..self.shards.len()).map(|at| self.lock(at).idle_blocks()).sum()
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.key.hash_one(key)
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard % self.shards.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        self.lock(self.hash(key) as usize)
    }

    fn flights(&self, key: &[u8]) -> &flights::Flights {
        &self.flights[self.hash(key) as usize % self.flights.len()]
    }

    fn next_turn(&self) -> u64 {
        self.turn.fetch_add(1, Relaxed) + 1
    }

    /// What it has for a request with that key and these fields. The request is counted.
    pub fn look_up(&self, key: &[u8], request: &Signature, now: Moment) -> Found {
        let hash = self.hash(key);
        self.sketch.count(hash);
        let mut shard = self.lock(hash as usize);
        // What was used last is used last again: threads that ask for the same have nothing to count.
        let use_again = |used: u64| if used == self.turn.load(Relaxed) { used } else { self.next_turn() };
        let keeps_hints = self.plan.hints != EarlyHints::Off;
        let (found, freed) = shard.look_up(
            key,
            request,
            (now, self.plan.stale),
            use_again,
            (keeps_hints, self.plan.standard),
            self.plan.stale_if_error,
        );
        self.give_back(freed);
        found
    }

    /// The same for a request that says more about what it wants.
    pub fn look_up_for(&self, key: &[u8], request: &Signature, now: Moment, wants: &Wants) -> Found {
        match self.look_up(key, request, now) {
            Found::Hit(object) | Found::Stale(object) if !object.satisfies(wants, now) => Found::Nothing,
            Found::Nothing | Found::Hints(_) if !wants.max_stale.is_zero() => {
                let found = self.shard(key).find_over(key, request, |object| object.satisfies(wants, now));
                found.map_or(Found::Nothing, Found::Hit)
            }
            found => found,
        }
    }

    /// A response to such a request, however old, that a server can be asked about.
    pub fn stored(&self, key: &[u8], request: &Signature) -> Option<Arc<Object>> {
        let is_named = |object: &Object| object.head.contains(b"etag") || object.head.contains(b"last-modified");
        self.shard(key).find_over(key, request, is_named)
    }

    /// Changes the stored response to such a request as `update` says.
    pub fn freshen(&self, key: &[u8], request: &Signature, update: impl FnOnce(&Object) -> Update) {
        let freed = self.shard(key).freshen(key, request, update);
        self.give_back(freed);
    }

    /// A response that is over, for a request whose server has failed.
    pub fn look_up_stale(&self, key: &[u8], request: &Signature, now: Moment) -> Option<Arc<Object>> {
        self.shard(key).look_up_stale(key, request, (now, self.plan.stale_if_error))
    }

    /// Begins to store a response to a request with that key. `length`: bytes of its body, where they are known. `None`: it is too
    /// large, another one for the same request is being stored, or there is no room for it but that of what is asked for more
    /// often.
    pub fn begin(
        self: &Arc<Self>,
        key: &[u8],
        request: &Signature,
        object: Object,
        length: Option<u64>,
    ) -> Option<Storing> {
        let head = object.head_bytes();
        if head.saturating_add(length.unwrap_or(0)) > self.plan.largest {
            return None;
        }
        let needed = blocks(head.saturating_add(length.unwrap_or(0)));
        let (claimed, freed) = self.shard(key).claim(key, request, self.plan.variants, object.life.stored);
        self.give_back(freed);
        if !claimed {
            return None;
        }
        // With a file nothing is lost that makes room.
        let frequency = if self.disk.is_some() { u8::MAX } else { self.sketch.frequency(self.hash(key)) };
        let storing = Storing::new(Arc::clone(self), key.into(), *request, object, (length, frequency));
        storing.with_room(needed)
    }

    /// Stores the hints of a response alone.
    pub fn store_hints(&self, key: &[u8], object: Object) {
        let needed = blocks(object.hint_bytes());
        if object.hint_bytes() > self.plan.largest.max(BLOCK) || !self.reserve(needed, &Newcomer::of_hints(needed)) {
            return;
        }
        let entry = Entry::new(Arc::new(object), needed, self.next_turn(), Segment::Hints);
        self.add(key, entry);
    }

    /// Forgets everything that is stored for a key.
    /// Returns whether there was anything.
    pub fn remove(&self, key: &[u8]) -> bool {
        let freed = self.shard(key).remove(key);
        self.give_back(freed);
        let lay_there = self.disk.as_ref().is_some_and(|disk| disk.remove(key));
        freed.sum() > 0 || lay_there
    }

    /// Forgets every entry that a caller chooses by its tags; how many there were.
    pub fn purge(&self, chooses: impl Fn(&[Box<[u8]>]) -> bool) -> usize {
        let mut count = self.disk.as_ref().map_or(0, |disk| disk.purge(&chooses));
        for at in 0..self.shards.len() {
            let (freed, removed) = self.lock(at).purge(&chooses);
            self.give_back(freed);
            count += removed;
        }
        count
    }

    /// Every entry, shard by shard, for those who show them.
    pub fn list(&self, shard: usize, now: Moment) -> Option<Vec<Listed>> {
        (shard < self.shards.len()).then(|| self.lock(shard).list(now, |key| self.hash(key)))
    }
}

/// How long a response is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// When it came.
    pub stored: Moment,
    /// How old it was then, seconds.
    pub age: u32,
    /// How long it is used from then on.
    pub left: Duration,
}

impl Object {
    /// A response whose body is still to come.
    pub fn new(head: Head, life: Lifetime) -> Self {
        Self::begin(head, life)
    }
}
