//! A health check that servers refer to.

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("http-check", "<step> [<argument>...]", "A step of an HTTP check."),
    not_yet("tcp-check", "<step> [<argument>...]", "A step of a TCP check."),
    not_yet("type", "<type> [<argument>...]", "Kind of check."),
];
