//! The context of an evaluation: messages, connection state, the current time. The caller supplies it all; data that
//! costs a system call is requested through [`Probes`] on demand. Must never change anything but its own scratch memory
//! and variables.

use super::exhausted::Exhausted;
use super::{Configuration, LiveState, Meter, Probes, Text, Transaction, Type, UnparsedRequest, Unread, Value, cast};
use crate::capture::{CapturePlan, Captures};
use crate::pattern::ListStates;
use crate::variable::Variables;
use base::moment::Moment;
use bumpalo::Bump;
use std::cell::{Cell, RefCell};
use wire::http::{Framing, Head};

/// The direction of the message being processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the client to the server.
    #[default]
    Request,
    /// From the server to the client.
    Response,
}

/// The buffered bytes of the inspected data: the first bytes of a stream, or those after a message's head, which the
/// head's framing delimits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bytes<'a> {
    /// The received bytes.
    pub data: &'a [u8],
    /// No more bytes will arrive, or none are waited for: missing data remains missing.
    pub complete: bool,
    /// The total number, if known.
    pub announced: Option<u64>,
    /// Extracts a body's payload from them; `None`: they are the payload.
    pub extract: Option<Extract>,
}

/// Extracts the payload from the bytes after a head with that framing; if it must be copied, it is allocated in the
/// arena.
pub type Extract = for<'b> fn(&'b Bump, Framing, &'b [u8]) -> &'b [u8];

impl<'a> Bytes<'a> {
    /// Creates it for bytes without a transfer coding. `complete`: no more will arrive, or none are waited for.
    pub const fn new(data: &'a [u8], complete: bool) -> Self {
        Self { data, complete, announced: None, extract: None }
    }
}

/// A missing input of an evaluation. Whether it may still arrive depends on the mode of the proxy, the phase and the
/// state of the message ([`Context::missing`]): a row whose input may be missing must name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingInput {
    /// Bytes of a stream that is not parsed.
    Bytes,
    /// The request head.
    Request,
    /// The response head.
    Response,
    /// More bytes of a message, also if its head has been parsed.
    Body,
    /// An input of a nested evaluation.
    Nested,
    /// The end of the wait.
    End,
}

/// The context of one evaluation.
pub struct Context<'a> {
    /// The configuration; `None` while it is being parsed.
    pub program: Option<&'a dyn Configuration>,
    /// The live state of the configuration, for rows that downcast it.
    pub live: Option<&'a dyn LiveState>,
    /// The live state of the program's pattern lists.
    pub lists: Option<&'a ListStates>,
    /// The memory of this evaluation.
    pub arena: &'a Bump,
    /// Maximum length in bytes of a constructed text: `tune.bufsize`.
    pub limit: usize,
    /// The current time.
    pub now: Moment,
    /// Data requested on demand.
    pub probes: &'a dyn Probes,
    /// The direction of the message.
    pub direction: Direction,
    /// The frontend's index.
    pub frontend: Option<usize>,
    /// The backend's index, once selected.
    pub backend: Option<usize>,
    /// The server's index in its backend, once selected.
    pub server: Option<usize>,
    /// The request head, once complete.
    pub request: Option<&'a Head>,
    /// An unparsed request that may be in `bytes`.
    pub unread: Option<&'a Unread>,
    /// The response head, once complete.
    pub response: Option<&'a Head>,
    /// The buffered bytes of the inspected data.
    pub bytes: Bytes<'a>,
    /// The state of request and response as a pair.
    pub transaction: Transaction,
    /// The captures for the log.
    pub captures: Option<&'a RefCell<Captures>>,
    /// The variables in scope.
    pub variables: Variables<'a>,
    /// A missing input may still arrive.
    pub incomplete: Cell<bool>,
    /// The evaluation exceeded its budget: its result is discarded, and the message ends with an internal error. Set
    /// and never reset by the evaluation.
    pub exhausted: Cell<bool>,
    /// The cost of evaluations.
    pub meter: &'a Meter,
}

impl<'a> Context<'a> {
    /// Creates a context without a stream, a configuration and live state; other contexts are built from it.
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

    /// Returns an empty text with that approximate capacity in bytes.
    pub fn text(&self, capacity: usize) -> Text<'a> {
        Text::new(self.arena, capacity, self.limit)
    }

    /// Charges a step of about that many units ([`Meter::scan`], [`Meter::search`]). Must be called before the step,
    /// and repeatedly within a long step. False: the budget is exhausted; the result will be discarded, and the caller
    /// should return as soon as possible.
    #[inline]
    pub fn spend(&self, units: u32) -> bool {
        if self.meter.take(units) {
            return !self.exhausted.get();
        }
        self.look(units)
    }

    /// Charges the time of a long step at the end of an evaluation.
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

    /// Copies bytes into the evaluation's memory; `None` if they exceed the limit.
    pub fn copy(&self, bytes: &[u8]) -> Option<&'a [u8]> {
        (bytes.len() <= self.limit).then(|| &*self.arena.alloc_slice_copy(bytes))
    }

    /// Truncates a rendered format to the buffer size: `set-var-fmt` does so in HAProxy.
    pub fn fitting<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[..text.len().min(self.limit.saturating_sub(1))]
    }

    /// Marks the evaluation as incomplete if the missing input may still arrive.
    pub fn missing<T>(&self, awaited: MissingInput) -> Option<T> {
        if !self.bytes.complete && self.may_come(awaited) {
            self.incomplete.set(true);
        }
        None
    }

    /// Whether a missing input may arrive while rules wait.
    fn may_come(&self, awaited: MissingInput) -> bool {
        match awaited {
            // Where messages are parsed, their heads are complete before rules run, and no unparsed bytes follow.
            MissingInput::Bytes => self.request.is_none() && self.response.is_none(),
            MissingInput::Request => self.request.is_none() && self.direction == Direction::Request,
            // It is parsed before the rules run, or never.
            MissingInput::Response => false,
            MissingInput::Body | MissingInput::Nested | MissingInput::End => true,
        }
    }

    /// Returns the result; on exhaustion marks the evaluation as exhausted and returns the default.
    pub fn bounded<T: Default>(&self, result: Result<T, Exhausted>) -> T {
        result.unwrap_or_else(|Exhausted| {
            self.exhausted.set(true);
            T::default()
        })
    }

    /// Marks the result as final, whatever data follows: for converters of bytes that may continue.
    pub fn settled(&self) {
        self.incomplete.set(false);
    }

    /// Returns the request head, also an unparsed one in the first bytes of a session in TCP mode.
    pub fn request_head(&self) -> Option<&'a Head> {
        if self.request.is_some() {
            return self.request;
        }
        let Some(unread) = self.unread.filter(|_| self.direction == Direction::Request) else {
            return self.missing(MissingInput::Request);
        };
        match unread.look(self.bytes.data) {
            UnparsedRequest::Head(head) => Some(head),
            UnparsedRequest::Part => self.missing(MissingInput::Request),
            UnparsedRequest::Nothing => None,
        }
    }

    /// The captures of the frontend; `None`: none.
    pub fn capture_plan(&self) -> Option<&'a CapturePlan> {
        self.program?.captures(self.frontend?)
    }

    /// Casts a sample to text.
    pub fn as_text(&self, value: Value<'a>) -> Option<&'a [u8]> {
        cast(value.kind(), Type::Str).and_then(|cast| cast(self, value)).and_then(|value| value.bytes())
    }
}
