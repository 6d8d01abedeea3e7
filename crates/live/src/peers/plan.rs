//! A shared stick table, as the synchronization needs it. Must never change.

use crate::table::Table;
use std::sync::Arc;

/// A shared stick table.
#[derive(Debug, Clone)]
pub struct Shared {
    pub table: Arc<Table>,
    /// Its name in the protocol.
    pub name: Box<str>,
    /// The table of `write-to`, which receives learned entries.
    pub write_to: Option<Arc<Table>>,
}
