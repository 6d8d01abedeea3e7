//! Logging.

use super::{ProxyContext, ProxyKeyword, not_yet, supported};
use crate::document::Line;
use crate::keyword::log_line;
use crate::keyword::negation::Negation;
use crate::keyword::place::places::{ANY, FRONT_DECLARE, FRONT_DIRECTIVE, FRONT_SECTION, FRONT_WILL};

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
    not_yet(FRONT_DIRECTIVE, "log-format", "<format>", "Own log format."),
    not_yet(FRONT_DIRECTIVE, "log-format-sd", "<format>", "Structured data of RFC 5424 log lines."),
    not_yet(FRONT_DIRECTIVE, "error-log-format", "<format>", "Log format of connections that failed early."),
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

fn log_tag(context: &mut ProxyContext<'_>, line: &Line) {
    match line.words.get(1) {
        Some(word) => context.draft.spec.log_tag = Some(word.text.clone()),
        None => context.report.alert(line.span(1), "'log-tag' expects a tag for use in syslog."),
    }
}
