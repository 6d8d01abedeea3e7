//! The warnings about a configuration beside those of HAProxy 3.5, and their order: `check_order/warnings.txt` is what
//! `bench/warnings.py` has recorded. Must never depend on how fast a machine is.

use crate::support::{Folder, weir};

const CONFIGURATION: &str = include_str!("check_order/order.cfg");
const RECORDED: &str = include_str!("check_order/warnings.txt");

#[test]
fn warnings_come_in_the_order_of_haproxy() {
    let folder = Folder::new();
    let script = folder.write("empty.lua", "");
    let file = folder.write("order.cfg", &CONFIGURATION.replace("SCRIPT", &script));
    let found = weir(["-c", "-L", "here", "-f", &file]);
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    let warnings = found.stderr.lines().filter_map(|line| Some(line.strip_prefix("[WARNING]")?.split_once(") : ")?.1));
    let shown: Vec<String> = warnings.map(|line| without_time(&line.replace(&file, "order.cfg"))).collect();
    let recorded: Vec<&str> = RECORDED.lines().collect();
    for (at, (one, other)) in shown.iter().zip(&recorded).enumerate() {
        assert_eq!(one, other, "warning {at}");
    }
    assert_eq!(shown.len(), recorded.len(), "{shown:#?}");
}

/// HAProxy measures how long passwords take to verify.
fn without_time(line: &str) -> String {
    let Some((before, rest)) = line.split_once(" takes ") else { return line.to_owned() };
    let Some((_, behind)) = rest.split_once(" milliseconds ") else { return line.to_owned() };
    format!("{before} takes # milliseconds {behind}")
}

#[test]
fn processors_of_a_map_fit_its_threads() {
    let folder = Folder::new();
    let crowded = |processors: usize| {
        format!("This configuration binds 4 threads to a total of {processors} CPUs via cpu-map directives.")
    };
    for (map, expected) in [
        ("cpu-map 1/1-4 0-7", None),
        ("cpu-map auto:1/1-4 0-3", None),
        ("cpu-map 1/1-4 0", Some(crowded(1))),
        ("cpu-map 1/1-4 0-1", Some(crowded(2))),
    ] {
        let file = folder.write("map.cfg", &format!("global\n nbthread 4\n {map}\n"));
        let found = weir(["-c", "-f", &file]);
        let warned = found.stderr.lines().find(|line| line.contains("[WARNING]") && line.contains("threads"));
        let fits = match &expected {
            Some(expected) => warned.is_some_and(|line| line.contains(expected)),
            None => warned.is_none(),
        };
        assert!(found.code() == Some(0) && fits, "{map}: {}", found.stderr);
    }
    for map in ["auto:1/1-4 0-7", "auto:1/all 0-3", "auto:1/1-8 0-3", "auto:all 0-3"] {
        let file = folder.write("map.cfg", &format!("global\n cpu-map {map}\n"));
        let found = weir(["-c", "-f", &file]);
        let refused =
            found.stderr.contains("map.cfg:2] : cpu-map : TGROUP/THREAD range and CPU sets must have the same size");
        assert!(found.code() == Some(1) && refused, "{map}: {}", found.stderr);
    }
}
