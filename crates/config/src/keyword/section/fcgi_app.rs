//! A FastCGI application (section 10.1).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("acl", "<name> <expression> [<flag>...] [<value>...]", "Names a condition."),
    not_yet("docroot", "<path>", "Folder of scripts on the application's host."),
    not_yet("hide-header", "<name>", "Keeps a request header from the application."),
    not_yet("index", "<script>", "Script behind a URI that ends with a slash."),
    not_yet("log-stderr", "{ global | <target> ... }", "Where the application's standard error goes."),
    not_yet("option get-values", "", "Asks the application for its limits."),
    not_yet("option keep-conn", "", "Keeps connections to the application."),
    not_yet("option max-reqs", "<number>", "Requests at once on a connection."),
    not_yet("option mpxs-conns", "", "Several requests at once on a connection."),
    not_yet("pass-header", "<name>", "Passes a request header to the application."),
    not_yet("path-info", "<regex>", "What is script and what is path info."),
    not_yet("set-param", "<name> <format>", "Sets a parameter."),
    not_yet("unset-param", "<name>", "Removes a parameter."),
];
