//! Instances that share stick tables (section 11.2).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("bind", "<address> [<option>...]", "This instance's address."),
    not_yet("default-bind", "<option>...", "Options of the addresses."),
    not_yet("default-server", "<option>...", "Options of the peers."),
    not_yet("disabled", "", "The section is not used."),
    not_yet("enabled", "", "Undoes \"disabled\"."),
    not_yet("log", "{ global | <target> ... }", "Where log lines go."),
    not_yet("peer", "<name> [<address>] [<option>...]", "A peer."),
    not_yet("server", "<name> [<address>] [<option>...]", "A peer, with the options of a server."),
    not_yet("shards", "<number>", "Number of parts that keys are spread over."),
    not_yet("table", "<name> type <type> size <size> [<option>...]", "A shared stick table."),
];
