//! A stored response and its entry in a cache. Must never change while it can be found.

use super::lifetime::{Lifetime, RequestDirectives};
use super::{Signature, Varies};
use base::moment::Moment;
use std::sync::Arc;
use std::time::Duration;
use wire::http::{Framing, Head};

/// A stored response.
#[derive(Debug)]
pub struct Object {
    /// Its status line and fields, without hop-by-hop fields and Age.
    pub head: Head,
    /// Its body, in pieces.
    pub body: Arc<Vec<Box<[u8]>>>,
    /// Length of the body in bytes.
    pub length: u64,
    /// It was received with chunked encoding, and is sent so.
    pub chunked: bool,
    /// Its freshness lifetime.
    pub life: Lifetime,
    /// It must not be used when stale (RFC 9111, section 4.2.4).
    pub never_stale: bool,
    /// `stale-if-error` of the response: how long after it becomes stale it may be used if its server fails (RFC 5861,
    /// section 4).
    pub stale_if_error: Option<Duration>,
    /// Last modification in seconds since the UNIX epoch.
    pub modified: i64,
    /// The request fields that it varies on, and their values.
    pub variant: (Varies, Signature),
    /// The values of its Link fields, which may be sent in a 103 response.
    pub hints: Vec<Box<[u8]>>,
    /// The tags by which it can be purged.
    pub tags: Box<[Box<[u8]>]>,
}

impl Object {
    pub(super) fn begin(head: Head, life: Lifetime) -> Self {
        let chunked = head.framing == Framing::Chunked;
        let variant = (Varies::default(), Signature::default());
        Self {
            head,
            body: Arc::default(),
            length: 0,
            chunked,
            life,
            never_stale: false,
            stale_if_error: None,
            modified: 0,
            variant,
            hints: Vec::new(),
            tags: Box::default(),
        }
    }

    /// Its age in seconds.
    pub fn age(&self, now: Moment) -> u64 {
        u64::from(self.life.age) + now.saturating_since(self.life.stored).as_secs()
    }

    /// Whether it is stale.
    pub fn is_over(&self, now: Moment) -> bool {
        now.saturating_since(self.life.stored) >= self.life.left
    }

    /// Whether it is fresh, or has been stale for less than that time.
    pub fn is_within(&self, now: Moment, stale: Duration) -> bool {
        !self.never_stale && now.saturating_since(self.life.stored) < self.life.left.saturating_add(stale)
    }

    /// The same if its server fails; the response's own `stale-if-error` can only shorten the time.
    pub fn is_within_error(&self, now: Moment, stale: Duration) -> bool {
        stale > Duration::ZERO && self.is_within(now, self.stale_if_error.map_or(stale, |own| own.min(stale)))
    }

    /// Whether it satisfies a request's Cache-Control directives (RFC 9111, section 5.2.1).
    pub fn satisfies(&self, wants: &RequestDirectives, now: Moment) -> bool {
        if wants.max_age.is_some_and(|most| self.age(now) > most.as_secs()) {
            return false;
        }
        let used = now.saturating_since(self.life.stored);
        match used < self.life.left {
            true => self.life.left - used >= wants.min_fresh,
            false => wants.min_fresh.is_zero() && self.is_within(now, wants.max_stale),
        }
    }

    /// The same body with another head.
    #[must_use]
    pub fn with_head(&self, head: Head, life: Lifetime) -> Self {
        Self {
            head,
            body: Arc::clone(&self.body),
            life,
            variant: self.variant,
            hints: self.hints.clone(),
            tags: self.tags.clone(),
            ..*self
        }
    }

    /// Size of its head, its tags and its hints in bytes.
    pub fn head_bytes(&self) -> u64 {
        let tags: u64 = self.tags.iter().map(|tag| tag.len() as u64).sum();
        self.head.measure() as u64 + self.hint_bytes() + tags
    }

    /// Size of its hints in bytes.
    pub fn hint_bytes(&self) -> u64 {
        self.hints.iter().map(|hint| hint.len() as u64).sum()
    }

    /// Keeps only its hints.
    pub(super) fn hints_alone(&self) -> Self {
        let mut alone = Self::begin(Head::new(), self.life);
        alone.variant = self.variant;
        alone.hints.clone_from(&self.hints);
        alone
    }
}

/// The segment of a cache that contains an entry (W-TinyLFU).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment {
    /// New entries, whatever their frequency.
    Window,
    /// Entries not used since they entered this segment: evicted first.
    Probation,
    /// Entries used since then.
    Protected,
    /// Hints without a response.
    Hints,
}

/// An entry of a cache.
#[derive(Debug)]
pub struct Entry {
    /// The response; its readers hold references as well.
    pub(super) object: Arc<Object>,
    /// Its size in blocks.
    pub(super) blocks: u32,
    /// Its key in the order of entries: its last use when it was last sorted.
    pub(super) turn: u64,
    /// Its last use.
    pub(super) used: u64,
    /// Its segment.
    pub(super) segment: Segment,
}

impl Entry {
    /// Creates an entry last used at that turn.
    pub(super) fn new(object: Arc<Object>, blocks: u32, turn: u64, segment: Segment) -> Self {
        Self { object, blocks, turn, used: turn, segment }
    }

    /// Whether it has hints but no response.
    pub(super) fn hints_alone(&self) -> bool {
        self.segment == Segment::Hints
    }

    /// Its blocks, when it is removed.
    pub(super) fn freed(&self) -> Freed {
        let mut freed = Freed::default();
        *freed.of(self.segment) = self.blocks;
        freed
    }
}

/// Freed blocks by segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Freed {
    pub(super) window: u32,
    pub(super) probation: u32,
    pub(super) protected: u32,
    pub(super) hints: u32,
}

impl Freed {
    fn of(&mut self, segment: Segment) -> &mut u32 {
        match segment {
            Segment::Window => &mut self.window,
            Segment::Probation => &mut self.probation,
            Segment::Protected => &mut self.protected,
            Segment::Hints => &mut self.hints,
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.window += more.window;
        self.probation += more.probation;
        self.protected += more.protected;
        self.hints += more.hints;
    }

    /// The total of all segments.
    pub(super) fn sum(&self) -> u32 {
        self.window + self.probation + self.protected + self.hints
    }
}

/// An entry of `show cache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheListing {
    /// An identifier: the address of the response.
    pub place: usize,
    /// The hash of its key.
    pub hash: u64,
    /// The hash of its variant; 0: it does not vary.
    pub variant: u64,
    /// It has hints but no response.
    pub hints_alone: bool,
    /// Size of head and body in bytes.
    pub bytes: u64,
    /// Its size in blocks.
    pub blocks: u32,
    /// Number of readers.
    pub readers: usize,
    /// Remaining freshness in seconds; negative: stale.
    pub left: i64,
}

/// An entry to be added.
pub(super) struct Newcomer {
    /// Its size in blocks.
    pub(super) blocks: u32,
    /// How often its key was requested.
    pub(super) frequency: u8,
}

impl Newcomer {
    /// Hints, which have their own limit.
    pub(super) fn of_hints(blocks: u32) -> Self {
        Self { blocks, frequency: u8::MAX }
    }
}
