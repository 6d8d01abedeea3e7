//! Arguments of cookie (section 4.2).

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("attr", "<value>", "Attribute to add."),
    not_yet("domain", "<domain>", "Domain of the cookie."),
    not_yet("dynamic", "", "Values computed from addresses."),
    not_yet("httponly", "", "Scripts cannot read it."),
    not_yet("indirect", "", "Servers do not see it."),
    not_yet("insert", "", "The proxy sets it."),
    not_yet("maxidle", "<time>", "Life of a cookie that is not used."),
    not_yet("maxlife", "<time>", "Life of a cookie."),
    not_yet("nocache", "", "Responses that set it are not cached."),
    not_yet("postonly", "", "Set on answers to POST alone."),
    not_yet("prefix", "", "The server's own cookie gets a prefix."),
    not_yet("preserve", "", "The server's own cookie wins."),
    not_yet("rewrite", "", "The server's own cookie gets another value."),
    not_yet("secure", "", "Sent over TLS alone."),
];
