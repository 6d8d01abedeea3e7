//! Passive detection of failing servers, in addition to health checks. Weir only.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::place::places::BACK;
use crate::spec::{HedgeDelay, HedgeSpec, OutlierSpec, RetryBudgetSpec};
use crate::units;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        BACK,
        "eject-outliers",
        "[errors <percent>] [latency <factor>] [window <time>] [min-requests <number>] [time <time>] [max-time <time>] \
         [max-ejected <percent>]",
        "Weir's own: temporarily excludes servers whose requests fail or are slower than those of the others.",
        eject_outliers,
    ),
    supported(
        BACK,
        "retry-budget",
        "<percent> [min <number>]",
        "Weir's own: maximum share of retries among all requests, over ten seconds.",
        retry_budget,
    ),
    supported(
        BACK,
        "hedge-requests",
        "after { <time> | p<percentile> } [budget <percent>] [min <number>]",
        "Weir's own: sends a late request to a second server as well and uses the first response.",
        hedge_requests,
    ),
];

/// Parses an integer percentage from `least` to `most`.
fn percent(text: &str, least: u32, most: u32) -> Option<u32> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number.parse().ok().filter(|number| (least..=most).contains(number))
}

/// Parses a factor above one, such as `2.5`; returns per cent.
fn factor(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 2 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = if part.len() == 1 { 10 } else { 1 };
    let hundredths =
        whole.parse::<u32>().ok().filter(|whole| *whole <= 1_000)? * 100 + part.parse::<u32>().ok()? * scale;
    (hundredths > 100).then_some(hundredths)
}

fn time(text: &str) -> Option<u64> {
    const LONGEST: u64 = 24 * 3_600_000;
    units::milliseconds(text).ok().map(|time| time.value).filter(|millis| (1..=LONGEST).contains(millis))
}

fn eject_outliers(context: &mut ProxyContext<'_>, line: &Line) {
    match read_outliers(line) {
        Ok(outliers) => context.draft.spec.limits.outliers = Some(outliers),
        Err((word, message)) => context.report.alert(line.span(word), format!("'eject-outliers' : {message}.")),
    }
}

fn read_outliers(line: &Line) -> Result<OutlierSpec, (usize, String)> {
    let mut read = OutlierSpec::default();
    let mut at = 1;
    while at < line.words.len() {
        let (name, value) = (line.text(at), line.text(at + 1));
        let wrong = |wanted: &str| (at + 1, format!("'{name}' expects {wanted}, got '{value}'"));
        let no_time = || wrong("a time of up to a day");
        match name {
            "errors" => {
                read.errors = Some(percent(value, 1, 100).ok_or_else(|| wrong("a percentage from 1 to 100"))?);
            }
            "latency" => read.latency = Some(factor(value).ok_or_else(|| wrong("a factor above 1, such as 2.5"))?),
            "window" => read.window = time(value).ok_or_else(no_time)?,
            "min-requests" => {
                let number = value.parse().ok().filter(|number| *number > 0);
                read.min_requests = number.ok_or_else(|| wrong("a number of requests"))?;
            }
            "time" => read.time = time(value).ok_or_else(no_time)?,
            "max-time" => read.max_time = time(value).ok_or_else(no_time)?,
            "max-ejected" => {
                read.max_ejected = percent(value, 0, 100).ok_or_else(|| wrong("a percentage from 0 to 100"))?;
            }
            _ => {
                let message = format!(
                    "unknown argument '{name}', expects 'errors', 'latency', 'window', 'min-requests', 'time', \
                     'max-time' or 'max-ejected'"
                );
                return Err((at, message));
            }
        }
        at += 2;
    }
    if read.errors.is_none() && read.latency.is_none() {
        read.errors = Some(50);
    }
    read.max_time = read.max_time.max(read.time);
    Ok(read)
}

fn retry_budget(context: &mut ProxyContext<'_>, line: &Line) {
    let share = percent(line.text(1), 0, 100);
    let least = match line.text(2) {
        "" => Some(10),
        "min" => line.text(3).parse::<u32>().ok().filter(|_| line.words.len() == 4),
        _ => None,
    };
    match (share, least) {
        (Some(share), Some(least)) => {
            context.draft.spec.limits.retry_budget = Some(RetryBudgetSpec { share, least });
        }
        _ => {
            let message =
                "'retry-budget' expects a percentage of requests, and 'min' with a number of retries a second.";
            context.report.alert(line.span(1), message);
        }
    }
}

fn hedge_requests(context: &mut ProxyContext<'_>, line: &Line) {
    match read_hedge(line) {
        Ok(hedge) => context.draft.spec.limits.hedge = Some(hedge),
        Err((word, message)) => context.report.alert(line.span(word), format!("'hedge-requests' {message}.")),
    }
}

fn read_hedge(line: &Line) -> Result<HedgeSpec, (usize, String)> {
    let percentile = |text: &str| percent(text.strip_prefix('p')?, 50, 99).map(HedgeDelay::Percentile);
    if line.text(1) != "after" {
        return Err((1, "expects 'after' with a time or a percentile".to_owned()));
    }
    let after = percentile(line.text(2)).or_else(|| time(line.text(2)).map(HedgeDelay::Time));
    let Some(after) = after else {
        let message = format!("expects a time of up to a day, or a percentile from p50 to p99, got '{}'", line.text(2));
        return Err((2, message));
    };
    let mut read = HedgeSpec { after, share: 10, least: 1 };
    let mut at = 3;
    while at < line.words.len() {
        let value = line.text(at + 1);
        match line.text(at) {
            "budget" => {
                let share = percent(value, 0, 100);
                read.share = share
                    .ok_or_else(|| (at + 1, format!(": 'budget' expects a percentage from 0 to 100, got '{value}'")))?;
            }
            "min" => {
                let wrong = || (at + 1, format!(": 'min' expects a number of requests a second, got '{value}'"));
                read.least = value.parse().map_err(|_| wrong())?;
            }
            other => return Err((at, format!(": unknown argument '{other}', expects 'budget' or 'min'"))),
        }
        at += 2;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_above_one() {
        let rows = [("2", Some(200)), ("1.5", Some(150)), ("1.05", Some(105)), ("1", None), ("0.5", None), ("x", None)];
        for (text, expected) in rows {
            assert_eq!(factor(text), expected, "{text}");
        }
        assert_eq!([factor("2."), factor("2.123"), factor("2000"), factor("")], [None; 4]);
    }
}
