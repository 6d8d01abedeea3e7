//! Traces of OpenTelemetry (Weir only).

use super::{ProxyContext, ProxyKeyword, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::place::places::FRONT_WILL;
use crate::span::Spanned;
use crate::spec::{OtelTraceSpec, WHOLE_SAMPLE};
use crate::suggest;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[supported(
    FRONT_WILL,
    "otel-trace",
    "[sample <percent>] [name <format>] [attribute <name> <format>]... | off",
    "Sends spans of streams to the collector of `otel-exporter`. Weir's own.",
    trace,
)];

/// Maximum number of attributes of a line.
const MOST_ATTRIBUTES: usize = 64;

fn trace(context: &mut ProxyContext<'_>, line: &Line) {
    let mut spec = OtelTraceSpec { span: line.whole(), sample: WHOLE_SAMPLE, name: None, attributes: Vec::new() };
    if line.text(1) == "off" {
        if !context.report.too_many(line, 2, "otel-trace off") {
            context.draft.spec.otel = None;
        }
        return;
    }
    let mut at = 1;
    while at < line.words.len() {
        match option(&mut spec, line, at) {
            Ok(used) => at += used,
            Err((place, message)) => {
                let mut found = Diagnostic::alert(line.span(place), message);
                if place == at {
                    let known = ["sample", "name", "attribute", "off"];
                    found.hint = suggest::nearest(line.text(at), known).map(|known| format!("write '{known}'"));
                }
                return context.report.push(found);
            }
        }
    }
    context.draft.spec.otel = Some(Box::new(spec));
}

/// Parses the option at a word: returns its number of words, or the wrong word and the reason.
fn option(spec: &mut OtelTraceSpec, line: &Line, at: usize) -> Result<usize, (usize, String)> {
    let name = line.text(at);
    let words = match name {
        "sample" | "name" => 2,
        "attribute" => 3,
        _ => return Err((at, format!("'otel-trace' : unknown option '{name}'"))),
    };
    if line.words.len() < at + words {
        return Err((at + words - 1, format!("'otel-trace' : missing argument for '{name}'.")));
    }
    let text = |at: usize| Spanned::new(line.text(at).to_owned(), line.span(at));
    match name {
        "sample" => {
            let why = || format!("'otel-trace sample' : '{}' is no number from 0 to 100.", line.text(at + 1));
            spec.sample = percent(line.text(at + 1)).ok_or_else(|| (at + 1, why()))?;
        }
        "name" => spec.name = Some(text(at + 1)),
        _ if spec.attributes.len() == MOST_ATTRIBUTES => {
            return Err((at + 1, format!("'otel-trace' : more than {MOST_ATTRIBUTES} attributes.")));
        }
        _ => spec.attributes.push((line.text(at + 1).to_owned(), text(at + 2))),
    }
    Ok(words)
}

/// Parses a percentage with up to six decimal digits and an optional `%`; returns millionths.
pub(crate) fn percent(text: &str) -> Option<u32> {
    let text = text.strip_suffix('%').unwrap_or(text);
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str, most: usize| {
        (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(whole, 3) || !is_number(part, 6) {
        return None;
    }
    let part = format!("{part:0<6}").parse::<u32>().ok()?;
    Some(whole.parse::<u32>().ok()? * 1_000_000 + part).filter(|found| *found <= WHOLE_SAMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        for (text, expected) in [
            ("100", Some(100_000_000)),
            ("100.0", Some(100_000_000)),
            ("0", Some(0)),
            ("12.5%", Some(12_500_000)),
            ("0.000001", Some(1)),
            ("0.0000001", None),
            ("100.1", None),
            ("-1", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("x", None),
        ] {
            assert_eq!(percent(text), expected, "{text}");
        }
    }
}
