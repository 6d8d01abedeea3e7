//! Rules and conditions. The crate `policy` compiles them; they are only recognized by name here.

use super::{ProxyContext, ProxyKeyword, group, supported};
use crate::document::Line;
use crate::keyword::argument::milliseconds;
use crate::keyword::place::places::{
    BACK_ONLY_EVERYWHERE, BACK_TCP, FILTER, FRONT_QUIC, FRONT_TCP, NAMED, NAMED_TCP, NO_DEFAULTS,
};
use crate::keyword::{filter, rule};
use crate::spec::{Mode, RulesSpec};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(NAMED, "acl", "<name> <expression> [<flag>...] [<value>...]", "Defines an ACL.", acl),
    group(
        NAMED,
        "http-request",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on requests.",
        http_request,
    ),
    group(
        NAMED,
        "http-response",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on responses.",
        http_response,
    ),
    group(
        NAMED,
        "http-after-response",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on every answer, the proxy's own included.",
        http_after_response,
    ),
    group(
        FRONT_TCP,
        "tcp-request connection",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on connections just accepted.",
        tcp_request_connection,
    ),
    group(
        NAMED_TCP,
        "tcp-request content",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on the first bytes of a session.",
        tcp_request_content,
    ),
    group(
        FRONT_TCP,
        "tcp-request session",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on connections whose handshakes are done.",
        tcp_request_session,
    ),
    supported(
        NAMED_TCP,
        "tcp-request inspect-delay",
        "<time>",
        "Time to wait for enough bytes to inspect.",
        request_inspect_delay,
    ),
    group(
        BACK_TCP,
        "tcp-response content",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on the first bytes of an answer.",
        tcp_response_content,
    ),
    supported(
        BACK_TCP,
        "tcp-response inspect-delay",
        "<time>",
        "Time to wait for enough bytes of an answer.",
        response_inspect_delay,
    ),
    group(
        FRONT_QUIC,
        "quic-initial",
        "<action> [{ if | unless } <condition>]",
        "Rules on the first packet of a QUIC connection.",
        quic_initial,
    ),
    supported(
        NO_DEFAULTS,
        "redirect",
        "{ location | prefix | scheme } <to> [<option>...] [{ if | unless } <condition>]",
        "Redirects requests.",
        redirect,
    ),
    group(FILTER, "filter", "<name> [<argument>...]", "Adds a filter to the streams of the proxy.", filter::read),
    supported(
        FILTER,
        "filter-sequence",
        "{ request | response } <name>[,<name>...]",
        "Order of the filters.",
        filter::read_sequence,
    ),
    supported(
        BACK_ONLY_EVERYWHERE,
        "use-fcgi-app",
        "<section>",
        "FastCGI application of the servers.",
        filter::use_fcgi_app,
    ),
];

/// Stages of request rules in the order of their evaluation, and of response rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Stage {
    QuicInitial,
    Connection,
    Session,
    Content,
    MonitorFail,
    HttpRequest,
    Redirect,
    Switching,
    ServerChoice,
    ResponseContent,
    HttpResponse,
}

impl Stage {
    const REQUEST: [Self; 9] = [
        Self::QuicInitial,
        Self::Connection,
        Self::Session,
        Self::Content,
        Self::MonitorFail,
        Self::HttpRequest,
        Self::Redirect,
        Self::Switching,
        Self::ServerChoice,
    ];
    const RESPONSE: [Self; 2] = [Self::ResponseContent, Self::HttpResponse];

    const fn name(self) -> &'static str {
        match self {
            Self::QuicInitial => "a 'quic-initial'",
            Self::Connection => "a 'tcp-request connection'",
            Self::Session => "a 'tcp-request session'",
            Self::Content => "a 'tcp-request content'",
            Self::MonitorFail => "a 'monitor fail'",
            Self::HttpRequest => "an 'http-request'",
            Self::Redirect => "a 'redirect'",
            Self::Switching => "a 'use_backend'",
            Self::ServerChoice => "a 'use-server'",
            Self::ResponseContent => "a 'tcp-response content'",
            Self::HttpResponse => "an 'http-response'",
        }
    }

    /// Whether the section itself has a rule of this stage.
    fn is_there(self, rules: &RulesSpec) -> bool {
        let has = |set| rules.rules.iter().any(|rule| rule.set == set && !rule.line.inherited);
        match self {
            Self::QuicInitial => has(rule::QUIC_INITIAL),
            Self::Connection => has(rule::TCP_REQUEST_CONNECTION),
            Self::Session => has(rule::TCP_REQUEST_SESSION),
            Self::Content => has(rule::TCP_REQUEST_CONTENT),
            Self::MonitorFail => !rules.monitor_fail.is_empty(),
            Self::HttpRequest => has(rule::HTTP_REQUEST),
            Self::Redirect => !rules.redirects.is_empty(),
            Self::ServerChoice => !rules.use_server.is_empty(),
            Self::Switching => rules.switching.iter().any(|line| !line.inherited),
            Self::ResponseContent => has(rule::TCP_RESPONSE_CONTENT),
            Self::HttpResponse => has(rule::HTTP_RESPONSE),
        }
    }
}

/// Reports HAProxy's warning about a rule that is written after others, but evaluated before them.
pub(super) fn warn_of_order(context: &mut ProxyContext<'_>, line: &Line, own: Stage) {
    let request = Stage::REQUEST.contains(&own);
    let stages = if request { &Stage::REQUEST[..] } else { &Stage::RESPONSE };
    let rules = &context.draft.spec.rules;
    let Some(other) = stages.iter().find(|stage| **stage > own && stage.is_there(rules)) else { return };
    // HAProxy uses the article "a" for all misplaced rules.
    let own = own.name().trim_start_matches("an ").trim_start_matches("a ");
    let message = format!("a {own} rule placed after {} rule will still be processed before.", other.name());
    context.report.warning(line.span(0), message);
}

fn acl(context: &mut ProxyContext<'_>, line: &Line) {
    let name = line.text(1);
    if name.is_empty() {
        context.report.alert(line.span(0), "'acl' expects a name and an expression.");
        return;
    }
    if name == "||" || name.eq_ignore_ascii_case("or") {
        let what = "is used to express a logical disjunction within a condition.";
        let word = name.to_ascii_lowercase();
        context.report.alert(line.span(1), format!("acl name '{name}' will never match. '{word}' {what}"));
        return;
    }
    let is_permitted = |found: &char| found.is_ascii_alphanumeric() || matches!(found, '-' | '_' | '.' | ':');
    if let Some(wrong) = name.chars().find(|found| !is_permitted(found)) {
        context.report.alert(line.span(1), format!("character '{wrong}' is not permitted in acl name '{name}'."));
        return;
    }
    let line = context.around.rule_line(line, 1);
    context.draft.spec.rules.acls.push(line);
}

fn redirect(context: &mut ProxyContext<'_>, line: &Line) {
    warn_of_order(context, line, Stage::Redirect);
    // The keyword is an action's name as well: words begin with it.
    let line = context.around.rule_line(line, 0);
    context.draft.spec.rules.redirects.push(line);
}

fn http_request(context: &mut ProxyContext<'_>, line: &Line) {
    warn_of_order(context, line, Stage::HttpRequest);
    rule::read(context, line, 1, rule::HTTP_REQUEST);
}

fn http_response(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 1, rule::HTTP_RESPONSE);
}

fn http_after_response(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 1, rule::HTTP_AFTER_RESPONSE);
}

fn tcp_request_connection(context: &mut ProxyContext<'_>, line: &Line) {
    warn_of_order(context, line, Stage::Connection);
    rule::read(context, line, 2, rule::TCP_REQUEST_CONNECTION);
}

fn request_inspect_delay(context: &mut ProxyContext<'_>, line: &Line) {
    let known = context.draft.spec.rules.request_inspect_delay;
    context.draft.spec.rules.request_inspect_delay = inspect_delay(context, line, known, "tcp-request");
}

fn response_inspect_delay(context: &mut ProxyContext<'_>, line: &Line) {
    let known = context.draft.spec.rules.response_inspect_delay;
    context.draft.spec.rules.response_inspect_delay = inspect_delay(context, line, known, "tcp-response");
}

/// Parses the delay; the first line applies.
fn inspect_delay(context: &mut ProxyContext<'_>, line: &Line, known: Option<u64>, rules: &str) -> Option<u64> {
    let place = context.holder.describe();
    let missing = format!("'{rules} inspect-delay' expects a positive delay in milliseconds, in {place}");
    let unexpected = format!("{missing} (unexpected character '%c')");
    let delay = milliseconds(line.words.get(2), line, "inspect-delay", &missing, &unexpected, &mut context.report);
    if delay.is_none() || known.is_none_or(|known| known == 0) {
        return delay.or(known);
    }
    let message = format!("ignoring {rules} inspect-delay (was already defined) in {place}");
    context.report.warning(line.span(0), message);
    known
}

fn tcp_request_session(context: &mut ProxyContext<'_>, line: &Line) {
    warn_of_order(context, line, Stage::Session);
    rule::read(context, line, 2, rule::TCP_REQUEST_SESSION);
}

fn tcp_request_content(context: &mut ProxyContext<'_>, line: &Line) {
    warn_of_order(context, line, Stage::Content);
    rule::read(context, line, 2, rule::TCP_REQUEST_CONTENT);
}

fn tcp_response_content(context: &mut ProxyContext<'_>, line: &Line) {
    warn_of_order(context, line, Stage::ResponseContent);
    rule::read(context, line, 2, rule::TCP_RESPONSE_CONTENT);
}

fn quic_initial(context: &mut ProxyContext<'_>, line: &Line) {
    if context.draft.spec.mode != Mode::Http {
        let message = format!("'quic-initial' : proxy '{}' does not use HTTP mode", context.name());
        return context.report.alert(line.span(0), message);
    }
    warn_of_order(context, line, Stage::QuicInitial);
    rule::read(context, line, 1, rule::QUIC_INITIAL);
}
