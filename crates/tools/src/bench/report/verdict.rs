//! The run in one sentence, made from its numbers. Must never call a proxy better where its rounds overlap with
//! another's.

use super::quantity::grouped;
use super::statistics::{self, Spread};
use super::summary::{self, Measured, Setting, Summary};

/// The sentence.
pub fn sentence(summary: &Summary<'_>) -> String {
    if summary.settings.is_empty() {
        return if summary.results.points.is_empty() {
            "Nothing was measured.".to_owned()
        } else {
            "Every round had a fault, so nothing can be said: see the faults at the end.".to_owned()
        };
    }
    // The setting in which the most was compared; the first of equals.
    let most = summary.settings.iter().rev().max_by_key(|setting| proxies(summary, setting).len());
    let Some(setting) = most else { return String::new() };
    let found = compared(summary, setting, summary::cpu, |names, parts| cheapest(&names, &parts))
        .or_else(|| compared(summary, setting, summary::rate, |names, parts| fastest(&names, &parts)))
        .or_else(|| alone(summary, setting));
    match found {
        Some(said) => format!("{said} ({}).", said_of(summary, setting)),
        None => direct(summary, setting),
    }
}

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

fn compared(
    summary: &Summary<'_>,
    setting: &Setting,
    figure: fn(&crate::bench::results::Round) -> Option<f64>,
    say: impl Fn(Vec<String>, Vec<Spread>) -> String,
) -> Option<String> {
    let known = proxies(summary, setting).into_iter();
    let mut known: Vec<(String, Spread)> =
        known.filter_map(|each| Some((summary.way(each).label.clone(), each.spread(figure)?))).collect();
    known.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    known.truncate(8);
    let (names, spreads): (Vec<String>, Vec<Spread>) = known.into_iter().unzip();
    (names.len() > 1).then(|| say(names, spreads))
}

/// From the least to the greatest CPU.
fn cheapest(names: &[String], spreads: &[Spread]) -> String {
    let micros = |spread: &Spread| format!("{} µs", grouped(spread.median));
    let (best, second) = (&spreads[0], &spreads[1]);
    if best.overlaps(second) {
        return format!(
            "{} and {} spend about the same CPU on a request, {} and {}: their rounds overlap",
            names[0],
            names[1],
            micros(best),
            micros(second)
        );
    }
    let others = names.iter().zip(spreads).skip(1).map(|(name, spread)| {
        let times = statistics::ratio(spread.median, best.median);
        let times = times.map(|times| format!(" ({times:.2} times as much)")).unwrap_or_default();
        format!("{}{times} for {name}", micros(spread))
    });
    format!("{} spends the least CPU on a request: {}, against {}", names[0], micros(best), list(others.collect()))
}

/// From the fewest to the most requests a second.
fn fastest(names: &[String], spreads: &[Spread]) -> String {
    let last = names.len() - 1;
    let (best, second) = (&spreads[last], &spreads[last - 1]);
    if best.overlaps(second) {
        return format!(
            "{} and {} pass about as many requests a second, {} and {}: their rounds overlap",
            names[last],
            names[last - 1],
            grouped(best.median),
            grouped(second.median)
        );
    }
    let others = names[..last].iter().zip(spreads).rev();
    let others = others.map(|(name, spread)| format!("{} through {name}", grouped(spread.median)));
    format!(
        "{} passes the most requests a second: {}, against {}",
        names[last],
        grouped(best.median),
        list(others.collect())
    )
}

/// One proxy beside the way without one.
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
