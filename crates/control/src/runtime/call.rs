//! A call of a command: its words, its payload, its connection and the answer. Must never know a command.

use super::command::Served;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use config::keyword::anonymous;
use config::spec::{RuntimeLevel, SeverityOutput};

use super::Answer;

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
    /// [`Served::route`](super::command::Served::route).
    pub target: Option<u32>,
    /// `set anon on`: the key for hashes of names and addresses.
    pub anonymous: Hiding,
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
            anonymous: Hiding(None),
            leaving: false,
        }
    }
}

/// Anonymization: names and addresses are shown unchanged, or as hashes with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hiding(pub Option<u32>);

impl Hiding {
    /// Returns a name as it is to be shown.
    pub fn name(self, name: &str) -> Cow<'_, str> {
        self.0.map_or(Cow::Borrowed(name), |key| anonymous::hash(name, key).into())
    }

    /// Returns an address, with or without a port, as it is to be shown.
    pub fn address(self, address: &str) -> Cow<'_, str> {
        self.0.map_or(Cow::Borrowed(address), |key| anonymous::address(address, key).into())
    }
}

/// Severity of a message, as numbered by syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Alert = 1,
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Error => "err",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
        }
    }
}

pub struct Call<'a, S: Served> {
    /// The state that the commands of its table work on.
    pub state: &'a S,
    /// The configuration that the whole call uses.
    pub generation: &'a S::Generation,
    /// All words, including the command's name.
    pub words: &'a [String],
    /// The payload after `<<`.
    pub payload: Option<&'a [u8]>,
    /// The state of the connection.
    pub conversation: &'a mut Conversation,
    /// The answer to write to.
    pub answer: &'a mut Answer,
}

impl<S: Served> Call<'_, S> {
    /// Returns a word; empty if there is none.
    pub fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Answers with one or more lines; a missing line end is added.
    pub fn say(&mut self, severity: Severity, text: &str) {
        let _ = match self.conversation.severity_output {
            SeverityOutput::None => Ok(()),
            SeverityOutput::Number => write!(self.answer, "[{}]: ", severity as u8),
            SeverityOutput::Text => write!(self.answer, "[{}]: ", severity.name()),
        };
        self.answer.push(config::text::to_bytes(text));
        if !text.ends_with('\n') {
            self.answer.push("\n");
        }
    }

    /// Answers with information.
    pub fn inform(&mut self, text: &str) {
        self.say(Severity::Info, text);
    }

    /// Answers with a notice.
    pub fn notice(&mut self, text: &str) {
        self.say(Severity::Notice, text);
    }

    /// Answers that the command succeeded only in part, or how a server was changed, as HAProxy does.
    pub fn warn(&mut self, text: &str) {
        self.say(Severity::Warning, text);
    }

    /// Answers with an error.
    pub fn refuse(&mut self, text: &str) {
        self.say(Severity::Error, text);
    }

    /// Whether the caller has this level; if not, answers with an error.
    pub fn permits(&mut self, level: RuntimeLevel) -> bool {
        let permitted = self.conversation.level >= level;
        if !permitted {
            self.refuse("Permission denied");
        }
        permitted
    }
}
