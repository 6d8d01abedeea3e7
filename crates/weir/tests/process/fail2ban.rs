//! The filters and jails of `contrib/fail2ban`, read by fail2ban's own programs: lines of a running Weir match the filter
//! that is made for them, with the client's address, and no other. Skipped with a message if fail2ban is not installed.

use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, exchange, free_port, get};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

const FILTERS: [&str; 3] = ["weir-auth", "weir-denied", "weir-scan"];

/// Each line is logged twice: raw, and with the header of syslog.
const SECTIONS: &str = "global
    log stdout format raw local0
    log stdout format rfc3164 local0
frontend web
    bind 127.0.0.1:[port]
    log global
    option httplog
    timeout tarpit 1
    capture request header user-agent len 200
    http-request deny if { path /deny }
    http-request deny deny_status 429 if { path /limit }
    http-request tarpit if { path /tarpit }
    http-request reject if { path /reject }
    http-request auth realm x if { path /auth }
    http-request redirect location /new if { path /old }
    use_backend none if { path /none }
    default_backend app
backend app
    server one 127.0.0.1:[origin]
backend none
";

/// Targets of requests, and the filter that matches their line.
const REQUESTS: &[(&str, Option<&str>)] = &[
    ("/", None),
    ("/old", None),
    ("/none", None),
    ("/?r=500", None),
    ("/?r=403", None),
    ("/?r=404", None),
    ("/?r=404&x=/.env", None),
    ("/.env", None),
    ("/auth", Some("weir-auth")),
    ("/?r=401", Some("weir-auth")),
    ("/?r=407", Some("weir-auth")),
    ("/deny", Some("weir-denied")),
    ("/limit", Some("weir-denied")),
    ("/tarpit", Some("weir-denied")),
    ("/reject", Some("weir-denied")),
    ("/.env?r=404", Some("weir-scan")),
    ("/blog/WP-login.php?r=404", Some("weir-scan")),
    ("/.git/config?r=404", Some("weir-scan")),
    ("/site.sql?r=404", Some("weir-scan")),
];

fn fail2ban() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/fail2ban")
}

fn is_installed(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED: {program} is not installed");
    }
    is_there
}

/// A line of the log as a syslog daemon stores it: without the priority.
fn stored(line: &str) -> String {
    let stored = line.split_once('>').filter(|_| line.starts_with('<')).map_or(line, |(_, rest)| rest);
    stored.to_owned()
}

/// Serves the requests; returns each pair of lines with the filter that should match it.
fn logged() -> Vec<(String, Option<&'static str>)> {
    let folder = Folder::new();
    let (port, server) = (free_port(), free_port());
    let (global, sections) = SECTIONS.split_at(SECTIONS.find("frontend").expect("a section"));
    let text = format!("{global}{DEFAULTS}{sections}")
        .replace("[port]", &port.to_string())
        .replace("[origin]", &server.to_string());
    let file = folder.write("weir.cfg", &text);
    let _origin = Running::start(Command::new(WEIR).args(["origin", "-L", &format!("127.0.0.1:{server}")]));
    drop(connect(server));
    let mut weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
    let mut lines = Vec::new();
    let mut take = |weir: &mut Running, filter| {
        for _ in 0..2 {
            let line = weir.wait_for_line(|line| line.contains(" web "));
            lines.push((stored(line.trim_end()), filter));
        }
    };
    for (target, filter) in REQUESTS {
        let mut client = connect(port);
        // A half-closed client could be one that has left, while its request waits for the server.
        let request = get(target).replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1);
        client.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an answer, or none");
        take(&mut weir, *filter);
    }
    // Bytes of a client that look like another line.
    let forged =
        "203.0.113.9:1 [29/Nov/2026:15:54:09.400] web app/one 0/0/0/0/0 401 0 - - PR-- 1/1/0/0/0 0/0 \"GET /.env";
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\nuser-agent: {forged}\r\n\r\n");
    assert_eq!(exchange(&mut connect(port), &request).0, 200);
    take(&mut weir, None);
    let mut garbage = connect(port);
    garbage.write_all(b"SSH-2.0-client\r\n\r\n").expect("sent");
    garbage.read_to_end(&mut Vec::new()).expect("an answer");
    take(&mut weir, Some("weir-denied"));
    lines
}

#[test]
fn each_filter_matches_its_lines_and_no_others() {
    if !is_installed("fail2ban-regex") {
        return;
    }
    let mut lines = logged();
    let sixth =
        "[29/Nov/2026:15:54:09.857] web~ web/<NOSRV> 0/-1/-1/-1/0 403 0 - - PR-- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\"";
    lines.push((format!("2001:db8::7:41444 {sixth}"), Some("weir-denied")));
    lines.push((format!("2026-11-29T15:54:09.857+00:00 lb1 weir[7]: ::1:41444 {sixth}"), Some("weir-denied")));
    lines.push((format!("Nov 29 15:54:09 lb1 haproxy[7]: 192.0.2.7:41444 {sixth}"), Some("weir-denied")));
    let folder = Folder::new();
    let log = folder.write("weir.log", &lines.iter().map(|(line, _)| format!("{line}\n")).collect::<String>());
    for name in FILTERS {
        let filter = fail2ban().join("filter.d").join(name).with_extension("conf");
        let done = Command::new("fail2ban-regex").args(["-o", "msg", &log]).arg(&filter).output().expect("it runs");
        let matched = String::from_utf8_lossy(&done.stdout).into_owned();
        let expected: Vec<&str> =
            lines.iter().filter(|(_, filter)| *filter == Some(name)).map(|(line, _)| line.as_str()).collect();
        assert_eq!(matched.lines().collect::<Vec<_>>(), expected, "{name}: {}", String::from_utf8_lossy(&done.stderr));
        let done = Command::new("fail2ban-regex").args(["-o", "ip", &log]).arg(&filter).output().expect("it runs");
        for address in String::from_utf8_lossy(&done.stdout).lines() {
            assert!(["127.0.0.1", "192.0.2.7", "2001:db8::7", "::1"].contains(&address), "{name}: {address}");
        }
    }
}

#[test]
fn fail2ban_reads_the_jails() {
    let system = Path::new("/etc/fail2ban");
    if !is_installed("fail2ban-client") || !system.join("jail.conf").exists() {
        return;
    }
    let folder = Folder::new();
    let copy = |from: &Path, to: &str| {
        let target = folder.path(to);
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("created");
        std::fs::copy(from, target).expect("copied");
    };
    for name in ["fail2ban.conf", "jail.conf"] {
        copy(&system.join(name), name);
    }
    for (kind, place) in [("action.d", system.to_owned()), ("filter.d", fail2ban())] {
        for entry in std::fs::read_dir(place.join(kind)).expect("a folder") {
            let path = entry.expect("a file").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            if name.ends_with(".conf") {
                copy(&path, &format!("{kind}/{name}"));
            }
        }
    }
    copy(&system.join("paths-debian.conf"), "paths-debian.conf");
    copy(&system.join("paths-common.conf"), "paths-common.conf");
    let log = folder.write("weir.log", "");
    let jails = std::fs::read_to_string(fail2ban().join("jail.d/weir.conf")).expect("the jails");
    assert_eq!(jails.matches("enabled  = false").count(), FILTERS.len());
    let jails = jails.replace("enabled  = false", "enabled  = true").replace("/var/log/weir.log", &log);
    folder.write("jail.d/weir.conf", &jails);
    let done = Command::new("fail2ban-client").args(["-c", folder.text(), "-d"]).output().expect("it runs");
    let (dump, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{dump}{errors}");
    for name in FILTERS {
        assert!(dump.contains(&format!("['add', '{name}'")), "{name}: {dump}{errors}");
        assert!(dump.contains(&format!("['set', '{name}', 'addfailregex'")), "{name}: {dump}");
        assert!(dump.contains(&format!("['set', '{name}', 'addlogpath', '{log}'")), "{name}: {dump}");
    }
}
