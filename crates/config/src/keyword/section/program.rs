//! A program run by the master process; HAProxy 3.3 removed it.

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("command", "<command> [<argument>...]", "Command to run."),
    not_yet("group", "<name>", "Group of the program."),
    not_yet("option start-on-reload", "[no]", "Whether a reload restarts the program."),
    not_yet("user", "<name>", "User of the program."),
];
