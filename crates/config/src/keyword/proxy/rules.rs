//! Rules and conditions. What they do is the business of \"policy\"; here they are known by name.

use super::{ProxyContext, ProxyKeyword, group, not_yet};
use crate::document::Line;
use crate::keyword::place::places::{
    ANY, BACK_ONLY_EVERYWHERE, BACK_TCP, FILTER, FRONT, FRONT_SECTION, FRONT_TCP, NAMED, NAMED_TCP, NO_DEFAULTS,
};
use crate::keyword::{filter, rule};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    not_yet(NAMED, "acl", "<name> <expression> [<flag>...] [<value>...]", "Names a condition."),
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
    not_yet(NAMED_TCP, "tcp-request inspect-delay", "<time>", "Time to wait for enough bytes to inspect."),
    group(
        BACK_TCP,
        "tcp-response content",
        "<action> [<argument>...] [{ if | unless } <condition>]",
        "Rules on the first bytes of an answer.",
        tcp_response_content,
    ),
    not_yet(BACK_TCP, "tcp-response inspect-delay", "<time>", "Time to wait for enough bytes of an answer."),
    group(
        FRONT,
        "quic-initial",
        "<action> [{ if | unless } <condition>]",
        "Rules on the first packet of a QUIC connection.",
        quic_initial,
    ),
    not_yet(
        NO_DEFAULTS,
        "redirect",
        "{ location | prefix | scheme } <to> [<option>...] [{ if | unless } <condition>]",
        "Redirects requests.",
    ),
    group(FILTER, "filter", "<name> [<argument>...]", "Puts a filter into the way of the data.", filter),
    not_yet(FILTER, "filter-sequence", "{ request | response } <name>[,<name>...]", "Order of the filters."),
    not_yet(ANY, "compression algo", "<algorithm>...", "Compression of responses."),
    not_yet(ANY, "compression algo-req", "<algorithm>", "Compression of requests."),
    not_yet(ANY, "compression algo-res", "<algorithm>...", "Compression of responses."),
    not_yet(ANY, "compression direction", "{ request | response | both }", "What is compressed."),
    not_yet(ANY, "compression minsize-req", "<size>", "Smallest request worth compressing."),
    not_yet(ANY, "compression minsize-res", "<size>", "Smallest response worth compressing."),
    not_yet(ANY, "compression offload", "", "Take Accept-Encoding away from requests."),
    not_yet(ANY, "compression type", "<type>...", "Content types to compress."),
    not_yet(ANY, "compression type-req", "<type>...", "Content types of requests to compress."),
    not_yet(ANY, "compression type-res", "<type>...", "Content types of responses to compress."),
    not_yet(BACK_ONLY_EVERYWHERE, "use-fcgi-app", "<section>", "FastCGI application behind the servers."),
    not_yet(ANY, "ssl-f-use", "[<option> <value>]...", "Certificate of the frontend."),
    not_yet(FRONT_SECTION, "crt", "<file>", "Certificate of the frontend, by its former name."),
];

fn http_request(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 1, rule::HTTP_REQUEST);
}

fn http_response(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 1, rule::HTTP_RESPONSE);
}

fn http_after_response(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 1, rule::HTTP_AFTER_RESPONSE);
}

fn tcp_request_connection(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 2, rule::TCP_REQUEST_CONNECTION);
}

fn tcp_request_session(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 2, rule::TCP_REQUEST_SESSION);
}

fn tcp_request_content(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 2, rule::TCP_REQUEST_CONTENT);
}

fn tcp_response_content(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 2, rule::TCP_RESPONSE_CONTENT);
}

fn quic_initial(context: &mut ProxyContext<'_>, line: &Line) {
    rule::read(context, line, 1, rule::QUIC_INITIAL);
}

fn filter(context: &mut ProxyContext<'_>, line: &Line) {
    filter::read(context, line);
}
