//! A relay of log lines (section 12.6).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("backlog", "<number>", "Connections the kernel holds until they are accepted."),
    not_yet("bind", "<address> [<option>...]", "Address for log lines over TCP."),
    not_yet("dgram-bind", "<address> [<option>...]", "Address for log lines over UDP."),
    not_yet("log", "{ global | <target> ... }", "Where log lines go."),
    not_yet("maxconn", "<number>", "Connections at once."),
    not_yet("option assume-rfc6587-ntf", "", "Every line ends with a line feed."),
    not_yet("option dont-parse-log", "", "Relays lines as they are."),
    not_yet("option host", "{ replace | fill | keep | append }", "What happens to the host name in a line."),
    not_yet("timeout client", "<time>", "Silence of a sender."),
];
