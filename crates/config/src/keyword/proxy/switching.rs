//! Choice of a backend.

use super::{ProxyContext, ProxyKeyword, condition_line, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::argument::only;
use crate::keyword::place::places::{FRONT, FRONT_ONLY_SECTION, FRONT_SECTION};
use crate::span::Spanned;
use crate::suggest::nearest;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(FRONT, "default_backend", "<backend>", "Backend used when no use_backend rule matches.", default_backend),
    supported(
        FRONT_SECTION,
        "use_backend",
        "<backend> [{ if | unless } <condition>]",
        "Selects a backend for requests that match a condition.",
        use_backend,
    ),
    supported(
        FRONT_ONLY_SECTION,
        "force-be-switch",
        "{ if | unless } <condition>",
        "Allows switching to a disabled or unpublished backend.",
        force_switching,
    ),
];

fn default_backend(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(word) = only(line, "'default_backend' expects a backend name.", &mut context.report) {
        context.draft.spec.default_backend = Some(Spanned::new(word.text.clone(), word.span));
    }
}

fn use_backend(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), "'use_backend' expects a backend name.");
        return;
    };
    if !matches!(line.text(2), "" | "if" | "unless") {
        let message =
            format!("unexpected keyword '{}' after switching rule, only 'if' and 'unless' are allowed.", line.text(2));
        let mut diagnostic = Diagnostic::alert(line.span(2), message);
        diagnostic.hint = nearest(line.text(2), ["if", "unless"]).map(|known| format!("did you mean '{known}'?"));
        context.report.push(diagnostic);
        return;
    }
    // A name with a format is looked up for each request.
    if !word.text.contains('%') {
        context.draft.targets.push(Spanned::new(word.text.clone(), word.span));
    }
    let line = context.around.rule_line(line, 1);
    context.draft.spec.rules.switching.push(line);
}

fn force_switching(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(line) = condition_line(context, line, 1, "force-be-switch") {
        context.draft.spec.rules.force_switching.push(line);
    }
}
