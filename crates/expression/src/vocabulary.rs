//! The fetches and converters that expressions may name: tables that are built in, and rows that are registered beside
//! them. Must never evaluate anything.

use crate::convert::Converter;
use crate::fetch::Fetch;
use crate::rows::{Registered, RowRef, Rows, Unregistered};

/// Rows that are built in.
pub struct Tables {
    /// Fetches.
    pub fetches: &'static Rows<Fetch>,
    /// Converters.
    pub converters: &'static Rows<Converter>,
}

/// What expressions may name. Lookups ask the tables first, and no registered row has a name of theirs. A clone shares
/// the rows.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    tables: &'static Tables,
    fetches: Registered<Fetch>,
    converters: Registered<Converter>,
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
    /// Nothing beside these tables.
    pub const fn new(tables: &'static Tables) -> Self {
        Self { tables, fetches: Registered::none(), converters: Registered::none() }
    }

    /// Registers a fetch.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add_fetch(&mut self, row: Fetch) -> Result<(), Unregistered> {
        // A keyword of ACLs is looked up before the fetches.
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

    /// The fetch of that name.
    pub fn fetch(&self, name: &str) -> Option<RowRef<Fetch>> {
        let built_in = self.tables.fetches.find(name).map(RowRef::BuiltIn);
        built_in.or_else(|| self.fetches.find(name).cloned().map(RowRef::Registered))
    }

    /// The converter of that name.
    pub fn converter(&self, name: &str) -> Option<RowRef<Converter>> {
        let built_in = self.tables.converters.find(name).map(RowRef::BuiltIn);
        built_in.or_else(|| self.converters.find(name).cloned().map(RowRef::Registered))
    }

    /// Whether HAProxy has a fetch of that name that Weir has not yet.
    pub fn awaits_fetch(&self, name: &str) -> bool {
        self.tables.fetches.is_waiting(name)
    }

    /// Whether HAProxy has a converter of that name that Weir has not yet.
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
