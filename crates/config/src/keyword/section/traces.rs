//! Traces (section 12.1).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[not_yet("trace", "<source> <argument>...", "Switches a trace on.")];
