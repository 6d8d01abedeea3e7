//! Errors in a scenario are reported with their place and the expected value.

use super::quantity::{ProcessorChoice, RampUp, Rate};
use super::read;

const HEAD: &str = "name = \"a\"\ntitle = \"A\"\n";
const LOAD: &str = "[load]\npath = \"/?s={size}\"\nduration = 1\n";
const PROXY: &str = "[[proxy]]\nname = \"p\"\ncommand = [\"p\", \"{port}\"]\n";

#[test]
fn the_least_scenario_has_standard_values() {
    let source = read("a.toml", &format!("{HEAD}{LOAD}{PROXY}")).unwrap();
    let scenario = source.scenario;
    assert_eq!(*scenario.rounds.get_ref(), 5);
    assert_eq!(*scenario.load.connections.get_ref(), 64);
    assert_eq!(
        (scenario.processors.proxy, scenario.processors.load),
        (ProcessorChoice::Workers, ProcessorChoice::Rest)
    );
    assert!(scenario.origin.is_empty() && !scenario.proxy[0].optional);
}

#[test]
fn everything_can_be_written() {
    let text = r#"
name = "all-of-it"
title = "All"
repeats = "Nothing"
waits_for = "a reason"
rounds = 2
[values]
own = "x"
[files]
"a/b.cfg" = "{own} {port} {folder} {scratch} {weir} {origin} {origin_2} {origin_2_port} {workers}"
[load]
scheme = "https"
path = "/{size}"
method = "POST"
headers = { Host = "{own}" }
connections = 1000
threads = 2
duration = "2s"
warm_up = "500ms"
ramp_up = "25%"
requests_per_connection = 1
rate = 1000
at_most = 2000.5
reference = "10%"
think = 60
options = ["--tls-reuse"]
[sweep]
sizes = [64, "10k"]
rates = ["50%", 1000]
workers = [1, 2]
connections = [1, 64]
[processors]
proxy = "0-3,8"
origin = "all"
load = "rest"
[limits]
descriptors = 1000
[[origin]]
command = ["{weir}", "origin", "-L", "127.0.0.1:{port}"]
[[origin]]
command = ["nginx", "-c", "{folder}/n.conf"]
files = { "n.conf" = "listen {port}; events { x 1; }" }
[[proxy]]
name = "p-1.2_3"
command = ["p", "{port}"]
version = ["p", "-v"]
optional = true
needs = ["{folder}/c"]
waits_for = "more"
files = { "c" = "{size}" }
"#;
    let scenario = read("a.toml", text).unwrap().scenario;
    assert_eq!(scenario.load.ramp_up, RampUp::Share(0.25));
    assert_eq!(scenario.load.reference, Some(Rate::Share(0.1)));
    assert_eq!(scenario.sweep.rates, [Rate::Share(0.5), Rate::Absolute(1000.0)]);
    assert_eq!(scenario.processors.proxy.to_string(), "0-3,8");
}

/// Rows: the text, the place that the error refers to, and a part of its message.
#[test]
fn every_error_names_its_place_and_what_was_expected() {
    let with = |line: &str| format!("{HEAD}{line}\n{LOAD}{PROXY}");
    let load = |line: &str| format!("{HEAD}{LOAD}{line}\n{PROXY}");
    let proxy = |line: &str| format!("{HEAD}{LOAD}{PROXY}{line}\n");
    let rows = [
        ("name = ".to_owned(), "1:8", ""),
        (with("colour = 1"), "3:1", "unknown field `colour`, expected one of `name`, `title`"),
        (load("speed = 1"), "6:1", "unknown field `speed`, expected one of `scheme`, `path`"),
        (proxy("folder = 1"), "9:1", "unknown field `folder`, expected one of"),
        (with("rounds = 0"), "3:10", "rounds is a number from 1 to 1000"),
        (with("rounds = -1"), "3:10", "expected"),
        (with("rounds = \"x\""), "3:10", "expected"),
        (format!("title = \"A\"\n{LOAD}{PROXY}"), "1:1", "missing field `name`"),
        (format!("{HEAD}{PROXY}"), "1:1", "missing field `load`"),
        (format!("{HEAD}{LOAD}"), "1:1", "missing field `proxy`"),
        (format!("{HEAD}proxy = []\n{LOAD}"), "1:8", "a scenario has 1 to 100 [[proxy]]"),
        (format!("name = \"A b\"\ntitle = \"A\"\n{LOAD}{PROXY}"), "1:8", "small letters"),
        (load("connections = 0"), "6:15", "connections is a number from 1"),
        (load("threads = 5000"), "6:11", "threads is a number from 1 to 1024"),
        (load("ramp_up = \"fast\""), "6:11", "seconds, such as 3"),
        (load("rate = 0"), "6:8", "requests a second above 0"),
        (load("method = \"G T\""), "6:10", "a method is a word"),
        (load("scheme = \"ftp\""), "6:10", "\"http\" or \"https\""),
        (load("requests_per_connection = 0"), "6:27", "at least 1"),
        (load("headers = { A = \"b\\r\\nc\" }"), "6:17", "a value of one line"),
        (load("[sweep]\nsizes = [\"64 bytes\"]"), "7:10", "bytes, such as 64"),
        (load("[sweep]\nworkers = [0]"), "7:12", "workers is a number from 1"),
        (load("[processors]\nload = \"third\""), "7:8", "processors such as \"0-3,8\""),
        (load("[values]\nPort = \"1\""), "7:1", "small letters"),
        (load("[values]\nport = \"1\""), "7:1", "not taken"),
        (load("[files]\n\"../x\" = \"1\""), "7:1", "below the folder"),
        (load("[files]\n\"x\" = \"a {prot}\""), "7:7", "{prot} stands for nothing; known are {connections}"),
        (load("[[origin]]\ncommand = [\"o\", \"{workers}\"]"), "7:17", "{workers} stands for nothing"),
        (proxy("[[proxy]]\nname = \"p\"\ncommand = [\"p\"]"), "10:8", "the name 'p' is taken"),
        (proxy("[[proxy]]\nname = \"direct\"\ncommand = [\"p\"]"), "10:8", "the name 'direct' is taken"),
        (proxy("[[proxy]]\nname = \"../q\"\ncommand = [\"p\"]"), "10:8", "a proxy's name"),
        (proxy("[[proxy]]\nname = \"q\"\ncommand = []"), "10:8", "the command of 'q' is empty"),
        (format!("{HEAD}[load]\npath = \"x\"\nduration = 1\n{PROXY}"), "4:8", "a path begins with '/'"),
        (format!("{HEAD}[load]\npath = \"/\"\nduration = 0\n{PROXY}"), "5:12", "at least 0.05"),
    ];
    for (text, place, what) in rows {
        let error = read("a.toml", &text).expect_err(&text);
        assert!(error.starts_with(&format!("a.toml:{place}: ")), "{error}\nexpected at {place}:\n{text}");
        assert!(error.contains(what), "{error}\nexpected {what}:\n{text}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_sweep_is_bounded() {
    let many = (1..=40).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!("{HEAD}{LOAD}[sweep]\nsizes = [{many}]\nconnections = [{many}]\n{PROXY}");
    let error = read("a.toml", &text).unwrap_err();
    assert!(error.contains("1600 combinations, 1000 are the most"), "{error}");
}
