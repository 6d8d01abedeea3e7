//! Certificates loaded by name (section 12.7).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("crt-base", "<directory>", "Folder of certificates."),
    not_yet("key-base", "<directory>", "Folder of keys."),
    not_yet("load", "[crt <file>] [<option> <value>]...", "Loads a certificate."),
];
