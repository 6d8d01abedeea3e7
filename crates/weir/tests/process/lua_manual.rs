//! The scripts of HAProxy's Lua manual in the finished program: each loads and works as the manual says. They are in
//! `tests/lua-manual`, with requests and expected answers.

use crate::support::{Folder, Running, WEIR, connect_unix};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::Command;

/// The header of a script: its first lines, by keyword.
#[derive(Default)]
struct Example {
    global: String,
    http: String,
    tcp: String,
    more: String,
    arguments: String,
    steps: Vec<Step>,
}

enum Step {
    /// A place to send a text to, the text, and a part of the expected answer.
    Ask(String, String, String),
    /// A part of a line of output.
    Log(String),
}

/// Decodes escapes such as `\n`.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('e') => '\x1b',
                other => other.expect("a letter behind a backslash"),
            },
            letter => letter,
        });
    }
    out
}

fn read(folder: &Folder, script: &str) -> Example {
    let mut example = Example::default();
    for line in script.lines().filter_map(|line| line.strip_prefix("--: ")) {
        let (kind, words) = line.split_once(' ').expect("a kind and words");
        let list = match kind {
            "global" => &mut example.global,
            "http" => &mut example.http,
            "tcp" => &mut example.tcp,
            "more" => &mut example.more,
            "arguments" => &mut example.arguments,
            "file" => {
                let (name, text) = words.split_once(' ').expect("a name and a text");
                folder.write(name, &plain(text));
                continue;
            }
            "ask" => {
                let (asked, answer) = words.split_once("=>").expect("what is answered");
                let (place, text) = asked.trim_end_matches(' ').split_once(' ').unwrap_or((asked.trim(), ""));
                let answer = answer.strip_prefix(' ').unwrap_or(answer);
                example.steps.push(Step::Ask(place.to_owned(), plain(text), plain(answer)));
                continue;
            }
            "log" => {
                example.steps.push(Step::Log(plain(words)));
                continue;
            }
            other => panic!("{other}"),
        };
        list.push_str(&format!(" {words}\n"));
    }
    example
}

/// Completes a request: version and host are added.
fn request(place: &str, text: &str) -> String {
    if place != "http" {
        return if place == "cli" { format!("{text}\n") } else { text.to_owned() };
    }
    let (line, rest) = text.split_once("\r\n").unwrap_or((text, ""));
    let (fields, body) = rest.split_once("\r\n\r\n").unwrap_or((rest, ""));
    let fields = if fields.is_empty() { String::new() } else { format!("{fields}\r\n") };
    let host = if fields.contains("host:") { "" } else { "host: x\r\n" };
    format!("{line} HTTP/1.1\r\n{fields}{host}connection: close\r\n\r\n{body}")
}

fn ask(folder: &Folder, place: &str, text: &str) -> String {
    let mut stream = connect_unix(&folder.path(place));
    stream.write_all(request(place, text).as_bytes()).expect("sent");
    if place != "http" {
        stream.shutdown(Shutdown::Write).expect("open");
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn run(name: &str, script: &str) {
    let folder = Folder::new();
    let script = script.replace("FOLDER", folder.text());
    let example = read(&folder, &script);
    let path = folder.write("s.lua", &script);
    let timeouts = "timeout client 60s\n timeout server 60s\n timeout connect 60s\n";
    let at = folder.text();
    let text = format!(
        "global\n nbthread 2\n tune.lua.bool-sample-conversion normal\n log stdout format raw local0\n \
         stats socket {at}/cli level admin\n{} lua-load {path} {}\n\
         defaults\n log global\n {timeouts}frontend web\n mode http\n bind unix@{at}/http\n{}\
         frontend bytes\n mode tcp\n bind unix@{at}/tcp\n{}defaults\n mode http\n {timeouts}{}",
        example.global,
        example.arguments.trim(),
        example.http,
        example.tcp,
        example.more,
    );
    let config = folder.write("weir.cfg", &text);
    // Scripts write to both.
    let mut weir = Running::start(Command::new("sh").args(["-c", "exec \"$0\" -f \"$1\" 2>&1", WEIR, &config]));
    for step in example.steps {
        match step {
            Step::Ask(place, sent, expected) => {
                let answer = ask(&folder, &place, &sent);
                assert!(answer.contains(&expected), "{name}: {sent:?} => {expected:?}: {answer:?}");
            }
            Step::Log(expected) => {
                weir.wait_for_line(|line| line.contains(&expected));
            }
        }
    }
}

#[test]
fn scripts_of_the_manual_do_what_it_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/lua-manual");
    let mut names: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path()).collect();
    names.retain(|path| path.extension().is_some_and(|kind| kind == "lua"));
    names.sort();
    assert!(names.len() > 30, "{}", names.len());
    for path in names {
        let script = std::fs::read_to_string(&path).expect("text");
        run(&path.display().to_string(), &script);
    }
}
