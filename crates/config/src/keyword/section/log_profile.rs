//! Log formats by event (section 8.3.5).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("log-tag", "<text>", "Program name in the lines."),
    not_yet("on", "<step> [drop] [format <format>] [sd <format>]", "What to log at an event."),
];
