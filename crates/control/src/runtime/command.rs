//! The type of command tables, and the lookup. To add a command, write its function beside similar ones and add a row
//! to their table; help, permissions and the manual page are derived from the row. Must never know a command.

use std::rc::Rc;

use config::spec::RuntimeLevel;

use super::Call;

mod basic;

pub use super::command_target::{CommandTarget, Condition, Pending, ReceivedCommand, RemainingInput};

/// The mode that a command requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// None.
    Normal,
    /// `expert-mode on`; otherwise hidden from help.
    Expert,
    /// `experimental-mode on`; otherwise hidden from help.
    Experimental,
    /// `mcli-debug-mode on`; otherwise unknown.
    Debug,
}

/// The function of a command.
pub enum Run<S: CommandTarget> {
    /// Answers immediately; the answer's size is bounded.
    Now(fn(&mut Call<'_, S>)),
    /// Answers in pieces, or waits.
    Gradual(for<'a> fn(&'a mut Call<'_, S>) -> Pending<'a>),
}

/// A command.
pub struct Command<S: CommandTarget> {
    /// Its name, one or more words.
    pub name: &'static str,
    /// Usage; empty if help does not show it.
    pub usage: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Required level.
    pub level: RuntimeLevel,
    /// Required mode.
    pub mode: Mode,
    pub run: Run<S>,
}

impl<S: CommandTarget> Command<S> {
    /// Creates a command for any level and mode.
    pub const fn new(name: &'static str, usage: &'static str, doc: &'static str, run: Run<S>) -> Self {
        Self { name, usage, doc, level: RuntimeLevel::User, mode: Mode::Normal, run }
    }

    /// Requires a level.
    #[must_use]
    pub const fn at(mut self, level: RuntimeLevel) -> Self {
        self.level = level;
        self
    }

    /// Requires a mode.
    #[must_use]
    pub const fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Returns the words of its name.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.name.split(' ')
    }

    /// Returns the number of words of its name if `words` begin with it.
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

/// The commands of a socket: tables, and the state that they work on.
pub struct CommandSet<S: CommandTarget> {
    /// The state that the commands work on.
    pub state: Rc<S>,
    /// The tables, without [`basic()`], which every set has.
    pub tables: &'static [&'static [Command<S>]],
}

impl<S: CommandTarget> Clone for CommandSet<S> {
    fn clone(&self) -> Self {
        Self { state: Rc::clone(&self.state), tables: self.tables }
    }
}

/// Returns the commands of the protocol itself.
pub fn basic<S: CommandTarget>() -> &'static [Command<S>] {
    basic::Basic::<S>::TABLE
}

impl<S: CommandTarget> CommandSet<S> {
    /// Finds the script's command with the longest name that `words` begin with, if it has more than `least` words.
    /// Returns its index.
    pub(super) fn find_scripted(&self, words: &[String], least: usize) -> Option<usize> {
        let matches = |name: &String| {
            let length = name.split(' ').count();
            (length > least && words.len() >= length && name.split(' ').eq(words[..length].iter())).then_some(length)
        };
        let named = self.state.scripted();
        let named = named.iter().enumerate().filter_map(|(place, (name, _))| Some((matches(name)?, place)));
        named.max_by_key(|(length, _)| *length).map(|(_, place)| place)
    }

    /// Returns all commands, unordered.
    pub fn commands(&self) -> impl Iterator<Item = &'static Command<S>> + use<S> {
        self.tables.iter().copied().flatten().chain(basic::<S>())
    }

    /// Finds the command with the longest name that `words` begin with.
    pub fn find(&self, words: &[String]) -> Option<&'static Command<S>> {
        let named = self.commands().filter_map(|row| Some((row.matches(words)?, row)));
        named.max_by_key(|(length, _)| *length).map(|(_, row)| row)
    }
}
