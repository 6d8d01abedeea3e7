//! Rows and services that are registered before the configuration is compiled (by scripts, for example) and that it may
//! refer to. Must never evaluate or perform anything.

use crate::rule::{self, ReadAction, RegisteredAction};
use crate::services::Services;
use config::keyword::rule::RuleSets;
use expression::rows::{Row, RowRegistry, Unregistered};
use expression::vocabulary::{Tables, Vocabulary};

/// The registered rows and services. A clone shares the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    /// Services for rules.
    pub services: Services,
    /// Fetches and converters for expressions, including the built-in ones.
    pub vocabulary: Vocabulary,
    actions: RowRegistry<RegisteredAction>,
    /// Maps that scripts use, each as its converter: `map_str(file)`.
    pub maps: Vec<Box<str>>,
    /// Names of filters for `filter` lines, without `lua.`.
    pub filters: Vec<Box<str>>,
}

impl Registry {
    /// Creates a registry with only the built-in tables.
    pub(crate) const fn new(tables: &'static Tables) -> Self {
        Self {
            services: Services::none(),
            vocabulary: Vocabulary::new(tables),
            actions: RowRegistry::none(),
            maps: Vec::new(),
            filters: Vec::new(),
        }
    }

    /// Registers an action. Its name must contain a dot: other names are reserved for the configuration language.
    /// Actions of different rule sets may share a name.
    ///
    /// # Errors
    /// The name is malformed or in use in one of the rule sets, or there are too many actions.
    pub fn add_action(&mut self, row: RegisteredAction) -> Result<(), Unregistered> {
        if !config::keyword::rule::may_be_registered(row.name()) {
            return Err(Unregistered::Malformed);
        }
        let is_taken = self.actions.rows().any(|known| known.name() == row.name() && known.sets & row.sets != 0);
        let key = format!("{} {}", row.name(), row.sets).into();
        self.actions.add_apart(row, key, |name| is_taken || rule::find_action(name).is_some())
    }

    /// Returns the parser of the action that a rule's word names, including parentheses. The parser of each line checks
    /// whether the rule set has that built-in action.
    pub fn action(&self, word: &str, set: RuleSets) -> Option<&ReadAction> {
        if let Some(row) = rule::find_action(word) {
            return Some(&row.parse);
        }
        let name = word.split('(').next().unwrap_or_default();
        self.actions.rows().find(|row| row.name() == name && row.sets & set != 0).map(|row| &*row.parse)
    }

    /// Returns the names of the registered actions of a rule set.
    pub fn action_names(&self, set: RuleSets) -> impl Iterator<Item = &str> {
        self.actions.rows().filter(move |row| row.sets & set != 0).map(|row| &*row.name)
    }
}
