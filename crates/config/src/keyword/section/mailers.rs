//! Mail servers (section 12.3).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("mailer", "<name> <address>:<port>", "A mail server."),
    not_yet("timeout mail", "<time>", "Time for a mail."),
];
