//! Numbers that a sample never has. Must never assume more of a sample than its smallest and largest value.

use crate::finding::Findings;
use crate::model::{CounterRead, Model, Test, counter_of_call};
use crate::rule::Rule;
use config::document::Word;
use expression::pattern::Method;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "impossible-number",
        doc: "a number is compared with one that the sample never has, such as a port above 65535",
        check: impossible_number,
    },
    Rule {
        name: "capture-not-declared",
        doc: "a captured field is read whose number no frontend of the section declares",
        check: capture,
    },
];

/// Samples with their smallest and largest values.
const BOUNDS: &[(&str, i64, i64)] = &[
    ("be_conn", 0, i64::MAX),
    ("be_sess_rate", 0, i64::MAX),
    ("dst_conn", 0, i64::MAX),
    ("dst_port", 0, 65_535),
    ("fe_conn", 0, i64::MAX),
    ("fe_req_rate", 0, i64::MAX),
    ("fe_sess_rate", 0, i64::MAX),
    ("nbsrv", 0, i64::MAX),
    ("queue", 0, i64::MAX),
    ("src_port", 0, 65_535),
    ("srv_conn", 0, i64::MAX),
    ("status", 100, 999),
];

/// Returns the smallest and the largest value of a test's sample.
fn bounds(test: &Test) -> Option<(i64, i64)> {
    if let Some((_, least, most)) = BOUNDS.iter().find(|row| row.0 == test.fetch).filter(|_| test.calls.len() == 1) {
        return Some((*least, *most));
    }
    // Counters of stick tables are not negative.
    let last = test.calls.last()?;
    let is_counter = matches!(counter_of_call(last), Some(CounterRead { datum: Some(_), .. }));
    is_counter.then_some((0, i64::MAX))
}

fn impossible_number(model: &Model<'_>, findings: &mut Findings) {
    for test in model.proxies.iter().flat_map(|proxy| proxy.tests()) {
        if test.method != Some(Method::Int) {
            continue;
        }
        let Some((least, most)) = bounds(test) else { continue };
        let mut operator = "eq";
        for word in &test.patterns {
            if let "eq" | "ge" | "gt" | "le" | "lt" = word.text.as_str() {
                operator = &word.text;
                continue;
            }
            let is_possible = range(operator, word).is_none_or(|(from, to)| from <= most && to >= least);
            if is_possible {
                continue;
            }
            let operator = if operator == "eq" { String::new() } else { format!("{operator} ") };
            let fetch = test.calls.last().map_or("", |call| call.name.as_str());
            let limits =
                if most == i64::MAX { "is never negative".to_owned() } else { format!("is {least} to {most}") };
            findings.add(word.span, format!("'{operator}{}' never matches: '{fetch}' {limits}", word.text));
        }
    }
}

/// Returns the values that a pattern matches; `None`: not a plain number or range.
fn range(operator: &str, word: &Word) -> Option<(i64, i64)> {
    let (from, to) = word.text.split_once(':').unwrap_or((&word.text, &word.text));
    let number = |text: &str, open: i64| if text.is_empty() { Some(open) } else { text.parse().ok() };
    let (from, to): (i64, i64) = (number(from, i64::MIN)?, number(to, i64::MAX)?);
    // A dash has a meaning of its own.
    if word.text.starts_with('-') {
        return None;
    }
    match operator {
        "ge" => Some((from, i64::MAX)),
        "gt" => Some((from.checked_add(1)?, i64::MAX)),
        "le" => Some((i64::MIN, to)),
        "lt" => Some((i64::MIN, to.checked_sub(1)?)),
        _ => Some((from, to)),
    }
}

fn capture(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        let own = model.proxies.get(proxy.index).filter(|proxy| proxy.has_clients());
        let frontends: Vec<_> = model.frontends_of(proxy).chain(own).collect();
        for sample in &proxy.samples {
            let Some(call) = sample.fetch() else { continue };
            let is_request = match call.name.as_str() {
                "capture.req.hdr" => true,
                "capture.res.hdr" => false,
                _ => continue,
            };
            let number = call.arguments.as_deref().and_then(|list| list.first()?.parse::<usize>().ok());
            let Some(number) = number.filter(|_| !frontends.is_empty()) else { continue };
            let declared = frontends.iter().map(|frontend| {
                let captures = &frontend.spec.captures;
                if is_request { captures.request.len() } else { captures.response.len() }
            });
            if declared.max().is_some_and(|most| number >= most) {
                findings
                    .add(sample.span, format!("'{}({number})' is always empty: no such field is captured", call.name));
            }
        }
    }
}
