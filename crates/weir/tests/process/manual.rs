//! Configurations in HAProxy's manual (`tests/manual-examples/`) are accepted; or they are rejected only because of
//! missing names, and accepted once these are added.

use crate::support::{DEFAULTS, Folder, WEIR};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The expected result of an example.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// Accepted by both programs.
    Both,
    /// Rejected by both with this message: the manual is wrong.
    Refused(String),
    /// HAProxy needs something that the test does not have: certificates, other tables, optional features.
    Alone,
}

/// An example.
struct Example {
    /// Its position: file and line.
    place: String,
    /// The context of its lines: `whole`, or a mode and a section.
    kind: String,
    expected: Expected,
    lines: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/manual-examples")
}

fn examples() -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder()).expect("the examples").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "txt")) {
        let text = std::fs::read_to_string(file).expect("a file of examples");
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let Some(head) = line.strip_prefix("= ") else {
                found.last_mut().expect("a head before").lines.push(line.to_owned());
                continue;
            };
            let (head, expected) = match head.split_once(" refused: ") {
                Some((head, text)) => (head, Expected::Refused(text.to_owned())),
                None => match head.strip_suffix(" alone") {
                    Some(head) => (head, Expected::Alone),
                    None => (head, Expected::Both),
                },
            };
            let kind = head.split_once(' ').expect("a section and a kind").1.to_owned();
            found.push(Example { place: format!("{name}:{}", index + 1), kind, expected, lines: Vec::new() });
        }
    }
    found
}

/// Definitions that the examples assume.
const AROUND: &str = "userlist L1\n group G1\n user u1 insecure-password p1 groups G1\nhttp-errors generic\n errorfile 400 \
                      400badreq.http\nhttp-errors site-1\n errorfile 403 403forbid.http\n errorfile 404 403forbid.http\nresolvers dns\n nameserver n \
                      192.0.2.53:53\nresolvers mydns\n nameserver n 192.0.2.53:53\nbackend pop\n stick-table type ip size 1k\nbackend \
                      req-rate\n stick-table type string size 1k store http_req_rate(10s)\n";
const BACKENDS: &[&str] = &[
    "dynamic",
    "static",
    "bk_appli",
    "be1",
    "be2",
    "be",
    "servers",
    "spanish",
    "french",
    "english",
    "choose_your_language",
    "bk_allow",
    "bk_sorry_page",
    "bk_acme",
    "bk_default",
    "big_farm",
    "b_503",
    "http_dynamic",
    "app1",
    "default",
    "bk",
];

fn configuration(example: &Example) -> String {
    let lines = example.lines.iter().fold(String::new(), |text, line| text + "    " + line + "\n");
    let section = match example.kind.split_once(' ') {
        None if example.kind == "global" => return format!("global\n{lines}"),
        None if example.lines.iter().any(|line| line.contains("resolvers dns")) => {
            return format!("resolvers dns\n nameserver n 192.0.2.53:53\n{lines}");
        }
        None => return lines,
        Some((mode, section)) => (mode, section),
    };
    let mut text = DEFAULTS.replace("mode http", &format!("mode {}", section.0)) + AROUND;
    for name in BACKENDS {
        let _ = write!(text, "backend {name}\n server srv1 192.0.2.1:80\n server srv2 192.0.2.2:80\n");
    }
    text.push_str(match section.1 {
        "frontend" => "frontend www\n bind 127.0.0.1:1\n",
        "listen" => "listen www\n bind 127.0.0.1:1\n server s1 192.0.2.9:80\n",
        _ => "backend www\n server s1 192.0.2.9:80\n",
    });
    text + &lines
}

/// Checks a configuration in the folder of the examples' files: returns whether it is valid, and the errors.
fn check(program: &Path, file: &str) -> (bool, Vec<String>) {
    let output =
        Command::new(program).args(["-c", "-f", file]).current_dir(folder().join("files")).output().expect("a check");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let sums = ["Fatal errors found", "Error(s) found in configuration file"];
    let errors = text.lines().filter(|line| line.starts_with("[ALERT]") && !sums.iter().any(|sum| line.contains(sum)));
    (output.status.success(), errors.map(str::to_owned).collect())
}

/// Returns the error in Weir's result.
fn judge(example: &Example, good: bool, errors: &[String]) -> Option<String> {
    match &example.expected {
        Expected::Refused(text) => (good || !errors.iter().any(|error| error.contains(text)))
            .then(|| format!("should say «{text}»: {errors:?}")),
        _ if good => None,
        _ => {
            // Host names cannot be resolved in a test, and the examples' certificates do not exist.
            let fine = [
                "unable to stat SSL certificate from file",
                "'ca-file' : unable to load",
                "cannot open the file 'example.com.pem'",
                "'jwt_decrypt_cert' : unknown certificate",
                "verify is enabled by default but no CA file specified",
                "not supported yet by Weir",
                // Rejected permanently, with the reason.
                "not supported by Weir, which contains no vendor's library",
                // The example has no `mode http`, which QUIC needs.
                "MUX protocol 'quic' is not usable",
                "cannot open the file 'test2.foobar.crt'",
                // Not registered by any script.
                "'lua.deny' unknown service name",
                "could not resolve address",
                "no method found to resolve address",
                "Failed to initialize server(s) addr.",
            ];
            let other: Vec<_> =
                errors.iter().filter(|error| !fine.iter().any(|reason| error.contains(reason))).collect();
            (!other.is_empty() || errors.is_empty()).then(|| format!("{other:?}"))
        }
    }
}

#[test]
fn examples_of_the_manual_are_taken_but_for_names_that_are_not_there_yet() {
    let folder = Folder::new();
    let examples = examples();
    assert!(examples.len() > 200, "{}", examples.len());
    let (mut taken, mut wrong) = (0, Vec::new());
    for example in &examples {
        let file = folder.write("example.cfg", &configuration(example));
        let (good, errors) = check(Path::new(WEIR), &file);
        taken += usize::from(good);
        wrong.extend(judge(example, good, &errors).map(|what| format!("{}: {what}", example.place)));
    }
    eprintln!("{taken} of {} examples are taken", examples.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // More than half of them do not depend on missing names.
    assert!(taken * 2 > examples.len(), "{taken} of {}", examples.len());
}

#[test]
fn haproxy_takes_the_same_examples() {
    let named = std::env::var_os("HAPROXY").map(PathBuf::from).filter(|path| path.exists());
    let version = |path: &PathBuf| Command::new(path).arg("-v").output().map(|found| found.stdout).unwrap_or_default();
    let Some(haproxy) = named.filter(|path| String::from_utf8_lossy(&version(path)).contains("version 3.5")) else {
        eprintln!("SKIPPED: HAPROXY names no HAProxy 3.5");
        return;
    };
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for example in examples().iter().filter(|example| example.expected != Expected::Alone) {
        let file = folder.write("example.cfg", &configuration(example));
        let (good, errors) = check(&haproxy, &file);
        let fits = match &example.expected {
            Expected::Refused(text) => !good && errors.iter().any(|error| error.contains(text)),
            _ => good,
        };
        if !fits {
            wrong.push(format!("{}: {errors:?}", example.place));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
