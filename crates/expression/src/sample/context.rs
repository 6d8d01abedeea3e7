//! What an evaluation may see: facts, messages, the moment. The caller lends it all; what costs a system call is
//! asked for through [`Probes`] when it is needed. Must never change anything but its own scratch memory, and variables,
//! which is what they are for.

use super::{Configuration, Found, LiveState, Meter, Probes, Text, Transaction, Type, Unread, Value, cast};
use crate::capture::{CapturePlan, Captures};
use crate::pattern::ListStates;
use crate::variable::Variables;
use base::moment::Moment;
use bumpalo::Bump;
use std::cell::{Cell, RefCell};
use wire::http::{Framing, Head};

/// Which way the message goes that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the client to the server.
    #[default]
    Request,
    /// From the server to the client.
    Response,
}

/// The bytes that are there of what is inspected: a stream's first bytes, or those behind a message's head, of which its
/// framing tells how they make its body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bytes<'a> {
    /// Those that have come.
    pub data: &'a [u8],
    /// No more will come, or no more is waited for: what is missing now stays missing.
    pub complete: bool,
    /// How many there will be in all, where that is known.
    pub announced: Option<u64>,
    /// Finds the payload of a body in them; `None`: they are payload.
    pub extract: Option<Extract>,
}

/// Finds the payload in what has come behind a head with that framing; what has to be put together is allocated in the arena.
pub type Extract = for<'b> fn(&'b Bump, Framing, &'b [u8]) -> &'b [u8];

impl<'a> Bytes<'a> {
    /// Bytes in no coding. `complete`: no more will come, or no more is waited for.
    pub const fn new(data: &'a [u8], complete: bool) -> Self {
        Self { data, complete, announced: None, extract: None }
    }
}

/// The bound of what one evaluation may cost was reached before its result was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

/// Something that an evaluation asks for and that is not there. Whether it may still come depends on the kind of proxy, the phase and
/// the state of the message ([`Context::missing`]): a row that may lack something has to name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Bytes of a stream that is not taken apart.
    Bytes,
    /// The head of a request.
    Request,
    /// The head of a response.
    Response,
    /// More bytes of a message, also of one whose head was taken apart.
    Body,
    /// Something that an evaluation within this one waits for.
    Nested,
    /// The end of the wait.
    End,
}

/// What one evaluation may see.
pub struct Context<'a> {
    /// The configuration; `None` while it is read.
    pub program: Option<&'a dyn Configuration>,
    /// What changes while it runs, for rows that know its type.
    pub live: Option<&'a dyn LiveState>,
    /// What has become of the program's lists of patterns.
    pub lists: Option<&'a ListStates>,
    /// The memory of this evaluation.
    pub arena: &'a Bump,
    /// Bytes of the longest text that may be put together: `tune.bufsize`.
    pub limit: usize,
    /// This moment.
    pub now: Moment,
    /// What is asked only when it is needed.
    pub probes: &'a dyn Probes,
    /// Which way the message goes.
    pub direction: Direction,
    /// The frontend's index.
    pub frontend: Option<usize>,
    /// The backend's index, once it is known.
    pub backend: Option<usize>,
    /// The server's index in its backend, once it is known.
    pub server: Option<usize>,
    /// The request's head, once it is complete.
    pub request: Option<&'a Head>,
    /// What may be an unread request, in `bytes`.
    pub unread: Option<&'a Unread>,
    /// The answer's head, once it is complete.
    pub response: Option<&'a Head>,
    /// The bytes that are there of what is inspected.
    pub bytes: Bytes<'a>,
    /// What is known of request and answer as a pair.
    pub transaction: Transaction,
    /// What was captured for the log.
    pub captures: Option<&'a RefCell<Captures>>,
    /// Variables in reach.
    pub variables: Variables<'a>,
    /// Something that was asked for may still come.
    pub incomplete: Cell<bool>,
    /// The evaluation has cost more than it may: its result counts for nothing, and the message ends with an internal
    /// error. Set and never reset by what evaluates.
    pub exhausted: Cell<bool>,
    /// What it has cost.
    pub meter: &'a Meter,
}

impl<'a> Context<'a> {
    /// What an evaluation sees for which there is no stream, no configuration and no live state: others are made from it, with
    /// the fields that they know.
    pub fn blank(arena: &'a Bump, limit: usize, now: Moment, probes: &'a dyn Probes, meter: &'a Meter) -> Self {
        Self {
            program: None,
            live: None,
            lists: None,
            arena,
            limit,
            now,
            probes,
            direction: Direction::Request,
            frontend: None,
            backend: None,
            server: None,
            request: None,
            unread: None,
            response: None,
            bytes: Bytes::new(&[], true),
            transaction: Transaction::default(),
            captures: None,
            variables: Variables::default(),
            incomplete: Cell::new(false),
            exhausted: Cell::new(false),
            meter,
        }
    }

    /// Text to be put together, of about that many bytes.
    pub fn text(&self, capacity: usize) -> Text<'a> {
        Text::new(self.arena, capacity, self.limit)
    }

    /// To be asked before a step that costs about that many units ([`Meter::scan`], [`Meter::search`]), and within one that
    /// takes long, as often as it can stop. False: what is evaluated has used up its budget; nothing comes of it, and the
    /// caller returns as soon as it can.
    #[inline]
    pub fn spend(&self, units: u32) -> bool {
        if self.meter.take(units) {
            return !self.exhausted.get();
        }
        self.look(units)
    }

    /// Measures a long step that was the last one of an evaluation.
    #[inline]
    pub fn settle(&self) {
        if self.meter.is_due() {
            self.look(0);
        }
    }

    #[cold]
    fn look(&self, units: u32) -> bool {
        if self.exhausted.get() {
            return false;
        }
        let allowed = self.probes.account(Meter::is_long(units));
        self.exhausted.set(!allowed);
        self.meter.looked(units);
        allowed
    }

    /// A copy that lives as long as the evaluation; `None` when it is too long.
    pub fn copy(&self, bytes: &[u8]) -> Option<&'a [u8]> {
        (bytes.len() <= self.limit).then(|| &*self.arena.alloc_slice_copy(bytes))
    }

    /// What of a rendered format a buffer holds: `set-var-fmt` takes that much, as HAProxy does.
    pub fn fitting<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[..text.len().min(self.limit.saturating_sub(1))]
    }

    /// Marks the evaluation as incomplete where a missing value may still come.
    pub fn missing<T>(&self, awaited: Awaited) -> Option<T> {
        if !self.bytes.complete && self.may_come(awaited) {
            self.incomplete.set(true);
        }
        None
    }

    /// Whether something that is not there may come while rules wait.
    fn may_come(&self, awaited: Awaited) -> bool {
        match awaited {
            // Where messages are taken apart, their heads are there before rules run, and no bytes below them follow.
            Awaited::Bytes => self.request.is_none() && self.response.is_none(),
            Awaited::Request => self.request.is_none() && self.direction == Direction::Request,
            // It is taken apart before rules see it, or never.
            Awaited::Response => false,
            Awaited::Body | Awaited::Nested | Awaited::End => true,
        }
    }

    /// The result of something bounded; none, and the evaluation is marked as exhausted, where the bound was reached.
    pub fn bounded<T: Default>(&self, result: Result<T, Exhausted>) -> T {
        result.unwrap_or_else(|Exhausted| {
            self.exhausted.set(true);
            T::default()
        })
    }

    /// What was found is final, whatever still comes: a converter says so of bytes that may go on.
    pub fn settled(&self) {
        self.incomplete.set(false);
    }

    /// The request's head, also where it is unread: in the first bytes of a session in TCP mode.
    pub fn request_head(&self) -> Option<&'a Head> {
        if self.request.is_some() {
            return self.request;
        }
        let Some(unread) = self.unread.filter(|_| self.direction == Direction::Request) else {
            return self.missing(Awaited::Request);
        };
        match unread.look(self.bytes.data) {
            Found::Head(head) => Some(head),
            Found::Part => self.missing(Awaited::Request),
            Found::Nothing => None,
        }
    }

    /// What the frontend keeps of requests and answers for the log; `None`: nothing.
    pub fn capture_plan(&self) -> Option<&'a CapturePlan> {
        self.program?.captures(self.frontend?)
    }

    /// A sample as text.
    pub fn as_text(&self, value: Value<'a>) -> Option<&'a [u8]> {
        cast(value.kind(), Type::Str).and_then(|cast| cast(self, value)).and_then(|value| value.bytes())
    }
}
