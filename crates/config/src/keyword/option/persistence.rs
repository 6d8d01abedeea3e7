//! Options about the choice of a server.

use super::{OptionKeyword, boolean, supported, switch};
use crate::document::Line;
use crate::keyword::place::places::BACK;
use crate::keyword::proxy::ProxyContext;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    supported(switch(BACK), "allbackups", "", "Uses all backup servers at once, not only the first one.", allbackups),
    supported(switch(BACK), "persist", "", "Honours persistence even if the server is down.", persist),
    supported(
        switch(BACK),
        "prefer-last-server",
        "",
        "Prefers the server of the client's previous request.",
        prefer_last_server,
    ),
];

fn persist(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.persist = on);
}

fn prefer_last_server(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.limits.prefer_last_server = on);
}

fn allbackups(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.allbackups = on);
}
