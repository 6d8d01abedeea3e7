//! Filters (section 9): the names behind \"filter\".

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(in crate::keyword) const TABLE: &[SectionKeyword] = &[
    not_yet("bwlim-in", "<name> [<argument>...]", "Limits bandwidth from the client."),
    not_yet("bwlim-out", "<name> [<argument>...]", "Limits bandwidth towards the client."),
    not_yet("cache", "<cache>", "Puts a cache among the filters."),
    not_yet("comp-req", "", "Puts compression of requests among the filters."),
    not_yet("comp-res", "", "Puts compression of responses among the filters."),
    not_yet("compression", "", "Puts compression among the filters."),
    not_yet("fcgi-app", "<section>", "Puts a FastCGI application among the filters."),
    not_yet("opentracing", "[id <id>] config <file>", "OpenTracing."),
    not_yet("ot", "[id <id>] config <file>", "OpenTracing, by its short name."),
    not_yet("otel", "[id <id>] config <file>", "OpenTelemetry."),
    not_yet("spoe", "[engine <name>] config <file>", "Asks external agents."),
    not_yet("trace", "[<argument>...]", "Developers' trace of the data."),
];
