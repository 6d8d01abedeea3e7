//! The statistics page.

use super::{ProxyKeyword, not_yet};
use crate::keyword::place::places::{ANY, NO_DEFAULTS};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    not_yet(NO_DEFAULTS, "stats admin", "{ if | unless } <condition>", "Who may change servers on the page."),
    not_yet(ANY, "stats auth", "<user>:<password>", "Who may see the page."),
    not_yet(ANY, "stats enable", "", "Shows the page."),
    not_yet(ANY, "stats hide-version", "", "Does not tell the version."),
    not_yet(
        NO_DEFAULTS,
        "stats http-request",
        "<action> [{ if | unless } <condition>]",
        "Rules on requests for the page.",
    ),
    not_yet(ANY, "stats realm", "<text>", "Realm of the authentication."),
    not_yet(ANY, "stats refresh", "<time>", "How often the page loads itself again."),
    not_yet(ANY, "stats scope", "{ <proxy> | \".\" }", "Proxies to show."),
    not_yet(ANY, "stats show-desc", "[<text>]", "Shows a description."),
    not_yet(ANY, "stats show-legends", "", "Shows more details when pointed at."),
    not_yet(ANY, "stats show-modules", "", "Shows counters of modules."),
    not_yet(ANY, "stats show-node", "[<name>]", "Shows the node's name."),
    not_yet(ANY, "stats show-version", "", "Tells the version."),
    not_yet(ANY, "stats uri", "<prefix>", "Where the page is."),
];
