//! Answers of the proxy itself.

use super::draft::Pages;
use super::rules::{Stage, warn_of_order};
use super::{ProxyContext, ProxyKeyword, condition_line, removed, supported};
use crate::document::Line;
use crate::keyword::argument::{leading_number, only};
use crate::keyword::error_page;
use crate::keyword::place::places::{ANY, FRONT, FRONT_SECTION};
use crate::span::Spanned;
use crate::spec::{ErrorAnswerSpec, ErrorFileSpec};
use crate::text;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(ANY, "errorfile", "<status> <file>", "File that holds the whole answer for a status.", errorfile),
    supported(FRONT, "monitor-uri", "<uri>", "URI that is answered with 200 on the spot.", monitor_uri),
    supported(
        FRONT_SECTION,
        "monitor fail",
        "{ if | unless } <condition>",
        "When monitor-uri answers 503 instead.",
        monitor_fail,
    ),
    supported(ANY, "errorfiles", "<section> [<status>...]", "Takes answers from an http-errors section.", errorfiles),
    supported(ANY, "errorloc", "<status> <url>", "Redirects (302) instead of answering with a status.", errorloc),
    supported(ANY, "errorloc302", "<status> <url>", "Redirects (302) instead of answering with a status.", errorloc),
    supported(ANY, "errorloc303", "<status> <url>", "Redirects (303) instead of answering with a status.", errorloc303),
    supported(
        ANY,
        "http-error",
        "status <status> [content-type <type>] [{ default-errorfiles | errorfile <file> | errorfiles <section> | \
         file <file> | lf-file <file> | string <text> | lf-string <format> }] [hdr <name> <format>]...",
        "Answer for a status, put together.",
        http_error,
    ),
    removed(
        "monitor-net",
        "<network>",
        "Clients answered as a monitor.",
        "'monitor-net' doesn't exist anymore. Please use 'http-request return status 200 if { src %1 }' instead.",
    ),
];

fn errorfile(context: &mut ProxyContext<'_>, line: &Line) {
    if !has_two_arguments(context, line, "file") {
        return;
    }
    if let Some(page) = error_page::line(line, context.around, &mut context.report) {
        context.draft.pages.push(Pages::Own(page));
    }
}

fn errorloc(context: &mut ProxyContext<'_>, line: &Line) {
    redirect(context, line, "302 Found");
}

fn errorloc303(context: &mut ProxyContext<'_>, line: &Line) {
    redirect(context, line, "303 See Other");
}

/// A page that sends the client elsewhere.
fn redirect(context: &mut ProxyContext<'_>, line: &Line, status_line: &str) {
    if !has_two_arguments(context, line, "url") {
        return;
    }
    let Some(status) = error_page::status(line, 1, &mut context.report) else { return };
    let path = line.text(2).to_owned();
    let head = format!("HTTP/1.1 {status_line}\r\ncache-control: no-cache\r\ncontent-length: 0\r\nlocation: ");
    let mut content = head.into_bytes();
    // Whatever would end the line early becomes a blank.
    content
        .extend(text::to_bytes(&path).iter().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte }));
    content.extend_from_slice(b"\r\n\r\n");
    context.draft.pages.push(Pages::Own(ErrorFileSpec { status, path, content }));
}

fn has_two_arguments(context: &mut ProxyContext<'_>, line: &Line, second: &str) -> bool {
    let name = line.keyword();
    if line.words.len() < 3 {
        let message = format!("{name} : expects <status_code> and <{second}> as arguments.");
        context.report.alert(line.span(line.words.len()), message);
        return false;
    }
    if let Some(extra) = line.words.get(3) {
        context.report.alert(extra.span, format!("{name} : expects exactly two arguments."));
        return false;
    }
    true
}

/// The section may stand anywhere: it is looked up when all are known.
fn errorfiles(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(name) = line.words.get(1) else {
        context.report.alert(line.span(1), "errorfiles : expects <name> as argument.");
        return;
    };
    let mut statuses = Vec::new();
    for at in 2..line.words.len() {
        match error_page::status(line, at, &mut context.report) {
            Some(status) => statuses.push(status),
            None => return,
        }
    }
    context.draft.pages.push(Pages::Section { name: Spanned::new(name.text.clone(), name.span), statuses });
}

/// What it says is worked out where there are expressions; the status, and a section that may stand anywhere, are looked
/// for here.
fn http_error(context: &mut ProxyContext<'_>, line: &Line) {
    let (mut status, mut section) = (None, None);
    let mut at = 1;
    while at < line.words.len() {
        let behind = match line.text(at) {
            "status" => {
                status = Some(at);
                1
            }
            "errorfiles" => {
                section = line.words.get(at + 1);
                1
            }
            "content-type" | "errorfile" | "file" | "lf-file" | "string" | "lf-string" => 1,
            "default-errorfiles" => 0,
            "hdr" => 2,
            // It is complained of later, unless there is no status either.
            _ => break,
        };
        at += behind + 1;
    }
    let Some(written) = status else {
        context.report.alert(line.span(1), "http-error : expects at least a <status> as arguments.\n");
        return;
    };
    let (number, _) = leading_number(line.text(written + 1));
    let known = u16::try_from(number).ok().filter(|status| error_page::is_status(*status));
    // What is no status at all is found wrong with the rest of the line.
    if known.is_none() && (200..=599).contains(&number) {
        let message = format!("http-error: status code '{number}' not handled.");
        context.report.alert(line.span(written + 1), message);
        return;
    }
    let (status, answers) = (known.unwrap_or_default(), &mut context.draft.spec.error_answers);
    context.draft.pages.push(match section {
        Some(name) => Pages::Section { name: Spanned::new(name.text.clone(), name.span), statuses: vec![status] },
        None => Pages::Described { status, at: answers.len() },
    });
    answers.push(ErrorAnswerSpec { status, line: context.around.rule_line(line, 0), counts: false });
}

fn monitor_fail(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(condition) = condition_line(context, line, 2, "monitor fail") {
        warn_of_order(context, line, Stage::MonitorFail);
        context.draft.spec.rules.monitor_fail.push(condition);
    }
}

fn monitor_uri(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(word) = only(line, "'monitor-uri' expects an URI.", &mut context.report) {
        context.draft.spec.monitor_uri = Some(word.text.clone());
    }
}
