//! The filters of a stream's messages, in the order of the configuration (configuration manual, section 9). Each kind of filter
//! is a file in `stream/filter` that implements [`Filter`]; a filter is attached when the stream begins, or gets its backend, and
//! processes heads and bodies of both directions. For streams of proxies without filters the cost is one check of an empty
//! list. Must never depend on a kind of filter, on sessions or on the state of a stream.
//!
//! The methods of a filter, in the order of their calls:
//!
//! 1. [`Filter::note`]: reports events: it was attached, the stream began, a backend was chosen, and so on.
//! 2. [`Filter::negotiate`]: processes a request after its rules, whether a server or a service responds to it.
//! 3. [`Filter::head`]: processes a head before it is sent, and may change it, the framing of its body included. Filters of
//!    scripts can wait in [`ScriptFilter::poll_head`] instead.
//! 4. [`Filter::wants`]: returns whether it has to process the body. If no filter has to, bodies are transferred as without
//!    filters: in large pieces, or through the kernel.
//! 5. [`Filter::body`]: passes payload, holds it back, or replaces it.
//! 6. [`Filter::trailers`]: processes the trailers of the body.
//!
//! Data of tunnels and of TCP sessions are filtered in the same way, without heads. Responses that Weir generates itself are
//! reported by [`Event::Replied`], and not filtered.

pub(crate) mod agents;
pub(crate) mod set;

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use conn::flow::{FilterOutput, forward};
use expression::sample::Direction;
use policy::program::Proxy;
use wire::http::{Fields, Head};

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

/// Data about a stream for its filters.
#[derive(Debug, Clone, Copy, Default)]
pub struct FilterContext {
    /// A number that identifies the stream.
    pub stream: u64,
    /// Index of the worker.
    pub worker: usize,
    /// `mode http`.
    pub http: bool,
    /// The backend is known.
    pub has_backend: bool,
    /// Prints lines for debugging, if the program that runs the engine permits it.
    pub print: Option<fn(&[u8])>,
}

/// The proxies of a stream whose request is ready for its server.
#[derive(Debug, Clone, Copy)]
pub struct ProxyPair<'a> {
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

/// One filter of one stream. Its methods are events, and each of them makes sense for any filter. What is done to one kind alone,
/// such as setting the bandwidth limit of a rule, is a function in the file of that kind, which finds its filters in the
/// [`Set`] by their type.
pub trait Filter: Any {
    /// Handles an event of the stream.
    fn note(&mut self, context: &FilterContext, event: Event<'_>) {
        let _ = (context, event);
    }

    /// Called after the rules have run over the request, before [`Filter::head`]; also for requests that a service answers, whose
    /// heads no filter processes.
    fn negotiate(&mut self, proxies: &ProxyPair<'_>, request: &mut Head) {
        let _ = (proxies, request);
    }

    /// Processes a head before it is sent. Changes take effect, also of `framing`, which it has to change if the length of the
    /// body will change.
    fn head(&mut self, context: &FilterContext, direction: Direction, head: &mut Head) {
        let _ = (context, direction, head);
    }

    /// Whether it has to process the payload of that direction. Called when the direction begins, and after rules were run.
    fn wants(&self, direction: Direction) -> bool;

    /// Moves payload that may pass from `input` to `output`, which is empty; the rest is passed again in the next call. `ended`:
    /// no input follows. Called only if [`Filter::wants`] returned true; otherwise all payload passes.
    fn body(
        &mut self,
        context: &FilterContext,
        direction: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> FilterOutput {
        let _ = (context, direction, ended);
        forward(input, output, usize::MAX);
        FilterOutput::Through
    }

    /// Processes the trailers of a body; called before [`Filter::body`] is called with the end. Remaining ones are sent.
    fn trailers(&mut self, direction: Direction, trailers: &mut Option<Fields>) {
        let _ = (direction, trailers);
    }

    /// Whether it changes the bytes of a response.
    fn recodes(&self) -> bool {
        false
    }
}

/// A filter that is implemented by a script: [`ScriptFilter::poll_head`] is called instead of [`Filter::head`].
pub trait ScriptFilter: Filter {
    /// Processes a head before it is sent. It accesses the head in the stream's state, and can wait.
    ///
    /// # Errors
    /// [`HeadRefused`]
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        context: &FilterContext,
        direction: Direction,
    ) -> Poll<Result<(), HeadRefused>>;
}

/// The filters of a stream, shared by its state, its relays and its rules.
pub type Filters = Rc<RefCell<Set>>;

/// The position of a filter, as a rule refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RulePosition {
    /// Index of the proxy.
    pub proxy: usize,
    /// Index among the proxy's filters.
    pub index: usize,
}
