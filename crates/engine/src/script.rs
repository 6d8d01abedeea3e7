//! Scripts: what the engine lends to an action that a script registered, and what that may say of its stream. Must never
//! know a language, nor hold anything while no script is loaded.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll};

use config::spec::LogLevel;
use conn::behind::Behind;
use expression::sample::{Bytes, Direction};
use wire::http::Head;

use crate::session::Session;
use crate::stream_state::StreamState;
use crate::worker::SharedStreamState;

/// What an action says of its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The rules go on.
    Continue,
    /// No further rule of the set counts.
    Stop,
    /// The message is refused.
    Deny,
    /// The message makes no sense.
    Invalid,
    /// The action failed.
    Fail,
    /// The stream ends without an answer.
    Abort,
    /// The client gets this answer: its status, and all of its text.
    Reply(u16, Vec<u8>),
}

impl Verdict {
    /// Whether the script itself has ended the message, with an answer or without.
    pub(crate) fn says_how(&self) -> bool {
        matches!(self, Self::Abort | Self::Reply(..))
    }
}

/// One run of an action. Dropping it ends it.
pub trait Action {
    /// Goes on until the action has ended or has to wait. A call returns within milliseconds.
    fn poll(&mut self, cx: &mut Context<'_>, stream: &StreamAccess<'_>) -> Poll<Verdict>;
}

/// Begins a run of an action with these arguments.
pub type ActionFactory = Arc<dyn Fn(Arc<[Box<str>]>) -> Box<dyn Action> + Send + Sync>;

/// Where the state of the stream is.
#[derive(Clone, Copy)]
pub(crate) enum Held<'a> {
    /// By itself; the answer's head with it.
    Shared(&'a SharedStreamState),
    /// Lent, apart from the head of an answer that is about to be sent.
    Apart(&'a StreamState, &'a RefCell<&'a mut Head>),
}

/// A stream as an action sees it, for one call.
pub struct StreamAccess<'a> {
    pub(crate) session: &'a Session,
    pub(crate) held: Held<'a>,
    pub(crate) direction: Direction,
    pub(crate) behind: Behind<'a>,
    pub(crate) bytes: Option<Bytes<'a>>,
}

/// What a script may order for its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The level of its line; `None`: none is written.
    LogLevel(Option<LogLevel>),
    /// Sets the priority class.
    Class(i64),
    /// Sets the priority offset, in milliseconds.
    Offset(i64),
    /// The mark of packets to the client.
    Mark(i64),
    /// The service class of packets to the client.
    ServiceClass(i64),
}
