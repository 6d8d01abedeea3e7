//! Answers of the proxy itself.

use super::{ProxyContext, ProxyKeyword, not_yet, removed, supported};
use crate::diagnostic::Severity;
use crate::document::Line;
use crate::keyword::argument::{leading_number, only};
use crate::keyword::error_page;
use crate::keyword::place::places::{ANY, FRONT, FRONT_SECTION};
use crate::spec::ErrorFileSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(ANY, "errorfile", "<status> <file>", "File that holds the whole answer for a status.", errorfile),
    supported(FRONT, "monitor-uri", "<uri>", "URI that is answered with 200 on the spot.", monitor_uri),
    not_yet(FRONT_SECTION, "monitor fail", "{ if | unless } <condition>", "When monitor-uri answers 503 instead."),
    not_yet(ANY, "errorfiles", "<section> [<status>...]", "Takes answers from an http-errors section."),
    not_yet(ANY, "errorloc", "<status> <url>", "Redirects (302) instead of answering with a status."),
    not_yet(ANY, "errorloc302", "<status> <url>", "Redirects (302) instead of answering with a status."),
    not_yet(ANY, "errorloc303", "<status> <url>", "Redirects (303) instead of answering with a status."),
    not_yet(ANY, "http-error", "status <status> [<argument>...]", "Answer for a status, built from arguments."),
    removed(
        "monitor-net",
        "<network>",
        "Clients answered as a monitor.",
        "'monitor-net' doesn't exist anymore. Please use 'http-request return status 200 if { src %1 }' instead.",
    ),
];

/// The statuses that a proxy may have to answer itself.
const STATUSES: &[u16] =
    &[200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502, 503, 504];

fn errorfile(context: &mut ProxyContext<'_>, line: &Line) {
    if line.words.len() < 3 {
        context.report.alert(line.span(line.words.len()), "errorfile : expects <status_code> and <file> as arguments.");
        return;
    }
    if let Some(extra) = line.words.get(3) {
        context.report.alert(extra.span, "errorfile : expects exactly two arguments.");
        return;
    }
    let (number, _) = leading_number(line.text(1));
    let Some(&status) = STATUSES.iter().find(|&&status| i64::from(status) == number) else {
        context.report.alert(line.span(1), format!("errorfile : status code '{number}' not handled."));
        return;
    };
    let path = line.text(2).to_owned();
    match error_page::read(&path, context.around.options, context.around.bufsize) {
        Ok(content) => {
            context.draft.spec.error_files.retain(|file| file.status != status);
            context.draft.spec.error_files.push(ErrorFileSpec { status, path, content });
        }
        Err(problem) => {
            if let Some(warning) = problem.warning {
                context.report.late(Severity::Warning, line.span(2), warning);
            }
            context.report.alert(line.span(2), format!("errorfile : {}", problem.message));
        }
    }
}

fn monitor_uri(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(word) = only(line, "'monitor-uri' expects an URI.", &mut context.report) {
        context.draft.spec.monitor_uri = Some(word.text.clone());
    }
}
