//! A ring of log lines, read by servers (section 12.5).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("backing-file", "<path>", "File behind the ring."),
    not_yet("description", "<text>", "Text shown about the ring."),
    not_yet("format", "<format>", "Format of the lines."),
    not_yet("maxlen", "<length>", "Longest line."),
    not_yet("server", "<name> <address> [<option>...]", "A server that gets the lines."),
    not_yet("size", "<size>", "Size of the ring."),
    not_yet("timeout connect", "<time>", "Connection to the server."),
    not_yet("timeout server", "<time>", "Silence of the server."),
];
