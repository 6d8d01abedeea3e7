//! Server states saved before a reload (section 4.2, "load-server-state-from-file"). Must never open a file.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::place::places::BACK;
use crate::spec::StateSource;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        BACK,
        "load-server-state-from-file",
        "{ global | local | none }",
        "Loads the previous server states from a file.",
        source,
    ),
    supported(BACK, "server-state-file-name", "[ { use-backend-name | <file> } ]", "State file of this backend.", file),
];

fn source(context: &mut ProxyContext<'_>, line: &Line) {
    let state = &mut context.draft.spec.state;
    state.source = match line.text(1) {
        "global" => StateSource::Global,
        "local" => StateSource::Local,
        "none" => StateSource::None,
        other => {
            let message = format!("'load-server-state-from-file' expects 'global', 'local' or 'none'. Got '{other}'");
            return context.report.alert(line.span(1), message);
        }
    };
    if let Some(extra) = line.words.get(2) {
        let message = format!("'load-server-state-from-file' takes one argument; '{}' is passed over.", extra.text);
        context.report.diag(extra.span, message);
    }
}

fn file(context: &mut ProxyContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "server-state-file-name") {
        return;
    }
    context.draft.spec.state.file = match line.text(1) {
        "" | "use-backend-name" => None,
        file => Some(file.to_owned()),
    };
}
