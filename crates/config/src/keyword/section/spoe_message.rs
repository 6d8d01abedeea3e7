//! Keywords of an SPOE file's message section (SPOE.txt).

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("acl", "<name> <expression> [<flag>...] [<value>...]", "Names a condition."),
    not_yet("args", "[<name>=]<sample>...", "What is sent."),
    not_yet("event", "<event> [{ if | unless } <condition>]", "When it is sent."),
];
