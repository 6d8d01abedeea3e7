//! The fetches and converters available to expressions: built-in tables, and registered rows. Must never evaluate
//! anything.

use crate::convert::Converter;
use crate::fetch::Fetch;
use crate::rows::{RowRef, RowRegistry, Rows, Unregistered};

/// Built-in rows.
pub struct Tables {
    pub fetches: &'static Rows<Fetch>,
    pub converters: &'static Rows<Converter>,
}

/// The rows available to expressions. Lookups search the tables first, and no registered row has a name of theirs. A
/// clone shares the rows.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tables: &'static Tables,
    fetches: RowRegistry<Fetch>,
    converters: RowRegistry<Converter>,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables(_)")
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.tables, other.tables) && self.fetches == other.fetches && self.converters == other.converters
    }
}

impl Vocabulary {
    /// Creates a vocabulary of these tables only.
    pub const fn new(tables: &'static Tables) -> Self {
        Self { tables, fetches: RowRegistry::none(), converters: RowRegistry::none() }
    }

    /// Registers a fetch.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add_fetch(&mut self, row: Fetch) -> Result<(), Unregistered> {
        // ACL keywords take precedence over fetches.
        let built_in = |name: &str| {
            self.tables.fetches.find(name).is_some()
                || self.tables.fetches.is_waiting(name)
                || crate::condition::shorthands().iter().any(|row| row.name == name)
        };
        self.fetches.add(row, built_in)
    }

    /// Registers a converter.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add_converter(&mut self, row: Converter) -> Result<(), Unregistered> {
        let built_in = self.tables.converters;
        self.converters.add(row, |name| built_in.find(name).is_some() || built_in.is_waiting(name))
    }

    /// Returns the fetch of that name.
    pub fn fetch(&self, name: &str) -> Option<RowRef<Fetch>> {
        let built_in = self.tables.fetches.find(name).map(RowRef::BuiltIn);
        built_in.or_else(|| self.fetches.find(name).cloned().map(RowRef::Registered))
    }

    /// Returns the converter of that name.
    pub fn converter(&self, name: &str) -> Option<RowRef<Converter>> {
        let built_in = self.tables.converters.find(name).map(RowRef::BuiltIn);
        built_in.or_else(|| self.converters.find(name).cloned().map(RowRef::Registered))
    }

    /// Whether HAProxy has a fetch of that name that Weir does not support yet.
    pub fn awaits_fetch(&self, name: &str) -> bool {
        self.tables.fetches.is_waiting(name)
    }

    /// Whether HAProxy has a converter of that name that Weir does not support yet.
    pub fn awaits_converter(&self, name: &str) -> bool {
        self.tables.converters.is_waiting(name)
    }

    /// The names of all fetches.
    pub fn fetch_names(&self) -> impl Iterator<Item = &str> {
        self.fetches.names().chain(self.tables.fetches.names())
    }

    /// The names of all converters.
    pub fn converter_names(&self) -> impl Iterator<Item = &str> {
        self.converters.names().chain(self.tables.converters.names())
    }
}
