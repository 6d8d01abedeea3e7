//! Arguments of stick-table (section 11.1), for the reference manual: they are parsed in
//! `keyword/stick_table.rs`.

use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("brates-factor", "<factor>", "Factor of byte rates.", argument),
    supported("expire", "<time>", "Lifetime of an unused entry.", argument),
    supported("nopurge", "", "Disables the purge of entries when the table is full.", argument),
    supported("peers", "<section>", "Peers to share the table with.", argument),
    supported("recv-only", "", "Receives updates and sends none.", argument),
    supported("size", "<size>", "Number of entries.", argument),
    supported("srvkey", "{ name | addr }", "How servers are stored.", argument),
    supported("store", "<data>[,<data>...]", "Data to store.", argument),
    supported("type", "{ ip | ipv6 | integer | string | binary } [len <length>]", "Type of key.", argument),
    supported("write-to", "<table>", "Table to which updates are written as well.", argument),
];

/// They have no section of their own.
fn argument(_: &mut SectionContext<'_>, _: &Line) {}
