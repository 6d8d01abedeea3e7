//! `weir bench` from outside: a complete run with short rounds, and every error that prevents one.

use crate::support::{self, Folder, ProcessResult, Running, WEIR};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;
use tools::bench::results::{Results, Round};
use tools::bench::stored;

/// A scenario with these proxies, with rounds of a fifth of a second.
fn scenario(proxies: &str, more: &str) -> String {
    format!(
        r#"name = "tiny"
title = "A run in no time"
repeats = "Nothing"
rounds = 2
{more}
[load]
path = "/?s={{size}}"
connections = 4
duration = 0.2
warm_up = 0
[sweep]
sizes = [64]
[processors]
proxy = "all"
origin = "all"
load = "all"
[files]
"weir.cfg" = """
global
    nbthread {{workers}}
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
listen proxy
    bind 127.0.0.1:{{port}}
    server origin {{origin}}
"""
{proxies}"#
    )
}

fn proxy(name: &str, command: &str, more: &str) -> String {
    format!("[[proxy]]\nname = \"{name}\"\ncommand = {command}\n{more}\n")
}

const BALANCER: &str = r#"["{weir}", "-db", "-f", "{folder}/weir.cfg"]"#;

/// Runs a scenario that is written into a folder, with results in `out` in the same folder.
fn bench(folder: &Folder, text: &str, options: &[&str]) -> ProcessResult {
    support::run(&mut command(folder, text, options))
}

fn command(folder: &Folder, text: &str, options: &[&str]) -> Command {
    let file = folder.write("tiny.toml", text);
    let out = folder.path("out");
    let mut command = Command::new(WEIR);
    command.arg("bench").args(options).arg("--out").arg(out).arg(file).current_dir(folder.text());
    command
}

fn results(folder: &Folder) -> Results {
    stored::read(&folder.path("out")).unwrap()
}

fn rounds(results: &Results) -> impl Iterator<Item = &Round> {
    results.points.iter().flat_map(|point| &point.rounds)
}

/// Asserts that no process of a round is left.
fn assert_nothing_is_left(results: &Results, folder: &Folder) {
    for thread in rounds(results).flat_map(|round| &round.threads) {
        let command = fs::read(format!("/proc/{}/cmdline", thread.process)).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        assert!(!command.contains(folder.text()), "{command} is left");
    }
}

#[test]
fn a_run_leaves_its_results_and_nothing_else() {
    let folder = Folder::new();
    let version = r#"version = ["{weir}", "-v"]"#;
    let text = scenario(&[proxy("first", BALANCER, version), proxy("second", BALANCER, "")].concat(), "");
    let run = bench(&folder, &text, &["--quick", "--rounds", "2"]);
    assert_eq!(run.code(), Some(0), "{}{}", run.stdout, run.stderr);
    let results = results(&folder);
    assert_eq!((results.scenario.name.as_str(), results.scenario_text == text), ("tiny", true));
    assert!(results.command.starts_with("weir bench --quick --rounds 2 --out "), "{}", results.command);
    assert!(results.begun.ends_with('Z') && results.machine.cores > 0 && results.environment.len() > 10);
    assert!(results.proxies[0].version.contains("Weir") && results.proxies[1].version.is_empty());
    let orders: Vec<(Option<&str>, Vec<u32>)> = results
        .points
        .iter()
        .map(|point| (point.proxy.as_deref(), point.rounds.iter().map(|round| round.order).collect()))
        .collect();
    assert_eq!(orders, [(None, vec![0, 3]), (Some("first"), vec![1, 5]), (Some("second"), vec![2, 4])]);
    for point in &results.points {
        assert_eq!((point.size, point.connections, point.rate), (64, 4, None));
        assert_eq!(point.workers, u32::from(point.proxy.is_some()));
        for round in &point.rounds {
            assert_eq!(round.fault, None);
            assert!(round.total.answers > 0 && !round.latency.is_empty() && round.packets.0 > 0, "{round:?}");
            assert_eq!(round.statuses.keys().collect::<Vec<_>>(), [&200]);
            assert_eq!(round.threads.is_empty(), point.proxy.is_none());
            assert_eq!(round.memory.anonymous > 0, point.proxy.is_some());
        }
    }
    let spent = |round: &Round| round.threads.iter().map(|thread| thread.user + thread.system).sum::<f64>();
    assert!(rounds(&results).filter(|round| !round.threads.is_empty()).all(|round| spent(round) > 0.0));
    assert!(fs::read_to_string(folder.path("out/report.html")).unwrap().contains("first"));
    assert!(fs::read_to_string(folder.path("out/first/weir.cfg")).unwrap().starts_with("global\n    nbthread 1\n"));
    for said in [
        "The environment:",
        "6 rounds of 0.2 s",
        "[6/6] first, 64 bytes, 4 connections: ",
        "CPU us/request",
        "Results: ",
    ] {
        assert!(run.stdout.contains(said), "{said} is missing:\n{}", run.stdout);
    }
    assert!(!run.stdout.contains('\x1b') && run.stderr.is_empty(), "{}", run.stderr);
    assert_nothing_is_left(&results, &folder);

    let again = bench(&folder, &text, &["--quick"]);
    assert_eq!(again.code(), Some(1));
    assert!(again.stderr.contains("holds results already: name another folder with --out"), "{}", again.stderr);
}

/// A feature that a program does not have.
const LACKING: &str = r#"requires = { command = ["sh", "-c", "echo OPENSSL -QUIC >&2"], text = "+QUIC" }"#;

/// An error, its status, and a part of its one-line message.
#[test]
fn what_cannot_be_run_ends_with_one_line() {
    let balancer = proxy("weir", BALANCER, "");
    let rows: &[(String, &[&str], i32, &str)] = &[
        (scenario(&balancer, "colour = 1"), &[], 2, "tiny.toml:5:1: unknown field `colour`, expected one of"),
        ("name = ".to_owned(), &[], 2, "tiny.toml:1:"),
        (scenario(&proxy("weir", "[\"{wier}\"]", ""), ""), &[], 2, "{wier} stands for nothing; known are"),
        (scenario(&balancer, "waits_for = \"rules\""), &[], 1, "waits for what Weir does not have yet: rules"),
        (
            scenario(&proxy("weir", BALANCER, "waits_for = \"TLS\""), ""),
            &[],
            1,
            "no proxy is left: weir is left out: it waits for what Weir does not have yet: TLS",
        ),
        (
            scenario(&proxy("gone", "[\"/nowhere/proxy\"]", ""), ""),
            &[],
            1,
            "proxy 'gone': there is no program /nowhere/proxy here",
        ),
        (
            scenario(&proxy("gone", "[\"/nowhere/proxy\"]", "optional = true"), ""),
            &[],
            1,
            "no proxy is left: gone is left out: there is no program /nowhere/proxy here",
        ),
        (
            scenario(&proxy("lacks", r#"["sh"]"#, LACKING), ""),
            &[],
            1,
            "proxy 'lacks': 'sh -c echo OPENSSL -QUIC >&2' does not print '+QUIC'",
        ),
        (
            scenario(&proxy("lacks", r#"["sh"]"#, &format!("{LACKING}\noptional = true")), ""),
            &[],
            1,
            "no proxy is left: lacks is left out: 'sh -c echo OPENSSL -QUIC >&2' does not print '+QUIC'",
        ),
        (
            scenario(&proxy("dies", r#"["sh", "-c", "echo cannot bind >&2; exit 3"]"#, ""), ""),
            &["--quick"],
            1,
            "dies ended with status 3: cannot bind",
        ),
        (scenario(&balancer, ""), &["--only", "other"], 2, "no proxy 'other' here, but weir"),
        (scenario(&balancer, ""), &["--set", "other=1"], 2, "no value 'other' here, but weir"),
        (scenario(&balancer, ""), &["--colour"], 2, "unknown option '--colour'"),
    ];
    for (text, options, status, line) in rows {
        let folder = Folder::new();
        let run = bench(&folder, text, options);
        assert_eq!(run.code(), Some(*status), "{line}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.starts_with("weir bench: ") && run.stderr.contains(line), "{line}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(!folder.path("out/results.json").exists());
    }
    let rows: &[(&str, i32, &str)] = &[
        ("bench", 2, "which scenario?"),
        ("bench no-such-scenario", 2, "no scenario 'no-such-scenario' ships"),
        ("bench --show no-such-scenario", 2, "no scenario 'no-such-scenario' ships"),
        ("bench /nowhere/a.toml", 1, "/nowhere/a.toml: No such file"),
        ("bench --quick --out /proc/bench keep-alive", 1, "/proc/bench: "),
        ("bench --report /nowhere", 1, "/nowhere cannot be read"),
        ("bench --sizing /nowhere", 1, "/nowhere cannot be read"),
    ];
    for (words, status, line) in rows {
        let run = support::line(words);
        assert_eq!(run.code(), Some(*status), "{words}: {}", run.stderr);
        assert!(run.stderr.starts_with("weir bench: ") && run.stderr.contains(line), "{words}: {}", run.stderr);
    }
}

#[test]
fn a_proxy_that_dies_in_a_round_costs_that_round_and_no_other() {
    let folder = Folder::new();
    // It starts in the trial and in the first round, and never again.
    let script = "echo >> {folder}/starts; test $(wc -l < {folder}/starts) -gt 2 && echo no more >&2 && exit 7; \
                  exec {weir} -db -f {folder}/weir.cfg";
    let flaky = proxy("flaky", &format!("[\"sh\", \"-c\", \"{script}\"]"), "");
    let run = bench(&folder, &scenario(&[flaky, proxy("weir", BALANCER, "")].concat(), ""), &[]);
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("1 of 6 rounds failed: flaky ended with status 7: no more"), "{}", run.stderr);
    let results = results(&folder);
    let faults: Vec<Option<&str>> = rounds(&results).map(|round| round.fault.as_deref()).collect();
    assert_eq!(faults.iter().filter(|fault| fault.is_some()).count(), 1, "{faults:?}");
    assert_eq!(results.points[1].rounds[1].fault.as_deref(), Some("flaky ended with status 7: no more"));
    assert!(run.stdout.contains("1 of 2 rounds failed"), "{}", run.stdout);
    assert_nothing_is_left(&results, &folder);
}

#[test]
fn an_interrupted_run_ends_everything_and_keeps_what_it_has() {
    let folder = Folder::new();
    let text = scenario(&proxy("weir", BALANCER, ""), "");
    let mut run = Running::start(&mut command(&folder, &text, &["--rounds", "1000"]));
    run.wait_for_line(|line| line.starts_with("[2/"));
    let scratch = format!("weir-bench-{}-", run.id());
    run.send(Signal::INT);
    let run = run.finish();
    assert_eq!(run.code(), Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("interrupted; what was measured until then is in "), "{}", run.stderr);
    let results = results(&folder);
    assert!(rounds(&results).all(|round| round.fault.is_none()) && results.points.len() == 2);
    let left = |folder: &Path| {
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with(&scratch)).count()
    };
    assert_eq!((left(Path::new("/dev/shm")), left(&std::env::temp_dir())), (0, 0));
    assert_nothing_is_left(&results, &folder);
}

#[test]
fn what_ships_is_listed_and_shown_and_the_ground_is_checked() {
    let list = support::line("bench --list");
    assert!(list.stdout.lines().any(|line| line.starts_with("keep-alive ")), "{}", list.stdout);
    let shown = support::line("bench --show keep-alive");
    assert!(shown.stdout.contains("\nname = \"keep-alive\"\n"), "{}", shown.stdout);
    let folder = Folder::new();
    let file = folder.write("shown.toml", &shown.stdout);
    let checked = support::weir(["bench", "--check", "--quick", &file]);
    assert_eq!(checked.code(), Some(0), "{}", checked.stderr);
    for subject in
        ["processors", "frequency", "open files", "ports", "closed ports", "interrupt affinity", "idle second"]
    {
        assert!(checked.stdout.contains(&format!("\n  {subject} ")), "{subject}: {}", checked.stdout);
    }
    assert!(!Path::new("weir-bench-keep-alive").exists());
    let help = support::line("bench --help");
    assert!(help.code() == Some(0) && help.stdout.contains("--syscalls"), "{}", help.stdout);
}
