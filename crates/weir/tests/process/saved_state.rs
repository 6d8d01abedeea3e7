//! State files between processes: states of servers.

use crate::support::{DEFAULTS, Folder, Running, run, weir};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Returns the answer of the runtime API.
fn ask(folder: &Folder, command: &str) -> String {
    let mut stream = crate::support::connect_unix(&folder.path("api"));
    stream.write_all(format!("{command}\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// Three servers without checks; the last one is disabled. Their states are loaded from `source`.
fn configuration(folder: &Folder, global: &str, source: &str) -> String {
    format!(
        "global\n    stats socket {} level admin\n    {global}\n{DEFAULTS}    {source}\nbackend b\n    server one \
         127.0.0.1:1 weight 10\n    server two 127.0.0.1:2\n    server three 127.0.0.1:3 disabled\n",
        folder.path("api").display()
    )
}

fn serve(folder: &Folder, global: &str, source: &str) -> Running {
    let file = folder.write("weir.cfg", &configuration(folder, global, source));
    let mut running = Running::weir(&["-db", "-f", &file]);
    running.wait_until_ready(folder);
    running
}

trait Ready {
    fn wait_until_ready(&mut self, folder: &Folder);
}

impl Ready for Running {
    fn wait_until_ready(&mut self, folder: &Folder) {
        crate::support::wait_until("the runtime API", || UnixStream::connect(folder.path("api")).is_ok());
    }
}

/// Returns name, operational state, administrative state, weight and port of each server.
fn states(dump: &str) -> Vec<String> {
    let lines = dump.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()) && line.len() > 1);
    let fields = lines.map(|line| line.split(' ').collect::<Vec<_>>());
    fields.map(|line| format!("{} {} {} {} {}", line[3], line[5], line[6], line[7], line[18])).collect()
}

#[test]
fn servers_go_on_where_they_were_in_the_process_before() {
    for (global, source, file) in [
        ("server-state-file states", "load-server-state-from-file global", "states"),
        ("", "load-server-state-from-file local", "b"),
    ] {
        let folder = Folder::new();
        let global = format!("server-state-base {}\n    {global}", folder.text());
        let first = serve(&folder, &global, source);
        let orders = [
            "set server b/one weight 3",
            "set server b/one addr 127.0.0.1 port 81",
            "set server b/two state drain",
            "set server b/three state ready",
        ];
        orders.iter().for_each(|order| drop(ask(&folder, order)));
        let saved = ask(&folder, "show servers state b");
        assert_eq!(states(&saved), ["one 2 0 3 81", "two 2 8 1 2", "three 2 4 1 3"], "{saved}");
        folder.write(file, saved.trim_end_matches('\n').trim_start().to_owned().as_str());
        // A last line without a line end is ignored: the file was truncated.
        drop(first);
        let _ = std::fs::remove_file(folder.path("api"));
        let second = serve(&folder, &global, source);
        assert_eq!(states(&ask(&folder, "show servers state b")), ["one 2 0 10 1", "two 2 0 1 2", "three 0 5 1 3"]);
        drop(second);
        let _ = std::fs::remove_file(folder.path("api"));
        folder.write(file, &saved);
        let third = serve(&folder, &global, source);
        assert_eq!(states(&ask(&folder, "show servers state b")), ["one 2 0 3 81", "two 2 8 1 2", "three 2 4 1 3"]);
        drop(third);
    }
}

/// Returns the messages about a state file with these contents.
fn said(content: &[u8]) -> String {
    let folder = Folder::new();
    std::fs::write(folder.path("states"), content).expect("written");
    let global = format!("server-state-file {}/states", folder.text());
    let file = folder.write("weir.cfg", &configuration(&folder, &global, "load-server-state-from-file global"));
    let found = weir(["-c", "-f", &file]);
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    let messages = found.stderr.lines().filter(|line| !line.contains("weir version") && !line.contains("executable"));
    let bare = messages.filter_map(|line| line.split_once(" : ")).map(|(_, text)| text);
    bare.collect::<Vec<_>>().join("\n").replace(folder.text(), "")
}

#[test]
fn files_that_cannot_be_used_are_told_of_and_nothing_else_happens() {
    let line = |fields: &str| format!("1\n2 b 1 one 127.0.0.1 {fields} 0 0 0 0 - 1 - 0 0 - - 0\n");
    let mut binary: Vec<u8> = b"1\n".to_vec();
    binary.extend((0..=255).cycle().take(100_000));
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "config: Empty global server state file '/states'."),
        (b"2\n".to_vec(), "config: Can't get version of the global server state file '/states'."),
        (vec![b'1'; 1 << 20], "config: Can't get version of the global server state file '/states'."),
        (b"1\n# a comment\nshort line\n".to_vec(), "config: corrupted global server state file '/states' at line 2."),
        (binary, "config: corrupted global server state file '/states' at line 1."),
        (
            line("9 0 x 10 4 1 0 0").into_bytes(),
            "server-state application failed for server 'b/one', invalid srv_op_state value '9', invalid srv_uweight \
             value 'x'",
        ),
        (
            line("0 0 10 10 4 1 0 0").into_bytes(),
            "Server b/one is DOWN, changed from server-state after a reload. 1 active and 0 backup servers left. 0 \
             sessions active, 0 requeued, 0 remaining in queue.",
        ),
        (line("2 0 10 10 4 1 0 0").replace(" b ", " other ").into_bytes(), ""),
    ];
    for (content, expected) in rows {
        assert_eq!(said(&content), expected);
    }
}

#[test]
fn files_of_backends_name_their_backend() {
    let folder = Folder::new();
    let line = |backend: &str, server: &str| format!("2 {backend} 1 {server} - 2 0 10 10 4 1 0 0 0 0 0 0 - 1 - 0\n");
    let base = format!("server-state-base {}", folder.text());
    let file = folder.write("weir.cfg", &configuration(&folder, &base, "load-server-state-from-file local"));
    let check = || {
        let found = run(Command::new(crate::support::WEIR).args(["-c", "-f", &file]));
        assert_eq!(found.code(), Some(0), "{}", found.stderr);
        found.stderr.replace(folder.text(), "")
    };
    let text = check();
    assert!(text.contains("[NOTICE]"), "{text}");
    assert!(text.contains("Proxy 'b': Can't open server state file '/b': No such file or directory."), "{text}");
    folder.write("b", &format!("1\n{}{}", line("other", "one"), line("b", "nobody")));
    let text = check();
    for sentence in [
        "Proxy 'b': backend name mismatch: from server state file: 'other', from running config 'b'",
        "Proxy 'b': can't find server 'nobody' in backend 'b'",
    ] {
        assert!(text.contains(sentence), "{text}");
    }
    let file = folder.write("weir.cfg", &configuration(&folder, "", "load-server-state-from-file global"));
    let found = weir(["-c", "-f", &file]);
    let sentence = "backend 'b' configured to load server state file from global section 'server-state-file' \
                    directive. Unfortunately, 'server-state-file' is not set!";
    assert!(found.stderr.contains(sentence), "{}", found.stderr);
}

#[test]
fn counts_go_on_where_they_were() {
    let folder = Folder::new();
    let counts = |port: u16| {
        format!(
            "global\n    stats socket {} level admin\n    stats-file {}/counts\n{DEFAULTS}frontend f\n    guid gf\n    bind \
             127.0.0.1:{port}\n    http-request return status 204\n",
            folder.path("api").display(),
            folder.text()
        )
    };
    let mut dump = String::new();
    for (round, expected) in [(1, "gf,1,"), (2, "gf,2,")] {
        let _ = std::fs::remove_file(folder.path("api"));
        let port = crate::support::free_port();
        let file = folder.write("weir.cfg", &counts(port));
        let mut running = Running::weir(&["-db", "-f", &file]);
        running.wait_until_ready(&folder);
        let mut stream = crate::support::connect(port);
        assert_eq!(crate::support::exchange(&mut stream, &crate::support::get("/")).0, 204);
        dump = ask(&folder, "dump stats-file");
        assert!(dump.lines().any(|line| line.starts_with(expected)), "round {round}: {dump}");
        folder.write("counts", &dump);
    }
    assert!(dump.starts_with("#fe guid,stot,bin,bout,"), "{dump}");
}

#[test]
fn files_of_counts_that_cannot_be_used_are_told_of() {
    let folder = Folder::new();
    let text = format!("global\n    stats-file {}/counts\n{DEFAULTS}backend b\n    guid gb\n", folder.text());
    let file = folder.write("weir.cfg", &text);
    let long = format!("#be guid,stot,\n{}\n", "x".repeat(5_000)).into_bytes();
    let rows: Vec<(Option<Vec<u8>>, &str)> = vec![
        (None, "config: Can't load stats-file '/counts': cannot open file."),
        (Some(b"hello\n".to_vec()), "config: Invalid stats-file format in file '/counts'."),
        (Some((0..=255).cycle().take(100_000).collect()), "config: Invalid stats-file format in file '/counts'."),
        (Some(long), "config: Ignored stats-file line 2 in file '/counts'."),
    ];
    for (content, expected) in rows {
        if let Some(content) = content {
            std::fs::write(folder.path("counts"), content).expect("written");
        }
        let found = weir(["-c", "-f", &file]);
        assert_eq!(found.code(), Some(0), "{}", found.stderr);
        assert!(found.stderr.replace(folder.text(), "").contains(expected), "{expected}: {}", found.stderr);
    }
}
