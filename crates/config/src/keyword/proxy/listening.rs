//! Addresses and servers.

use super::{ProxyContext, ProxyKeyword, not_yet, supported};
use crate::document::Line;
use crate::keyword::place::places::{BACK, BACK_ONLY_SECTION, DEFAULT_SERVER, FRONT_SECTION, SERVER};
use crate::keyword::{bind, server};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(FRONT_SECTION, "bind", "<address>[,<address>...] [<option>...]", "Addresses to listen on.", bind),
    supported(SERVER, "server", "<name> <address>[:<port>] [<option>...]", "A server.", server),
    supported(
        DEFAULT_SERVER,
        "default-server",
        "<option>...",
        "Options of the servers declared after it.",
        default_server,
    ),
    not_yet(
        SERVER,
        "server-template",
        "<prefix> <count or range> <address>[:<port>] [<option>...]",
        "Many servers from one line.",
    ),
    not_yet(
        BACK,
        "source",
        "<address>[:<port>] [usesrc { <address> | client | clientip | hdr_ip(<name>[,<position>]) }] [interface <name>]",
        "Address to connect to servers from.",
    ),
    not_yet(BACK_ONLY_SECTION, "be-unpublished", "", "Start with the backend taken out of selection."),
];

fn bind(context: &mut ProxyContext<'_>, line: &Line) {
    bind::read(context, line);
}

fn server(context: &mut ProxyContext<'_>, line: &Line) {
    server::read(context, line);
}

fn default_server(context: &mut ProxyContext<'_>, line: &Line) {
    server::read_defaults(context, line);
}
