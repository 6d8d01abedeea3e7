//! Scripts: the stream access that the engine gives to an action of a script, and the results that an action returns. Must
//! never depend on a language, nor hold memory while no script is loaded.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll};

use config::spec::LogLevel;
use conn::buffered_body::BufferedBody;
use expression::sample::{Bytes, Direction};
use wire::http::Head;

use crate::session::Session;
use crate::stream_state::StreamState;
use crate::worker::SharedStreamState;

/// Result of an action for its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Continue with the next rule.
    Continue,
    /// Skip the remaining rules of the set.
    Stop,
    /// Deny the message.
    Deny,
    /// The message is invalid.
    Invalid,
    /// The action failed.
    Fail,
    /// End the stream without an answer.
    Abort,
    /// Send this response to the client: status and complete text.
    Reply(u16, Vec<u8>),
}

impl Verdict {
    /// Whether the script itself has ended the message, with or without an answer.
    pub(crate) fn says_how(&self) -> bool {
        matches!(self, Self::Abort | Self::Reply(..))
    }
}

/// One run of an action. Dropping it cancels the run.
pub trait Action {
    /// Continues the action until it ends or has to wait. A call returns within milliseconds.
    fn poll(&mut self, cx: &mut Context<'_>, stream: &StreamAccess<'_>) -> Poll<Verdict>;
}

/// Starts a run of an action with these arguments.
pub type ActionFactory = Arc<dyn Fn(Arc<[Box<str>]>) -> Box<dyn Action> + Send + Sync>;

/// Access to the state of the stream.
#[derive(Clone, Copy)]
pub(crate) enum StateAccess<'a> {
    /// Shared state, which includes the response's head.
    Shared(&'a SharedStreamState),
    /// A borrowed state; the head of the response that is about to be sent is borrowed separately.
    Apart(&'a StreamState, &'a RefCell<&'a mut Head>),
}

/// Access to a stream, passed to an action for one call.
pub struct StreamAccess<'a> {
    pub(crate) session: &'a Session,
    pub(crate) held: StateAccess<'a>,
    pub(crate) direction: Direction,
    pub(crate) behind: BufferedBody<'a>,
    pub(crate) bytes: Option<Bytes<'a>>,
}

/// Settings of a stream that a script may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Log level of its line; `None`: no line is written.
    LogLevel(Option<LogLevel>),
    /// Sets the priority class.
    Class(i64),
    /// Sets the priority offset, in milliseconds.
    Offset(i64),
    /// Mark of packets to the client.
    Mark(i64),
    /// Differentiated services field of packets to the client.
    ServiceClass(i64),
}
