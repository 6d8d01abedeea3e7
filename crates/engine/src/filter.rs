//! The filters of a stream's messages, in the order of the configuration (configuration manual, section 9). Each kind of filter
//! is a file in this folder that implements [`Filter`]; a filter is attached when the stream begins, or gets its backend, and
//! processes heads and bodies of both directions. For streams of proxies without filters the cost is one check of an empty
//! list. Must never depend on a kind of filter.
//!
//! The methods of a filter, in the order of their calls:
//!
//! 1. [`Filter::note`]: reports events: it was attached, the stream began, a backend was chosen, and so on.
//! 2. [`Filter::head`]: processes a head before it is sent, and may change it, the framing of its body included.
//! 3. [`Filter::wants`]: returns whether it has to process the body. If no filter has to, bodies are transferred as without
//!    filters: in large pieces, or through the kernel.
//! 4. [`Filter::body`]: passes payload, holds it back, or replaces it.
//!
//! Data of tunnels and of TCP sessions are filtered in the same way, without heads. Responses that Weir generates itself are
//! reported by [`Event::Replied`], and not filtered.

pub(crate) mod agents;
pub(crate) mod set;

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use conn::flow::{Passed, forward};
use expression::sample::Direction;
use live::cache::Storing;
use live::table::Pinned;
use policy::program::Proxy;
use wire::http::{Fields, Head};

use crate::session::Session;
use crate::stream_state::StreamState;
pub use set::Set;

/// An event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The filter was attached to the stream.
    Attached,
    /// The stream begins: its request was received, or its connection in TCP mode.
    Begun,
    /// A backend was assigned.
    BackendChosen(&'a str),
    /// A direction begins to be filtered.
    Opened(Direction),
    /// The whole message of a direction has passed.
    MessageEnded(Direction),
    /// The request is sent again: the response received so far is discarded.
    Restarted,
    /// Weir responds itself, with this status.
    Replied(u16),
    /// A direction is no longer filtered.
    Closed(Direction),
    /// The stream ends.
    Ended,
    /// The filter is detached.
    Detached,
}

/// Information about a stream for its filters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scene {
    /// A number that identifies the stream.
    pub stream: u64,
    /// Index of the worker.
    pub worker: usize,
    /// `mode http`.
    pub http: bool,
    /// The backend is known.
    pub has_backend: bool,
    /// Output function of `filter trace`.
    pub tell: Option<fn(&[u8])>,
}

/// The proxies of a stream whose request is ready for its server.
#[derive(Debug, Clone, Copy)]
pub struct Parties<'a> {
    pub frontend: &'a Proxy,
    /// Its backend; `None`: it is answered before it has one.
    pub backend: Option<&'a Proxy>,
}

/// Result of a filter that does not let a message pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadRefused {
    /// The message is invalid, or the filter failed.
    Refused,
    /// The filter has ended the stream: with this status and text of a response, or with the proxy's error page.
    Ended(Option<(u16, Vec<u8>)>),
}

/// One filter of one stream.
pub trait Filter {
    /// Handles an event of the stream.
    fn note(&mut self, scene: &Scene, event: Event<'_>) {
        let _ = (scene, event);
    }

    /// Called after the rules have run over the request, before [`Filter::head`]; also for requests that a service answers, whose
    /// heads no filter processes.
    fn negotiate(&mut self, parties: &Parties<'_>, request: &mut Head) {
        let _ = (parties, request);
    }

    /// Called for a received response, before its rules run. Returns the algorithm by which it will be compressed.
    fn judge(&mut self, state: &StreamState) -> Option<&'static str> {
        let _ = state;
        None
    }

    /// Processes a head before it is sent. Changes take effect, also of `framing`, which it has to change if the length of the
    /// body will change.
    fn head(&mut self, scene: &Scene, direction: Direction, head: &mut Head) {
        let _ = (scene, direction, head);
    }

    /// Whether it is implemented by a script: heads are passed to [`Filter::poll_head`] instead of [`Filter::head`].
    fn is_scripted(&self) -> bool {
        false
    }

    /// Processes a head by a script, which accesses it in the stream's state and can wait.
    ///
    /// # Errors
    /// [`HeadRefused`]
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        scene: &Scene,
        direction: Direction,
    ) -> Poll<Result<(), HeadRefused>> {
        let _ = (cx, scene, direction);
        Poll::Ready(Ok(()))
    }

    /// Called when the request is ready for its server, after all filters.
    fn begin_copy(&mut self, session: &Session, state: &StreamState) {
        let _ = (session, state);
    }

    /// Whether it has to process the payload of that direction. Called when the direction begins, and after rules were run.
    fn wants(&self, direction: Direction) -> bool;

    /// Moves payload that may pass from `input` to `output`, which is empty; the rest is passed again in the next call. `ended`:
    /// no input follows. Called only if [`Filter::wants`] returned true; otherwise all payload passes.
    fn body(
        &mut self,
        scene: &Scene,
        direction: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> Passed {
        let _ = (scene, direction, ended);
        forward(input, output, usize::MAX);
        Passed::Through
    }

    /// Processes the trailers of a body; called before [`Filter::body`] is called with the end. Remaining ones are sent.
    fn trailers(&mut self, direction: Direction, trailers: &mut Option<Fields>) {
        let _ = (direction, trailers);
    }

    /// Enables a bandwidth limit by a rule: that number of bytes per period, with the filter's own values for `None`.
    fn limit(&mut self, bytes: Option<u64>, period: Option<Duration>) {
        let _ = (bytes, period);
    }

    /// Returns the cache that it stores responses in.
    fn cache(&self) -> Option<usize> {
        None
    }

    /// Starts to store a response from its first byte on; takes `storing` if it is for this filter's cache.
    fn keep(&mut self, cache: usize, storing: &mut Option<Storing>) {
        let _ = (cache, storing);
    }

    /// Whether it was added by a rule with `replace-body`.
    fn replaces(&self) -> bool {
        false
    }

    /// Whether it changes the bytes of a response.
    fn recodes(&self) -> bool {
        false
    }

    /// Sets the stick table entry that counts the bytes of all streams with the same limit.
    fn share(&mut self, entry: Pinned) {
        let _ = entry;
    }
}

/// The filters of a stream, shared by its state, its relays and its rules.
pub type Filters = Rc<RefCell<Set>>;

/// Index of a proxy, and of a filter in its list.
pub type RulePosition = (usize, usize);
