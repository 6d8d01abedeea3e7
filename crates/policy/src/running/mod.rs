//! Fetches and converters that use the program or its live state (configuration manual, sections 7.3.1 to 7.3.6):
//! proxies, servers, stick tables, users. Owns the list of their families, and the tables of all built-in rows. Must
//! never change any state except entries of stick tables.

mod auth;
mod cache;
mod current;
mod listening;
mod password_trials;
mod proxies;
mod proxy;
mod server;
mod stick;
mod store;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod tracked;

pub use password_trials::{PasswordTrial, is_account, trials};

use crate::registry::Registry;
use expression::convert::{self, Converter};
use expression::fetch::{self, Fetch};
use expression::rows::Rows;
use expression::vocabulary::Tables;

/// The families of fetches in this module.
const OWN_FETCHES: &[&[Fetch]] = &[
    auth::TABLE,
    cache::TABLE,
    current::TABLE,
    listening::TABLE,
    proxy::TABLE,
    server::TABLE,
    tracked::READ,
    tracked::KILOBYTES,
    tracked::INCREMENT,
    tracked::CLEAR,
    tracked::OTHERS,
];

/// The families of converters in this module.
const OWN_CONVERTERS: &[&[Converter]] = &[proxies::TABLE, store::TABLE, table::READ, table::KILOBYTES, table::OTHERS];

/// All built-in fetches.
pub static FETCHES: Rows<Fetch> = Rows::new(&[fetch::FAMILIES, OWN_FETCHES], fetch::WAITING);

/// All built-in converters.
pub static CONVERTERS: Rows<Converter> = Rows::new(&[convert::FAMILIES, OWN_CONVERTERS], convert::WAITING);

/// All built-in rows.
pub static TABLES: Tables = Tables { fetches: &FETCHES, converters: &CONVERTERS };

impl Registry {
    /// Creates a registry with only the built-in rows.
    pub const fn none() -> Self {
        Self::new(&TABLES)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::none()
    }
}
