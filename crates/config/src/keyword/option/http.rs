//! Options about HTTP messages.

use super::address_fields::{forwarded, forwardfor, originalto};
use super::{OptionKeyword, boolean, fixed, no_only, removed, supported, switch};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::place::places::{ANY, BACK, FRONT};
use crate::keyword::proxy::ProxyContext;
use crate::spec::{CloseMode, RestrictNames};

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    supported(
        fixed(ANY),
        "forwardfor",
        "[except <network>] [header <name>] [if-none]",
        "Sends the client's address to servers in X-Forwarded-For.",
        forwardfor,
    ),
    supported(
        no_only(BACK),
        "forwarded",
        "[<argument>...]",
        "Sends information about the client to servers in Forwarded (RFC 7239).",
        forwarded,
    ),
    supported(
        fixed(ANY),
        "originalto",
        "[except <network>] [header <name>]",
        "Sends the client's destination address to servers in X-Original-To.",
        originalto,
    ),
    supported(no_only(ANY), "http-keep-alive", "", "Keeps connections open on both sides (default).", http_keep_alive),
    supported(
        no_only(ANY),
        "http-server-close",
        "",
        "Closes the server's connection after each response.",
        http_server_close,
    ),
    supported(no_only(ANY), "httpclose", "", "Closes both connections after each response.", httpclose),
    supported(switch(ANY), "http-no-delay", "", "Sends data without delay, as Weir always does.", no_delay),
    supported(
        switch(ANY),
        "http-buffer-request",
        "",
        "Waits for the body, or a full buffer of it, before a server is selected.",
        buffer_request,
    ),
    supported(switch(BACK), "http-drop-request-trailers", "", "Drops the trailers of requests.", drop_request_trailers),
    supported(
        switch(FRONT),
        "http-drop-response-trailers",
        "",
        "Drops the trailers of responses.",
        drop_response_trailers,
    ),
    supported(
        switch(FRONT),
        "http-ignore-probes",
        "",
        "Ignores connections that close without a request.",
        ignore_probes,
    ),
    supported(
        switch(BACK),
        "http-pretend-keepalive",
        "",
        "Does not announce to servers that their connection will be closed after the response.",
        pretend_keepalive,
    ),
    supported(
        fixed(ANY),
        "http-restrict-req-hdr-names",
        "{ preserve | delete | reject }",
        "Treatment of requests with unusual header names.",
        restrict_names,
    ),
    supported(
        switch(FRONT),
        "http-use-proxy-header",
        "",
        "Keeps Proxy-Connection in requests to a proxy and in their responses.",
        use_proxy_header,
    ),
    supported(
        fixed(FRONT),
        "accept-invalid-http-request",
        "",
        "Former name of accept-unsafe-violations-in-http-request.",
        accept_invalid_request,
    ),
    supported(
        fixed(BACK),
        "accept-invalid-http-response",
        "",
        "Former name of accept-unsafe-violations-in-http-response.",
        accept_invalid_response,
    ),
    supported(
        switch(FRONT),
        "accept-unsafe-violations-in-http-request",
        "",
        "Tolerates malformed requests.",
        accept_unsafe_request,
    ),
    supported(
        switch(BACK),
        "accept-unsafe-violations-in-http-response",
        "",
        "Tolerates malformed responses.",
        accept_unsafe_response,
    ),
    supported(switch(BACK), "checkcache", "", "Blocks cacheable responses with a cookie.", check_cache),
    supported(
        switch(FRONT),
        "disable-h2-upgrade",
        "",
        "Does not switch to HTTP/2 when an HTTP/1 connection starts with its preface.",
        disable_h2_upgrade,
    ),
    supported(
        switch(FRONT),
        "h1-case-adjust-bogus-client",
        "",
        "Applies h1-case-adjust to header names sent to clients.",
        adjust_case_client,
    ),
    supported(
        switch(BACK),
        "h1-case-adjust-bogus-server",
        "",
        "Applies h1-case-adjust to header names sent to servers.",
        adjust_case_server,
    ),
    removed(
        "forceclose",
        "",
        "Closed connections early.",
        "option 'forceclose' is not supported any more since HAProxy 2.0, please just remove it, or use 'option httpclose' if absolutely needed.",
    ),
    removed(
        "http-tunnel",
        "",
        "Forwarded all data after the first request as a tunnel.",
        "option 'http-tunnel' is not supported any more since HAProxy 2.1, please just remove it, it shouldn't be needed.",
    ),
];

fn http_keep_alive(context: &mut ProxyContext<'_>, line: &Line) {
    close_mode(context, line, CloseMode::KeepAlive);
}

fn http_server_close(context: &mut ProxyContext<'_>, line: &Line) {
    close_mode(context, line, CloseMode::ServerClose);
}

fn httpclose(context: &mut ProxyContext<'_>, line: &Line) {
    close_mode(context, line, CloseMode::Close);
}

/// The last mode applies; `no` removes a mode only if it is the current one.
fn close_mode(context: &mut ProxyContext<'_>, line: &Line, mode: CloseMode) {
    boolean(context, line, |context, on| {
        let current = &mut context.draft.spec.close_mode;
        if on {
            *current = mode;
        } else if *current == mode {
            *current = CloseMode::default();
        }
    });
}

fn buffer_request(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.buffer_request = on);
}

fn drop_request_trailers(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.drop_request_trailers = on);
}

fn drop_response_trailers(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.drop_response_trailers = on);
}

fn ignore_probes(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.ignore_probes = on);
}

fn no_delay(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.no_delay = on);
}

fn check_cache(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.check_cache = on);
}

fn pretend_keepalive(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.pretend_keepalive = on);
}

fn use_proxy_header(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.use_proxy_header = on);
}

fn accept_unsafe_request(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.accept_unsafe_request = on);
}

fn accept_unsafe_response(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.accept_unsafe_response = on);
}

fn disable_h2_upgrade(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.disable_h2_upgrade = on);
}

fn adjust_case_client(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.adjust_case_client = on);
}

fn adjust_case_server(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.http.adjust_case_server = on);
}

/// The older names cause a warning and have the effect of the newer ones.
fn accept_invalid_request(context: &mut ProxyContext<'_>, line: &Line) {
    deprecated(context, line, "accept-unsafe-violations-in-http-request");
    accept_unsafe_request(context, line);
}

fn accept_invalid_response(context: &mut ProxyContext<'_>, line: &Line) {
    deprecated(context, line, "accept-unsafe-violations-in-http-response");
    accept_unsafe_response(context, line);
}

fn deprecated(context: &mut ProxyContext<'_>, line: &Line, newer: &str) {
    let message = format!("option '{}' is deprecated. please use 'option {newer}' if absolutely needed.", line.text(1));
    context.report.push(Diagnostic::warning(line.span(1), message).with_form(Form::ParsingTight));
}

fn restrict_names(context: &mut ProxyContext<'_>, line: &Line) {
    const EXPECTED: &str = "option 'http-restrict-req-hdr-names' expects 'preserve', 'reject' or 'delete' option.";
    let restrict = match line.words.get(2).map(|word| word.text.as_str()) {
        Some("preserve") => RestrictNames::Preserve,
        Some("delete") => RestrictNames::Delete,
        Some("reject") => RestrictNames::Reject,
        Some(other) => {
            context.report.alert(line.span(2), format!("invalid parameter '{other}'. {EXPECTED}"));
            return;
        }
        None => {
            context.report.alert(line.span(2), format!("missing parameter. {EXPECTED}"));
            return;
        }
    };
    if !context.report.too_many(line, 3, "option") {
        context.draft.spec.http.restrict_names = Some(restrict);
    }
}
