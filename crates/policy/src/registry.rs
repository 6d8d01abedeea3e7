//! What a configuration may name beside what it defines itself: rows and services that are registered before it is compiled
//! (by scripts, for example). Must never evaluate or perform anything.

use crate::rule::{self, ReadAction, RegisteredAction};
use crate::services::Services;
use config::keyword::rule::RuleSets;
use expression::rows::{Registered, Row, Unregistered};
use expression::vocabulary::{Tables, Vocabulary};

/// The registered rows and services. A clone shares the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    /// The services that rules may name.
    pub services: Services,
    /// The fetches and converters that expressions may name, those that are built in with them.
    pub vocabulary: Vocabulary,
    actions: Registered<RegisteredAction>,
    /// Maps that scripts look up in, each as the converter that does it: `map_str(file)`.
    pub maps: Vec<Box<str>>,
    /// The names of filters that `filter` lines may name, without `lua.`.
    pub filters: Vec<Box<str>>,
}

impl Registry {
    /// Nothing beside these tables.
    pub(crate) const fn new(tables: &'static Tables) -> Self {
        Self {
            services: Services::none(),
            vocabulary: Vocabulary::new(tables),
            actions: Registered::none(),
            maps: Vec::new(),
            filters: Vec::new(),
        }
    }

    /// Registers an action. Its name contains a dot: the others are the configuration language's own. Actions of different rule
    /// sets may share a name.
    ///
    /// # Errors
    /// Its name is taken in one of its rule sets or malformed, or there are too many.
    pub fn add_action(&mut self, row: RegisteredAction) -> Result<(), Unregistered> {
        if !config::keyword::rule::may_be_registered(row.name()) {
            return Err(Unregistered::Malformed);
        }
        let is_taken = self.actions.rows().any(|known| known.name() == row.name() && known.sets & row.sets != 0);
        let key = format!("{} {}", row.name(), row.sets).into();
        self.actions.add_apart(row, key, |name| is_taken || rule::find_action(name).is_some())
    }

    /// What reads the arguments of the action that a word of a rule names, parentheses and all. Which rule sets have a
    /// built-in one is decided where their lines are read.
    pub fn action(&self, word: &str, set: RuleSets) -> Option<&ReadAction> {
        if let Some(row) = rule::find_action(word) {
            return Some(&row.parse);
        }
        let name = word.split('(').next().unwrap_or_default();
        self.actions.rows().find(|row| row.name() == name && row.sets & set != 0).map(|row| &*row.parse)
    }

    /// The names of the registered actions of a rule set.
    pub fn action_names(&self, set: RuleSets) -> impl Iterator<Item = &str> {
        self.actions.rows().filter(move |row| row.sets & set != 0).map(|row| &*row.name)
    }
}
