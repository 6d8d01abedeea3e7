//! Network namespaces.

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[not_yet("namespace", "<name>", "A network namespace.")];
