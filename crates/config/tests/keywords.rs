//! Compares specification and messages of each configuration `keywords/FAMILY/NAME.cfg` with
//! `keywords/FAMILY/NAME.expect`. With `BLESS=1` the expectations are written instead; review the changes before you
//! commit them. Also checks the tables of keywords against the house rules, and the reference pages against the
//! tables.

#![allow(clippy::unwrap_used)]

#[path = "keywords/show.rs"]
mod show;
#[path = "keywords/show_bgp.rs"]
mod show_bgp;

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use weir_config::diagnostic::Severity;
use weir_config::environment::Environment;
use weir_config::keyword::{SpecOptions, SupportLevel, catalogue, reference, specify};
use weir_config::language::{InputFile, read};
use weir_config::options::LanguageOptions;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keywords")
}

fn fixtures() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for family in std::fs::read_dir(folder()).unwrap() {
        let family = family.unwrap().path();
        if family.is_dir() {
            let files = std::fs::read_dir(family).unwrap().map(|file| file.unwrap().path());
            found.extend(files.filter(|file| file.extension().is_some_and(|end| end == "cfg")));
        }
    }
    found.sort();
    assert!(found.len() > 20, "the fixtures are gone");
    found
}

/// Returns the result of a configuration: the specification where it differs from the defaults, then the messages.
fn outcome(path: &Path) -> String {
    let file =
        InputFile { name: path.file_name().unwrap().to_str().unwrap().to_owned(), bytes: std::fs::read(path).unwrap() };
    let mut environment = Environment::new();
    let mut found = Vec::new();
    let (sources, document) = read(&[file], &mut environment, &LanguageOptions::default(), &mut found);
    let options = SpecOptions { local_peer: "me".to_owned(), ..SpecOptions::default() };
    let spec = specify(&sources, &document, &options, &mut found);
    let mut out = show::spec(&spec);
    if !found.is_empty() {
        out.push_str("----\n");
    }
    for diagnostic in &found {
        let place = match diagnostic.span {
            Some(span) => format!("{}:{}-{}", span.line, span.start, span.end),
            None => "-".into(),
        };
        let hint = diagnostic.hint.as_ref().map_or(String::new(), |hint| format!("\n    ({hint})"));
        let severity = match diagnostic.severity {
            Severity::Alert => "alert",
            Severity::Warning => "warning",
            Severity::Notice => "notice",
            Severity::Diag => "diag",
        };
        out.push_str(&format!("{severity} {place} {}{hint}\n", diagnostic.message));
    }
    out
}

/// Compares a file with the expected content, or writes it with `BLESS=1`.
fn hold(path: &Path, actual: &str) -> Result<(), String> {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, actual).unwrap();
        return Ok(());
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == actual {
        return Ok(());
    }
    let differs = expected.lines().zip(actual.lines()).position(|(left, right)| left != right);
    let line = differs.unwrap_or(expected.lines().count().min(actual.lines().count()));
    Err(format!(
        "{} line {}:\n  expected {:?}\n  found    {:?}\n",
        path.display(),
        line + 1,
        expected.lines().nth(line),
        actual.lines().nth(line)
    ))
}

#[test]
fn fixtures_say_what_they_said() {
    let wrong: Vec<String> =
        fixtures().iter().filter_map(|path| hold(&path.with_extension("expect"), &outcome(path)).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
fn every_row_is_documented_and_there_once() {
    let mut seen = HashSet::new();
    for entry in catalogue::entries() {
        assert!(entry.doc.ends_with('.') && entry.doc.len() > 5, "{} {}: no doc", entry.kind, entry.name);
        assert!(!entry.usage.contains("  ") && entry.usage.trim() == entry.usage, "{} {}", entry.kind, entry.name);
        assert!(seen.insert((entry.kind, entry.name)), "{} {} is there twice", entry.kind, entry.name);
    }
    assert!(seen.len() > 800, "rows are missing: {}", seen.len());
}

/// Returns every word of every line, by its kind: `global`, `proxy`, `option`, `bind`, `server`, or the section.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in fixtures() {
        let mut section = String::new();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let words: Vec<&str> = line.split_whitespace().filter(|word| !matches!(*word, "no" | "default")).collect();
            let Some(&first) = words.first() else { continue };
            if !line.starts_with(' ') {
                section = first.to_owned();
                continue;
            }
            let kind = match section.as_str() {
                "defaults" | "frontend" | "backend" | "listen" => "proxy",
                other => other,
            };
            for length in 1..=words.len().min(3) {
                let name = words[..length].join(" ");
                let plain = name.split('(').next().unwrap_or_default().to_owned();
                used.entry(kind.to_owned()).or_default().extend([name, plain]);
            }
            let kind = match first {
                "option" => "option",
                "bind" => "bind",
                "filter" => "filter",
                "cookie" => "cookie",
                "server" | "default-server" => "server",
                "stick-table" => "stick-table",
                "load" => "load",
                rules if ["http-", "tcp-re", "quic-"].iter().any(|start| rules.starts_with(start)) => "action",
                _ => continue,
            };
            // Strip arguments in parentheses.
            let plain = |word: &&str| word.split('(').next().unwrap_or_default().to_owned();
            // The number of a counter is not part of the name.
            let bare = |name: String| if name.starts_with("track-sc") { "track-sc".to_owned() } else { name };
            let names = words[1..].iter().map(plain).map(bare);
            used.entry(kind.to_owned()).or_default().extend(names);
        }
    }
    used
}

#[test]
fn every_supported_row_has_a_fixture() {
    let used = used();
    // The reader applies these while it reads.
    let elsewhere = ["presetenv", "setenv", "unsetenv", "resetenv"];
    let missing: Vec<String> = catalogue::entries()
        .into_iter()
        .filter(|entry| entry.standing == SupportLevel::Supported && !elsewhere.contains(&entry.name))
        // Their lines are in files of their own, which the tests of `crt_list` and `tests/spoe.rs` read.
        .filter(|entry| entry.kind != "crt-list" && !entry.kind.starts_with("spoe-"))
        .filter(|entry| !used.get(entry.kind).is_some_and(|names| names.contains(entry.name)))
        .map(|entry| format!("{} {}", entry.kind, entry.name))
        .collect();
    assert!(missing.is_empty(), "no fixture for: {}", missing.join(", "));
}

#[test]
fn reference_pages_are_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    hold(&docs.join("keywords.md"), &reference::keywords()).unwrap();
    hold(&docs.join("tuning-keywords.md"), &reference::tuning_keywords()).unwrap();
}

#[test]
fn the_dump_lists_what_is_accepted() {
    let mut dump = String::new();
    catalogue::dump(&mut dump);
    for line in [
        "# List of registered configuration keywords:",
        "global",
        "\ttune.bufsize",
        "listen",
        "\ttimeout client",
        "\tbind <addr> name +1",
        "\tserver <name> <addr> weight +1",
        "\tserver <name> <addr> disabled",
        "\toption dontlognull [ defaults, frontend, listen ]",
    ] {
        assert!(dump.lines().any(|found| found == line), "{line:?} is missing");
    }
    assert!(!dump.contains("appsession") && !dump.contains("\tech"));
}

/// Generates words of keywords, and some other words.
fn any_word() -> impl Strategy<Value = String> {
    let known: Vec<String> =
        catalogue::entries().iter().flat_map(|entry| entry.name.split(' ')).map(Into::into).collect();
    prop_oneof![
        4 => proptest::sample::select(known),
        2 => proptest::sample::select(vec!["127.0.0.1:80", "/tmp/x", "if", "3s", "100", "-1", "x(", "{", "on", "no", "default"])
            .prop_map(str::to_owned),
        1 => "[a-z0-9:/@.,()%$-]{1,12}",
    ]
}

fn any_configuration() -> impl Strategy<Value = String> {
    let sections =
        vec!["global", "defaults", "frontend a", "listen b", "backend c from d", "peers p", "traces", "defaults d"];
    let section = proptest::sample::select(sections);
    let line = proptest::collection::vec(any_word(), 1..7).prop_map(|words| format!(" {}\n", words.join(" ")));
    let body = proptest::collection::vec(line, 0..12).prop_map(|lines| lines.concat());
    proptest::collection::vec((section, body).prop_map(|(section, body)| format!("{section}\n{body}")), 1..5)
        .prop_map(|sections| sections.concat())
}

proptest! {
    /// Any text yields a result, and every rejection has a sentence and a place.
    #[test]
    fn anything_can_be_read(text in any_configuration()) {
        let file = InputFile { name: "any.cfg".into(), bytes: text.clone().into_bytes() };
        let mut found = Vec::new();
        let (sources, document) = read(&[file], &mut Environment::new(), &LanguageOptions::default(), &mut found);
        specify(&sources, &document, &SpecOptions::default(), &mut found);
        for diagnostic in &found {
            prop_assert!(!diagnostic.message.is_empty());
            prop_assert!(diagnostic.span.is_some_and(|span| sources.line(span).is_some()), "{diagnostic:?}");
        }
        let mut dump = String::new();
        weir_config::keyword::anonymous::dump(&document, 7, &mut dump);
        prop_assert_eq!(dump.is_empty(), document.sections.is_empty());
    }
}
