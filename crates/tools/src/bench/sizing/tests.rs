//! The model on made-up results with known answers.

use super::costs::{Costs, gather};
use super::document;
use super::drivers;
use super::model::{ASSUMED, Case, Limit, Style, client_memory, efficiency, limit, limits, wire};
use crate::bench::results::{FORM, Machine, Memory, Point, ProxyName, Results, Round, ScenarioName, ThreadTime};
use crate::bench::text;
use crate::load::record::Counts;

fn close(left: f64, right: f64) {
    assert!((left - right).abs() <= right.abs() * 1e-9, "{left} is not {right}");
}

/// Returns a round of 1,000 responses in two seconds with that CPU per request, a third of it in user space.
fn round(size: u64, cpu: f64, memory: u64) -> Round {
    let thread = |share: f64| ThreadTime {
        process: 1,
        thread: 1,
        name: "w".to_owned(),
        user: cpu * share / 3.0 * 1000.0,
        system: cpu * share * 2.0 / 3.0 * 1000.0,
    };
    Round {
        order: 0,
        seconds: Vec::new(),
        total: Counts { length: 2.0, answers: 1000, received: (size + 100) * 1000, ..Counts::default() },
        latency: vec![(50.0, 100.0), (99.0, 900.0)],
        reference: Vec::new(),
        statuses: [(200, 1000)].into(),
        threads: vec![thread(0.25), thread(0.75)],
        origin_cpu: 0.0,
        load_cpu: 0.0,
        memory: Memory { before: 1 << 20, anonymous: (1 << 20) + memory, resident: 8 << 20 },
        packets: (0, 0),
        system_calls: std::collections::BTreeMap::new(),
        fault: None,
    }
}

fn point(size: u64, workers: u32, connections: u32, cpus: &[f64]) -> Point {
    Point {
        proxy: Some("weir".to_owned()),
        size,
        rate: None,
        workers,
        connections,
        rounds: cpus.iter().map(|cpu| round(size, *cpu, u64::from(connections) * 1000 + 50_000)).collect(),
    }
}

fn run(scenario: &str, points: Vec<Point>) -> Results {
    Results {
        form: FORM,
        begun: "2026-01-02T03:04:05Z".to_owned(),
        weir: "0.1.0".to_owned(),
        command: "weir bench x".to_owned(),
        scenario_text: String::new(),
        scenario: ScenarioName { name: scenario.to_owned(), title: String::new(), repeats: String::new() },
        machine: Machine { processor: "Test".to_owned(), cores: 2, memory: 1 << 33, kernel: "Linux 6".to_owned() },
        environment: Vec::new(),
        proxies: vec![ProxyName { name: "weir".to_owned(), version: "Weir 0.1.0".to_owned(), command: Vec::new() }],
        points,
    }
}

fn all() -> Vec<Results> {
    vec![
        run(
            "size-sweep",
            vec![point(1024, 1, 64, &[12.0, 10.0, 11.0]), point(64, 1, 64, &[10.0]), point(3072, 1, 64, &[13.0])],
        ),
        run("forward-close", vec![point(64, 1, 64, &[25.0])]),
        run("workers-sweep", vec![point(1024, 1, 64, &[10.0]), point(1024, 2, 64, &[12.5])]),
        run("connections", vec![point(64, 1, 1000, &[10.0]), point(64, 1, 4000, &[10.0])]),
    ]
}

fn costs() -> Costs {
    gather(&all()).remove(0)
}

#[test]
fn costs_are_medians_of_the_scenarios() {
    let costs = costs();
    assert_eq!(costs.by_size.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [64, 1024, 3072]);
    close(costs.request(64), 10.0);
    close(costs.request(1024), 11.0);
    close(costs.byte().unwrap(), 3.0 / 3008.0);
    close(costs.connections().unwrap(), 15.0);
    close(costs.kept.unwrap(), 0.8);
    close(costs.memory.unwrap(), 1000.0);
    close(costs.head, 100.0);
    assert_eq!(costs.server_close, None);
}

#[test]
fn sizes_between_and_beyond_lie_on_the_lines_of_the_measured_ones() {
    let costs = costs();
    close(costs.request(1), 10.0);
    close(costs.request(2048), 12.0);
    close(costs.request(3072), 13.0);
    close(costs.request(5120), 15.0);
    assert!(costs.is_measured(3072) && !costs.is_measured(2048));
}

#[test]
fn more_cores_keep_less_of_their_work() {
    let mut costs = costs();
    close(efficiency(&costs, &ASSUMED, 1), 1.0);
    close(efficiency(&costs, &ASSUMED, 2), 0.8);
    close(efficiency(&costs, &ASSUMED, 8), 0.8 * 0.92 * 0.92);
    costs.kept = None;
    close(efficiency(&costs, &ASSUMED, 4), 0.92 * 0.92);
}

#[test]
fn a_second_core_is_never_worth_more_than_the_first() {
    let run = run("workers-sweep", vec![point(64, 1, 64, &[10.0]), point(64, 2, 64, &[8.0])]);
    let sweep = all().remove(0);
    close(gather(&[sweep, run])[0].kept.unwrap(), 1.0);
}

#[test]
fn every_limit_has_its_rate() {
    let costs = costs();
    let case = Case { cores: 2, link: 10e9, size: 64, style: Style::KeepAlive };
    let at = |kind| limit(&costs, &ASSUMED, &case, kind).unwrap();
    // Two packets each way: 164 bytes of response, 120 of request, 180 of overhead.
    assert_eq!(wire(&costs, &ASSUMED, Style::KeepAlive, 64), (2.0, 464.0));
    // Ten microseconds of the proxy, and two packets at 0.8.
    close(at(Limit::Cpu), 2.0 * 0.8 * 1e6 / 11.6);
    close(at(Limit::Bits), 10e9 / 8.0 / 464.0);
    assert_eq!(limit(&costs, &ASSUMED, &case, Limit::Packets), None);
    close(at(Limit::Memory), 8.0 * 1024.0 * 1024.0 * 1024.0 / (1000.0 + 1.01 * 4096.0));
    close(at(Limit::Descriptors), 1_048_576.0 / 1.01);
    close(at(Limit::Ports), 28_232_000.0);
    close(client_memory(&costs, &ASSUMED).unwrap(), 1000.0 + 1.01 * 4096.0);
}

#[test]
fn many_packets_leave_the_proxy_the_smaller_part_of_the_cores() {
    let costs = Costs { by_size: vec![(64, 10.0), (100_000, 20.0)], ..costs() };
    let case = Case { cores: 1, link: 100e9, size: 100_000, style: Style::KeepAlive };
    // The request, 70 packets of incoming data, 35 acknowledgements.
    assert_eq!(wire(&costs, &ASSUMED, Style::KeepAlive, 100_000).0, 106.0);
    close(limit(&costs, &ASSUMED, &case, Limit::Packets).unwrap(), 1e6 / (20.0 + 106.0 * 0.8));
    assert_eq!(limit(&costs, &ASSUMED, &case, Limit::Cpu), None);
}

#[test]
fn the_first_limit_comes_first() {
    let costs = costs();
    let first = |cores, link, size| limits(&costs, &ASSUMED, &Case { cores, link, size, style: Style::KeepAlive })[0].0;
    assert_eq!(first(1, 10e9, 64), Limit::Cpu);
    assert_eq!(first(8, 10e9, 1 << 20), Limit::Bits);
    let sorted = limits(&costs, &ASSUMED, &Case { cores: 16, link: 25e9, size: 1024, style: Style::Close });
    assert!(sorted.is_sorted_by(|left, right| left.1 <= right.1), "{sorted:?}");
    assert_eq!(sorted.len(), 5);
}

#[test]
fn what_was_not_measured_is_left_out() {
    let sweep = vec![all().remove(0)];
    let costs = gather(&sweep).remove(0);
    let case = Case { cores: 2, link: 10e9, size: 64, style: Style::Close };
    assert_eq!(limit(&costs, &ASSUMED, &case, Limit::Cpu), None);
    assert_eq!(limit(&costs, &ASSUMED, &case, Limit::Memory), None);
    let page = document(&sweep).unwrap();
    assert!(!page.contains("## Memory"), "memory was not measured");
    assert!(page.contains("| `connections` | memory of an open connection | not run |"), "{page}");
    assert!(document(&[]).is_err());
}

#[test]
fn rounds_with_a_fault_do_not_count() {
    let mut sweep = all().remove(0);
    sweep.points[1].rounds[0].fault = Some("the proxy died".to_owned());
    assert_eq!(gather(&[sweep])[0].by_size[0].0, 1024);
}

#[test]
fn the_page_is_the_same_each_time_and_marks_its_figures() {
    let page = document(&all()).unwrap();
    assert_eq!(page, document(&all()).unwrap());
    assert!(page.contains("| keep-alive request, 1 KB | 11.0 m |"), "{page}");
    assert!(page.contains("| 1 | 86,200 e, CPU |"), "{page}");
    assert!(page.contains("measured: 0.80 m"), "{page}");
    let too_long = page.lines().find(|line| !line.starts_with('|') && line.chars().count() > 120);
    assert!(too_long.is_none_or(|line| line.contains("https://")), "{too_long:?}");
}

#[test]
fn a_ring_saves_a_part_of_the_calls_and_nothing_of_the_bytes() {
    let (costs, ring) = (costs(), drivers::with_ring(&costs(), 0.05));
    close(ring.request(64), 9.5);
    close(costs.request(3072) - ring.request(3072), 0.5);
    close(ring.byte().unwrap(), costs.byte().unwrap());
}

#[test]
fn published_figures_are_beside_those_of_the_model() {
    let page = document(&all()).unwrap();
    let cells = |start: &str| -> Vec<String> {
        let line = page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {page}"));
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    // 64 cores keep 0.8 and five times 0.92 of their work; a request takes 10 microseconds and two packets at 0.8.
    let carried = 64.0 * 0.8 * 0.92_f64.powi(5) * 1e6 / 11.6;
    let found = cells("| requests a second, small objects |");
    assert_eq!(found[2], "2,040,000 to 2,080,000 p");
    assert_eq!(found[3], format!("{} e, CPU", text::rounded(carried)));
    let (least, most) = (carried * 11.6 / 11.2, carried * 11.6 / 10.9);
    assert_eq!(found[4], format!("{} to {} e, CPU", text::rounded(least), text::rounded(most)));
    // Two packets a request.
    assert_eq!(cells("| requests a second with that limit")[3], "2,080,000 e, packets");
    assert_eq!(cells("| data, objects of 30 kB |")[2], "92 Gbit/s p");
    for size in ["64 B", "1 KB", "30 kB"] {
        assert_eq!(page.matches(&format!("\n| {size} | epoll |")).count(), 1, "{page}");
        assert_eq!(page.matches(&format!("\n| {size} | ring |")).count(), 1, "{page}");
    }
    assert!(page.contains("is Weir 0.1.0, from 2026-01-02T03:04:05Z to 2026-01-02T03:04:05Z."), "{page}");
}

#[test]
fn numbers_show_what_they_are_worth() {
    assert_eq!(text::thousands(1_234_567.4), "1,234,567");
    assert_eq!(text::rounded(93_751.2), "93,800");
    assert_eq!(text::rounded(9.876), "9.88");
    assert_eq!(text::rounded(12.34), "12.3");
    assert_eq!(text::bytes(64.0), "64 B");
    assert_eq!(text::bytes(1536.0), "1.5 KB");
    assert_eq!(text::bytes(10240.0), "10 KB");
}
