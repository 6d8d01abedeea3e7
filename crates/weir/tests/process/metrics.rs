//! The metrics for Prometheus: the same lines as HAProxy's, valid text, the parameters of a request.

use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, free_port};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Every type of object with metrics. `[down]` is a closed port, `[port]` the frontend's.
const SECTIONS: &str = "global
    description a place
frontend web
    bind 127.0.0.1:[port] name one
    description the front
    option socket-stats
    http-request use-service prometheus-exporter if { path /metrics }
    default_backend app
frontend raw
    mode tcp
    bind 127.0.0.1:[other]
    default_backend bytes
frontend off
    disabled
    bind 127.0.0.1:[other]
backend app
    description the back
    server s1 127.0.0.1:[down] check inter 200ms maxqueue 5 slowstart 60s
    server s2 127.0.0.1:[down] backup maxconn 7 pool-max-conn 3
    server s3 127.0.0.1:[down] disabled
    server s4 127.0.0.1:[down] check disabled
    server s5 127.0.0.1:[down] track s1
backend bytes
    mode tcp
    server s1 127.0.0.1:[down] agent-check agent-port [down] agent-inter 200ms
backend empty
    stick-table type string len 8 size 1k
listen both
    bind 127.0.0.1:[third]
    server s1 127.0.0.1:[down]
resolvers names
    nameserver n1 127.0.0.1:[down]
peers shared
    bind 127.0.0.1:[fourth]
    server here
    table t type integer size 1k
";

/// A running program.
struct Subject {
    _running: Running,
    port: u16,
}

impl Subject {
    fn start(folder: &Folder, program: &str, sections: &str) -> Self {
        let port = free_port();
        let mut text = DEFAULTS.to_owned() + sections;
        for (word, port) in [
            ("[port]", port),
            ("[other]", free_port()),
            ("[third]", free_port()),
            ("[fourth]", free_port()),
            ("[down]", free_port()),
        ] {
            text = text.replace(word, &port.to_string());
        }
        let file = folder.write("metrics.cfg", &text);
        let running = Running::start(Command::new(program).args(["-db", "-L", "here", "-f", &file]));
        Self { _running: running, port }
    }

    /// Returns the status and the body of an answer.
    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = connect(self.port);
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer in UTF-8");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let body = if head.contains("transfer-encoding: chunked") { joined(body) } else { body.to_owned() };
        (status, body)
    }

    fn metrics(&self, query: &str) -> String {
        let (status, text) = self.get(&format!("/metrics{query}"));
        assert_eq!(status, 200, "{query}");
        text
    }

    /// Waits until the checks of both servers have failed.
    fn wait_for_checks(&self) {
        let query = "?metrics=haproxy_server_status,haproxy_server_agent_status&scope=server";
        let failed = |text: &str| {
            text.contains("haproxy_server_status{proxy=\"app\",server=\"s5\",state=\"DOWN\"} 1")
                && text.contains("haproxy_server_agent_status{proxy=\"bytes\",server=\"s1\",state=\"L4CON\"} 1")
        };
        while !failed(&self.metrics(query)) {}
    }
}

/// Decodes a chunked body.
fn joined(mut body: &str) -> String {
    let mut payload = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        payload.push_str(&rest[..length]);
        body = &rest[length + 2..];
    }
    payload
}

/// Returns the lines without parts that vary: numbers, the version.
fn comparable(text: &str) -> Vec<String> {
    let sample = |line: &str| {
        let (labels, value) = line.rsplit_once(' ').expect("a sample");
        let shown = match value {
            "NaN" => "NaN",
            fraction if fraction.contains('.') => "N.N",
            _ => "N",
        };
        format!("{} {shown}", labels.split("{version=").next().unwrap_or(labels))
    };
    // Its description is Weir's own.
    let is_own = |line: &str| line.starts_with("# HELP haproxy_sticktable_local_updates ");
    let lines = text.lines().filter(|line| !is_own(line));
    lines.map(|line| if line.starts_with('#') { line.to_owned() } else { sample(line) }).collect()
}

#[test]
fn haproxy_has_the_same_metrics() {
    let named = std::env::var_os("HAPROXY").map(PathBuf::from).filter(|path| path.exists());
    let version = |path: &PathBuf| {
        let built = Command::new(path).arg("-vv").output().map(|found| found.stdout).unwrap_or_default();
        String::from_utf8_lossy(&built).into_owned()
    };
    let is_fit = |path: &PathBuf| {
        let version = version(path);
        version.contains("version 3.5") && version.contains("prometheus-exporter")
    };
    let Some(haproxy) = named.filter(is_fit) else {
        eprintln!("SKIPPED: HAPROXY names no HAProxy 3.5 with a Prometheus exporter");
        return;
    };
    let (one, two) = (Folder::new(), Folder::new());
    let weir = Subject::start(&one, WEIR, SECTIONS);
    let haproxy = Subject::start(&two, haproxy.to_str().expect("text"), SECTIONS);
    weir.wait_for_checks();
    haproxy.wait_for_checks();
    for query in ["", "?extra-counters&desc-labels", "?no-maint&scope=server", "?scope=&scope=global&desc-labels=1"] {
        let (ours, theirs) = (comparable(&weir.metrics(query)), comparable(&haproxy.metrics(query)));
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "{query}, line {at}");
        }
        assert_eq!(ours.len(), theirs.len(), "{query}");
    }
    for query in ["?scope", "?scope=x", "?metrics", "?scope=Global"] {
        let path = format!("/metrics{query}");
        assert_eq!(weir.get(&path), haproxy.get(&path), "{query}");
    }
}

#[test]
fn every_sample_follows_its_type_and_parameters_select() {
    let folder = Folder::new();
    let weir = Subject::start(&folder, WEIR, SECTIONS);
    weir.wait_for_checks();
    let text = weir.metrics("?extra-counters&desc-labels");
    let (mut current, mut seen) = ("", BTreeSet::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            current = rest.split(' ').next().expect("a name");
            assert!(seen.insert(current), "two groups of {current}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(rest == format!("{current} counter") || rest == format!("{current} gauge"), "{line}");
        } else {
            assert_eq!(line.split(['{', ' ']).next(), Some(current), "{line}");
        }
    }
    assert_eq!(seen.len(), 453, "{seen:?}");
    let states = weir.metrics("?scope=server&no-maint&metrics=haproxy_server_status,haproxy_backend_status");
    assert!(!states.contains("s3") && !states.contains("haproxy_backend") && states.contains("s2"), "{states}");
    assert!(!weir.metrics("?metrics=-haproxy_server_status").contains("haproxy_server_status"));
    assert_eq!(weir.metrics("?scope=*&scope="), "");
    assert_eq!(weir.metrics("?metrics=haproxy_process_nbproc").lines().count(), 3);
    // HAProxy does not escape quotes in label values, which makes them invalid.
    let sections = SECTIONS.replace("description the back", "description \"a \\\"b\\\" \\\\ c\"");
    let weir = Subject::start(&folder, WEIR, &sections);
    let weights = weir.metrics("?metrics=haproxy_backend_weight&desc-labels");
    assert!(weights.contains("{proxy=\"app\",desc=\"a \\\"b\\\" \\\\ c\"} "), "{weights}");
}

#[test]
fn promtool_reads_the_metrics() {
    if Command::new("promtool").arg("--version").output().is_err() {
        eprintln!("SKIPPED: promtool is not installed, the text of the metrics is not read by Prometheus's own parser");
        return;
    }
    let folder = Folder::new();
    let weir = Subject::start(&folder, WEIR, SECTIONS);
    weir.wait_for_checks();
    for query in ["", "?extra-counters&desc-labels"] {
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool starts");
        let text = weir.metrics(query);
        let mut input = promtool.stdin.take().expect("a pipe");
        input.write_all(text.as_bytes()).expect("promtool reads");
        drop(input);
        let output = promtool.wait_with_output().expect("promtool ends");
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        // The names are HAProxy's; some differ from Prometheus's conventions.
        let other: Vec<&str> = told.lines().filter(|line| !line.ends_with("\"_total\" suffix")).collect();
        assert!(other.is_empty(), "{query}: {other:?}");
    }
}
