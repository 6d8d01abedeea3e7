//! Logging (section 3.1).

use super::{GlobalContext, GlobalKeyword, supported};
use crate::document::Line;
use crate::keyword::argument::only;
use crate::keyword::log_line;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "log",
        "<target> [len <length>] [format <format>] [sample <ranges>:<size>] [profile <name>] <facility> [<level> [<minimum>]]",
        "Log target of all proxies with \"log global\".",
        log,
    ),
    supported("log-tag", "<text>", "Program name in log lines, instead of \"haproxy\".", log_tag),
    supported("log-send-hostname", "[<name>]", "Host name in log lines.", log_send_hostname),
];

fn log(context: &mut GlobalContext<'_>, line: &Line) {
    let asker = log_line::Asker {
        global: true,
        place: "section 'global'",
        environment: context.around.environment,
        negated: context.negated,
    };
    match log_line::read(line, &asker, &mut context.report) {
        Some(log_line::Entry::Own(log)) => context.spec.logs.push(*log),
        Some(log_line::Entry::Clear) => context.spec.logs.clear(),
        Some(log_line::Entry::Global(_)) | None => {}
    }
}

fn log_tag(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(word) = only(line, "'log-tag' expects a tag for use in syslog.", &mut context.report) {
        context.spec.log_tag = Some(word.text.clone());
    }
}

fn log_send_hostname(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.log_send_hostname = Some(line.words.get(1).map(|word| word.text.clone()));
}
