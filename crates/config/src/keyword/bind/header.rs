//! Headers that a balancer in front puts before the client's first bytes (section 5.1).

use super::{BindOption, not_yet};
use crate::keyword::argument::Arity;

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    not_yet(Arity::None, "accept-proxy", "", "Expects a PROXY protocol header."),
    not_yet(Arity::One, "accept-netscaler-cip", "<magic>", "Expects NetScaler's client address header."),
];
