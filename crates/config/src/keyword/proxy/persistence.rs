//! Persistence and stick tables.

use super::{ProxyKeyword, not_yet};
use crate::keyword::place::places::{ANY, BACK, BACK_SECTION, STICK_TABLE};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    not_yet(BACK, "cookie", "<name> [<option>...]", "Persistence by a cookie."),
    not_yet(BACK, "dynamic-cookie-key", "<key>", "Secret of dynamic cookies."),
    not_yet(ANY, "persist rdp-cookie", "[(<name>)]", "Persistence by the cookie of remote desktops."),
    not_yet(
        BACK_SECTION,
        "force-persist",
        "{ if | unless } <condition>",
        "Keeps persistence to servers that are down.",
    ),
    not_yet(BACK_SECTION, "ignore-persist", "{ if | unless } <condition>", "Skips persistence."),
    not_yet(
        BACK_SECTION,
        "stick match",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Persistence from a table.",
    ),
    not_yet(
        BACK_SECTION,
        "stick on",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Learns and applies persistence.",
    ),
    not_yet(
        BACK_SECTION,
        "stick store-request",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Learns persistence from requests.",
    ),
    not_yet(
        BACK_SECTION,
        "stick store-response",
        "<expression> [table <table>] [{ if | unless } <condition>]",
        "Learns persistence from responses.",
    ),
    not_yet(
        STICK_TABLE,
        "stick-table",
        "type <type> size <size> [<option>...]",
        "Table that rules keep counters and servers in.",
    ),
];
