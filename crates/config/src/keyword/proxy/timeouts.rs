//! Timeouts.

use super::{ProxyContext, ProxyKeyword, removed, supported};
use crate::document::Line;
use crate::keyword::argument::milliseconds;
use crate::keyword::place::Section;
use crate::keyword::place::places::{ANY, BACK_WILL_QUOTED, FRONT_WILL_QUOTED};
use crate::spec::TimeoutsSpec;
use crate::units;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(FRONT_WILL_QUOTED, "timeout client", "<time>", "Maximum inactivity of the client.", client),
    supported(
        FRONT_WILL_QUOTED,
        "timeout client-fin",
        "<time>",
        "Maximum inactivity of the client on a half-closed connection.",
        client_fin,
    ),
    supported(
        FRONT_WILL_QUOTED,
        "timeout client-hs",
        "<time>",
        "Maximum time of the handshakes of the client's connection.",
        client_hs,
    ),
    supported(BACK_WILL_QUOTED, "timeout connect", "<time>", "Maximum time to connect to a server.", connect),
    supported(
        BACK_WILL_QUOTED,
        "timeout check",
        "<time>",
        "Maximum time of a health check after its connection is established.",
        check,
    ),
    supported(
        ANY,
        "timeout http-keep-alive",
        "<time>",
        "Maximum time to wait for a client's next request.",
        http_keep_alive,
    ),
    supported(
        ANY,
        "timeout http-request",
        "<time>",
        "Maximum time to receive the complete headers of a request.",
        http_request,
    ),
    supported(
        BACK_WILL_QUOTED,
        "timeout queue",
        "<time>",
        "Maximum time in the queue for a server's connection slot.",
        queue,
    ),
    supported(BACK_WILL_QUOTED, "timeout server", "<time>", "Maximum inactivity of the server.", server),
    supported(
        BACK_WILL_QUOTED,
        "timeout server-fin",
        "<time>",
        "Maximum inactivity of the server on a half-closed connection.",
        server_fin,
    ),
    supported(
        ANY,
        "timeout stream",
        "<time>",
        "Weir's own: maximum inactivity of event streams and of other answers without a length.",
        stream,
    ),
    supported(ANY, "timeout tarpit", "<time>", "Time for which tarpitted clients are kept waiting.", tarpit),
    supported(BACK_WILL_QUOTED, "timeout tunnel", "<time>", "Maximum inactivity of both sides of a tunnel.", tunnel),
    removed(
        "clitimeout",
        "<time>",
        "Older name of timeout client.",
        "the 'clitimeout' directive is not supported anymore since HAProxy 2.1. Use 'timeout client'.",
    ),
    removed(
        "contimeout",
        "<time>",
        "Older name of timeout connect.",
        "the 'contimeout' directive is not supported anymore since HAProxy 2.1. Use 'timeout connect'.",
    ),
    removed(
        "srvtimeout",
        "<time>",
        "Older name of timeout server.",
        "the 'srvtimeout' directive is not supported anymore since HAProxy 2.1. Use 'timeout server'.",
    ),
];

fn read(context: &mut ProxyContext<'_>, line: &Line) -> Option<u64> {
    let name = format!("timeout {}", line.text(1));
    let value = milliseconds(
        line.words.get(2),
        line,
        &name,
        &format!("'{name}' expects an integer value (in milliseconds)"),
        &format!("unexpected character '%c' in '{name}'"),
        &mut context.report,
    )?;
    let text = line.text(2);
    if let Some(extra) = line.words.get(3) {
        context
            .report
            .alert(extra.span, format!("'{name}' : unexpected extra argument '{}' after value '{text}'.", extra.text));
        return None;
    }
    if units::lacks_unit(text, value) {
        let message = format!(
            "'{name} {text}' in {} '{}' is suspiciously small for a value in milliseconds. Please use an explicit \
             unit ('{text}ms') if that was the intent.",
            context.holder.section.noun(),
            context.name()
        );
        context.report.warning(line.span(2), message);
    }
    Some(value)
}

/// Reads the line into its field. A timeout of 0 means no timeout.
fn set(context: &mut ProxyContext<'_>, line: &Line, field: fn(&mut TimeoutsSpec) -> &mut Option<u64>) {
    let before = *field(&mut TimeoutsSpec::clone(&context.draft.spec.timeouts));
    let inherited = *field(&mut context.draft.inherited);
    if context.holder.section != Section::Defaults && before != inherited {
        let message = format!("overwriting 'timeout {}' which was already specified", line.text(1));
        context.report.warning(line.span(0), message);
    }
    if let Some(value) = read(context, line) {
        context.draft.spec.timeouts.settle(|own| *field(own) = (value > 0).then_some(value));
    }
}

fn client(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.client);
}

fn client_fin(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.client_fin);
}

fn client_hs(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.client_hs);
}

fn connect(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.connect);
}

fn check(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.check);
}

fn http_keep_alive(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.http_keep_alive);
}

fn http_request(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.http_request);
}

fn queue(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.queue);
}

fn server(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.server);
}

fn server_fin(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.server_fin);
}

fn stream(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.stream);
}

fn tarpit(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.tarpit);
}

fn tunnel(context: &mut ProxyContext<'_>, line: &Line) {
    set(context, line, |timeouts| &mut timeouts.tunnel);
}
