//! The tables of a page, one function for each kind. Must never leave a gap silently: a scenario without results is
//! named.

use super::regions::Region;
use crate::bench::figures::{self, Cpu, count};
use crate::bench::report::Unit;
use crate::bench::results::{Point, Results};
use crate::bench::text::{bytes, head, program, rounded, row, thousands};

/// Generator of a region's content.
pub type Kind = fn(&[&Results]) -> String;

const KINDS: &[(&str, Kind)] = &[
    ("machine", machine),
    ("cpu", cpu),
    ("added", added),
    ("rates", rates),
    ("sizes", sizes),
    ("latency", latency),
    ("offered", offered),
    ("workers", workers),
    ("memory", memory),
    ("calls", calls),
];

/// Returns the content of a region, whose words are the scenarios.
///
/// # Errors
///
/// An unknown kind, or no scenario.
pub fn write(results: &[Results], region: &Region<'_>) -> Result<String, String> {
    let write = kind(region)?;
    let find = |name: &&str| results.iter().find(|run| run.scenario.name == **name);
    let found: Vec<&Results> = region.words.iter().filter_map(find).collect();
    let mut text = if found.is_empty() { String::new() } else { write(&found) };
    for name in missing(results, &region.words) {
        text += &format!("\n{}\n", not_run(name));
    }
    Ok(text)
}

/// Returns the generator of a region.
///
/// # Errors
///
/// An unknown kind, or no scenario.
pub fn kind(region: &Region<'_>) -> Result<Kind, String> {
    let Some((_, write)) = KINDS.iter().find(|(kind, _)| *kind == region.kind) else {
        let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).chain(["picture"]).collect();
        return Err(format!("'{}' is no kind of results; known are {}", region.kind, known.join(", ")));
    };
    if region.words.is_empty() {
        return Err(format!("'{}' needs the names of scenarios", region.kind));
    }
    Ok(*write)
}

/// Returns the scenarios without results.
pub fn missing<'a>(results: &[Results], scenarios: &[&'a str]) -> Vec<&'a str> {
    let is_missing = |name: &&&str| !results.iter().any(|run| run.scenario.name == ***name);
    scenarios.iter().filter(is_missing).copied().collect()
}

/// Returns the text in place of a scenario without results.
pub fn not_run(scenario: &str) -> String {
    format!("`{scenario}` was not run.")
}

/// Returns name and program of every proxy of the runs, in their order.
fn proxies<'a>(runs: &[&'a Results]) -> Vec<(&'a str, String)> {
    let mut known: Vec<(&str, String)> = Vec::new();
    for proxy in runs.iter().flat_map(|run| &run.proxies) {
        if !known.iter().any(|(name, _)| *name == proxy.name) {
            known.push((&proxy.name, program(&proxy.version, &proxy.name)));
        }
    }
    known
}

/// Returns the point of that proxy with the setting of another point.
fn same<'a>(run: &'a Results, proxy: &'a str, like: &Point) -> Option<&'a Point> {
    figures::points(run, Some(proxy)).find(|point| {
        (point.size, point.workers, point.connections) == (like.size, like.workers, like.connections)
            && point.rate.map(f64::to_bits) == like.rate.map(f64::to_bits)
    })
}

/// Returns the points of the first proxy: the rows of most tables.
fn settings(run: &Results) -> Vec<&Point> {
    let first = run.proxies.first().map(|proxy| proxy.name.as_str());
    first.map_or_else(Vec::new, |first| figures::points(run, Some(first)).collect())
}

/// Returns the title, with size and threads if the scenario has several.
fn label(run: &Results, point: &Point) -> String {
    let others = settings(run);
    let mut which = Vec::new();
    if others.iter().any(|other| other.size != point.size) {
        which.push(bytes(count(point.size)));
    }
    if others.iter().any(|other| other.workers != point.workers) {
        which.push(if point.workers == 1 { "one thread".to_owned() } else { format!("{} threads", point.workers) });
    }
    let title = run.scenario.title.replace('|', "\\|");
    if which.is_empty() { title } else { format!("{title}: {}", which.join(", ")) }
}

fn dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "—".to_owned())
}

/// Formats a time in a suitable unit.
fn time(micros: f64) -> String {
    if micros >= 10_000.0 { format!("{} ms", rounded(micros / 1000.0)) } else { format!("{} µs", rounded(micros)) }
}

fn machine(runs: &[&Results]) -> String {
    let mut text = String::new();
    for run in &runs[..1] {
        let machine = &run.machine;
        text += &format!(
            "- Machine: {}, {} processors, {} of memory, {}\n",
            machine.processor,
            machine.cores,
            Unit::Memory.show(count(machine.memory)),
            machine.kernel
        );
        text += &format!("- Begun: {}, with {} as client and origin\n", run.begun, program(&run.weir, "Weir"));
    }
    for (_, version) in proxies(runs) {
        text += &format!("- Compared: {version}\n");
    }
    let mut warnings: Vec<String> = Vec::new();
    for finding in runs.iter().flat_map(|run| &run.environment) {
        if let Some(warning) = &finding.warning {
            let line = format!("- Not as it should be: {}: {}. {warning}\n", finding.subject, finding.seen);
            if !warnings.iter().any(|known| known.starts_with(&format!("- Not as it should be: {}:", finding.subject)))
            {
                warnings.push(line);
            }
        }
    }
    text + &warnings.concat()
}

fn cpu(runs: &[&Results]) -> String {
    let proxies = proxies(runs);
    let mut columns = vec!["CPU a request".to_owned()];
    columns.extend(proxies.iter().enumerate().map(|(place, (_, version))| {
        if place == 0 { format!("{version}, µs (user / system)") } else { format!("{version}, times as much (µs)") }
    }));
    let mut text = head(&columns);
    for run in runs {
        for point in settings(run) {
            let own = figures::cpu(point);
            let mut cells = vec![label(run, point)];
            cells.push(dash(
                own.map(|cpu| format!("{} ({} / {})", rounded(cpu.whole()), rounded(cpu.user), rounded(cpu.system))),
            ));
            cells.extend(proxies.iter().skip(1).map(|(name, _)| {
                let other = same(run, name, point).and_then(figures::cpu).map(Cpu::whole);
                dash(other.map(|other| match own {
                    Some(own) => format!("{:.2} ({})", other / own.whole(), rounded(other)),
                    None => format!("({})", rounded(other)),
                }))
            }));
            text += &row(&cells);
        }
    }
    text
}

/// Suffix of the name of a proxy that is the same without the measured feature.
const WITHOUT: &str = "-without";

/// Returns the additional cost of each program over the same program without the scenario's feature.
fn added(runs: &[&Results]) -> String {
    let columns = ["CPU a request", "with, µs", "without, µs", "added, µs (user / system)", "the first's part of it"];
    let mut text = head(&columns.map(str::to_owned));
    for run in runs {
        for point in settings(run) {
            let mut first = None;
            for proxy in &run.proxies {
                let without = format!("{}{WITHOUT}", proxy.name);
                let cost = |name| same(run, name, point).and_then(figures::cpu);
                let Some((with, without)) = cost(&proxy.name).zip(cost(&without)) else { continue };
                let more = Cpu { user: with.user - without.user, system: with.system - without.system };
                let part = first.get_or_insert(more).whole() / more.whole();
                text += &row(&[
                    format!("{}: {}", label(run, point), program(&proxy.version, &proxy.name)),
                    rounded(with.whole()),
                    rounded(without.whole()),
                    format!("{} ({} / {})", rounded(more.whole()), rounded(more.user), rounded(more.system)),
                    format!("{part:.2}"),
                ]);
            }
        }
    }
    text
}

fn rates(runs: &[&Results]) -> String {
    by_proxy(runs, "requests a second", |point| figures::rate(point).map(rounded))
}

/// Returns one row for each setting, one column for each proxy and the direct way.
fn by_proxy(runs: &[&Results], what: &str, figure: impl Fn(&Point) -> Option<String>) -> String {
    let proxies = proxies(runs);
    let mut columns = vec![what.to_owned()];
    columns.extend(proxies.iter().map(|(_, version)| version.clone()));
    let mut text = head(&columns);
    for run in runs {
        for point in settings(run) {
            let mut cells = vec![label(run, point)];
            cells.extend(proxies.iter().map(|(name, _)| dash(same(run, name, point).and_then(&figure))));
            text += &row(&cells);
        }
    }
    text
}

fn sizes(runs: &[&Results]) -> String {
    let proxies = proxies(runs);
    let mut columns = vec!["object".to_owned(), "direct: requests a second".to_owned()];
    for (_, version) in &proxies {
        columns.extend([format!("{version}: requests a second, Gbit/s"), "CPU, µs".to_owned()]);
    }
    let mut text = head(&columns);
    for run in runs {
        for point in settings(run) {
            let direct = figures::points(run, None).find(|other| other.size == point.size).and_then(figures::rate);
            let mut cells = vec![bytes(count(point.size)), dash(direct.map(rounded))];
            for (name, _) in &proxies {
                let other = same(run, name, point);
                let rate = other.and_then(figures::rate);
                let gbit = |rate: f64| rate * count(point.size) * 8.0 / 1e9;
                cells.push(dash(rate.map(|rate| format!("{}, {}", rounded(rate), rounded(gbit(rate))))));
                cells.push(dash(other.and_then(figures::cpu).map(|cpu| rounded(cpu.whole()))));
            }
            text += &row(&cells);
        }
    }
    text
}

fn latency(runs: &[&Results]) -> String {
    const COLUMNS: [&str; 8] = [
        "way",
        "requests a second",
        "50 %",
        "99 %",
        "99.9 %",
        "99.99 %",
        "reference client 50 %",
        "reference client 99 %",
    ];
    let mut text = String::new();
    for run in runs {
        text += &head(&COLUMNS.map(str::to_owned));
        let direct = figures::points(run, None).next().map(|point| ("direct".to_owned(), point));
        let through = proxies(&[run])
            .into_iter()
            .filter_map(|(name, version)| figures::points(run, Some(name)).next().map(|point| (version, point)));
        for (way, point) in direct.into_iter().chain(through) {
            let mut cells = vec![way, dash(figures::rate(point).map(rounded))];
            cells.extend([50.0, 99.0, 99.9, 99.99].map(|at| dash(figures::latency(point, at).map(time))));
            cells.extend([50.0, 99.0].map(|at| dash(figures::reference(point, at).map(time))));
            text += &row(&cells);
        }
    }
    text
}

fn offered(runs: &[&Results]) -> String {
    let proxies = proxies(runs);
    let mut columns = vec!["offered, requests a second".to_owned()];
    columns.extend(proxies.iter().map(|(_, version)| format!("{version}: answered, 99 %")));
    let mut text = head(&columns);
    for run in runs {
        for point in settings(run) {
            let Some(offered) = point.rate else { continue };
            let mut cells = vec![rounded(offered)];
            cells.extend(proxies.iter().map(|(name, _)| {
                let other = same(run, name, point);
                let rate = other.and_then(figures::rate);
                let late = other.and_then(|other| figures::latency(other, 99.0));
                dash(rate.zip(late).map(|(rate, late)| format!("{}, {}", rounded(rate), time(late))))
            }));
            text += &row(&cells);
        }
    }
    text
}

fn workers(runs: &[&Results]) -> String {
    let proxies = proxies(runs);
    let mut columns = vec!["object, threads".to_owned()];
    for (_, version) in &proxies {
        columns.extend([format!("{version}: CPU, µs"), "of one thread".to_owned()]);
    }
    let mut text = head(&columns);
    for run in runs {
        for point in settings(run) {
            let mut cells = vec![format!("{}, {}", bytes(count(point.size)), point.workers)];
            for (name, _) in &proxies {
                let cost = |workers| {
                    let like = Point { workers, rounds: Vec::new(), ..point.clone() };
                    same(run, name, &like).and_then(figures::cpu).map(Cpu::whole)
                };
                let own = cost(point.workers);
                cells.push(dash(own.map(rounded)));
                cells.push(dash(own.zip(cost(1)).map(|(own, one)| format!("{:.2}", own / one))));
            }
            text += &row(&cells);
        }
    }
    text
}

fn memory(runs: &[&Results]) -> String {
    let proxies = proxies(runs);
    let mut columns = vec!["open clients".to_owned()];
    columns.extend(proxies.iter().map(|(_, version)| format!("{version}: bytes each")));
    let mut text = head(&columns);
    for run in runs {
        for point in settings(run) {
            let mut cells = vec![thousands(f64::from(point.connections))];
            cells.extend(proxies.iter().map(|(name, _)| {
                let whole = same(run, name, point).and_then(figures::memory);
                dash(whole.map(|whole| thousands(whole / f64::from(point.connections.max(1)))))
            }));
            text += &row(&cells);
        }
        let mut cells = vec!["each further one".to_owned()];
        cells.extend(proxies.iter().map(|(name, _)| dash(figures::memory_of_one(run, name).map(thousands))));
        text += &row(&cells);
    }
    text
}

fn calls(runs: &[&Results]) -> String {
    const MOVES: [&str; 9] = ["read", "readv", "recvfrom", "recvmsg", "write", "writev", "sendto", "sendmsg", "splice"];
    let proxies = proxies(runs);
    let mut columns = vec!["system calls a request: reads and writes + others (+ waits)".to_owned()];
    columns.extend(proxies.iter().map(|(_, version)| version.clone()));
    let mut text = head(&columns);
    for run in runs {
        for point in settings(run) {
            let mut cells = vec![label(run, point)];
            cells.extend(proxies.iter().map(|(name, _)| {
                let counted = same(run, name, point).and_then(|point| {
                    point.rounds.iter().map(|round| &round.system_calls).find(|calls| !calls.is_empty())
                });
                dash(counted.map(|calls| {
                    let sum = |wanted: &dyn Fn(&str) -> bool| -> f64 {
                        calls.iter().filter(|(name, _)| wanted(name)).map(|(_, count)| count).sum()
                    };
                    let waits = |name: &str| name.starts_with("epoll_") && name.contains("wait");
                    let moves = sum(&|name| MOVES.contains(&name));
                    let others = sum(&|name| !MOVES.contains(&name) && !waits(name));
                    format!("{moves:.2} + {others:.2} (+ {:.2})", sum(&waits))
                }))
            }));
            text += &row(&cells);
        }
    }
    text
}
