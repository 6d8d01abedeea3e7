//! A call of a command: its words, its payload, its connection and the answer. Must never know a command.

use std::fmt::Write as _;

use config::spec::{RuntimeLevel, SeverityOutput};

use super::Answer;
use super::command_target::CommandTarget;

pub use super::conversation::{Anonymization, Conversation, Prompt};

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

pub struct Call<'a, S: CommandTarget> {
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

impl<S: CommandTarget> Call<'_, S> {
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
