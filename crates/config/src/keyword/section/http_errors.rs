//! A set of error pages (section 12.4).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] =
    &[not_yet("errorfile", "<status> <file>", "File that holds the whole answer for a status.")];
