//! A stick table that is shared, as the exchange needs it. Must never change.

use crate::table::Table;
use std::sync::Arc;

/// A table that is shared.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Its entries.
    pub table: Arc<Table>,
    /// What peers call it.
    pub name: Box<str>,
    /// The table that gets what peers tell of it.
    pub write_to: Option<Arc<Table>>,
}
