//! Arguments of stick-table (section 11.1), for the reference manual: they are parsed in
//! `keyword/stick_table.rs`.

use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("brates-factor", "<factor>", "Scale of byte rates.", argument),
    supported("expire", "<time>", "Life of an entry that is not used.", argument),
    supported("nopurge", "", "Never drops entries that still count.", argument),
    supported("peers", "<section>", "Peers to share the table with.", argument),
    supported("recv-only", "", "Takes updates and sends none.", argument),
    supported("size", "<size>", "Number of entries.", argument),
    supported("srvkey", "{ name | addr }", "How servers are stored.", argument),
    supported("store", "<data>[,<data>...]", "Counters to keep.", argument),
    supported("type", "{ ip | ipv6 | integer | string | binary } [len <length>]", "Kind of key.", argument),
    supported("write-to", "<table>", "Table that gets every update too.", argument),
];

/// They have no section of their own.
fn argument(_: &mut SectionContext<'_>, _: &Line) {}
