//! A stored response and its place in a cache. Must never change once it is found.

use super::{Lifetime, Signature, Varies, Wants};
use base::moment::Moment;
use std::sync::Arc;
use std::time::Duration;
use wire::http::{Framing, Head};

/// A response.
#[derive(Debug)]
pub struct Object {
    /// Its status line and fields, without those of one connection and without Age.
    pub head: Head,
    /// Its body, in pieces.
    pub body: Arc<Vec<Box<[u8]>>>,
    /// Bytes of the body.
    pub length: u64,
    /// It came in chunks, and goes on in chunks.
    pub chunked: bool,
    /// How long it is used.
    pub life: Lifetime,
    /// It must not be used once it is over (RFC 9111, section 4.2.4).
    pub never_stale: bool,
    /// How long after that it may be used where its server fails, as it says itself (RFC 5861, section 4).
    pub stale_if_error: Option<Duration>,
    /// Seconds since the UNIX epoch at which what it shows was changed last.
    pub modified: i64,
    /// Which fields of a request it depends on, and what they were.
    pub variant: (Varies, Signature),
    /// The values of Link fields that may be sent before a response.
    pub hints: Vec<Box<[u8]>>,
    /// The tags that it can be removed by.
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

    /// Its age, seconds.
    pub fn age(&self, now: Moment) -> u64 {
        u64::from(self.life.age) + now.saturating_since(self.life.stored).as_secs()
    }

    /// Whether it is too old.
    pub fn is_over(&self, now: Moment) -> bool {
        now.saturating_since(self.life.stored) >= self.life.left
    }

    /// Whether it was over less than that time ago.
    pub fn is_within(&self, now: Moment, stale: Duration) -> bool {
        !self.never_stale && now.saturating_since(self.life.stored) < self.life.left.saturating_add(stale)
    }

    /// The same where its server fails; what the response says itself is no more than that time.
    pub fn is_within_error(&self, now: Moment, stale: Duration) -> bool {
        stale > Duration::ZERO && self.is_within(now, self.stale_if_error.map_or(stale, |own| own.min(stale)))
    }

    /// Whether it is what a request wants (RFC 9111, section 5.2.1).
    pub fn satisfies(&self, wants: &Wants, now: Moment) -> bool {
        if wants.max_age.is_some_and(|most| self.age(now) > most.as_secs()) {
            return false;
        }
        let used = now.saturating_since(self.life.stored);
        match used < self.life.left {
            true => self.life.left - used >= wants.min_fresh,
            false => wants.min_fresh.is_zero() && self.is_within(now, wants.max_stale),
        }
    }

    /// The same body behind another head.
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

    /// Bytes of its head, its tags and its hints.
    pub fn head_bytes(&self) -> u64 {
        let tags: u64 = self.tags.iter().map(|tag| tag.len() as u64).sum();
        self.head.measure() as u64 + self.hint_bytes() + tags
    }

    /// Bytes of its hints.
    pub fn hint_bytes(&self) -> u64 {
        self.hints.iter().map(|hint| hint.len() as u64).sum()
    }

    /// Nothing but its hints.
    pub(super) fn hints_alone(&self) -> Self {
        let mut alone = Self::begin(Head::new(), self.life);
        alone.variant = self.variant;
        alone.hints.clone_from(&self.hints);
        alone
    }
}

/// The part of a cache that an entry is in (W-TinyLFU).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment {
    /// What came last, whatever its frequency.
    Window,
    /// What was not used since it came here: it makes room.
    Probation,
    /// What was used since then.
    Protected,
    /// Hints and no response.
    Hints,
}

/// An entry.
#[derive(Debug)]
pub struct Entry {
    /// What it holds; also held by those who read it.
    pub(super) object: Arc<Object>,
    /// Blocks that it takes.
    pub(super) blocks: u32,
    /// What it is found by in the order of entries: its last use when that was looked at last.
    pub(super) turn: u64,
    /// Its last use.
    pub(super) used: u64,
    /// Where it is.
    pub(super) segment: Segment,
}

impl Entry {
    /// One that was used last in that turn.
    pub(super) fn new(object: Arc<Object>, blocks: u32, turn: u64, segment: Segment) -> Self {
        Self { object, blocks, turn, used: turn, segment }
    }

    /// It has hints and no response.
    pub(super) fn hints_alone(&self) -> bool {
        self.segment == Segment::Hints
    }

    /// Its blocks, once it is removed.
    pub(super) fn freed(&self) -> Freed {
        let mut freed = Freed::default();
        *freed.of(self.segment) = self.blocks;
        freed
    }
}

/// Blocks that were freed, by the part of the cache that they were in.
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

    /// Adds others.
    pub(super) fn add(&mut self, more: Self) {
        self.window += more.window;
        self.probation += more.probation;
        self.protected += more.protected;
        self.hints += more.hints;
    }

    /// All of them.
    pub(super) fn sum(&self) -> u32 {
        self.window + self.probation + self.protected + self.hints
    }
}

/// An entry as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Where it is.
    pub place: usize,
    /// The hash of its key.
    pub hash: u64,
    /// The hash of what it depends on; 0: it does not vary.
    pub variant: u64,
    /// It has hints and no response.
    pub hints_alone: bool,
    /// Bytes of head and body.
    pub bytes: u64,
    /// Blocks that it takes.
    pub blocks: u32,
    /// Readers.
    pub readers: usize,
    /// Seconds that it is used; negative: it is over.
    pub left: i64,
}
