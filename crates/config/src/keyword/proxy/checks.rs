//! Scripts of health checks. The crate `policy` compiles their steps; they are only recognized by name here.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::place::places::{ANY, BACK};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(BACK, "http-check comment", "<text>", "Comment reported if the next step fails.", http),
    supported(BACK, "http-check connect", "[<option>...]", "Opens a connection.", http),
    supported(BACK, "http-check disable-on-404", "", "Drains the server after a 404 response.", disable_on_404),
    supported(BACK, "http-check expect", "[<option>...] [!] <match> <pattern>", "Expected response.", http),
    supported(BACK, "http-check send", "[<option> <value>]...", "Request to send.", http),
    supported(BACK, "http-check send-state", "", "Sends the server's state in a header field.", send_state),
    supported(BACK, "http-check set-var", "(<variable>) <expression>", "Sets a variable.", http),
    supported(BACK, "http-check set-var-fmt", "(<variable>) <format>", "Sets a variable from a log format.", http),
    supported(BACK, "http-check unset-var", "(<variable>)", "Removes a variable.", http),
    supported(BACK, "tcp-check comment", "<text>", "Comment reported if the next step fails.", tcp),
    supported(BACK, "tcp-check connect", "[<option>...]", "Opens a connection.", tcp),
    supported(BACK, "tcp-check expect", "[<option>...] [!] <match> <pattern>", "Expected data.", tcp),
    supported(BACK, "tcp-check send", "<text>", "Text to send.", tcp),
    supported(BACK, "tcp-check send-lf", "<format>", "Text to send, from a log format.", tcp),
    supported(BACK, "tcp-check send-binary", "<hexadecimal>", "Bytes to send.", tcp),
    supported(BACK, "tcp-check send-binary-lf", "<format>", "Bytes to send, from a log format.", tcp),
    supported(BACK, "tcp-check set-var", "(<variable>) <expression>", "Sets a variable.", tcp),
    supported(BACK, "tcp-check set-var-fmt", "(<variable>) <format>", "Sets a variable from a log format.", tcp),
    supported(BACK, "tcp-check unset-var", "(<variable>)", "Removes a variable.", tcp),
    supported(ANY, "external-check command", "<command>", "Program that checks servers.", command),
    supported(ANY, "external-check path", "<path>", "PATH of that program.", path),
];

fn http(context: &mut ProxyContext<'_>, line: &Line) {
    let line = context.around.rule_line(line, 1);
    let check = &mut context.draft.spec.check;
    check.begin_http();
    check.push_http(line);
}

fn tcp(context: &mut ProxyContext<'_>, line: &Line) {
    let line = context.around.rule_line(line, 1);
    let check = &mut context.draft.spec.check;
    check.begin_tcp();
    check.tcp.push(line);
}

fn disable_on_404(context: &mut ProxyContext<'_>, line: &Line) {
    if !context.report.too_many(line, 2, "http-check") {
        let check = &mut context.draft.spec.check;
        (check.disable_on_404, check.own.disable_on_404) = (true, true);
    }
}

fn send_state(context: &mut ProxyContext<'_>, line: &Line) {
    if !context.report.too_many(line, 2, "http-check") {
        let check = &mut context.draft.spec.check;
        (check.send_state, check.own.send_state) = (true, true);
    }
}

fn command(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(written) = only_argument(context, line) {
        context.draft.spec.check.command = Some(written);
    }
}

fn path(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(written) = only_argument(context, line) {
        context.draft.spec.check.path = Some(written);
    }
}

fn only_argument(context: &mut ProxyContext<'_>, line: &Line) -> Option<String> {
    if line.text(2).is_empty() {
        context.report.alert(line.span(2), format!("missing argument after '{}'.", line.text(1)));
        return None;
    }
    (!context.report.too_many(line, 3, "external-check")).then(|| line.text(2).to_owned())
}
