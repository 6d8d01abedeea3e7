//! The tables of the report. Must never grow with the results beyond the size of a page.

use super::chart::Colour;
use super::quantity::{Unit, grouped};
use super::statistics::{self, Spread};
use super::summary::{self, Measured, Setting, Summary};
use super::svg::escape;
use crate::bench::figures;
use crate::bench::results::{Point, Round, ThreadTime};
use std::fmt::Write;

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 400;

/// A cell of a table: its text, and its tooltip.
struct Cell {
    text: String,
    hover: String,
    /// Share of the bar in its background, 0 to 1.
    share: Option<f64>,
}

impl Cell {
    fn empty() -> Self {
        Self { text: "–".to_owned(), hover: String::new(), share: None }
    }

    fn of(spread: Option<Spread>, show: impl Fn(f64) -> String) -> Self {
        let Some(spread) = spread else { return Self::empty() };
        let text = show(spread.median);
        let hover = format!("{} to {} in {} round(s)", show(spread.low), show(spread.high), spread.count);
        Self { text, hover, share: None }
    }

    fn write(&self, out: &mut String, small: &str) {
        let hover = escape(&self.hover, 200);
        let bar = self.share.filter(|share| share.is_finite()).map(|share| {
            let percent = (share.clamp(0.0, 1.0) * 100.0).round();
            format!("<span class=\"share\" style=\"width:{percent}%\"></span>")
        });
        let small = if small.is_empty() { String::new() } else { format!("<small>{}</small>", escape(small, 100)) };
        let text = escape(&self.text, 100);
        let bar = bar.unwrap_or_default();
        let _ = write!(out, "<td title=\"{hover}\">{text}{small}{bar}</td>");
    }
}

/// Returns the cell with the name of a way and its colour.
fn name_cell(colour: Colour, name: &str) -> String {
    format!("<th scope=\"row\"><span class=\"dot {}\"></span>{}</th>", colour.class(), escape(name, 80))
}

fn range(spread: Option<Spread>, show: impl Fn(f64) -> String) -> String {
    match spread {
        Some(spread) if spread.count > 1 => format!("{}–{}", show(spread.low), show(spread.high)),
        _ => String::new(),
    }
}

/// Columns that contain text.
const WORDS: &[&str] = &["thread", "system calls"];

/// Opens a table that scrolls horizontally if the page is narrow.
fn begin(heads: &[(&str, &str)]) -> String {
    let mut out = "<div class=\"scroll\"><table><thead><tr>".to_owned();
    for (head, unit) in heads {
        // Text is left-aligned, numbers are right-aligned.
        let class = if WORDS.contains(head) { " class=\"words\"" } else { "" };
        let unit = if unit.is_empty() { String::new() } else { format!("<small>{}</small>", escape(unit, 60)) };
        let _ = write!(out, "<th scope=\"col\"{class}>{}{unit}</th>", escape(head, 60));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    out
}

fn end(out: &mut String, left_out: usize) {
    out.push_str("</tbody></table></div>\n");
    if left_out > 0 {
        let _ = writeln!(out, "<p>{left_out} further rows are left out here; results.json has them.</p>");
    }
}

/// Returns medians and spreads of every way in these settings.
pub fn medians(summary: &Summary<'_>, settings: &[Setting]) -> String {
    let mut out = begin(&[
        ("", ""),
        ("requests a second", "median, range"),
        ("of direct", ""),
        ("Gbit/s", "received"),
        ("50 %", "latency"),
        ("99 %", "latency"),
        ("99.9 %", "latency"),
        ("CPU a request", "µs, user + system"),
        ("memory", "anonymous, a connection"),
        ("errors", "all rounds"),
        ("rounds", ""),
    ]);
    let mut rows = 0;
    let mut left_out = 0;
    for setting in settings {
        let measured = summary.within(setting);
        if rows + measured.len() > MOST_ROWS {
            left_out += measured.len();
            continue;
        }
        rows += measured.len();
        let _ = writeln!(out, "<tr class=\"group\"><th colspan=\"11\">{}</th></tr>", escape(&setting.text(), 300));
        let rates = || measured.iter().filter_map(|each| Some(each.spread(summary::rate)?.median));
        let best = rates().fold(0.0, f64::max);
        let direct = measured.iter().find(|each| each.point.proxy.is_none());
        let direct = direct.and_then(|each| Some(each.spread(summary::rate)?.median));
        for each in &measured {
            median_row(&mut out, summary, each, best, direct);
        }
    }
    end(&mut out, left_out);
    out
}

fn median_row(out: &mut String, summary: &Summary<'_>, measured: &Measured<'_>, best: f64, direct: Option<f64>) {
    let way = summary.way(measured);
    out.push_str("<tr>");
    out.push_str(&name_cell(way.colour, &way.label));
    let rate = measured.spread(summary::rate);
    let mut cell = Cell::of(rate, grouped);
    cell.share = rate.and_then(|rate| statistics::ratio(rate.median, best));
    cell.write(out, &range(rate, grouped));
    let of_direct = rate.zip(direct).and_then(|(rate, direct)| statistics::ratio(rate.median, direct));
    let mut cell = Cell::empty();
    if let (Some(share), Colour::Proxy(_)) = (of_direct, way.colour) {
        cell.text = format!("{} %", grouped(share * 100.0));
    }
    cell.write(out, "");
    Cell::of(measured.spread(summary::gigabits), grouped).write(out, "");
    for percentile in [50.0, 99.0, 99.9] {
        let spread = measured.spread(|round| summary::percentile(round, percentile));
        Cell::of(spread, |value| Unit::Micros.show(value)).write(out, "");
    }
    let parts = figures::cpu(measured.point);
    let parts = parts.map(|cpu| format!("{} + {}", grouped(cpu.user), grouped(cpu.system))).unwrap_or_default();
    Cell::of(measured.spread(summary::cpu), grouped).write(out, &parts);
    let connection =
        measured.spread(|round| of_connection(measured.point, round)).map(|spread| Unit::Memory.show(spread.median));
    Cell::of(measured.spread(summary::memory), |value| Unit::Memory.show(value))
        .write(out, &connection.unwrap_or_default());
    let sum: f64 = measured.rounds.iter().map(|round| summary::errors(round)).sum();
    let bad: f64 = measured.rounds.iter().map(|round| round.total.error_status as f64).sum();
    let hover = format!("{} answers with a status of 400 or above beside them", grouped(bad));
    Cell { text: grouped(sum), hover, share: None }
        .write(out, &if bad > 0.0 { format!("+ {} status", grouped(bad)) } else { String::new() });
    let faults = measured.point.rounds.len().saturating_sub(measured.rounds.len());
    let spoiled = if faults > 0 { format!("{faults} not counted") } else { String::new() };
    Cell { text: measured.rounds.len().to_string(), hover: String::new(), share: None }.write(out, &spoiled);
    out.push_str("</tr>\n");
}

/// Minimum number of connections for memory per connection: with fewer, the first requests dominate.
const MANY: u32 = 1000;

/// Returns the memory per connection in bytes; `None` if there were too few, or the memory before was not read.
fn of_connection(point: &Point, round: &Round) -> Option<f64> {
    let read = round.memory.before > 0 && point.connections >= MANY;
    let grown = round.memory.anonymous.checked_sub(round.memory.before).filter(|_| read)?;
    statistics::ratio(grown as f64, f64::from(point.connections))
}

/// Returns the CPU of each thread in the median round of each proxy.
pub fn threads(summary: &Summary<'_>) -> Option<String> {
    const MOST_THREADS: usize = 32;
    let mut out = begin(&[
        ("proxy", ""),
        ("thread", "process/thread, name"),
        ("user", "ms"),
        ("system", "ms"),
        ("busy", "of the round"),
    ]);
    let mut rows = 0;
    let mut left_out = 0;
    for setting in &summary.settings {
        let with_threads = |each: &&&Measured<'_>| each.rounds.iter().any(|round| !round.threads.is_empty());
        let measured = summary.within(setting);
        let shown: Vec<_> = measured.iter().filter(with_threads).collect();
        if shown.is_empty() {
            continue;
        }
        if rows > MOST_ROWS {
            left_out +=
                shown.iter().map(|each| each.rounds.first().map_or(0, |round| round.threads.len())).sum::<usize>();
            continue;
        }
        let _ = writeln!(out, "<tr class=\"group\"><th colspan=\"5\">{}</th></tr>", escape(&setting.text(), 300));
        for each in shown {
            let Some(round) = each.middle().and_then(|middle| each.rounds.get(middle)) else { continue };
            let mut busiest: Vec<&ThreadTime> = round.threads.iter().collect();
            busiest.sort_by(|a, b| (b.user + b.system).total_cmp(&(a.user + a.system)));
            left_out += busiest.len().saturating_sub(MOST_THREADS);
            for thread in busiest.into_iter().take(MOST_THREADS) {
                rows += 1;
                thread_row(&mut out, summary, each, round, thread);
            }
        }
    }
    end(&mut out, left_out);
    (rows > 0).then_some(out)
}

fn thread_row(out: &mut String, summary: &Summary<'_>, measured: &Measured<'_>, round: &Round, thread: &ThreadTime) {
    let way = summary.way(measured);
    let name = escape(&thread.name, 40);
    let busy = statistics::ratio(thread.user + thread.system, round.total.length * 1e6);
    let _ = write!(
        out,
        "<tr>{}<td class=\"words\">{}/{} {name}</td><td>{}</td><td>{}</td>",
        name_cell(way.colour, &way.label),
        thread.process,
        thread.thread,
        grouped(thread.user / 1e3),
        grouped(thread.system / 1e3)
    );
    let text = busy.map_or("–".to_owned(), |busy| format!("{:.1} %", busy * 100.0));
    Cell { text, hover: String::new(), share: busy }.write(out, "");
    out.push_str("</tr>\n");
}

/// Returns further costs of a request: packets, CPU of the load and of the origins, and system calls of the proxy.
pub fn costs(summary: &Summary<'_>) -> Option<String> {
    let mut out = begin(&[
        ("", ""),
        ("packets", "a request"),
        ("load", "µs of CPU a request"),
        ("origins", "µs of CPU a request"),
        ("system calls", "a request, those that the most are made of first"),
    ]);
    let (mut rows, mut left_out) = (0, 0);
    for setting in &summary.settings {
        let measured = summary.within(setting);
        if rows + measured.len() > MOST_ROWS {
            left_out += measured.len();
            continue;
        }
        rows += measured.len();
        let _ = writeln!(out, "<tr class=\"group\"><th colspan=\"5\">{}</th></tr>", escape(&setting.text(), 300));
        for each in &measured {
            let way = summary.way(each);
            let _ = write!(out, "<tr>{}", name_cell(way.colour, &way.label));
            let known = |value: f64, round: &Round| {
                statistics::ratio(value, round.total.answers as f64).filter(|value| *value > 0.0)
            };
            Cell::of(each.spread(summary::packets), grouped).write(&mut out, "");
            Cell::of(each.spread(|round| known(round.load_cpu, round)), grouped).write(&mut out, "");
            Cell::of(each.spread(|round| known(round.origin_cpu, round)), grouped).write(&mut out, "");
            let _ = writeln!(out, "<td class=\"words\">{}</td></tr>", escape(&calls(each), 1500));
        }
    }
    end(&mut out, left_out);
    (rows > 0).then_some(out)
}

fn calls(measured: &Measured<'_>) -> String {
    let Some(round) = measured.point.rounds.iter().rev().find(|round| !round.system_calls.is_empty()) else {
        return if measured.point.proxy.is_some() { "not counted".to_owned() } else { "–".to_owned() };
    };
    let mut calls: Vec<(&String, f64)> = round.system_calls.iter().map(|(name, count)| (name, *count)).collect();
    calls.retain(|(_, count)| count.is_finite());
    calls.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum: f64 = calls.iter().map(|call| call.1).sum();
    let named = calls.iter().take(12).map(|(name, count)| format!("{name} {}", grouped(*count)));
    let rest = calls.len().saturating_sub(12);
    let rest = if rest > 0 { format!(", {rest} others") } else { String::new() };
    format!("{} in all: {}{rest}", grouped(sum), named.collect::<Vec<_>>().join(", "))
}

/// Returns a list of the faults, each with its place.
pub fn faults(summary: &Summary<'_>) -> Option<String> {
    const MOST: usize = 200;
    let mut out = "<ul class=\"faults\">\n".to_owned();
    let mut count = 0_usize;
    for point in &summary.results.points {
        for round in &point.rounds {
            let Some(fault) = &round.fault else { continue };
            count += 1;
            if count > MOST {
                continue;
            }
            let who = escape(point.proxy.as_deref().unwrap_or("direct"), 80);
            let size = Unit::Size.show(point.size as f64);
            let rate =
                point.rate.map(|rate| format!(", {} requests a second offered", grouped(rate))).unwrap_or_default();
            let (connections, workers, order) = (point.connections, point.workers, round.order);
            let at = format!("round {order}: {size}, {connections} connections, {workers} workers{rate}");
            let _ = writeln!(out, "<li><b>{who}</b>, {}: {}</li>", escape(&at, 200), escape(fault, 500));
        }
    }
    out.push_str("</ul>\n");
    if count > MOST {
        let _ = writeln!(out, "<p>{} further faults are in results.json.</p>", count - MOST);
    }
    (count > 0).then_some(out)
}
