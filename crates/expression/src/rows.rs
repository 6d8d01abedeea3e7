//! Tables of named rows, and registered rows: fetches, converters, actions. Must never depend on the function of a row.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A named row of a table.
pub trait Row: 'static {
    fn name(&self) -> &str;
}

/// All built-in rows of a kind.
pub struct Rows<R: Row> {
    families: &'static [&'static [&'static [R]]],
    waiting: &'static [&'static str],
    index: OnceLock<HashMap<&'static str, &'static R>>,
}

impl<R: Row> Rows<R> {
    /// Creates the table of these groups of families; `waiting`: names of HAProxy that Weir does not support yet.
    pub const fn new(families: &'static [&'static [&'static [R]]], waiting: &'static [&'static str]) -> Self {
        Self { families, waiting, index: OnceLock::new() }
    }

    /// Returns every row.
    pub fn all(&self) -> impl Iterator<Item = &'static R> {
        self.families.iter().copied().flatten().copied().flatten()
    }

    /// Returns the row of that name.
    pub fn find(&self, name: &str) -> Option<&'static R> {
        self.index.get_or_init(|| self.all().map(|row| (row.name(), row)).collect()).get(name).copied()
    }

    /// Returns every supported name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|row| row.name())
    }

    /// The names of HAProxy that Weir does not support yet.
    pub const fn waiting(&self) -> &'static [&'static str] {
        self.waiting
    }

    /// Whether it is a name of HAProxy that Weir does not support yet.
    pub fn is_waiting(&self, name: &str) -> bool {
        self.waiting.contains(&name)
    }

    /// Checks the tables in a test; `of` returns a row's documentation, and the required and the maximum number of
    /// arguments.
    ///
    /// # Panics
    /// Two rows have the same name, or a row's documentation or signature is invalid.
    pub fn assert_sound(&self, of: impl Fn(&R) -> (&'static str, usize, usize)) {
        let mut seen = std::collections::HashSet::new();
        for row in self.all() {
            let (name, (doc, required, most)) = (row.name(), of(row));
            assert!(seen.insert(name) && !self.is_waiting(name), "{name} is there twice");
            assert!(doc.ends_with('.') && doc.len() > 4, "{name}");
            assert!(required <= most, "{name}");
        }
    }
}

/// Why a row is not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unregistered {
    /// A row of that name exists, built in or registered, or HAProxy has one.
    Taken,
    /// The name cannot be written in a configuration.
    Malformed,
    /// The maximum number of rows is reached.
    TooMany,
}

impl fmt::Display for Unregistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Taken => "the name is taken",
            Self::Malformed => "the name has other characters than letters, digits, '_', '-' and '.'",
            Self::TooMany => "there are too many",
        })
    }
}

impl std::error::Error for Unregistered {}

/// Maximum number of registered rows of a kind.
const MOST_REGISTERED: usize = 4_096;

/// Rows of a kind registered at the start of the process.
pub struct RowRegistry<R: Row>(BTreeMap<Box<str>, Arc<R>>);

impl<R: Row> RowRegistry<R> {
    /// Creates an empty registry.
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Registers a row, unless `built_in` returns true for its name.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add(&mut self, row: R, built_in: impl FnOnce(&str) -> bool) -> Result<(), Unregistered> {
        let key = row.name().into();
        self.add_apart(row, key, built_in)
    }

    /// Registers a row whose name may be used by other rows: `key` distinguishes them.
    ///
    /// # Errors
    /// As for [`RowRegistry::add`].
    pub fn add_apart(
        &mut self,
        row: R,
        key: Box<str>,
        built_in: impl FnOnce(&str) -> bool,
    ) -> Result<(), Unregistered> {
        let name = row.name();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if name.is_empty() || !name.bytes().all(fits) {
            return Err(Unregistered::Malformed);
        }
        if built_in(name) || self.0.contains_key(&key) {
            return Err(Unregistered::Taken);
        }
        if self.0.len() == MOST_REGISTERED {
            return Err(Unregistered::TooMany);
        }
        self.0.insert(key, Arc::new(row));
        Ok(())
    }

    /// Returns the row of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<R>> {
        self.0.get(name)
    }

    /// Returns every row, by name.
    pub fn rows(&self) -> impl Iterator<Item = &R> {
        self.0.values().map(|row| &**row)
    }

    /// Returns every name, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }
}

impl<R: Row> Clone for RowRegistry<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Row> Default for RowRegistry<R> {
    fn default() -> Self {
        Self::none()
    }
}

/// Compares rows by identity, not by function.
impl<R: Row> PartialEq for RowRegistry<R> {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.values().zip(other.0.values()).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl<R: Row> fmt::Debug for RowRegistry<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A reference to a row.
pub enum RowRef<R: Row> {
    /// A built-in row.
    BuiltIn(&'static R),
    /// A registered row.
    Registered(Arc<R>),
}

impl<R: Row> RowRef<R> {
    /// Whether both are the same row, provided that their names are equal.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(_), Self::BuiltIn(_)) => true,
            (Self::Registered(own), Self::Registered(other)) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl<R: Row> Deref for RowRef<R> {
    type Target = R;

    fn deref(&self) -> &R {
        match self {
            Self::BuiltIn(row) => row,
            Self::Registered(row) => row,
        }
    }
}

impl<R: Row> Clone for RowRef<R> {
    fn clone(&self) -> Self {
        match self {
            Self::BuiltIn(row) => Self::BuiltIn(row),
            Self::Registered(row) => Self::Registered(Arc::clone(row)),
        }
    }
}

impl<R: Row> fmt::Debug for RowRef<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
