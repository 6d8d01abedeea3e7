//! Keywords of earlier versions.

use super::{ProxyKeyword, removed};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    removed(
        "appsession",
        "<cookie> [<argument>...]",
        "Persistence by application cookies; replaced by stick tables.",
        "'appsession' is not supported anymore since HAProxy 1.6.",
    ),
    removed("bind-process", "<set>", "Processes that serve a proxy.", "'bind-process' is not supported anymore."),
    removed(
        "block",
        "{ if | unless } <condition>",
        "Refuses requests.",
        "The 'block' directive is not supported anymore since HAProxy 2.1. Use 'http-request deny' which uses the exact same syntax.",
    ),
    removed(
        "cliexp",
        "<search> <replace>",
        "Rewrites requests.",
        "The 'cliexp' directive is not supported anymore since HAProxy 2.1. Use 'http-request replace-path', 'http-request replace-uri' or 'http-request replace-header' instead.",
    ),
    removed(
        "dispatch",
        "<address>:<port>",
        "A single unnamed server.",
        "support for 'dispatch' was removed in version 3.5. The modern way to do the same is to create a server with the same address, and possibly to assign any extra server a weight of zero if any:\n    server dispatch %1",
    ),
    removed(
        "grace",
        "<time>",
        "Delay of a stop, for one proxy.",
        "the 'grace' keyword is not supported any more since HAProxy version 2.5.",
    ),
    removed(
        "redisp",
        "",
        "Older name of option redispatch.",
        "keyword 'redisp' directive is not supported anymore since HAProxy 2.1. Use 'option redispatch'.",
    ),
    removed(
        "redispatch",
        "",
        "Older name of option redispatch.",
        "keyword 'redispatch' directive is not supported anymore since HAProxy 2.1. Use 'option redispatch'.",
    ),
    removed(
        "reqadd",
        "<text>",
        "Adds a header.",
        "The 'reqadd' directive is not supported anymore since HAProxy 2.1. Use 'http-request add-header' instead.",
    ),
    removed(
        "reqallow",
        "<search>",
        "Allows requests.",
        "The 'reqallow' directive is not supported anymore since HAProxy 2.1. Use 'http-request allow' instead.",
    ),
    removed(
        "reqdel",
        "<search>",
        "Deletes headers.",
        "The 'reqdel' directive is not supported anymore since HAProxy 2.1. Use 'http-request del-header' instead.",
    ),
    removed(
        "reqdeny",
        "<search>",
        "Refuses requests.",
        "The 'reqdeny' not supported anymore since HAProxy 2.1. Use 'http-request deny' instead.",
    ),
    removed(
        "reqiallow",
        "<search>",
        "Allows requests.",
        "The 'reqiallow' directive is not supported anymore since HAProxy 2.1. Use 'http-request allow' instead.",
    ),
    removed(
        "reqidel",
        "<search>",
        "Deletes headers.",
        "The 'reqidel' directive is not supported anymore since HAProxy 2.1. Use 'http-request del-header' instead.",
    ),
    removed(
        "reqideny",
        "<search>",
        "Refuses requests.",
        "The 'reqideny' directive is not supported anymore since HAProxy 2.1. Use 'http-request deny' instead.",
    ),
    removed(
        "reqipass",
        "<search>",
        "Lets requests pass.",
        "The 'reqipass' directive is not supported anymore since HAProxy 2.1.",
    ),
    removed(
        "reqirep",
        "<search> <replace>",
        "Rewrites requests.",
        "The 'reqirep' directive is not supported anymore since HAProxy 2.1. Use 'http-request replace-header' instead.",
    ),
    removed(
        "reqitarpit",
        "<search>",
        "Tarpits requests.",
        "The 'reqitarpit' directive is not supported anymore since HAProxy 2.1. Use 'http-request tarpit' instead.",
    ),
    removed("reqpass", "<search>", "Lets requests pass.", "The 'reqpass' not supported anymore since HAProxy 2.1."),
    removed(
        "reqrep",
        "<search> <replace>",
        "Rewrites requests.",
        "The 'reqrep' directive is not supported anymore since HAProxy 2.1. Use 'http-request replace-path', 'http-request replace-uri' or 'http-request replace-header' instead.",
    ),
    removed(
        "reqtarpit",
        "<search>",
        "Tarpits requests.",
        "The 'reqtarpit' directive is not supported anymore since HAProxy 2.1. Use 'http-request tarpit' instead.",
    ),
    removed(
        "rspadd",
        "<text>",
        "Adds a header.",
        "The 'rspadd' directive is not supported anymore since HAProxy 2.1. Use 'http-response add-header' instead.",
    ),
    removed(
        "rspdel",
        "<search>",
        "Deletes headers.",
        "The 'rspdel' directive is not supported anymore since HAProxy 2.1. Use 'http-response del-header' .",
    ),
    removed(
        "rspdeny",
        "<search>",
        "Refuses responses.",
        "The 'rspdeny' directive is not supported anymore since HAProxy 2.1. Use 'http-response deny' instead.",
    ),
    removed(
        "rspidel",
        "<search>",
        "Deletes headers.",
        "The 'rspidel' directive is not supported anymore since HAProxy 2.1. Use 'http-response del-header' instead.",
    ),
    removed(
        "rspideny",
        "<search>",
        "Refuses responses.",
        "The 'rspideny' directive is not supported anymore since HAProxy 2.1. Use 'http-response deny' instead.",
    ),
    removed(
        "rspirep",
        "<search> <replace>",
        "Rewrites responses.",
        "The 'rspirep' directive is not supported anymore since HAProxy 2.1. Use 'http-response replace-header' instead.",
    ),
    removed(
        "rsprep",
        "<search> <replace>",
        "Rewrites responses.",
        "The 'rsprep' directive is not supported anymore since HAProxy 2.1. Use 'http-response replace-header' instead.",
    ),
    removed(
        "srvexp",
        "<search> <replace>",
        "Rewrites responses.",
        "The 'srvexp' directive is not supported anymore since HAProxy 2.1. Use 'http-response replace-header' instead.",
    ),
    removed(
        "transparent",
        "",
        "Connects to the client's original destination.",
        "support for 'transparent' was removed in version 3.5. The modern way to do the same is to create a server with address 0.0.0.0.",
    ),
    removed("usesrc", "", "Part of a source line.", "'usesrc' only allowed after a 'source' statement."),
];
