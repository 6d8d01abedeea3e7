//! Users and groups (section 12.2).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("group", "<name> [users <user>[,<user>...]]", "A group."),
    not_yet("user", "<name> [password <hash> | insecure-password <password>] [groups <group>[,<group>...]]", "A user."),
];
