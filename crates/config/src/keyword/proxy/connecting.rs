//! Connections to the servers of a proxy.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::place::places::{BACK, BACK_WILL};
use crate::keyword::source;
use crate::units::{self, TimeError, TimeUnit};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        BACK,
        "source",
        "<address>[:<port>] [usesrc <address>] [interface <name>]",
        "Source address of connections to the servers.",
        source_address,
    ),
    supported(
        BACK_WILL,
        "srvtcpka-cnt",
        "<number>",
        "Number of unanswered keep-alive probes after which a server's connection is dropped.",
        probes,
    ),
    supported(BACK_WILL, "srvtcpka-idle", "<time>", "Idle time before keep-alive probes are sent to servers.", idle),
    supported(BACK_WILL, "srvtcpka-intvl", "<time>", "Time between keep-alive probes to servers.", interval),
];

fn source_address(context: &mut ProxyContext<'_>, line: &Line) {
    let words = line.words.get(1..).unwrap_or_default();
    match source::read(words, line.span(1), &source::LINE, context.around.environment) {
        Ok(source) => context.draft.spec.connecting.source = Some(source),
        Err((span, message)) => context.report.alert(span, message),
    }
}

fn probes(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), "'srvtcpka-cnt' expects an integer value");
        return;
    };
    let digits = word.text.strip_prefix(['-', '+']).unwrap_or(&word.text);
    if let Some(found) = digits.chars().find(|found| !found.is_ascii_digit()) {
        let message = format!("'srvtcpka-cnt' : unexpected character '{found}' in integer value '{}'", word.text);
        context.report.alert(word.span, message);
        return;
    }
    context.draft.spec.connecting.keepalive.count = word.text.parse().ok().filter(|count| *count > 0);
}

fn idle(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(seconds) = seconds(context, line) {
        context.draft.spec.connecting.keepalive.idle = (seconds > 0).then_some(seconds);
    }
}

fn interval(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(seconds) = seconds(context, line) {
        context.draft.spec.connecting.keepalive.interval = (seconds > 0).then_some(seconds);
    }
}

fn seconds(context: &mut ProxyContext<'_>, line: &Line) -> Option<u32> {
    let name = line.keyword();
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), format!("'{name}' expects an integer value"));
        return None;
    };
    match units::time(&word.text, TimeUnit::Seconds) {
        Ok(time) => u32::try_from(time.value).ok(),
        Err(TimeError::Unexpected(found)) => {
            context.report.alert(word.span, format!("unexpected character '{found}' in argument to <{name}>."));
            None
        }
        Err(error) => {
            context.report.alert(word.span, error.message(&word.text, name));
            None
        }
    }
}
