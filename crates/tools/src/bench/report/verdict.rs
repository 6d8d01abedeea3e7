//! Summary of the run in a few sentences: CPU, requests per second and latency together. Must never call a proxy
//! better if its rounds overlap with another's, or if there were too few of them.

use super::quantity::{Unit, grouped};
use super::statistics::{self, Spread};
use super::summary::{self, Measured, Setting, Summary};
use crate::bench::results::Round;

/// Returns the sentences.
pub fn sentence(summary: &Summary<'_>) -> String {
    if summary.settings.is_empty() {
        return if summary.results.points.is_empty() {
            "Nothing was measured.".to_owned()
        } else {
            "Every round had a fault, so nothing can be said: see the faults at the end.".to_owned()
        };
    }
    // The setting with the most proxies; the first of equals.
    let most = summary.settings.iter().rev().max_by_key(|setting| proxies(summary, setting).len());
    let Some(setting) = most else { return String::new() };
    let clauses: Vec<String> = FIGURES.iter().filter_map(|figure| compared(summary, setting, figure)).collect();
    if !clauses.is_empty() {
        let few = proxies(summary, setting).iter().any(|each| each.rounds.len() < ENOUGH);
        let noise = if few { ", too few to tell a difference from noise" } else { "" };
        return format!("{}. {}{noise}.", clauses.join(". "), capital(&said_of(summary, setting)));
    }
    match alone(summary, setting) {
        Some(said) => format!("{said} ({}).", said_of(summary, setting)),
        None => direct(summary, setting),
    }
}

/// Figures that are compared. None of them alone shows which program is better: a proxy may save CPU because it
/// transfers less.
const FIGURES: &[Compared] = &[
    Compared { name: "CPU a request", best: "least", least: true, figure: summary::cpu, shown: Unit::Micros },
    Compared { name: "Requests a second", best: "most", least: false, figure: summary::rate, shown: Unit::Grouped },
    Compared { name: "99th percentile", best: "least", least: true, figure: tail, shown: Unit::Micros },
];

/// A figure that is compared.
struct Compared {
    name: &'static str,
    /// The word for the best value.
    best: &'static str,
    /// Whether less is better.
    least: bool,
    figure: fn(&Round) -> Option<f64>,
    shown: Unit,
}

fn tail(round: &Round) -> Option<f64> {
    summary::percentile(round, 99.0)
}

/// Minimum number of rounds for a difference to be reported.
const ENOUGH: usize = 3;

fn proxies<'s, 'a>(summary: &'s Summary<'a>, setting: &Setting) -> Vec<&'s Measured<'a>> {
    let mut found = summary.within(setting);
    found.retain(|each| each.point.proxy.is_some());
    found
}

fn said_of(summary: &Summary<'_>, setting: &Setting) -> String {
    let rounds = summary.within(setting).iter().map(|each| each.rounds.len()).max().unwrap_or(0);
    let rounds = if rounds == 1 { "one round".to_owned() } else { format!("medians of {rounds} rounds") };
    format!("{}; {rounds}", setting.text())
}

/// Compares one figure of all proxies, the best first; `None` with fewer than two of them.
fn compared(summary: &Summary<'_>, setting: &Setting, by: &Compared) -> Option<String> {
    let known = proxies(summary, setting).into_iter();
    let mut known: Vec<(&str, Spread)> =
        known.filter_map(|each| Some((&*summary.way(each).label, each.spread(by.figure)?))).collect();
    known.sort_by(|a, b| if by.least { a.1.median.total_cmp(&b.1.median) } else { b.1.median.total_cmp(&a.1.median) });
    known.truncate(8);
    let [(first, best), rest @ ..] = &known[..] else { return None };
    let (_, second) = rest.first()?;
    let shown = |name: &str, spread: &Spread| format!("{name} {}", by.shown.show(spread.median));
    if best.count.min(second.count) < ENOUGH || best.overlaps(second) {
        let all = known.iter().map(|(name, spread)| shown(name, spread)).collect();
        let noise = if best.count.min(second.count) < ENOUGH { "" } else { " (the best two within noise)" };
        return Some(format!("{}: {}{noise}", by.name, list(all)));
    }
    let others = rest.iter().map(|(name, spread)| {
        let times = statistics::ratio(spread.median, best.median);
        let times = times.map(|times| format!(" ({times:.2} times as much)")).unwrap_or_default();
        format!("{}{times}", shown(name, spread))
    });
    Some(format!("{}: {} ({}), against {}", by.name, shown(first, best), by.best, list(others.collect())))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Compares one proxy with the direct way.
fn alone(summary: &Summary<'_>, setting: &Setting) -> Option<String> {
    let measured = summary.within(setting);
    let proxy = measured.iter().find(|each| each.point.proxy.is_some())?;
    let rate = proxy.spread(summary::rate)?;
    let mut said = format!("{} passes {} requests a second", summary.way(proxy).label, grouped(rate.median));
    let direct = measured.iter().find(|each| each.point.proxy.is_none()).and_then(|each| each.spread(summary::rate));
    if let Some(share) = direct.and_then(|direct| statistics::ratio(rate.median, direct.median)) {
        said.push_str(&format!(", {:.0} % of what the load reaches without it", share * 100.0));
    }
    if let Some(cpu) = proxy.spread(summary::cpu) {
        said.push_str(&format!(", and spends {} µs of CPU on each", grouped(cpu.median)));
    }
    Some(said)
}

fn direct(summary: &Summary<'_>, setting: &Setting) -> String {
    let measured = summary.within(setting);
    match measured.iter().find_map(|each| each.spread(summary::rate)) {
        Some(rate) => {
            let said = said_of(summary, setting);
            format!("Without a proxy the load reaches {} requests a second ({said}).", grouped(rate.median))
        }
        None => "No answer was complete, so nothing can be said.".to_owned(),
    }
}

fn list(mut parts: Vec<String>) -> String {
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) }
}
