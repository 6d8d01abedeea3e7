//! Tables of rows with names, and the search in them: fetches and converters. Must never know what a row does.

use crate::expression::Signature;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A row of a table.
pub trait Row: 'static {
    /// Its name.
    fn name(&self) -> &'static str;
    /// What it is, in a sentence.
    fn doc(&self) -> &'static str;
    /// What it takes.
    fn signature(&self) -> Signature;
}

/// All rows of a kind.
pub struct Rows<R: Row> {
    families: &'static [&'static [R]],
    waiting: &'static [&'static str],
    index: OnceLock<HashMap<&'static str, &'static R>>,
}

impl<R: Row> Rows<R> {
    /// Those of these families; `waiting` has the names that HAProxy has and Weir has not yet.
    pub const fn new(families: &'static [&'static [R]], waiting: &'static [&'static str]) -> Self {
        Self { families, waiting, index: OnceLock::new() }
    }

    /// Every row.
    pub fn all(&self) -> impl Iterator<Item = &'static R> {
        self.families.iter().flat_map(|family| family.iter())
    }

    /// The row of that name.
    pub fn find(&self, name: &str) -> Option<&'static R> {
        self.index.get_or_init(|| self.all().map(|row| (row.name(), row)).collect()).get(name).copied()
    }

    /// Every name that works.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.all().map(Row::name)
    }

    /// The names that HAProxy has and Weir has not yet.
    pub const fn waiting(&self) -> &'static [&'static str] {
        self.waiting
    }

    /// Whether HAProxy has a row of that name that Weir has not yet.
    pub fn is_waiting(&self, name: &str) -> bool {
        self.waiting.contains(&name)
    }

    /// What is wrong with the tables, told to the house's tests.
    #[cfg(test)]
    pub(crate) fn assert_sound(&self) {
        let mut seen = std::collections::HashSet::new();
        for row in self.all() {
            let (name, signature) = (row.name(), row.signature());
            assert!(seen.insert(name) && !self.is_waiting(name), "{name} is there twice");
            assert!(row.doc().ends_with('.') && row.doc().len() > 4, "{name}");
            assert!(signature.required <= signature.kinds.len(), "{name}");
        }
    }
}
