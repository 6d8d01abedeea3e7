//! The state that commands work on, as the protocol of the runtime API sees it. Must never know a command.

use std::future::Future;
use std::pin::Pin;

use conn::service::ByteService;

use super::conversation::Conversation;
use super::{Answer, Disconnected};

/// An answer that is written in pieces.
pub type Pending<'a> = Pin<Box<dyn Future<Output = Result<(), Disconnected>> + 'a>>;

/// A command as received.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedCommand<'a> {
    /// The command line.
    pub command: &'a [u8],
    /// The payload and its end marker.
    pub payload: Option<(&'a [u8], &'a [u8])>,
}

/// Input after the current line.
#[derive(Debug, Default)]
pub struct RemainingInput {
    /// Received and unused bytes.
    pub typed: Vec<u8>,
    /// The peer has closed its sending side.
    pub ended: bool,
}

/// State of a condition of `wait`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Fulfilled.
    Met,
    /// Not yet, with the reason.
    Unmet(String),
    /// It can never be fulfilled.
    Failed(String),
    /// Invalid arguments.
    Refused(String),
}

/// The state that commands work on.
pub trait CommandTarget: Sized + 'static {
    /// A reference to a configuration.
    type Generation: 'static;

    /// Returns the configuration for a command that begins now.
    fn generation(&self) -> Self::Generation;

    /// Returns the answer to `show version`.
    fn version(&self) -> &str;

    /// Seconds since the start of the process that answers.
    fn uptime(&self, _: &Conversation) -> u64;

    /// Whether connections always accept several lines, even without `prompt`. Commands that only change the
    /// connection's state then answer nothing (management manual, section 9.4.1).
    fn is_interactive(&self) -> bool {
        false
    }

    /// Counts a new connection, until `ended`.
    fn begun(&self) {}

    /// Counts a closed connection.
    fn ended(&self) {}

    /// Counts bytes sent to a connection.
    fn sent(&self, _bytes: u64) {}

    /// Maximum length of a payload in bytes, including its marker (`tune.cli.max-payload-size`).
    fn max_payload(&self) -> usize {
        128 * 1024
    }

    /// Returns the text before the prompt.
    fn place(&self, _: &Conversation) -> String {
        String::new()
    }

    /// The conditions of `wait`: usage and description of each.
    fn conditions(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the state of a condition of `wait` with its argument. `None`: unknown condition.
    fn condition(&self, _: &str, _: &str) -> Option<Condition> {
        None
    }

    /// Whether a line is one command that may contain semicolons.
    fn takes_whole(&self, _: &[u8]) -> bool {
        false
    }

    /// Returns a command for this process without the prefix that addresses it.
    fn addressed<'a>(&self, command: &'a [u8]) -> &'a [u8] {
        command
    }

    /// Commands registered by scripts: the words of each, and its line in help.
    fn scripted(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    /// Calls the command at that index of [`CommandTarget::scripted`].
    fn begin_scripted(&self, _place: usize, _words: &[String]) -> Option<Box<dyn ByteService>> {
        None
    }

    /// Forwards a command, unparsed, to another process, and the remaining input if necessary. `None`: the command is
    /// for this process.
    fn route<'a>(
        &'a self,
        _: ReceivedCommand<'a>,
        _: &'a mut Conversation,
        _: &'a mut Answer,
        _: &'a mut RemainingInput,
    ) -> Option<Pending<'a>> {
        None
    }
}
