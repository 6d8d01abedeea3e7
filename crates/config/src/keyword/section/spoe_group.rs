//! Keywords of an SPOE file's group section (SPOE.txt).

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[not_yet("messages", "<message>...", "Messages of the group.")];
