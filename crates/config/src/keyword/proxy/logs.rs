//! Logging.

use super::draft::ChosenFormat;
use super::{ProxyContext, ProxyKeyword, not_yet, supported};
use crate::document::Line;
use crate::keyword::format;
use crate::keyword::log_line;
use crate::keyword::negation::Negation;
use crate::keyword::place::places::{ANY, FRONT_DECLARE, FRONT_DIRECTIVE, FRONT_SECTION, FRONT_WILL};
use crate::span::Spanned;
use crate::spec::LogFormatSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        ANY,
        "log",
        "{ global | <target> [<argument>...] <facility> [<level> [<minimum>]] }",
        "Where log lines go.",
        log,
    ),
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
    not_yet(FRONT_WILL, "log-steps", "<step>[,<step>...]", "When log lines are written."),
    not_yet(ANY, "unique-id-format", "<format>", "Format of the unique id of a request."),
    not_yet(ANY, "unique-id-header", "<name>", "Header that carries the unique id."),
    not_yet(FRONT_SECTION, "capture cookie", "<name> len <length>", "Logs a cookie."),
    not_yet(FRONT_SECTION, "capture request header", "<name> len <length>", "Logs a header of the request."),
    not_yet(FRONT_SECTION, "capture response header", "<name> len <length>", "Logs a header of the response."),
    not_yet(
        FRONT_DECLARE,
        "declare capture",
        "{ request | response } len <length>",
        "Reserves a place for something to be logged.",
    ),
    not_yet(ANY, "email-alert from", "<address>", "Sender of mails about servers."),
    not_yet(ANY, "email-alert level", "<level>", "Least severe message worth a mail."),
    not_yet(ANY, "email-alert mailers", "<section>", "Mail servers to use."),
    not_yet(ANY, "email-alert myhostname", "<name>", "Host name used towards the mail server."),
    not_yet(ANY, "email-alert to", "<address>", "Receiver of mails about servers."),
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
        Some(entry) => context.draft.logs.push(entry),
        None => context.draft.gaps.log = true,
    }
}

fn log_format(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(text) = format_text(context, line) {
        let (format, span) = (LogFormatSpec::Custom(text), line.whole());
        context.draft.format = Some(ChosenFormat { format, option: "log-format", span });
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

/// The one argument of a line that takes a format. What is wrong in the format itself is told when it is compiled.
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
    if let Some(expression) = format::expression(&word.text) {
        let place = context.holder.describe();
        context.report.not_yet(word.span, &format!("%[{expression}"), &place);
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
