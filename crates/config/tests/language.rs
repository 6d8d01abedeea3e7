//! Compares words and messages of each text `language/NAME.cfg` with `language/NAME.expect`.
//! `NAME.2.cfg` is read after `NAME.cfg`, as with a second `-f`. With `BLESS=1` the expectations are written instead;
//! review the changes before you commit them.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use weir_config::document::{Document, Line};
use weir_config::environment::Environment;
use weir_config::language::{InputFile, read};
use weir_config::options::LanguageOptions;

fn environment() -> Environment {
    let mut environment = Environment::new();
    for (name, value) in [
        ("AA", "foo"),
        ("EMPTY", ""),
        ("LIST", "a b  c"),
        ("SPACES", " lead trail "),
        ("LATIN1", "caf\u{EFE9}"),
        ("HAPROXY_BRANCH", "3.5"),
    ] {
        environment.set(name, value).unwrap();
    }
    environment
}

/// Returns one line as `number: words`; quoted words are shown in quotes.
fn show_line(line: &Line, indent: &str, out: &mut String) {
    let _ = write!(out, "{indent}{}:", line.number);
    for word in &line.words {
        let text = word.text.escape_debug();
        let _ = if word.quoted { write!(out, " \"{text}\"") } else { write!(out, " {text}") };
    }
    out.push('\n');
}

fn show(document: &Document, out: &mut String) {
    for section in &document.sections {
        show_line(&section.line, "", out);
        section.body.iter().for_each(|line| show_line(line, "    ", out));
    }
}

fn dump(path: &Path) -> String {
    let file = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::read(path).map(|bytes| InputFile { name, bytes })
    };
    let mut files = vec![file(path).unwrap()];
    files.extend(file(&path.with_extension("2.cfg")).ok());
    let mut environment = environment();
    let before = environment.clone();
    let mut found = Vec::new();
    let (sources, document) = read(&files, &mut environment, &LanguageOptions::default(), &mut found);
    let mut out = String::new();
    show(&document, &mut out);
    if environment != before {
        out.push_str("---- environment\n");
        environment.iter().for_each(|(name, value)| {
            let _ = writeln!(out, "{name}={}", value.escape_debug());
        });
    }
    if !found.is_empty() {
        out.push_str("---- messages\n");
        found.iter().for_each(|diagnostic| diagnostic.render(&sources, 1, &mut out));
    }
    out
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let name = path.to_str().unwrap();
        name.ends_with(".cfg") && !name.ends_with(".2.cfg")
    });
    paths.sort();
    paths
}

#[test]
fn fixtures() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for path in cases() {
        let expectation = path.with_extension("expect");
        let found = dump(&path);
        if bless {
            std::fs::write(&expectation, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&expectation).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{}\n---- expected\n{expected}\n---- found\n{found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases().len() >= 20);
}
