//! Names, modes, limits.

use super::{ProxyContext, ProxyKeyword, group, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::argument::{lenient, limit, only};
use crate::keyword::place::Section;
use crate::keyword::place::places::{ANY, BACK_FULLCONN, FRONT, FRONT_MAXCONN, NO_DEFAULTS};
use crate::keyword::{guid_fault, option};
use crate::span::Spanned;
use crate::spec::Mode;
use crate::suggest;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        ANY,
        "mode",
        "{ tcp | http | log | spop | haterm }",
        "Protocol of the proxy. `haterm`: the frontend is a test server.",
        mode,
    ),
    supported(NO_DEFAULTS, "id", "<number>", "Numeric ID of the proxy, instead of its position.", id),
    supported(NO_DEFAULTS, "description", "<text>", "Text shown on the statistics page.", description),
    supported(ANY, "disabled", "", "Disables the proxy; its addresses are not bound.", disabled),
    supported(ANY, "enabled", "", "Undoes an inherited \"disabled\".", enabled),
    supported(
        FRONT_MAXCONN,
        "maxconn",
        "<number>",
        "Maximum number of concurrent connections of the frontend.",
        maxconn,
    ),
    supported(
        FRONT,
        "backlog",
        "<number>",
        "Maximum number of connections waiting to be accepted in the kernel.",
        backlog,
    ),
    supported(
        BACK_FULLCONN,
        "fullconn",
        "<number>",
        "Load of the backend at which its servers reach their maxconn.",
        fullconn,
    ),
    group(ANY, "option", "<name> [<argument>...]", "Enables an option; \"no option\" disables it.", option),
    supported(NO_DEFAULTS, "guid", "<text>", "Identifier that stays the same across reloads.", guid),
];

fn mode(context: &mut ProxyContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "mode") {
        return;
    }
    context.draft.gaps.mode = false;
    context.draft.says_mode = true;
    context.draft.haterm = false;
    let text = line.text(1);
    match text {
        "tcp" => context.draft.spec.mode = Mode::Tcp,
        "http" => context.draft.spec.mode = Mode::Http,
        "log" if context.holder.section == Section::Frontend => {
            context.draft.gaps.mode = true;
            let message = "mode syslog is only applicable on proxies with backend capability.";
            context.report.alert(line.span(1), message);
        }
        "log" => context.draft.spec.mode = Mode::Log,
        "spop" if context.holder.section == Section::Frontend => {
            context.draft.gaps.mode = true;
            let message = "mode spop is only applicable on proxies with backend capability.";
            context.report.alert(line.span(1), message);
        }
        "spop" => context.draft.spec.mode = Mode::Spop,
        "haterm" if context.holder.section == Section::Backend => {
            context.draft.gaps.mode = true;
            let message = "mode haterm is only applicable on proxies with frontend capability.";
            context.report.alert(line.span(1), message);
        }
        "haterm" => {
            context.draft.spec.mode = Mode::Http;
            context.draft.haterm = true;
        }
        "health" => context.report.alert(
            line.span(1),
            "'mode health' doesn't exist anymore. Please use 'http-request return status 200' instead.",
        ),
        _ => {
            let known = suggest::nearest(text, ["tcp", "http", "log", "spop", "haterm"]);
            let mut diagnostic = Diagnostic::alert(line.span(1), format!("unknown proxy mode '{text}'."));
            diagnostic.hint = known.map(|known| format!("write 'mode {known}'"));
            context.report.push(diagnostic);
        }
    }
}

fn id(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = only(line, "'id' expects an integer argument.", &mut context.report) else { return };
    match limit(lenient(word, "id", &mut context.report)) {
        Some(id) => context.draft.id = Some(Spanned::new(id, word.span)),
        None => context.report.tight(word.span, "custom id has to be > 0."),
    }
}

fn description(context: &mut ProxyContext<'_>, line: &Line) {
    if line.words.len() < 2 {
        context.report.tight(line.span(1), "'description' expects a string argument.");
        return;
    }
    let words: Vec<&str> = line.arguments().iter().map(|word| word.text.as_str()).collect();
    context.draft.spec.description = Some(words.join(" "));
}

fn guid(context: &mut ProxyContext<'_>, line: &Line) {
    match line.words.get(1) {
        None => context.report.alert(line.span(1), "'guid' : expects an argument"),
        Some(word) => match guid_fault(&word.text) {
            Some(error) => context.report.alert(word.span, format!("'guid': {error}")),
            None => context.draft.spec.guid = Some(Spanned::new(word.text.clone(), word.span)),
        },
    }
}

fn disabled(context: &mut ProxyContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, "disabled") {
        context.draft.spec.disabled = true;
    }
}

fn enabled(context: &mut ProxyContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, "enabled") {
        context.draft.spec.disabled = false;
    }
}

/// Parses the only argument, a number of connections; 0 means no limit.
fn connections(context: &mut ProxyContext<'_>, line: &Line) -> Option<Option<u32>> {
    let name = line.keyword();
    let word = only(line, &format!("'{name}' expects an integer argument."), &mut context.report)?;
    Some(limit(lenient(word, name, &mut context.report)))
}

fn maxconn(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(value) = connections(context, line) {
        context.draft.spec.maxconn = value;
    }
}

fn backlog(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(value) = connections(context, line) {
        context.draft.spec.backlog = value;
    }
}

fn fullconn(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(value) = connections(context, line) {
        context.draft.spec.fullconn = value;
    }
}

/// `option …`: the tables are in [`crate::keyword::option`].
fn option(context: &mut ProxyContext<'_>, line: &Line) {
    option::read(context, line);
}
