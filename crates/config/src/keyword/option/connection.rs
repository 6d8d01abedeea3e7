//! Options about connections, their timeouts and their end.

use super::{OptionKeyword, boolean, fixed, removed, supported, switch, switched, tuning};
use crate::document::Line;
use crate::keyword::argument::lenient;
use crate::keyword::negation::Negation;
use crate::keyword::place::Section;
use crate::keyword::place::places::{ANY, BACK, FRONT};
use crate::keyword::proxy::ProxyContext;

/// Every keyword of the family.
pub(super) const TABLE: &[OptionKeyword] = &[
    supported(
        switch(ANY),
        "abortonclose",
        "",
        "Aborts a request in the queue or waiting for the server when its client disconnects.",
        abortonclose,
    ),
    supported(switch(FRONT), "clitcpka", "", "TCP keep-alive towards clients.", clitcpka),
    supported(switch(ANY), "nolinger", "", "Closes connections with a reset, without lingering.", nolinger),
    supported(
        switch(BACK),
        "redispatch",
        "[<interval>]",
        "Retries on another server after a connection failure.",
        redispatch,
    ),
    supported(switch(ANY), "splice-auto", "", "Enables splicing by the kernel where it is efficient.", splice_auto),
    supported(switch(ANY), "splice-request", "", "Enables splicing of requests by the kernel.", splice_request),
    supported(switch(ANY), "splice-response", "", "Enables splicing of responses by the kernel.", splice_response),
    supported(switch(BACK), "srvtcpka", "", "TCP keep-alive towards servers.", srvtcpka),
    supported(fixed(ANY), "tcpka", "", "TCP keep-alive on both sides.", tcpka),
    supported(
        switch(FRONT),
        "tcp-smart-accept",
        "",
        "Lets the kernel delay the acknowledgement of the handshake.",
        tcp_smart_accept,
    ),
    supported(
        switch(BACK),
        "tcp-smart-connect",
        "",
        "Lets the kernel delay the acknowledgement of the handshake until there is something to send.",
        tcp_smart_connect,
    ),
    supported(
        switch(ANY),
        "independent-streams",
        "",
        "Sending data to a side does not refresh that side's read timeout.",
        independent_streams,
    ),
    supported(
        switch(FRONT),
        "idle-close-on-response",
        "",
        "During a soft stop, closes idle connections only after one more response.",
        idle_close_on_response,
    ),
    tuning(
        switch(BACK),
        "use-small-buffers",
        "[queue] [l7-retries] [check]",
        "Uses small buffers for waiting data; Weir chooses its buffers itself.",
    ),
    removed(
        "transparent",
        "",
        "Connected to the client's original destination.",
        "support for option 'transparent' was removed in version 3.5.",
    ),
];

fn abortonclose(context: &mut ProxyContext<'_>, line: &Line) {
    if let Ok(on) = switched(context, line) {
        context.draft.spec.options.abortonclose = on;
    }
}

fn clitcpka(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.clitcpka = on);
}

fn srvtcpka(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.srvtcpka = on);
}

fn tcp_smart_connect(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.connecting.smart_connect = on);
}

/// Applies to both sides, as far as the proxy has them.
fn tcpka(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, _| {
        let section = context.holder.section;
        let options = &mut context.draft.spec.options;
        options.clitcpka |= section != Section::Backend;
        options.srvtcpka |= section != Section::Frontend;
    });
}

fn tcp_smart_accept(context: &mut ProxyContext<'_>, line: &Line) {
    if let Ok(on) = switched(context, line) {
        context.draft.spec.reception.smart_accept = on;
    }
}

fn nolinger(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.nolinger = on);
}

fn independent_streams(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.independent_streams = on);
}

fn idle_close_on_response(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.idle_close_on_response = on);
}

fn splice_auto(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.splice.auto = on);
}

fn splice_request(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.splice.request = on);
}

fn splice_response(context: &mut ProxyContext<'_>, line: &Line) {
    boolean(context, line, |context, on| context.draft.spec.options.splice.response = on);
}

/// Without an interval, only the last retry is redispatched.
fn redispatch(context: &mut ProxyContext<'_>, line: &Line) {
    let interval = match (context.negation, line.words.get(2)) {
        (Negation::None, Some(word)) => lenient(word, "option redispatch", &mut context.report),
        (Negation::None, None) => -1,
        _ => 0,
    };
    let interval = i32::try_from(interval).unwrap_or(i32::MAX);
    context.draft.spec.options.redispatch = (interval != 0).then_some(interval);
}
