//! The table of rules, one file for each family. Owns the list of families.

mod addresses;
mod backends;
mod contradictions;
mod numbers;
mod order;
mod patterns;
mod reach;
mod regular;
mod servers;
mod tables;
mod tls;
mod unused;
mod values;
mod variables;
mod various;

use crate::allow;
use crate::rule::Rule;

/// Every family.
const FAMILIES: &[&[Rule]] = &[
    tables::TABLE,
    backends::TABLE,
    reach::TABLE,
    order::TABLE,
    contradictions::TABLE,
    patterns::TABLE,
    numbers::TABLE,
    regular::TABLE,
    servers::TABLE,
    tls::TABLE,
    addresses::TABLE,
    variables::TABLE,
    various::TABLE,
    unused::TABLE,
    allow::TABLE,
];

/// Returns every rule, by family.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.iter().copied().flatten()
}

/// Whether a rule of that name exists.
pub(crate) fn is_known(name: &str) -> bool {
    all().any(|rule| rule.name == name)
}
