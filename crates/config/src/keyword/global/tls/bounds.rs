//! Limits of TLS connections and of their caches (section 3.2).

use super::GlobalContext;
use crate::document::Line;
use crate::keyword::argument::leading_number;

/// Parses a number that is not negative, or reports a message.
fn number(context: &mut GlobalContext<'_>, line: &Line, missing: &str, negative: &str) -> Option<u32> {
    let keyword = line.keyword();
    if context.report.too_many(line, 2, keyword) {
        return None;
    }
    if line.text(1).is_empty() {
        context.report.alert(line.span(1), format!("'{keyword}' expects {missing}"));
        return None;
    }
    match leading_number(line.text(1)).0 {
        number @ 0.. => Some(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => {
            context.report.alert(line.span(1), format!("'{keyword}' expects {negative}"));
            None
        }
    }
}

pub(super) fn record(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(bytes) = number(context, line, "an integer argument.", "a positive numeric value.") {
        context.spec.tls.record_limit = bytes;
    }
}

pub(super) fn key_updates(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(rate) = number(context, line, "a number (KeyUpdates/s, 0 to disable).", "a positive number.") {
        context.spec.tls.key_updates = Some(rate);
    }
}

pub(super) fn generated(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(count) = number(context, line, "an integer argument.", "a positive numeric value.") {
        context.spec.tls.generated_cache = Some(count);
    }
}

pub(super) fn connections(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(count) = number(context, line, "an integer argument.", "a positive numeric value.") {
        context.spec.tls.max_connections = count;
    }
}

pub(super) fn compression(context: &mut GlobalContext<'_>, line: &Line) {
    let keyword = line.keyword();
    if context.report.too_many(line, 2, keyword) {
        return;
    }
    match line.text(1) {
        "auto" => context.spec.tls.without_compression = false,
        "off" => context.spec.tls.without_compression = true,
        _ => context.report.alert(line.span(1), format!("'{keyword}' expects 'auto' or 'off'.")),
    }
}
