//! Options of a listening address that is a socket of the runtime API (section 5.1). HAProxy also accepts them on lines
//! other than `stats socket`, without effect.

use super::{BindContext, BindOption, supported};
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::spec::{RuntimeLevel, SeverityOutput};

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::One, "level", "{ user | operator | admin }", "Permission level on the runtime API.", level),
    supported(
        Arity::One,
        "expose-fd",
        "{ listeners }",
        "Passes listening sockets to a new process through this socket.",
        expose_fd,
    ),
    supported(
        Arity::One,
        "severity-output",
        "{ none | number | string }",
        "Format of severities in the output of the runtime API.",
        severity_output,
    ),
];

fn level(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'level' : missing level");
        return;
    };
    match RuntimeLevel::from_name(&word.text) {
        Some(level) => context.draft.access.level = Some(level),
        None => context
            .error(word.span, format!("'level' only supports 'user', 'operator', and 'admin' (got '{}')", word.text)),
    }
}

fn expose_fd(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        None => context.error(keyword.span, "'expose-fd' : missing fd type"),
        Some(word) if word.text == "listeners" => context.draft.access.expose_listeners = true,
        Some(word) => {
            context.error(word.span, format!("'expose-fd' only supports 'listeners' (got '{}')", word.text));
        }
    }
}

fn severity_output(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let text = value.map_or("", |word| &word.text);
    match SeverityOutput::from_name(text) {
        Some(output) => context.draft.access.severity_output = output,
        None => context.error(
            value.map_or(keyword.span, |word| word.span),
            format!("'severity-output' only supports 'none', 'number', and 'string' (got '{text}')"),
        ),
    }
}
