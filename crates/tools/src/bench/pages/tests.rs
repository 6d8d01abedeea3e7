//! Pages and tables on made-up results.

use super::regions::{Region, replace};
use super::tables;
use crate::bench::results::{FORM, Machine, Memory, Point, ProxyName, Results, Round, ScenarioName, ThreadTime};
use crate::bench::text::program;
use crate::load::record::Counts;

fn round(cpu: f64, answers: u64) -> Round {
    let thread = ThreadTime {
        process: 1,
        thread: 1,
        name: "w".to_owned(),
        user: cpu * 0.25 * answers as f64,
        system: cpu * 0.75 * answers as f64,
    };
    Round {
        order: 0,
        seconds: Vec::new(),
        total: Counts { length: 2.0, answers, received: answers * 164, ..Counts::default() },
        latency: vec![(50.0, 100.0), (99.0, 12_345.0)],
        reference: vec![(50.0, 60.0)],
        statuses: [(200, answers)].into(),
        threads: vec![thread],
        origin_cpu: 0.0,
        load_cpu: 0.0,
        memory: Memory { before: 1000, anonymous: 65_000, resident: 0 },
        packets: (0, 0),
        system_calls: [("recvfrom", 2.0), ("sendto", 2.0), ("epoll_wait", 0.2), ("close", 0.5)]
            .map(|(name, count)| (name.to_owned(), count))
            .into(),
        fault: None,
    }
}

fn point(proxy: Option<&str>, size: u64, cpu: f64) -> Point {
    Point {
        proxy: proxy.map(str::to_owned),
        size,
        rate: None,
        workers: 1,
        connections: 64,
        rounds: vec![round(cpu, 20_000)],
    }
}

fn run(name: &str, points: Vec<Point>) -> Results {
    let proxy = |name: &str, version: &str| ProxyName {
        name: name.to_owned(),
        version: version.to_owned(),
        command: Vec::new(),
    };
    Results {
        form: FORM,
        begun: "2026-01-02T03:04:05Z".to_owned(),
        weir: "0.1.0".to_owned(),
        command: String::new(),
        scenario_text: String::new(),
        scenario: ScenarioName { name: name.to_owned(), title: format!("The {name}"), repeats: String::new() },
        machine: Machine { processor: "Test".to_owned(), cores: 2, memory: 1 << 33, kernel: "Linux 6".to_owned() },
        environment: Vec::new(),
        proxies: vec![
            proxy("weir", "Weir version 0.1.0"),
            proxy("haproxy", "HAProxy version 2.6.12-1+deb12u2 2025/04/16 - https://haproxy.org/"),
        ],
        points,
    }
}

fn table(kind: &str, results: &[Results]) -> String {
    tables::write(results, &Region { kind, words: vec!["keep"] }).unwrap()
}

#[test]
fn regions_are_written_and_all_else_stays() {
    let page = "# A\n\n<!-- results: cpu a b -->\nold\nold\n<!-- end of results -->\n\nThe end.\n";
    let seen = |region: &Region<'_>, line: usize, _: &str| {
        assert_eq!((region.kind, &region.words[..], line), ("cpu", &["a", "b"][..], 3));
        Ok(Some("new\n\n".to_owned()))
    };
    let filled = replace(page, seen).unwrap();
    assert_eq!(filled, "# A\n\n<!-- results: cpu a b -->\nnew\n<!-- end of results -->\n\nThe end.\n");
    assert_eq!(replace(&filled, seen).unwrap(), filled);
    let left = |_: &Region<'_>, _: usize, before: &str| {
        assert_eq!(before, "old\nold\n");
        Ok(None)
    };
    assert_eq!(replace(page, left).unwrap(), page);
}

#[test]
fn regions_of_scenarios_that_were_not_run_stay() {
    let page = std::env::temp_dir().join(format!("weir-pages-{}.md", std::process::id()));
    let text = "<!-- results: cpu keep other -->\nbefore\n<!-- end of results -->\n\
                <!-- results: picture other 1-chart -->\nbefore\n<!-- end of results -->\n\
                <!-- results: rates other -->\n<!-- end of results -->\n\
                <!-- results: rates keep -->\nbefore\n<!-- end of results -->\n";
    std::fs::write(&page, text).unwrap();
    let filled = super::fill(&page, &[run("keep", vec![point(Some("weir"), 64, 8.0)])]).and_then(|()| {
        let filled = std::fs::read_to_string(&page).map_err(|error| error.to_string());
        std::fs::remove_file(&page).map_err(|error| error.to_string()).and(filled)
    });
    let filled = filled.unwrap();
    assert!(filled.starts_with(text.split("<!-- results: rates other").next().unwrap()), "{filled}");
    assert!(filled.contains("`other` was not run.\n") && filled.contains("| The keep |"), "{filled}");
    assert_eq!(filled.matches("before").count(), 2, "{filled}");
}

#[test]
fn regions_that_are_not_whole_are_told_by_line() {
    let rows = [
        ("a\n<!-- results: cpu a -->\n", "2: this region has no '<!-- end of results -->'"),
        ("<!-- end of results -->\n", "1: a region ends that has not begun"),
        (
            "<!-- results: cpu a -->\n<!-- results: cpu b -->\n<!-- end of results -->\n",
            "1: this region has no '<!-- end of results -->' before the next one",
        ),
    ];
    for (page, error) in rows {
        assert_eq!(replace(page, |_, _, _| Ok(None)).unwrap_err(), error, "{page}");
    }
    let write = |region: &Region<'_>, _: usize, _: &str| tables::write(&[], region).map(Some);
    let error = replace("<!-- results: pie a -->\n<!-- end of results -->\n", write).unwrap_err();
    assert!(error.starts_with("1: 'pie' is no kind of results; known are machine, cpu"), "{error}");
    let error = replace("<!-- results: cpu -->\n<!-- end of results -->\n", write).unwrap_err();
    assert_eq!(error, "1: 'cpu' needs the names of scenarios");
}

#[test]
fn the_table_of_cpu_compares_with_the_first_proxy() {
    let results = [run("keep", vec![point(Some("weir"), 64, 8.0), point(Some("haproxy"), 64, 12.0)])];
    let expected = "| CPU a request | Weir 0.1.0, µs (user / system) | HAProxy 2.6.12, times as much (µs) |\n\
                    |---|---|---|\n\
                    | The keep | 8.00 (2.00 / 6.00) | 1.50 (12.0) |\n";
    assert_eq!(table("cpu", &results), expected);
}

#[test]
fn rows_of_several_sizes_and_threads_say_which_they_are() {
    let of = |workers, size| Point { workers, ..point(Some("weir"), size, 10.0) };
    let text = table("cpu", &[run("keep", vec![of(1, 512), of(2, 512), of(2, 2048)])]);
    for row in ["| The keep: 512 B, one thread |", "| The keep: 512 B, 2 threads |", "| The keep: 2 KB, 2 threads |"] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn what_is_added_is_the_difference_to_the_same_program_without() {
    let costs = [("weir", 8.0), ("haproxy", 12.0), ("weir-without", 6.0), ("haproxy-without", 7.0), ("nginx", 9.0)];
    let mut results = run("keep", costs.map(|(name, cost)| point(Some(name), 64, cost)).into());
    let named =
        |(name, _): &(&str, f64)| ProxyName { name: (*name).to_owned(), version: String::new(), command: Vec::new() };
    results.proxies = costs.iter().map(named).collect();
    let expected = "| The keep: weir | 8.00 | 6.00 | 2.00 (0.50 / 1.50) | 1.00 |\n\
                    | The keep: haproxy | 12.0 | 7.00 | 5.00 (1.25 / 3.75) | 0.40 |\n";
    let text = table("added", &[results]);
    assert!(text.ends_with(expected) && text.lines().count() == 4, "{text}");
}

#[test]
fn where_sessions_are_rejected_connections_are_counted() {
    let mut rejected = point(Some("weir"), 0, 8.0);
    let total = &mut rejected.rounds[0].total;
    (total.answers, total.connections) = (0, 40_000);
    let text = table("cpu", &[run("keep", vec![rejected])]);
    assert!(text.contains("| The keep | 4.00 (1.00 / 3.00) | — |"), "{text}");
}

#[test]
fn what_was_not_measured_is_a_dash_or_called_not_run() {
    let results = [run("keep", vec![point(Some("weir"), 64, 8.0), point(Some("weir"), 1024, 9.0)])];
    let text = table("cpu", &results);
    assert!(text.contains("| The keep: 64 B | 8.00 (2.00 / 6.00) | — |"), "{text}");
    assert!(text.contains("| The keep: 1 KB | 9.00 (2.25 / 6.75) | — |"), "{text}");
    let text = tables::write(&[], &Region { kind: "cpu", words: vec!["other"] }).unwrap();
    assert_eq!(text, "\n`other` was not run.\n");
}

#[test]
fn the_other_tables_show_their_figures() {
    let results =
        [run("keep", vec![point(None, 64, 8.0), point(Some("weir"), 64, 8.0), point(Some("haproxy"), 64, 9.0)])];
    let rows = [
        ("rates", "| The keep | 10,000 | 10,000 |"),
        ("sizes", "| 64 B | 10,000 | 10,000, 0.01 | 8.00 | 10,000, 0.01 | 9.00 |"),
        ("latency", "| direct | 10,000 | 100 µs | 12.3 ms | — | — | 60.0 µs | — |"),
        ("workers", "| 64 B, 1 | 8.00 | 1.00 | 9.00 | 1.00 |"),
        ("memory", "| 64 | 1,000 | 1,000 |"),
        ("calls", "| The keep | 4.00 + 0.50 (+ 0.20) | 4.00 + 0.50 (+ 0.20) |"),
        ("machine", "- Machine: Test, 2 processors, 8.59 GB of memory, Linux 6"),
    ];
    for (kind, expected) in rows {
        let text = table(kind, &results);
        assert!(text.lines().any(|line| line == expected), "{kind}:\n{text}");
    }
}

#[test]
fn programs_are_called_by_name_and_number() {
    let rows = [
        ("HAProxy version 2.6.12-1+deb12u2 2025/04/16", "HAProxy 2.6.12"),
        ("HAProxy version 3.5-dev5-50872d-2 2026/08/21", "HAProxy 3.5-dev5"),
        ("nginx version: nginx/1.22.1", "nginx 1.22.1"),
        ("Weir version 0.1.0 (configuration language of HAProxy 3.5-dev5)", "Weir 0.1.0"),
        ("", "baseline"),
    ];
    for (line, expected) in rows {
        assert_eq!(program(line, "baseline"), expected, "{line}");
    }
}
