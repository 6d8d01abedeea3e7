//! Logging.

use super::draft::ChosenFormat;
use super::{ProxyContext, ProxyKeyword, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::log_line;
use crate::keyword::negation::Negation;
use crate::keyword::place::places::{ANY, FRONT_DIRECTIVE, FRONT_WILL};
use crate::span::Spanned;
use crate::spec::{LogFormatSpec, LogStep, LogSteps};
use crate::suggest::nearest;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(ANY, "log", "{ global | <target> [<argument>...] <facility> [<level> [<minimum>]] }", "Log target.", log),
    supported(ANY, "log-tag", "<text>", "Program name in this proxy's log lines.", log_tag),
    supported(FRONT_DIRECTIVE, "log-format", "<format>", "Own log format.", log_format),
    supported(FRONT_DIRECTIVE, "log-format-sd", "<format>", "Structured data of RFC 5424 log lines.", log_format_sd),
    supported(
        FRONT_DIRECTIVE,
        "error-log-format",
        "<format>",
        "Log format of connections that failed early.",
        error_log_format,
    ),
    supported(FRONT_WILL, "log-steps", "{ all | <step>[,<step>...] }", "When log lines are written.", log_steps),
    supported(ANY, "unique-id-format", "<format>", "Format of the unique id of a request.", unique_id_format),
    supported(ANY, "unique-id-header", "<name>", "Header that carries the unique id.", unique_id_header),
];

fn log(context: &mut ProxyContext<'_>, line: &Line) {
    if context.negation == Negation::Default && line.words.len() < 2 {
        context.report.alert(line.span(1), "log : expects <address> and <facility> or global as arguments");
        return;
    }
    let place = context.holder.describe();
    let asker = log_line::Asker {
        global: false,
        place: &place,
        environment: context.around.environment,
        negated: context.negation == Negation::No,
    };
    match log_line::read(line, &asker, &mut context.report) {
        Some(log_line::Entry::Clear) => context.draft.logs.clear(),
        // A repeated `log global`, inherited or not, adds the targets added to the section 'global' since. Other
        // targets are used once for each line that names them.
        Some(entry) if entry.is_global() => match context.draft.logs.iter_mut().find(|known| known.is_global()) {
            Some(known) => *known = entry,
            None => context.draft.logs.push(entry),
        },
        Some(entry) => context.draft.logs.push(entry),
        None => context.draft.gaps.log = true,
    }
}

fn log_format(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(text) = format_text(context, line) {
        let (format, span) = (LogFormatSpec::Custom(text), line.whole());
        context.choose_format(ChosenFormat { format, option: "log-format", span });
    }
}

fn log_format_sd(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(text) = format_text(context, line) {
        context.draft.spec.log_lines.structured_data = Some(text);
    }
}

fn error_log_format(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(text) = format_text(context, line) {
        context.draft.spec.log_lines.error = Some(text);
    }
}

fn log_steps(context: &mut ProxyContext<'_>, line: &Line) {
    // Without an argument it has no effect.
    let Some(word) = line.words.get(1) else { return };
    if word.text == "all" {
        context.draft.spec.log_lines.steps = Some(LogSteps::ALL);
        return;
    }
    // Every line adds to the previous ones.
    let mut steps = context.draft.spec.log_lines.steps.unwrap_or_default();
    // A trailing comma is accepted.
    for name in word.text.strip_suffix(',').unwrap_or(&word.text).split(',') {
        let Some(step) = LogStep::named(name).filter(|step| step.is_of_streams()) else {
            let known: Vec<&str> =
                LogStep::NAMES.iter().filter(|(_, step)| step.is_of_streams()).map(|(name, _)| *name).collect();
            let expected = known.join(", ");
            let message = format!("invalid log step name ({name}). Expected values are: {expected}");
            let mut diagnostic = Diagnostic::alert(word.span, message);
            diagnostic.hint = nearest(name, known).map(|known| format!("write '{known}'"));
            context.report.push(diagnostic);
            return;
        };
        steps.add(step);
    }
    context.draft.spec.log_lines.steps = Some(steps);
}

fn unique_id_format(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(text) = format_text(context, line) {
        context.draft.spec.log_lines.unique_id = Some(text);
    }
}

fn unique_id_header(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), "unique-id-header expects an argument.");
        return;
    };
    // HAProxy accepts any text; a field of that name would make every request invalid.
    if !word.text.bytes().all(is_token) {
        context.report.alert(word.span, format!("unique-id-header : '{}' is no name of a header field.", word.text));
        return;
    }
    context.draft.spec.log_lines.unique_id_header = Some(word.text.clone());
}

/// Whether a byte is allowed in the name of a field (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the only argument of a line that takes a format. Errors in the format itself are reported when it is
/// compiled.
fn format_text(context: &mut ProxyContext<'_>, line: &Line) -> Option<Spanned<String>> {
    let name = line.keyword();
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), format!("{name} expects an argument."));
        return None;
    };
    if let Some(extra) = line.words.get(2) {
        let message = format!("{name} expects only one argument, don't forget to escape spaces!");
        context.report.alert(extra.span, message);
        return None;
    }
    Some(Spanned::new(word.text.clone(), word.span))
}

fn log_tag(context: &mut ProxyContext<'_>, line: &Line) {
    match line.words.get(1) {
        Some(word) => context.draft.spec.log_tag = Some(word.text.clone()),
        None => context.report.alert(line.span(1), "'log-tag' expects a tag for use in syslog."),
    }
}
