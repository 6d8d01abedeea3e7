//! Names resolved at run time (section 5.3).

use super::{ServerOption, not_yet};
use crate::keyword::argument::Arity;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    not_yet(Arity::One, "resolvers", "<section>", "Resolvers section that looks the name up."),
    not_yet(Arity::One, "resolve-net", "<network>[,<network>...]", "Networks to prefer."),
    not_yet(Arity::One, "resolve-opts", "<option>[,<option>...]", "Options of the resolution."),
    not_yet(Arity::One, "resolve-prefer", "{ ipv4 | ipv6 }", "Family to prefer."),
];
