//! The form of a table of commands, and the search in it. To add a command, write its function beside its kin and add a
//! row to their table; help, permissions and the manual page follow from the row. Must never know a command.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use config::spec::RuntimeLevel;
use conn::service::ByteService;

use super::{Answer, Call, Conversation, Gone};

mod basic;

/// What has to be switched on before a command is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Normal,
    /// `expert-mode on`; help does not show it otherwise.
    Expert,
    /// `experimental-mode on`, likewise.
    Experimental,
    /// `mcli-debug-mode on`; it is unknown otherwise.
    Debug,
}

/// An answer that is made in pieces.
pub type Pending<'a> = Pin<Box<dyn Future<Output = Result<(), Gone>> + 'a>>;

/// What a command does.
pub enum Run<S: Served> {
    /// Answers at once, with an answer of bounded size.
    Now(fn(&mut Call<'_, S>)),
    /// Answers in pieces, or waits.
    Gradual(for<'a> fn(&'a mut Call<'_, S>) -> Pending<'a>),
}

/// One row.
pub struct Command<S: Served> {
    /// The words that call it.
    pub name: &'static str,
    /// How it is used; empty for one that help does not show.
    pub usage: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Who may call it.
    pub level: RuntimeLevel,
    /// When.
    pub mode: Mode,
    /// What it does.
    pub run: Run<S>,
}

impl<S: Served> Command<S> {
    /// A row that everybody may call.
    pub const fn new(name: &'static str, usage: &'static str, doc: &'static str, run: Run<S>) -> Self {
        Self { name, usage, doc, level: RuntimeLevel::User, mode: Mode::Normal, run }
    }

    /// The same for a level.
    #[must_use]
    pub const fn at(mut self, level: RuntimeLevel) -> Self {
        self.level = level;
        self
    }

    /// The same for a mode.
    #[must_use]
    pub const fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The words that call it.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.name.split(' ')
    }

    /// Whether the words call it; how many of them its name is.
    fn matches(&self, words: &[String]) -> Option<usize> {
        let mut length = 0;
        for name in self.words() {
            if words.get(length)?.as_str() != name {
                return None;
            }
            length += 1;
        }
        Some(length)
    }
}

/// Where commands are taken: tables, and what their commands work on.
pub struct CommandSet<S: Served> {
    /// What the commands work on.
    pub state: Rc<S>,
    /// Every table but the one of the protocol itself, which each set has.
    pub tables: &'static [&'static [Command<S>]],
}

impl<S: Served> Clone for CommandSet<S> {
    fn clone(&self) -> Self {
        Self { state: Rc::clone(&self.state), tables: self.tables }
    }
}

/// A command as it was typed.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'a> {
    /// The command.
    pub command: &'a [u8],
    /// What followed `<<`, and the line that ended it.
    pub payload: Option<(&'a [u8], &'a [u8])>,
}

/// What stands behind a line.
#[derive(Debug, Default)]
pub struct Rest {
    /// What was typed and not used yet.
    pub typed: Vec<u8>,
    /// Nothing more will be typed.
    pub ended: bool,
}

/// The state of what a command waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// As they should.
    Met,
    /// Not yet, and this is why.
    Unmet(String),
    /// They will never stand so.
    Failed(String),
    /// It was asked for in a wrong way.
    Refused(String),
}

/// The commands of the protocol itself.
pub fn basic<S: Served>() -> &'static [Command<S>] {
    basic::Basic::<S>::TABLE
}

/// What the protocol itself wants to know of the state.
pub trait Served: Sized + 'static {
    /// What holds the configuration that a command speaks of.
    type Generation: 'static;

    /// The configuration that a command which begins now speaks of.
    fn generation(&self) -> Self::Generation;

    /// What `show version` answers.
    fn version(&self) -> &str;

    /// Seconds since the start of what answers the conversation's commands.
    fn uptime(&self, _: &Conversation) -> u64;

    /// Whether lines follow one another without `prompt`, and always. What changes the conversation alone then answers nothing
    /// (management manual, section 9.4.1).
    fn is_interactive(&self) -> bool {
        false
    }

    /// A connection begins: it counts until `ended`.
    fn begun(&self) {}

    /// A connection ends.
    fn ended(&self) {}

    /// Bytes were sent to a connection.
    fn sent(&self, _bytes: u64) {}

    /// Bytes of a payload at most, its marker included (`tune.cli.max-payload-size`).
    fn max_payload(&self) -> usize {
        128 * 1024
    }

    /// What stands in front of the prompt.
    fn place(&self, _: &Conversation) -> String {
        String::new()
    }

    /// What `wait` can wait for: each condition as its help shows it, and what that means.
    fn conditions(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// How things stand with a condition that `wait` waits for, and with its argument. `None`: there is no such.
    fn condition(&self, _: &str, _: &str) -> Option<Condition> {
        None
    }

    /// Whether a line is one command, semicolons and all.
    fn takes_whole(&self, _: &[u8]) -> bool {
        false
    }

    /// A command that is for this process, without what says so.
    fn addressed<'a>(&self, command: &'a [u8]) -> &'a [u8] {
        command
    }

    /// The commands beside those of the tables, which scripts registered: the words of each, and the line that help shows.
    fn scripted(&self) -> Vec<(String, &str)> {
        Vec::new()
    }

    /// Begins the command of that place in [`Served::scripted`].
    fn begin_scripted(&self, _place: usize, _words: &[String]) -> Option<Box<dyn ByteService>> {
        None
    }

    /// Has another process answer a command, which is given as it was typed, and perhaps all that is typed behind it. `None`: it is
    /// for this one.
    fn route<'a>(
        &'a self,
        _: Typed<'a>,
        _: &'a mut Conversation,
        _: &'a mut Answer,
        _: &'a mut Rest,
    ) -> Option<Pending<'a>> {
        None
    }
}

impl<S: Served> CommandSet<S> {
    /// The command of a script that words call, where its name is longer than `least` words: its place.
    pub(super) fn find_scripted(&self, words: &[String], least: usize) -> Option<usize> {
        let matches = |name: &String| {
            let length = name.split(' ').count();
            (length > least && words.len() >= length && name.split(' ').eq(words[..length].iter())).then_some(length)
        };
        let named = self.state.scripted();
        let named = named.iter().enumerate().filter_map(|(place, (name, _))| Some((matches(name)?, place)));
        named.max_by_key(|(length, _)| *length).map(|(_, place)| place)
    }

    /// All rows, in no order.
    pub fn commands(&self) -> impl Iterator<Item = &'static Command<S>> + use<S> {
        self.tables.iter().copied().flatten().chain(basic::<S>())
    }

    /// The row that words call: the one with the longest name.
    pub fn find(&self, words: &[String]) -> Option<&'static Command<S>> {
        let named = self.commands().filter_map(|row| Some((row.matches(words)?, row)));
        named.max_by_key(|(length, _)| *length).map(|(_, row)| row)
    }
}
