//! Results that are similar to those of a machine: three proxies and the direct way, with every sweep that a chart
//! uses. They are made up and deterministic.

use std::collections::BTreeMap;
use weir_tools::bench::results::{
    FORM, Finding, Machine, Memory, Point, ProxyName, Results, Round, ScenarioName, ThreadTime,
};
use weir_tools::load::record::Counts;

/// Properties of a way.
struct Nature {
    name: Option<&'static str>,
    /// CPU per request, user and system, in microseconds.
    cpu: (f64, f64),
    /// Median latency, in microseconds.
    latency: f64,
    /// Bytes per connection, and before the first.
    memory: (f64, f64),
}

const NATURES: [Nature; 4] = [
    Nature { name: None, cpu: (4.0, 9.0), latency: 55.0, memory: (0.0, 0.0) },
    Nature { name: Some("weir"), cpu: (4.1, 12.9), latency: 118.0, memory: (1900.0, 9.0e6) },
    Nature { name: Some("haproxy"), cpu: (6.4, 14.1), latency: 131.0, memory: (3300.0, 14.0e6) },
    Nature { name: Some("nginx"), cpu: (9.8, 17.2), latency: 164.0, memory: (5200.0, 6.0e6) },
];

/// Deterministic numbers between -1 and 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
    }
}

/// Results with data for every chart.
pub fn full() -> Results {
    let mut points = Vec::new();
    let mut noise = Noise(42);
    let mut order = 0;
    let mut measure = |size: u64, rate: Option<f64>, workers: u32, connections: u32| {
        for nature in &NATURES {
            if nature.name.is_some() || workers == 2 {
                points.push(point(nature, size, rate, workers, connections, &mut noise, &mut order));
            }
        }
    };
    measure(1024, None, 2, 100);
    for size in [64, 256, 4096, 16_384, 65_536, 262_144, 1_048_576, 10_000_000, 100_000_000] {
        measure(size, None, 2, 100);
    }
    for rate in [10_000.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 90_000.0, 100_000.0, 110_000.0, 120_000.0] {
        measure(1024, Some(rate), 2, 100);
    }
    measure(10_240, None, 2, 100);
    for workers in [1, 4, 8] {
        measure(1024, None, workers, 100);
        measure(10_240, None, workers, 100);
    }
    for connections in [1000, 5000, 20_000, 50_000] {
        measure(1024, None, 2, connections);
    }
    points[2].rounds[1].fault = Some("haproxy ended during the round: signal 9".to_owned());
    Results { points, ..empty() }
}

/// Nine proxies with similar results, one of them with a long name: no chart has space for all of their labels.
pub fn crowd() -> Results {
    let mut results = full();
    let points = std::mem::take(&mut results.points);
    let weir = results.proxies.remove(0);
    results.proxies.clear();
    for index in 0..9_u32 {
        let name =
            if index == 3 { "a proxy with a name that is far too long".to_owned() } else { format!("proxy-{index}") };
        let slower = 1.0 + f64::from(index) * 0.004;
        for point in points.iter().filter(|point| point.proxy.as_deref() == Some("weir")) {
            let mut point = Point { proxy: Some(name.clone()), ..point.clone() };
            for round in &mut point.rounds {
                round.latency.iter_mut().for_each(|row| row.1 *= slower);
                round.threads.iter_mut().for_each(|thread| thread.user *= slower);
                round.seconds.iter_mut().for_each(|second| second.answers -= u64::from(index) * second.answers / 250);
            }
            results.points.push(point);
        }
        results.proxies.push(ProxyName { name, ..weir.clone() });
    }
    results.points.extend(points.into_iter().filter(|point| point.proxy.is_none()));
    results
}

/// Names without a measurement.
pub fn empty() -> Results {
    let proxy = |name: &str, version: &str, command: &[&str]| ProxyName {
        name: name.to_owned(),
        version: version.to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
    };
    let finding = |subject: &str, seen: &str, warning: Option<&str>| Finding {
        subject: subject.to_owned(),
        seen: seen.to_owned(),
        warning: warning.map(str::to_owned),
    };
    Results {
        form: FORM,
        begun: "2026-11-22T00:40:12Z".to_owned(),
        weir: "0.1.0".to_owned(),
        command: "weir bench scenarios/size-sweep.toml --output size-sweep".to_owned(),
        scenario_text: "# made up\n[scenario]\nname = \"size-sweep\"\ntitle = \"Objects of 64 B to 100 MB\"\n"
            .repeat(4),
        scenario: ScenarioName {
            name: "size-sweep".to_owned(),
            title: "Objects of 64 B to 100 MB through three proxies".to_owned(),
            repeats:
                "the object-size sweep of 2009 and 2011: hits a second and Gbit/s against the size of the object, the \
                      mean of the 20 best seconds after dropping the 5 best"
                    .to_owned(),
        },
        machine: Machine {
            processor: "AMD EPYC 7763 64-Core Processor".to_owned(),
            cores: 8,
            memory: 33_554_432_000,
            kernel: "Linux 6.1.0-28-amd64".to_owned(),
        },
        environment: vec![
            finding("cores", "8 may be used; the proxies run on 0-1, the load on 4-7", None),
            finding(
                "governor",
                "schedutil on 8 of 8 cores",
                Some(
                    "The clock follows the load, so that short rounds look slow; cpupower frequency-set -g performance helps.",
                ),
            ),
            finding("descriptors", "1,048,576 may be open", None),
            finding("port range", "32768 to 60999: 28,232 connections to one address", None),
            finding(
                "idle second",
                "3.1 % of the cores were busy, the longest pause was 4.2 ms",
                Some("Something else runs here: percentiles above 99.9 % are its as much as the proxies'."),
            ),
            finding("interrupts", "the interface lo has none", None),
        ],
        proxies: vec![
            proxy("weir", "Weir 0.1.0", &["weir", "-f", "/tmp/weir-bench/weir.cfg", "-dW"]),
            proxy(
                "haproxy",
                "HAProxy version 2.6.12-1+deb12u2",
                &["haproxy", "-db", "-f", "/tmp/weir-bench/haproxy.cfg"],
            ),
            proxy(
                "nginx",
                "nginx/1.22.1",
                &["nginx", "-g", "daemon off; worker_processes 2;", "-c", "/tmp/weir-bench/nginx.conf"],
            ),
        ],
        points: Vec::new(),
    }
}

fn point(
    nature: &Nature,
    size: u64,
    rate: Option<f64>,
    workers: u32,
    connections: u32,
    noise: &mut Noise,
    order: &mut u32,
) -> Point {
    let rounds = (0..3).map(|_| round(nature, size, rate, workers, connections, noise, order)).collect();
    Point { proxy: nature.name.map(str::to_owned), size, rate, workers, connections, rounds }
}

fn round(
    nature: &Nature,
    size: u64,
    offered: Option<f64>,
    workers: u32,
    connections: u32,
    noise: &mut Noise,
    order: &mut u32,
) -> Round {
    *order += 1;
    let cpu = (nature.cpu.0 + nature.cpu.1) * (1.0 + noise.next() * 0.03) + size as f64 * 0.000_21;
    // The direct way is limited by the load, regardless of the proxies' workers.
    let effective = if nature.name.is_some() { f64::from(workers).powf(0.93) } else { 3.2 };
    let full = (effective * 1e6 / cpu * 0.97).min(230_000.0).min(11.2e9 / 8.0 / size as f64);
    let reached = offered.map_or(full, |offered| offered.min(full));
    let seconds: Vec<Counts> = (1..=30).map(|at| second(f64::from(at), reached, size, connections, noise)).collect();
    let answers: u64 = seconds.iter().map(|second| second.answers).sum();
    let busy = reached / full;
    let strained =
        nature.latency / (1.03 - busy).min(1.0) * (1.0 + size as f64 / 200_000.0) * (1.0 + noise.next() * 0.05);
    let each = answers as f64 / f64::from(workers);
    let share = (nature.cpu.0 / (nature.cpu.0 + nature.cpu.1), nature.cpu.1 / (nature.cpu.0 + nature.cpu.1));
    let threads = (0..workers).map(|thread| ThreadTime {
        process: 4711,
        thread: 4712 + thread,
        name: format!("{}/{thread}", nature.name.unwrap_or_default()),
        user: each * cpu * share.0,
        system: each * cpu * share.1,
    });
    let anonymous = nature.memory.1 + nature.memory.0 * f64::from(connections);
    let calls = [("epoll_wait", 0.21), ("recvfrom", 2.02), ("sendto", 2.0), ("accept4", 0.001)];
    let named = nature.name.is_some();
    Round {
        order: *order,
        total: total(&seconds, connections),
        seconds,
        latency: percentiles(strained, 1.0),
        reference: if offered.is_none() { percentiles(strained * 0.8, 1.6)[..11].to_vec() } else { Vec::new() },
        statuses: BTreeMap::from([(200, answers)]),
        threads: if named { threads.collect() } else { Vec::new() },
        origin_cpu: answers as f64 * 6.1,
        load_cpu: answers as f64 * 7.3,
        memory: if named {
            Memory {
                before: nature.memory.1 as u64,
                anonymous: anonymous as u64,
                resident: anonymous as u64 + 5_000_000,
            }
        } else {
            Memory::default()
        },
        packets: (answers * 2, answers * 2),
        system_calls: if named { calls.map(|(name, count)| (name.to_owned(), count)).into() } else { BTreeMap::new() },
        fault: None,
    }
}

fn second(at: f64, reached: f64, size: u64, connections: u32, noise: &mut Noise) -> Counts {
    // The load rises over a quarter of the time.
    let risen = (at / 7.5).min(1.0);
    let answers = (reached * risen * (1.0 + noise.next() * 0.025)).max(0.0) as u64;
    Counts {
        at,
        length: 1.0,
        open: u64::from(connections),
        requests: answers,
        answers,
        received: answers * (size + 180),
        ..Counts::default()
    }
}

fn total(seconds: &[Counts], connections: u32) -> Counts {
    let sum = |of: fn(&Counts) -> u64| seconds.iter().map(of).sum();
    Counts {
        at: 30.0,
        length: 30.0,
        open: u64::from(connections),
        connections: u64::from(connections),
        requests: sum(|second| second.requests),
        answers: sum(|second| second.answers),
        received: sum(|second| second.received),
        ..Counts::default()
    }
}

fn percentiles(half: f64, steep: f64) -> Vec<(f64, f64)> {
    let named = [
        0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999, 99.9995, 99.9999,
        100.0,
    ];
    let time = |percentile: f64| {
        let rare = -(1.0 - percentile / 100.0_f64).max(1e-7).log10();
        half * (0.55
            + rare * 0.9 * steep
            + (rare - 2.0).max(0.0).powi(2) * 2.1 * steep
            + (rare - 3.4).max(0.0).powi(3) * 3.0)
    };
    named.iter().map(|&percentile| (percentile, time(percentile))).collect()
}
