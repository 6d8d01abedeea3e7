//! What expressions and rules may name: the built-in tables, and the rows and services that are registered beside them
//! before a configuration is compiled (by scripts, for example). Must never evaluate or perform anything.

use crate::convert::{self, Converter};
use crate::fetch::{self, Fetch};
use crate::rows::{Registered, Row, RowRef, Unregistered};
use crate::rule::{self, ReadAction, RegisteredAction};
use crate::services::Services;
use config::keyword::rule::RuleSets;

/// The registered rows and services. Lookups ask the built-in tables first, and no registered row has a name of theirs.
/// A clone shares the rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registry {
    /// The services that rules may name.
    pub services: Services,
    fetches: Registered<Fetch>,
    converters: Registered<Converter>,
    actions: Registered<RegisteredAction>,
}

impl Registry {
    /// Nothing beside the built-in tables.
    pub const fn none() -> Self {
        Self {
            services: Services::none(),
            fetches: Registered::none(),
            converters: Registered::none(),
            actions: Registered::none(),
        }
    }

    /// Registers a fetch.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add_fetch(&mut self, row: Fetch) -> Result<(), Unregistered> {
        // A keyword of ACLs is looked up before the fetches.
        let built_in = |name: &str| {
            fetch::ROWS.find(name).is_some()
                || fetch::ROWS.is_waiting(name)
                || crate::condition::shorthands().iter().any(|row| row.name == name)
        };
        self.fetches.add(row, built_in)
    }

    /// Registers a converter.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add_converter(&mut self, row: Converter) -> Result<(), Unregistered> {
        self.converters.add(row, |name| convert::ROWS.find(name).is_some() || convert::ROWS.is_waiting(name))
    }

    /// Registers an action. Its name contains a dot: the others are the configuration language's own.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add_action(&mut self, row: RegisteredAction) -> Result<(), Unregistered> {
        if !config::keyword::rule::may_be_registered(row.name()) {
            return Err(Unregistered::Malformed);
        }
        self.actions.add(row, |name| rule::find_action(name).is_some())
    }

    /// The fetch of that name.
    pub fn fetch(&self, name: &str) -> Option<RowRef<Fetch>> {
        let built_in = fetch::ROWS.find(name).map(RowRef::BuiltIn);
        built_in.or_else(|| self.fetches.find(name).cloned().map(RowRef::Registered))
    }

    /// The converter of that name.
    pub fn converter(&self, name: &str) -> Option<RowRef<Converter>> {
        let built_in = convert::ROWS.find(name).map(RowRef::BuiltIn);
        built_in.or_else(|| self.converters.find(name).cloned().map(RowRef::Registered))
    }

    /// What reads the arguments of the action that a word of a rule names, parentheses and all. Which rule sets have a
    /// built-in one is decided where their lines are read.
    pub fn action(&self, word: &str, set: RuleSets) -> Option<&ReadAction> {
        if let Some(row) = rule::find_action(word) {
            return Some(&row.parse);
        }
        let name = word.split('(').next().unwrap_or_default();
        self.actions.find(name).filter(|row| row.sets & set != 0).map(|row| &*row.parse)
    }

    /// The names of all fetches.
    pub fn fetch_names(&self) -> impl Iterator<Item = &str> {
        self.fetches.names().chain(fetch::ROWS.names())
    }

    /// The names of all converters.
    pub fn converter_names(&self) -> impl Iterator<Item = &str> {
        self.converters.names().chain(convert::ROWS.names())
    }

    /// The names of the registered actions of a rule set.
    pub fn action_names(&self, set: RuleSets) -> impl Iterator<Item = &str> {
        self.actions.rows().filter(move |row| row.sets & set != 0).map(|row| &*row.name)
    }
}
