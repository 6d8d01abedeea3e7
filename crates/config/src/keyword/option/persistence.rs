//! Options about the choice of a server.

use super::{OptionKeyword, boolean, supported, switch};
use crate::document::Line;
use crate::keyword::place::places::BACK;
use crate::keyword::proxy::ProxyContext;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    supported(switch(BACK), "allbackups", "", "Uses all backup servers at once, not the first alone.", allbackups),
    supported(switch(BACK), "persist", "", "Sends persistent clients to their server even when it is down.", persist),
    supported(
        switch(BACK),
        "prefer-last-server",
        "",
        "Stays with the last server where that is possible.",
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
