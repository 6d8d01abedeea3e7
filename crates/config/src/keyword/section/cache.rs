//! A cache of small responses (section 6.2).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("early-hints", "{ on | off }", "Sends early hints from what was cached."),
    not_yet("max-age", "<seconds>", "Longest life of an entry."),
    not_yet("max-object-size", "<bytes>", "Largest entry."),
    not_yet("max-secondary-entries", "<number>", "Variants of one entry."),
    not_yet("process-vary", "{ on | off }", "Whether Vary is honoured."),
    not_yet("total-max-size", "<megabytes>", "Size of the cache."),
];
