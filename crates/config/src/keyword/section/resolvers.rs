//! Name servers (section 5.3.2).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("accepted_payload_size", "<number>", "Largest answer that is announced as acceptable."),
    not_yet("hold", "<status> <time>", "How long an answer of a kind is kept."),
    not_yet("nameserver", "<name> <address>[:<port>]", "A name server."),
    not_yet("parse-resolv-conf", "", "Takes name servers from /etc/resolv.conf."),
    not_yet("resolution_pool_size", "<number>", "Older limit of resolutions at once."),
    not_yet("resolve_retries", "<number>", "Questions before giving up."),
    not_yet("timeout resolve", "<time>", "Time between two resolutions of a name."),
    not_yet("timeout retry", "<time>", "Time between two questions."),
];
