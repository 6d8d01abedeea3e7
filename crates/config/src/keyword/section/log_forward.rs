//! A relay of log lines (section 12.6).

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::argument::{lenient, limit, milliseconds};
use crate::keyword::{bind, is_name_character, log_line};
use crate::span::Spanned;
use crate::spec::{LogForwardSpec, LogHost};
use crate::suggest;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("backlog", "<number>", "Maximum number of connections waiting to be accepted in the kernel.", backlog),
    supported("bind", "<address> [<option>...]", "Address on which log messages are received over TCP.", stream),
    supported(
        "dgram-bind",
        "<address> [<option>...]",
        "Address on which log messages are received over UDP.",
        datagrams,
    ),
    supported("log", "{ global | <target> ... }", "Log target.", log),
    supported("maxconn", "<number>", "Maximum number of concurrent connections.", maxconn),
    supported("option assume-rfc6587-ntf", "", "Assumes that messages are delimited by line feeds (RFC 6587).", option),
    supported("option dont-parse-log", "", "Forwards messages without parsing them.", option),
    supported("option host", "{ replace | fill | keep | append }", "Treatment of the host name of a message.", option),
    supported("timeout client", "<time>", "Maximum inactivity of a sender.", timeout_client),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    if context.report.too_many(line, 2, "log-forward") {
        return false;
    }
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'log-forward' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if let Some(other) = context.content.log_forwards.iter().find(|other| other.name.value == name) {
        let message = format!(
            "log-forward section '{name}' has the same name as another log-forward section declared at {}.",
            context.around.place(other.span)
        );
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
        return false;
    }
    context.content.log_forwards.push(LogForwardSpec {
        span: line.whole(),
        name: Spanned::new(name.to_owned(), line.span(1)),
        binds: Vec::new(),
        datagrams: Vec::new(),
        maxconn: None,
        backlog: None,
        timeout_client: None,
        lines_only: false,
        unparsed: false,
        host: LogHost::default(),
        logs_globally: false,
        logs: Vec::new(),
    });
    true
}

/// Returns the open section.
fn forward<'a>(context: &'a mut SectionContext<'_>) -> Option<&'a mut LogForwardSpec> {
    context.content.log_forwards.last_mut()
}

fn stream(context: &mut SectionContext<'_>, line: &Line) {
    let Some(open) = context.content.log_forwards.last_mut() else { return };
    let found = bind::read_relay(line, &open.binds, context.around, &mut context.report);
    open.binds.extend(found);
}

fn datagrams(context: &mut SectionContext<'_>, line: &Line) {
    let Some(open) = context.content.log_forwards.last_mut() else { return };
    let found = bind::read_relay(line, &open.datagrams, context.around, &mut context.report);
    open.datagrams.extend(found);
}

fn log(context: &mut SectionContext<'_>, line: &Line) {
    let asker = log_line::Asker {
        global: false,
        place: "section 'log-forward'",
        environment: context.around.environment,
        negated: false,
    };
    let entry = log_line::read(line, &asker, &mut context.report);
    if let (Some(entry), Some(forward)) = (entry, forward(context)) {
        match entry {
            log_line::Entry::Own(log) => forward.logs.push(*log),
            log_line::Entry::Global(_) => forward.logs_globally = true,
            log_line::Entry::Clear => {}
        }
    }
}

/// Parses the only argument, a number; 0 means unset.
fn number(context: &mut SectionContext<'_>, line: &Line) -> Option<Option<u32>> {
    let name = line.keyword();
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), format!("'{name}' expects an integer argument."));
        return None;
    };
    Some(limit(lenient(word, name, &mut context.report)))
}

fn maxconn(context: &mut SectionContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "maxconn") {
        return;
    }
    if let (Some(value), Some(forward)) = (number(context, line), forward(context)) {
        forward.maxconn = value;
    }
}

fn backlog(context: &mut SectionContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "backlog") {
        return;
    }
    if let (Some(value), Some(forward)) = (number(context, line), forward(context)) {
        forward.backlog = value;
    }
}

fn timeout_client(context: &mut SectionContext<'_>, line: &Line) {
    let missing = "missing timeout client value.";
    let unexpected = "timeout : unexpected character '%c' in 'timeout client'";
    let value = milliseconds(line.words.get(2), line, "timeout client", missing, unexpected, &mut context.report);
    if let (Some(value), Some(forward)) = (value, forward(context)) {
        forward.timeout_client = Some(value);
    }
}

fn option(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    let words = if name == "host" { 3 } else { 2 };
    if context.report.too_many(line, words, &format!("option {name}")) {
        return;
    }
    let strategies =
        [("replace", LogHost::Replace), ("fill", LogHost::Fill), ("keep", LogHost::Keep), ("append", LogHost::Append)];
    let found = strategies.iter().find(|row| row.0 == line.text(2)).map(|row| row.1);
    if name == "host" && found.is_none() {
        let message = "option 'host' expects {replace|fill|keep|append}.";
        let mut diagnostic = Diagnostic::alert(line.span(2), message);
        diagnostic.hint = suggest::nearest(line.text(2), strategies.iter().map(|row| row.0))
            .map(|known| format!("write 'option host {known}'"));
        context.report.push(diagnostic);
        return;
    }
    let Some(forward) = forward(context) else { return };
    match name {
        "assume-rfc6587-ntf" => forward.lines_only = true,
        "dont-parse-log" => forward.unparsed = true,
        _ => forward.host = found.unwrap_or_default(),
    }
}
