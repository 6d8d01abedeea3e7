//! One call of a command: its words, its payload, who calls, and where the answer goes. Must never know a command.

use super::command::Served;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use config::keyword::anonymous;
use config::spec::{RuntimeLevel, SeverityOutput};

use super::Answer;

/// What is printed before a line is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prompt {
    /// Nothing, and the connection ends with the line.
    #[default]
    Single,
    /// Nothing, and the connection goes on.
    Silent,
    /// `> `
    Shown,
}

/// What a connection remembers from command to command.
#[derive(Debug, Clone, Copy)]
pub struct Conversation {
    /// What it may do.
    pub level: RuntimeLevel,
    /// Whether it may ask for the listening sockets.
    pub expose_listeners: bool,
    /// How severities are shown.
    pub severity_output: SeverityOutput,
    /// What is printed between commands, and whether there are several.
    pub prompt: Prompt,
    /// Whether the prompt shows the time since the start.
    pub timed: bool,
    /// `expert-mode on`
    pub expert: bool,
    /// `experimental-mode on`
    pub experimental: bool,
    /// `mcli-debug-mode on`, on a master's socket.
    pub debug: bool,
    /// `set timeout cli`: how long it may be silent.
    pub timeout: Duration,
    /// Who answers commands that do not say for whom they are, where that is another process; see
    /// [`Served::route`](super::command::Served::route).
    pub target: Option<u32>,
    /// `set anon on`: the key under which names and addresses are hidden.
    pub anonymous: Hiding,
    /// It said goodbye.
    pub leaving: bool,
}

impl Conversation {
    /// One that begins, with these rights.
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

/// How names and addresses are shown: as they are, or as hashes under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hiding(pub Option<u32>);

impl Hiding {
    /// A name as it is shown.
    pub fn name(self, name: &str) -> Cow<'_, str> {
        self.0.map_or(Cow::Borrowed(name), |key| anonymous::hash(name, key).into())
    }

    /// An address, with or without a port, likewise.
    pub fn address(self, address: &str) -> Cow<'_, str> {
        self.0.map_or(Cow::Borrowed(address), |key| anonymous::address(address, key).into())
    }
}

/// How severe a message is, by syslog's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
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

/// One call.
pub struct Call<'a, S: Served> {
    /// What the commands of its table work on.
    pub state: &'a S,
    /// The configuration that it speaks of, from its beginning to its end.
    pub generation: &'a S::Generation,
    /// Every word, those of the command's name included.
    pub words: &'a [String],
    /// What stood behind `<<`.
    pub payload: Option<&'a [u8]>,
    /// What the connection remembers.
    pub conversation: &'a mut Conversation,
    /// Where the answer goes.
    pub answer: &'a mut Answer,
}

impl<S: Served> Call<'_, S> {
    /// A word; empty where there is none.
    pub fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Answers with a sentence, or some lines of them: the line is ended where it is not.
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

    /// Answers with a fact.
    pub fn inform(&mut self, text: &str) {
        self.say(Severity::Info, text);
    }

    /// Answers with something that a person has to know.
    pub fn notice(&mut self, text: &str) {
        self.say(Severity::Notice, text);
    }

    /// Answers that a part of it was not done, or how a server was changed, as HAProxy does.
    pub fn warn(&mut self, text: &str) {
        self.say(Severity::Warning, text);
    }

    /// Answers that it cannot be done.
    pub fn refuse(&mut self, text: &str) {
        self.say(Severity::Error, text);
    }

    /// Whether the caller has this level; if not, says so.
    pub fn permits(&mut self, level: RuntimeLevel) -> bool {
        let permitted = self.conversation.level >= level;
        if !permitted {
            self.refuse("Permission denied");
        }
        permitted
    }
}
