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
        "Gives up a request in the queue, or waiting for the server, when its client has left.",
        abortonclose,
    ),
    supported(switch(FRONT), "clitcpka", "", "TCP keep-alive towards clients.", clitcpka),
    supported(switch(ANY), "nolinger", "", "Resets connections instead of closing them gently.", nolinger),
    supported(switch(BACK), "redispatch", "[<interval>]", "Tries another server when a connection fails.", redispatch),
    supported(switch(ANY), "splice-auto", "", "Lets the kernel move bytes where that pays.", splice_auto),
    supported(switch(ANY), "splice-request", "", "Lets the kernel move bytes of requests.", splice_request),
    supported(switch(ANY), "splice-response", "", "Lets the kernel move bytes of responses.", splice_response),
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
        "What is sent to a side does not refresh the time it has to send something.",
        independent_streams,
    ),
    supported(
        switch(FRONT),
        "idle-close-on-response",
        "",
        "Closes idle connections only after one more answer during a soft stop.",
        idle_close_on_response,
    ),
    tuning(
        switch(BACK),
        "use-small-buffers",
        "[queue] [l7-retries] [check]",
        "Stores what waits in small buffers; Weir chooses its buffers itself.",
    ),
    removed(
        "transparent",
        "",
        "Sent connections where the client meant to go.",
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
