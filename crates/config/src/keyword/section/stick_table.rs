//! Arguments of stick-table (section 11.1).

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("brates-factor", "<factor>", "Scale of byte rates."),
    not_yet("expire", "<time>", "Life of an entry that is not used."),
    not_yet("nopurge", "", "Never drops entries that still count."),
    not_yet("peers", "<section>", "Peers to share the table with."),
    not_yet("recv-only", "", "Takes updates and sends none."),
    not_yet("size", "<size>", "Number of entries."),
    not_yet("srvkey", "{ name | addr }", "How servers are stored."),
    not_yet("store", "<data>[,<data>...]", "Counters to keep."),
    not_yet("type", "{ ip | ipv6 | integer | string | binary } [len <length>]", "Kind of key."),
    not_yet("write-to", "<table>", "Table that gets every update too."),
];
