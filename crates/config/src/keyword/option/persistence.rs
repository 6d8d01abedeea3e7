//! Options about the choice of a server.

use super::{OptionKeyword, not_yet, switch};
use crate::keyword::place::places::BACK;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    not_yet(switch(BACK), "allbackups", "", "Uses all backup servers at once, not the first alone."),
    not_yet(switch(BACK), "persist", "", "Sends persistent clients to their server even when it is down."),
    not_yet(switch(BACK), "prefer-last-server", "", "Stays with the last server where that is possible."),
];
