//! Parameters of TCP keep-alive towards clients.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::keyword::place::places::FRONT_WILL;
use crate::spec::KeepAliveSpec;
use crate::units::{self, TimeError, TimeUnit};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        FRONT_WILL,
        "clitcpka-cnt",
        "<number>",
        "Number of unanswered keep-alive probes after which a client's connection is dropped.",
        count,
    ),
    supported(FRONT_WILL, "clitcpka-idle", "<time>", "Idle time before keep-alive probes are sent to clients.", idle),
    supported(FRONT_WILL, "clitcpka-intvl", "<time>", "Time between keep-alive probes to clients.", interval),
];

fn count(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), "'clitcpka-cnt' expects an integer value");
        return;
    };
    let (value, clean) = leading_number(&word.text);
    if clean {
        context.draft.spec.reception.keep_alive.count = setting(value);
        return;
    }
    let digit = |found: &char| found.is_ascii_digit() || matches!(found, '-' | '+');
    let found = word.text.chars().find(|found| !digit(found)).unwrap_or(' ');
    let message = format!("'clitcpka-cnt' : unexpected character '{found}' in integer value '{}'", word.text);
    context.report.alert(word.span, message);
}

fn idle(context: &mut ProxyContext<'_>, line: &Line) {
    seconds(context, line, |settings| &mut settings.idle);
}

fn interval(context: &mut ProxyContext<'_>, line: &Line) {
    seconds(context, line, |settings| &mut settings.interval);
}

/// Returns the setting; 0 selects the system's default.
fn setting(value: i64) -> Option<u32> {
    u32::try_from(value).ok().filter(|value| *value > 0)
}

fn seconds(context: &mut ProxyContext<'_>, line: &Line, field: fn(&mut KeepAliveSpec) -> &mut Option<u32>) {
    let name = line.keyword();
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), format!("'{name}' expects an integer value"));
        return;
    };
    let message = match units::time(&word.text, TimeUnit::Seconds) {
        Ok(time) => {
            if let Some(warning) = time.leftover_warning(&word.text) {
                context.report.leftover(word.span, warning);
            }
            *field(&mut context.draft.spec.reception.keep_alive) = u32::try_from(time.value).ok().and_then(nonzero);
            return;
        }
        Err(TimeError::Unexpected(found)) => {
            format!("unexpected character '{found}' in argument to <{name}>.")
        }
        Err(TimeError::Empty) => format!("'{name}' expects an integer value"),
        Err(error @ TimeError::Overflow) => error.message(&word.text, name),
    };
    context.report.alert(word.span, message);
}

fn nonzero(value: u32) -> Option<u32> {
    Some(value).filter(|value| *value > 0)
}
