//! Queues, rates and retries.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::{Line, Word};
use crate::keyword::argument::{leading_number, lenient, limit};
use crate::keyword::place::places::{BACK_ONLY, BACK_WILL, FRONT, FRONT_WILL};
use crate::spec::RetryOn;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        FRONT_WILL,
        "rate-limit sessions",
        "<number>",
        "Maximum number of new sessions per second.",
        rate_limit_sessions,
    ),
    supported(
        FRONT,
        "max-session-srv-conns",
        "<number>",
        "Maximum number of idle server connections of a client session.",
        max_session_srv_conns,
    ),
    supported(
        BACK_WILL,
        "max-keep-alive-queue",
        "<number>",
        "Maximum queue length up to which a request waits for the server of a kept connection.",
        max_keep_alive_queue,
    ),
    supported(BACK_ONLY, "retry-on", "<event>...", "Conditions under which a request is retried.", retry_on),
];

/// Parses a number that HAProxy rejects if other characters follow it. The sentences begin with the keyword's name.
fn strict(context: &mut ProxyContext<'_>, line: &Line, word: Option<&Word>, name: &str, wanted: &str) -> Option<i64> {
    let Some(word) = word else {
        context
            .report
            .alert(line.span(line.words.len()), format!("'{name}' expects expects an integer value ({wanted})"));
        return None;
    };
    let (value, clean) = leading_number(&word.text);
    if !clean {
        let sign = usize::from(word.text.starts_with(['-', '+']));
        let found = word.text.chars().skip(sign).find(|found| !found.is_ascii_digit()).unwrap_or(' ');
        let message = format!("'{name}' : unexpected character '{found}' in integer value '{}'", word.text);
        context.report.alert(word.span, message);
        return None;
    }
    Some(value)
}

fn rate_limit_sessions(context: &mut ProxyContext<'_>, line: &Line) {
    let value = strict(context, line, line.words.get(2), "rate-limit sessions", "in sessions/second");
    if let Some(value) = value {
        context.draft.spec.limits.rate_limit_sessions = limit(value);
    }
}

fn max_keep_alive_queue(context: &mut ProxyContext<'_>, line: &Line) {
    let value = strict(context, line, line.words.get(1), "max-keep-alive-queue", "or -1 to disable");
    if let Some(value) = value {
        context.draft.spec.limits.max_keep_alive_queue = u32::try_from(value).ok();
    }
}

fn max_session_srv_conns(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        let message = "'max-session-srv-conns' expects a number. Got no argument";
        context.report.alert(line.span(1), message);
        return;
    };
    let value = lenient(word, "max-session-srv-conns", &mut context.report);
    context.draft.spec.limits.max_session_srv_conns = limit(value).unwrap_or(0);
}

fn retry_on(context: &mut ProxyContext<'_>, line: &Line) {
    let words = line.arguments();
    if words.is_empty() {
        let message = "'retry-on' needs at least one keyword to specify when to retry";
        context.report.alert(line.span(1), message);
        return;
    }
    let mut listed = RetryOn::NONE;
    for word in words {
        match RetryOn::word(&word.text) {
            Some(event) => listed = listed.with(event),
            None if word.text == "none" && words.len() == 1 => {}
            None if word.text == "none" => {
                context.report.alert(word.span, "'retry-on' 'none' keyword only usable alone");
                return;
            }
            None => {
                context.report.alert(word.span, format!("'retry-on': unknown keyword '{}'", word.text));
                return;
            }
        }
    }
    context.draft.spec.limits.retry_on = listed;
}
