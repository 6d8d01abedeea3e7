//! The alert rules of `contrib/prometheus` and the dashboard of `contrib/grafana`: promtool accepts the rules and their
//! tests, every metric exists, and Prometheus answers every query of the dashboard with data of a running Weir. What needs
//! Prometheus is skipped with a message if that is not installed.

use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, connect_unix, exchange, free_port, get, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SECTIONS: &str = "frontend web
    bind 127.0.0.1:[port]
    bind 127.0.0.1:[tls] ssl crt [certificate]
    http-request track-sc0 src table counts
    default_backend app
frontend metrics
    bind 127.0.0.1:[metrics]
    http-request use-service prometheus-exporter if { path /metrics }
backend app
    server one 127.0.0.1:[origin] check
    server two 127.0.0.1:[closed] check inter 100ms backup
backend counts
    stick-table type ip size 1k store http_req_rate(10s)
";

const RULES: &str = "contrib/prometheus/weir.rules.yml";
const RULE_TESTS: &str = "contrib/prometheus/weir.rules.test.yml";
/// All metrics, Weir's own ones included.
const METRICS: &str = "/metrics?scope=*&scope=certificate";

const RELOADS: &str = "contrib/prometheus/weir-reloads.sh";
const DASHBOARD: &str = "contrib/grafana/weir.json";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect(name)
}

fn is_installed(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED: {program} is not installed");
    }
    is_there
}

/// A Weir with traffic, and its server.
struct Stage {
    _weir: Running,
    _origin: Running,
    port: u16,
    metrics: u16,
}

impl Stage {
    fn start(folder: &Folder) -> Self {
        let (text, [port, metrics, origin]) = configuration();
        let file = folder.write("weir.cfg", &text);
        let server = Running::start(Command::new(WEIR).args(["origin", "-L", &format!("127.0.0.1:{origin}")]));
        drop(connect(origin));
        let weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
        let stage = Self { _weir: weir, _origin: server, port, metrics };
        assert_eq!(exchange(&mut connect(port), &get("/")).0, 200);
        stage
    }
}

/// Returns a configuration, and the ports of its frontends and its server.
fn configuration() -> (String, [u16; 3]) {
    let certificate = path("crates/weir/tests/process/site.pem");
    let mut text = DEFAULTS.to_owned() + &SECTIONS.replace("[certificate]", certificate.to_str().expect("text"));
    let ports = ["[port]", "[metrics]", "[origin]", "[tls]", "[closed]"].map(|word| {
        let port = free_port();
        text = text.replace(word, &port.to_string());
        port
    });
    let [port, metrics, origin, ..] = ports;
    (text, [port, metrics, origin])
}

/// Requests a document and returns its body. HTTP/1.0 has no chunks.
fn fetch(port: u16, target: &str) -> String {
    let mut stream = connect(port);
    stream.write_all(format!("GET {target} HTTP/1.0\r\nhost: a\r\n\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

/// Returns the names of metrics in a text.
fn metrics_of(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("haproxy_") || word.starts_with("weir_")).collect()
}

/// Returns the values of a key in a list of YAML mappings.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let key = format!("{key}: ");
    text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix(&*key)).collect()
}

#[test]
fn promtool_accepts_the_rules_and_their_tests() {
    if !is_installed("promtool") {
        return;
    }
    for (command, file) in [(["check", "rules"], RULES), (["test", "rules"], RULE_TESTS)] {
        let done = Command::new("promtool").args(command).arg(path(file)).output().expect("it runs");
        let text = [done.stdout, done.stderr].concat();
        assert!(done.status.success(), "{file}: {}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn each_alert_has_a_test_that_fires_and_one_that_does_not() {
    let (rules, tests) = (read(RULES), read(RULE_TESTS));
    let alerts = values(&rules, "alert");
    assert!(alerts.len() > 20, "{alerts:?}");
    for alert in alerts {
        let cases: Vec<&str> =
            tests.split("alertname: ").skip(1).filter(|case| case.starts_with(&format!("{alert}\n"))).collect();
        let quiet = cases.iter().filter(|case| case.lines().nth(1).is_some_and(|line| line.trim() == "exp_alerts: []"));
        let quiet = quiet.count();
        assert!(quiet > 0 && cases.len() > quiet, "{alert}: {quiet} of {}", cases.len());
    }
}

#[test]
fn every_metric_of_the_rules_and_the_dashboard_exists() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let text = fetch(stage.metrics, METRICS);
    let present: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    // Metrics of the script beside the rules.
    let script = read(RELOADS);
    let of_script = metrics_of(&script);
    let present: BTreeSet<&str> = present.union(&of_script).copied().collect();
    for file in [RULES, DASHBOARD] {
        let content = read(file);
        let missing: Vec<_> = metrics_of(&content).into_iter().filter(|name| !present.contains(name)).collect();
        assert!(missing.is_empty(), "{file}: {missing:?}");
    }
}

/// Returns all queries of the dashboard: of panels, annotations and variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for panel in list(&dashboard["panels"]) {
        found.extend(list(&panel["targets"]).iter().map(|target| target["expr"].as_str().expect("a query").to_owned()));
    }
    let annotations = list(&dashboard["annotations"]["list"]);
    // An annotation is shown for values above 0 only.
    found.extend(
        annotations.iter().map(|note| note["expr"].as_str().expect("a query").trim_end_matches(" > 0").to_owned()),
    );
    for variable in list(&dashboard["templating"]["list"]).iter().filter(|variable| variable["type"] == "query") {
        let query = variable["definition"].as_str().expect("a query");
        let (series, label) = query
            .strip_prefix("label_values(")
            .and_then(|rest| rest.strip_suffix(')')?.rsplit_once(", "))
            .expect("label_values");
        found.push(format!("count by ({label}) ({series})"));
    }
    // Grafana's variables.
    let selected = |query: String| {
        let query = ["$instance", "$frontend", "$backend"].iter().fold(query, |query, name| query.replace(name, ".*"));
        query.replace("$__rate_interval", "10s")
    };
    found.into_iter().map(selected).collect()
}

/// Runs a query; returns the finite numbers of its result.
fn ask(prometheus: u16, query: &str) -> Vec<f64> {
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let text = fetch(prometheus, &format!("/api/v1/query?query={encoded}"));
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["status"], "success", "{query}: {text}");
    let results = answer["data"]["result"].as_array().expect("a list");
    let numbers = results.iter().filter_map(|result| result["value"][1].as_str()?.parse::<f64>().ok());
    numbers.filter(|number| number.is_finite()).collect()
}

#[test]
fn prometheus_answers_every_query_of_the_dashboard() {
    if !is_installed("prometheus") {
        return;
    }
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let port = free_port();
    let configuration = format!(
        "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\nrule_files:\n  - {}\nscrape_configs:\n  - job_name: weir\n    \
         params:\n      scope: ['*', 'certificate']\n    static_configs:\n      - targets: ['127.0.0.1:{}']\n",
        path(RULES).display(),
        stage.metrics
    );
    let file = folder.write("prometheus.yml", &configuration);
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={file}")).arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.arg(format!("--storage.tsdb.path={}", folder.path("data").display())).stdin(Stdio::null());
    let _prometheus = Running::start(&mut command);
    wait_until("Prometheus is ready", || fetch(port, "/-/ready").contains("Ready"));
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    // Rates need two samples, and the first one a request.
    while ask(port, "rate(haproxy_frontend_http_requests_total{proxy=\"web\"}[10s])").iter().sum::<f64>() == 0.0 {
        assert_eq!(exchange(&mut connect(stage.port), &get("/")).0, 200);
    }
    let queries = queries(&dashboard);
    assert!(queries.len() > 50, "{}", queries.len());
    for query in queries {
        assert!(!query.contains('$'), "{query}");
        assert!(!ask(port, &query).is_empty(), "no data for {query}");
    }
    let down = "max by (proxy, server) (haproxy_server_status{state=\"DOWN\"} == 1)";
    while ask(port, down) != [1.0] {}
}

#[test]
fn the_panels_of_the_dashboard_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("JSON");
    let (mut cells, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().expect("panels") {
        assert!(numbers.insert(panel["id"].as_u64()), "{}", panel["id"]);
        assert!(panel["title"].as_str().is_some_and(|title| !title.is_empty()));
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|name| panel["gridPos"][name].as_u64().expect("a number"));
        assert!(x + w <= 24, "{}", panel["title"]);
        for cell in (y..y + h).flat_map(|y| (x..x + w).map(move |x| (x, y))) {
            assert!(cells.insert(cell), "{} at {cell:?}", panel["title"]);
        }
    }
}

/// Returns the output of the script for a master's socket.
fn reload_metrics(socket: &str) -> (bool, String) {
    let done = Command::new("sh").env("WEIR", WEIR).arg(path(RELOADS)).arg(socket).output().expect("a shell");
    (done.status.success(), String::from_utf8([done.stdout, done.stderr].concat()).expect("text"))
}

#[test]
fn failed_reloads_are_metrics_of_the_script() {
    let folder = Folder::new();
    let (text, [_, served, _]) = configuration();
    let file = folder.write("weir.cfg", &text);
    let socket = folder.path("master.sock").to_str().expect("text").to_owned();
    let _master = Running::start(Command::new(WEIR).args(["-W", "-db", "-S", &socket, "-f", &file]));
    let reload = || {
        let mut stream = connect_unix(Path::new(&socket));
        stream.write_all(b"reload\n").expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer
    };
    let counts = |reloads: u32, failed: u32| {
        let (success, text) = reload_metrics(&socket);
        assert!(success, "{text}");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [format!("weir_master_reloads_total {reloads}"), format!("weir_master_failed_reloads {failed}")]
        );
        text
    };
    // The worker has read the file.
    assert!(!fetch(served, METRICS).is_empty());
    counts(0, 0);
    folder.write("weir.cfg", &text.replace("check inter", "chek inter"));
    assert!(reload().contains("Success=0"));
    let metrics = counts(1, 1);
    folder.write("weir.cfg", &text);
    assert!(reload().contains("Success=1"));
    counts(2, 0);
    let (success, said) = reload_metrics("/nonexistent/socket");
    assert!(!success && said.contains("/nonexistent/socket"), "{said}");
    if is_installed("promtool") {
        let file = folder.write("weir.prom", &metrics);
        let done = Command::new("sh").args(["-c", "promtool check metrics <\"$0\"", &file]).output().expect("a shell");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
