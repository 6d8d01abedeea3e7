//! Tables of rows with names, and rows that are registered beside them: fetches, converters, actions. Must never know
//! what a row does.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A row of a table.
pub trait Row: 'static {
    /// Its name.
    fn name(&self) -> &str;
}

/// All rows of a kind that are built in.
pub struct Rows<R: Row> {
    families: &'static [&'static [&'static [R]]],
    waiting: &'static [&'static str],
    index: OnceLock<HashMap<&'static str, &'static R>>,
}

impl<R: Row> Rows<R> {
    /// Those of these groups of families; `waiting` has the names that HAProxy has and Weir has not yet.
    pub const fn new(families: &'static [&'static [&'static [R]]], waiting: &'static [&'static str]) -> Self {
        Self { families, waiting, index: OnceLock::new() }
    }

    /// Every row.
    pub fn all(&self) -> impl Iterator<Item = &'static R> {
        self.families.iter().copied().flatten().copied().flatten()
    }

    /// The row of that name.
    pub fn find(&self, name: &str) -> Option<&'static R> {
        self.index.get_or_init(|| self.all().map(|row| (row.name(), row)).collect()).get(name).copied()
    }

    /// Every name that works.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|row| row.name())
    }

    /// The names that HAProxy has and Weir has not yet.
    pub const fn waiting(&self) -> &'static [&'static str] {
        self.waiting
    }

    /// Whether HAProxy has a row of that name that Weir has not yet.
    pub fn is_waiting(&self, name: &str) -> bool {
        self.waiting.contains(&name)
    }

    /// Checks the tables in a test, given the document and how many arguments a row requires and takes.
    ///
    /// # Panics
    /// Two rows have one name, or a row's document or signature is not sound.
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
    /// A configuration could not write the name.
    Malformed,
    /// There are as many rows as there may be.
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

/// Most rows of a kind that may be registered.
const MOST_REGISTERED: usize = 4_096;

/// Rows of a kind that were registered when the process started.
pub struct Registered<R: Row>(BTreeMap<Box<str>, Arc<R>>);

impl<R: Row> Registered<R> {
    /// None.
    pub const fn none() -> Self {
        Self(BTreeMap::new())
    }

    /// Registers a row whose name `built_in` does not know.
    ///
    /// # Errors
    /// Its name is taken or malformed, or there are too many.
    pub fn add(&mut self, row: R, built_in: impl FnOnce(&str) -> bool) -> Result<(), Unregistered> {
        let key = row.name().into();
        self.add_apart(row, key, built_in)
    }

    /// The same for a row whose name other rows may have: `key` distinguishes them.
    ///
    /// # Errors
    /// As of [`Registered::add`].
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

    /// The row of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<R>> {
        self.0.get(name)
    }

    /// Every row, by name.
    pub fn rows(&self) -> impl Iterator<Item = &R> {
        self.0.values().map(|row| &**row)
    }

    /// Every name, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }
}

impl<R: Row> Clone for Registered<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Row> Default for Registered<R> {
    fn default() -> Self {
        Self::none()
    }
}

/// The same rows, not rows that do the same.
impl<R: Row> PartialEq for Registered<R> {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.values().zip(other.0.values()).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl<R: Row> fmt::Debug for Registered<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A row that was found.
pub enum RowRef<R: Row> {
    /// One that is built in.
    BuiltIn(&'static R),
    /// One that was registered.
    Registered(Arc<R>),
}

impl<R: Row> RowRef<R> {
    /// Whether both are one row, given that their names are equal.
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
