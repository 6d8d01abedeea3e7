//! The warnings about a configuration beside those of HAProxy 3.5, and their order: `check_order/warnings.txt` is what
//! `bench/check_order.py` has recorded. Messages about servers with broken arguments: `check_order/server_arguments.tsv`, recorded by
//! `bench/server_arguments.py`. Warnings about ACLs that are not available at their place: `check_order/misplaced_acls.tsv`, recorded by
//! `bench/misplaced_acls.py`. Must never depend on how fast a machine is.

use crate::support::{Folder, weir};

const CONFIGURATION: &str = include_str!("check_order/order.cfg");
const RECORDED: &str = include_str!("check_order/warnings.txt");
const SERVER_ARGUMENTS: &str = include_str!("check_order/server_arguments.tsv");
const MISPLACED_ACLS: &str = include_str!("check_order/misplaced_acls.tsv");

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

/// Arguments of servers that Weir judges in another way, each with the reason.
const OTHER_ARGUMENTS: &[(&str, &str)] = &[
    ("port 70000", "no port is truncated"),
    ("check port 70000", "no port is truncated"),
    ("slowstart", "HAProxy's sentence ends at the missing character"),
    ("source 1.2.3", "an address has four numbers"),
    ("interface", "another measure of likeness"),
    ("alpn ,", "protocols have names"),
    ("alpn aaa,,b", "protocols have names"),
    ("agent-port 70000", "no port is truncated"),
    ("ca-file /nonexist", "the option is named"),
    ("ssl ca-file /nonexist", "the option is named"),
    ("crl-file /nonexist", "the option is named"),
    ("ssl crt /nonexist", "trust is checked before files"),
    ("send-proxy-v2 foo", "another measure of likeness"),
    ("external-check", "another measure of likeness"),
    ("healthcheck", "an alert fails the check"),
    ("renegotiate", "nothing is renegotiated"),
    ("no-such", "another measure of likeness"),
    ("renegotiate x", "nothing is renegotiated"),
    ("track-sc0", "another measure of likeness"),
    ("ssl ca-file @nosuch", "the option is named"),
];

/// A row of the recorded table: the arguments, the exit code, and the first message (empty: none).
#[derive(Clone, Copy)]
struct Recorded<'a> {
    arguments: &'a str,
    code: i32,
    first: &'a str,
}

/// Checks a configuration with a backend for each row; returns the rows that are judged in another way, with Weir's first message.
fn judged_otherwise<'a>(folder: &Folder, rows: &[Recorded<'a>], code: i32) -> Vec<(Recorded<'a>, String)> {
    let mut text = "defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n".to_owned();
    for (number, row) in rows.iter().enumerate() {
        text += &format!("backend b{number}\n server s 127.0.0.1:80 {}\n", row.arguments);
    }
    let file = folder.write("x.cfg", &text);
    let found = weir(["-c", "-f", &file]);
    let said: Vec<String> = found.stderr.lines().filter_map(message).collect();
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let place = format!("[{file}:{}]", 7 + 2 * number);
        // Some messages name the backend alone.
        let first = said.iter().find(|line| rows.len() == 1 || line.contains(&place)).map_or(String::new(), |line| {
            line.replace(&place, "[x.cfg:7]")
                .replace(&format!("b{number}/"), "b/")
                .replace(&format!("'b{number}'"), "'b'")
        });
        if found.code() != Some(code) || first != row.first {
            wrong.push((*row, format!("{:?} {first}", found.code())));
        }
    }
    wrong
}

/// Returns the severity and the text of a warning or an alert.
fn message(line: &str) -> Option<String> {
    let (tag, rest) = line.split_once(']')?;
    let severity = tag.strip_prefix('[').filter(|tag| matches!(*tag, "WARNING" | "ALERT"))?;
    Some(format!("{severity} {}", rest.split_once(") : ")?.1))
}

#[test]
fn broken_arguments_of_servers_are_reported_as_by_haproxy() {
    let rows: Vec<Recorded<'_>> = SERVER_ARGUMENTS
        .lines()
        .map(|line| {
            let mut columns = line.split('\t');
            let mut column = || columns.next().expect("three columns");
            let (arguments, code, first) = (column(), column(), column());
            Recorded { arguments, code: code.parse().expect("a number"), first }
        })
        .collect();
    let folder = Folder::new();
    // Together first: an error that is found late hides behind those that are found early, so the rest is checked alone.
    let is_other = |row: &Recorded<'_>| OTHER_ARGUMENTS.iter().any(|(arguments, _)| *arguments == row.arguments);
    let (others, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_other);
    let (accepted, refused): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.code == 0);
    let mut alone: Vec<_> = judged_otherwise(&folder, &accepted, 0).into_iter().map(|(row, _)| row).collect();
    alone.extend(judged_otherwise(&folder, &refused, 1).into_iter().map(|(row, _)| row));
    let wrong = alone.iter().flat_map(|row| judged_otherwise(&folder, &[*row], row.code));
    let wrong: Vec<String> =
        wrong.map(|(row, weir)| format!("{}\n  {} {}\n  {weir}", row.arguments, row.code, row.first)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (arguments, reason) in OTHER_ARGUMENTS {
        let row = others.iter().find(|row| row.arguments == *arguments).expect("a recorded row");
        let judged = judged_otherwise(&folder, &[*row], row.code);
        assert!(!judged.is_empty(), "'{arguments}' is judged as by HAProxy ({reason}): it is no longer to be listed");
    }
}

#[test]
fn acls_at_the_wrong_place_are_reported_as_by_haproxy() {
    let mut text = "defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\nbackend app\n \
                    stick-table type ip size 1k\n server s 127.0.0.1:1\n"
        .to_owned();
    let mut proxies = Vec::new();
    for (number, row) in MISPLACED_ACLS.lines().enumerate() {
        let mut columns = row.split('\t');
        let mut column = || columns.next().expect("three columns");
        let (kind, lines, warnings) = (column(), column(), column());
        let first = text.lines().count() + 1;
        text += &format!("{kind} p{number}\n {}\n", lines.replace(';', "\n "));
        if kind == "frontend" {
            text += " bind 127.0.0.1:1\n";
        }
        proxies.push((format!("{kind}: {lines}"), first, warnings));
    }
    let folder = Folder::new();
    let file = folder.write("x.cfg", &text);
    let found = weir(["-c", "-f", &file]);
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    let said: Vec<String> =
        found.stderr.lines().filter_map(|line| Some(message(line)?.replace(&file, "x.cfg"))).collect();
    for (number, (proxy, first, expected)) in proxies.iter().enumerate() {
        let lines = 1 + proxy.matches(';').count();
        let warnings: Vec<String> = said
            .iter()
            .filter_map(|line| {
                let (before, behind) = line.strip_prefix("WARNING ")?.split_once("x.cfg:")?;
                let (at, behind) = behind.split_at(behind.find(|letter: char| !letter.is_ascii_digit())?);
                let at = at.parse::<usize>().ok()?.checked_sub(*first).filter(|at| (1..=lines).contains(at))?;
                Some(format!("{before}x.cfg:+{at}{behind}").replace(&format!("'p{number}'"), "'p'"))
            })
            .collect();
        assert_eq!(warnings.join(";"), *expected, "{proxy}");
    }
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
