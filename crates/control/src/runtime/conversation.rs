//! The state of a connection with the runtime API between commands. Must never know a command.

use std::borrow::Cow;
use std::time::Duration;

use config::keyword::anonymous;
use config::spec::{RuntimeLevel, SeverityOutput};

/// The prompt, and whether the connection accepts several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prompt {
    /// No prompt; the connection closes after one line.
    #[default]
    Single,
    /// No prompt; the connection accepts several lines.
    Silent,
    /// `> `, several lines.
    Shown,
}

/// The state of a connection between commands.
#[derive(Debug, Clone, Copy)]
pub struct Conversation {
    /// Access level.
    pub level: RuntimeLevel,
    /// Whether it may retrieve the listening sockets.
    pub expose_listeners: bool,
    /// Format of severities in answers.
    pub severity_output: SeverityOutput,
    /// Prompt and number of lines.
    pub prompt: Prompt,
    /// Whether the prompt shows the uptime.
    pub timed: bool,
    /// `expert-mode on`.
    pub expert: bool,
    /// `experimental-mode on`.
    pub experimental: bool,
    /// `mcli-debug-mode on`, on a master's socket.
    pub debug: bool,
    /// `set timeout cli`: inactivity timeout.
    pub timeout: Duration,
    /// The process that answers commands without a prefix, if it is not this one; see
    /// [`Served::route`](super::command_target::CommandTarget::route).
    pub target: Option<u32>,
    /// `set anon on`: the key for hashes of names and addresses.
    pub anonymous: Anonymization,
    /// The connection closes after the answer.
    pub leaving: bool,
}

impl Conversation {
    /// Creates the state of a new connection with this access level.
    pub fn begin(level: RuntimeLevel, timeout: Duration) -> Self {
        Self {
            level,
            expose_listeners: false,
            severity_output: SeverityOutput::None,
            prompt: Prompt::Single,
            timed: false,
            expert: false,
            experimental: false,
            debug: false,
            timeout,
            target: None,
            anonymous: Anonymization(None),
            leaving: false,
        }
    }
}

/// Anonymization: names and addresses are shown unchanged, or as hashes with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Anonymization(pub Option<u32>);

impl Anonymization {
    /// Returns a name as it is to be shown.
    pub fn name(self, name: &str) -> Cow<'_, str> {
        self.0.map_or(Cow::Borrowed(name), |key| anonymous::hash(name, key).into())
    }

    /// Returns an address, with or without a port, as it is to be shown.
    pub fn address(self, address: &str) -> Cow<'_, str> {
        self.0.map_or(Cow::Borrowed(address), |key| anonymous::address(address, key).into())
    }
}
