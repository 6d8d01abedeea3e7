//! Arguments of cookie (section 4.2), for the reference: they are parsed in `keyword/proxy/cookie.rs`.

use super::{SectionKeyword, supported};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("attr", "<value>", "Attribute to add.", |_, _| {}),
    supported("domain", "<domain>", "Domain of the cookie.", |_, _| {}),
    supported("dynamic", "", "Values computed from addresses.", |_, _| {}),
    supported("httponly", "", "Scripts cannot read it.", |_, _| {}),
    supported("indirect", "", "Servers do not see it.", |_, _| {}),
    supported("insert", "", "The proxy sets it.", |_, _| {}),
    supported("maxidle", "<time>", "Life of a cookie that is not used.", |_, _| {}),
    supported("maxlife", "<time>", "Life of a cookie.", |_, _| {}),
    supported("nocache", "", "Responses that set it are not cached.", |_, _| {}),
    supported("postonly", "", "Set on answers to POST alone.", |_, _| {}),
    supported("prefix", "", "The server's own cookie gets a prefix.", |_, _| {}),
    supported("preserve", "", "The server's own cookie wins.", |_, _| {}),
    supported("rewrite", "", "The server's own cookie gets another value.", |_, _| {}),
    supported("secure", "", "Sent over TLS alone.", |_, _| {}),
];
