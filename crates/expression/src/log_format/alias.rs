//! The list of the tables that define aliases (configuration manual, section 8.2.6). Each family has a file: a function and a row per
//! alias. Must never depend on a particular format.

use super::row::Alias;
use super::{connection, http, process, timer};

const FAMILIES: &[&[Alias]] = &[timer::DATES, timer::TIMERS, connection::TABLE, http::TABLE, process::TABLE];

/// Returns all aliases, family by family. `%o` is not among them: it prints nothing and only sets flags.
pub fn aliases() -> impl Iterator<Item = &'static Alias> {
    FAMILIES.iter().copied().flatten()
}

/// Returns the alias of that name.
pub fn find(name: &str) -> Option<&'static Alias> {
    aliases().find(|alias| alias.name == name)
}
