//! The figures of a run as readable lines: medians over the rounds, compared with the first proxy. Must never compare
//! rounds of different combinations.

use super::figures::{self, Cpu};
use super::results::{Point, Results, Round};

/// Maximum number of system calls of a proxy that are listed, the most frequent first.
const MOST_CALLS: usize = 8;

/// Medians of one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Medians {
    /// CPU of the proxy per request.
    pub cpu: Option<Cpu>,
    pub rate: f64,
    /// Median and 99th percentile of the time to the last byte, microseconds.
    pub latency: (f64, f64),
    /// Failures of all rounds, including responses with a status of 400 and above.
    pub errors: u64,
    /// Anonymous memory at the end, in bytes.
    pub memory: u64,
}

/// Returns the table of a run.
#[must_use]
pub fn text(results: &Results) -> String {
    let mut out = format!("{}: {}\n", results.scenario.name, results.scenario.title);
    let first = results.proxies.first().map(|proxy| proxy.name.as_str());
    let mut steps: Vec<&Point> = Vec::new();
    for point in results.points.iter().filter(|point| point.proxy.is_some()) {
        if !steps.iter().any(|step| same(step, point)) {
            steps.push(point);
        }
    }
    for step in steps {
        out.push_str(&head(step));
        let points: Vec<&Point> = results.points.iter().filter(|point| same(step, point)).collect();
        let base = points.iter().find(|point| point.proxy.as_deref() == first).and_then(|point| medians(point));
        points.iter().for_each(|point| out.push_str(&row(point, base.as_ref())));
    }
    out
}

/// Whether a point belongs to the combination of another one; the direct way belongs to that of any number of workers.
fn same(step: &Point, point: &Point) -> bool {
    let workers = point.proxy.is_none() || step.workers == point.workers;
    workers && (step.size, step.rate, step.connections) == (point.size, point.rate, point.connections)
}

fn head(step: &Point) -> String {
    let rate = step.rate.map_or_else(String::new, |rate| format!(", {rate:.0} requests/s offered"));
    let workers = if step.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", step.workers) };
    format!(
        "\n{} bytes, {} connections, {workers}{rate}\n  {:<16} {:>27} {:>7} {:>11} {:>10} {:>10} {:>9} {:>7}\n",
        step.size,
        step.connections,
        "",
        "CPU us/request (user+system)",
        "ratio",
        "requests/s",
        "p50 us",
        "p99 us",
        "memory kB",
        "errors"
    )
}

fn row(point: &Point, base: Option<&Medians>) -> String {
    let name = point.proxy.as_deref().unwrap_or("direct");
    let Some(medians) = medians(point) else {
        let fault = point.rounds.iter().find_map(|round| round.fault.as_deref()).unwrap_or("not measured");
        return format!("  {name:<16} {fault}\n");
    };
    let told = |cpu: Cpu| format!("{:.2} ({:.2} + {:.2})", cpu.whole(), cpu.user, cpu.system);
    let cpu = medians.cpu.map_or_else(String::new, told);
    let base = base.and_then(|base| base.cpu);
    let ratio = medians.cpu.zip(base).map(|(cpu, base)| format!("{:.2}", cpu.whole() / base.whole()));
    let memory = if point.proxy.is_some() { (medians.memory / 1024).to_string() } else { String::new() };
    let mut out = format!(
        "  {name:<16} {cpu:>28} {:>7} {:>11.0} {:>10.0} {:>10.0} {memory:>9} {:>7}\n",
        ratio.unwrap_or_default(),
        medians.rate,
        medians.latency.0,
        medians.latency.1,
        medians.errors
    );
    if let Some(calls) = point.rounds.iter().map(|round| &round.system_calls).find(|calls| !calls.is_empty()) {
        let mut calls: Vec<_> = calls.iter().collect();
        calls.sort_by(|left, right| right.1.total_cmp(left.1));
        let told: Vec<_> = calls.iter().take(MOST_CALLS).map(|(name, number)| format!("{name} {number:.2}")).collect();
        out.push_str(&format!("  {:<16} system calls a request: {}\n", "", told.join(", ")));
    }
    let faults = point.rounds.iter().filter(|round| round.fault.is_some()).count();
    if faults > 0 {
        out.push_str(&format!("  {:<16} {faults} of {} rounds failed\n", "", point.rounds.len()));
    }
    out
}

/// Returns the medians of a point without failed rounds; `None` if none is left.
#[must_use]
pub fn medians(point: &Point) -> Option<Medians> {
    let errors = |round: &Round| {
        let total = &round.total;
        total.error_connect + total.error_timeout + total.error_reset + total.error_protocol + total.error_status
    };
    let latency = |percentile| figures::latency(point, percentile).unwrap_or(0.0);
    Some(Medians {
        cpu: figures::cpu(point),
        rate: figures::rate(point)?,
        latency: (latency(50.0), latency(99.0)),
        errors: figures::counted(point).map(errors).sum(),
        memory: figures::median(figures::counted(point).map(|round| round.memory.anonymous as f64)).unwrap_or(0.0)
            as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Memory, ThreadTime};
    use crate::load::record::Counts;

    fn round(answers: u64, user: f64, system: f64) -> Round {
        let thread = ThreadTime { process: 1, thread: 1, name: "w".to_owned(), user, system };
        Round {
            order: 0,
            seconds: Vec::new(),
            total: Counts { answers, length: 2.0, ..Counts::default() },
            latency: vec![(0.0, 1.0), (50.0, 100.0), (99.0, 900.0), (100.0, 5000.0)],
            reference: Vec::new(),
            statuses: [].into(),
            threads: vec![thread],
            origin_cpu: 0.0,
            load_cpu: 0.0,
            memory: Memory { before: 1, anonymous: 2048, resident: 4096 },
            packets: (0, 0),
            system_calls: [].into(),
            fault: None,
        }
    }

    fn point(name: &str, rounds: Vec<Round>) -> Point {
        Point { proxy: Some(name.to_owned()), size: 64, rate: None, workers: 1, connections: 64, rounds }
    }

    #[test]
    fn medians_leave_failed_rounds_out() {
        let failed = Round { fault: Some("it died".to_owned()), ..round(1, 1e9, 1e9) };
        let rounds = [2000.0, 8000.0, 9000.0].map(|system| round(1000, 2000.0, system));
        let medians = medians(&point("a", rounds.into_iter().chain([failed.clone()]).collect())).unwrap();
        assert_eq!(medians.cpu, Some(Cpu { user: 2.0, system: 8.0 }));
        assert_eq!((medians.rate, medians.latency), (500.0, (100.0, 900.0)));
        assert_eq!(super::medians(&point("a", vec![failed])), None);
        assert_eq!(super::medians(&point("a", vec![])), None);
    }

    #[test]
    fn a_load_without_answers_counts_connections() {
        let mut rejected = round(0, 500.0, 500.0);
        rejected.total.connections = 100;
        assert_eq!(medians(&point("a", vec![rejected])).unwrap().cpu, Some(Cpu { user: 5.0, system: 5.0 }));
    }

    #[test]
    fn a_point_is_a_row_beside_the_first_proxy() {
        let base = medians(&point("base", vec![round(1000, 2000.0, 6000.0)])).unwrap();
        let mut slow = round(1000, 4000.0, 12000.0);
        slow.system_calls = [("recvfrom".to_owned(), 2.0), ("sendto".to_owned(), 2.5)].into();
        let text = row(&point("slow", vec![slow]), Some(&base));
        let words: Vec<_> = text.split_whitespace().collect();
        assert_eq!(words[..10], ["slow", "16.00", "(4.00", "+", "12.00)", "2.00", "500", "100", "900", "2"]);
        assert!(text.contains("system calls a request: sendto 2.50, recvfrom 2.00"), "{text}");
        let failed = Round { fault: Some("it died".to_owned()), ..round(1, 1.0, 1.0) };
        assert!(row(&point("ill", vec![failed]), Some(&base)).contains("ill              it died"));
    }

    #[test]
    fn the_direct_way_stands_beside_every_number_of_workers() {
        let direct = Point { proxy: None, workers: 0, ..point("", vec![]) };
        assert!(same(&point("a", vec![]), &direct) && same(&Point { workers: 2, ..point("a", vec![]) }, &direct));
        assert!(!same(&Point { workers: 2, ..point("a", vec![]) }, &point("a", vec![])));
    }
}
