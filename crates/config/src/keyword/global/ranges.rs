//! Value ranges of settings that have no effect in Weir: lines that HAProxy rejects are rejected too. Must never store
//! a value.

use super::GlobalKeyword;
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::keyword::report::Report;

/// Name, minimum, maximum, and the message about other values; `{}` is the argument as written.
const RANGES: &[(&str, i64, i64, &str)] = &[
    ("tune.buffers.limit", 0, i64::MAX, "expects a non-negative number but got '{}'."),
    ("tune.buffers.reserve", 0, i64::MAX, "expects a non-negative number but got '{}'."),
    ("tune.events.max-events-at-once", 1, 10_000, "expects an integer argument between 1 and 10000."),
    ("tune.fail-alloc", 0, 100, "expects a numeric value between 0 and 100."),
    ("tune.h2.max-frame-size", 16_384, 16_777_215, "expects a numeric value between 16384 and 16777215."),
    ("tune.memory.hot-size", 1, i64::MAX, "expects a strictly positive value."),
    ("tune.pattern.cache-size", 0, i64::MAX, "expects a positive numeric value"),
    ("tune.renice.startup", -20, 19, "only supports values between -20 and 19 inclusive (was given {})"),
    ("tune.ring.queues", 0, 16, "expects a number between 0 and 16 but got '{}'."),
    ("tune.ssl.default-dh-param", 1_024, i64::MAX, "expects a value >= 1024."),
    ("tune.ssl.maxrecord", 0, i64::MAX, "expects a positive numeric value."),
    ("tune.zlib.memlevel", 1, 9, "expects a numeric value between 1 and 9."),
];

/// Names that require a value; for the others a missing value reads as 0.
const WITH_VALUE: [&str; 3] = ["tune.pattern.cache-size", "tune.ssl.default-dh-param", "tune.ssl.maxrecord"];

/// Whether HAProxy accepts the number of a line; otherwise reports an error.
pub(super) fn is_within(row: &GlobalKeyword, line: &Line, report: &mut Report<'_>) -> bool {
    let Some((name, least, most, message)) = RANGES.iter().find(|(name, ..)| *name == row.name) else { return true };
    let text = line.text(1);
    let missing = text.is_empty() && WITH_VALUE.contains(name);
    if !missing && (*least..=*most).contains(&leading_number(text).0) {
        return true;
    }
    report.alert(line.span(1), format!("'{name}' {}", message.replace("{}", text)));
    false
}
