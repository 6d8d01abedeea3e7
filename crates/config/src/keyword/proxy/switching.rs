//! Choice of a backend.

use super::{ProxyContext, ProxyKeyword, not_yet, supported};
use crate::document::Line;
use crate::keyword::argument::only;
use crate::keyword::place::places::{FRONT, FRONT_ONLY_SECTION, FRONT_SECTION};
use crate::span::Spanned;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        FRONT,
        "default_backend",
        "<backend>",
        "Backend of requests that no rule sent elsewhere.",
        default_backend,
    ),
    supported(
        FRONT_SECTION,
        "use_backend",
        "<backend> [{ if | unless } <condition>]",
        "Sends requests to a backend.",
        use_backend,
    ),
    not_yet(
        FRONT_ONLY_SECTION,
        "force-be-switch",
        "{ if | unless } <condition>",
        "Allows choosing a backend that is not published.",
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
    let target = Spanned::new(word.text.clone(), word.span);
    let dynamic = word.text.contains("%[");
    let condition = match line.text(2) {
        "" => None,
        "if" | "unless" => Some(line.text(2)),
        other => {
            context.report.alert(
                line.span(2),
                format!("unexpected keyword '{other}' after switching rule, only 'if' and 'unless' are allowed."),
            );
            return;
        }
    };
    if !dynamic {
        context.draft.targets.push(target.clone());
    }
    let what = match (dynamic, condition) {
        (true, _) => "use_backend %[...]".to_owned(),
        (false, Some(condition)) => format!("use_backend ... {condition}"),
        (false, None) => {
            context.draft.spec.use_backend.push(target);
            return;
        }
    };
    let place = context.holder.describe();
    context.report.not_yet(if dynamic { word.span } else { line.span(2) }, &what, &place);
}
