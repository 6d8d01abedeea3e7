//! The internal HTTP client (section 3.4).

use super::{GlobalKeyword, not_yet};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    not_yet("httpclient.resolvers.disabled", "{ on | off }", "Never resolve names for the internal client."),
    not_yet("httpclient.resolvers.id", "<name>", "Resolvers section for the internal client."),
    not_yet("httpclient.resolvers.prefer", "{ ipv4 | ipv6 }", "Preferred family of the internal client."),
    not_yet("httpclient.retries", "<number>", "Retries of the internal client."),
    not_yet("httpclient.ssl.ca-file", "<file>", "CA file of the internal client."),
    not_yet("httpclient.ssl.verify", "{ none | required }", "Whether the internal client verifies certificates."),
    not_yet("httpclient.timeout.connect", "<time>", "Connection timeout of the internal client."),
];
