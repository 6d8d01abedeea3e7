//! Every rule with a configuration that has its fault and one that only looks like it. Lines with a fault end in `#!`.

mod allow;
mod backends;
mod conditions;
mod numbers;
mod patterns;
mod reach;
mod servers;
mod tables;
mod tls;
mod unused;
mod various;

use config::diagnostic::Severity;
use config::environment::Environment;
use config::span::Span;
use config::spec::Family;
use config::{InputFile, LoadOptions, LoadedConfiguration};
use policy::{ReadFile, Resolver, SystemLimits};
use std::net::IpAddr;
use weir_lint::{Configuration, Finding};

/// A rule, a configuration with its fault, and one without any.
pub type Row = (&'static str, &'static str, &'static str);

const FAMILIES: &[&[Row]] = &[
    tables::ROWS,
    backends::ROWS,
    conditions::ROWS,
    numbers::ROWS,
    patterns::ROWS,
    reach::ROWS,
    servers::ROWS,
    tls::ROWS,
    unused::ROWS,
    various::ROWS,
];

/// Precedes the configurations, so that they are complete.
const HEAD: &str = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

/// The end of a line with a fault.
const MARK: &str = "#!";

/// Files that configurations name.
fn read_file(name: &str) -> std::io::Result<Vec<u8>> {
    match name {
        "site.pem" => Ok(include_bytes!("../../../weir/tests/process/site.pem").to_vec()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}

/// A system without host names.
struct NoNames;

impl Resolver for NoNames {
    fn file_reader(&self) -> ReadFile {
        read_file
    }

    fn resolve(&mut self, host: &str, _: Family) -> Result<IpAddr, String> {
        Err(format!("no such host: {host}"))
    }
}

/// Reads a configuration.
///
/// # Errors
/// Reading it reports something: what is reported needs no rule.
fn read(text: &str) -> Result<LoadedConfiguration, String> {
    let files = [InputFile { name: "w.cfg".to_owned(), bytes: text.as_bytes().to_vec() }];
    let options = LoadOptions { local_peer: "here".to_owned(), ..LoadOptions::default() };
    let loaded = config::load(&files, Environment::new(), &options);
    let mut found = loaded.diagnostics.clone();
    let program = policy::compile(&loaded.spec, &mut NoNames, &SystemLimits::default(), &mut found);
    found.retain(|one| matches!(one.severity, Severity::Alert | Severity::Warning));
    if program.is_some() && found.is_empty() { Ok(loaded) } else { Err(format!("{text}{found:#?}")) }
}

/// Returns the findings about a configuration.
fn examine(text: &str) -> Result<Vec<Finding>, String> {
    let loaded = read(text)?;
    let LoadedConfiguration { sources, document, spec, .. } = &loaded;
    Ok(weir_lint::examine(Configuration { sources, document, spec }))
}

/// Compares the findings about a configuration with its marks.
fn compare(rule: &str, text: &str) -> Result<(), String> {
    let text = format!("{HEAD}{text}");
    let marked = text.lines().enumerate().filter(|(_, line)| line.ends_with(MARK));
    let expected: Vec<(&str, usize)> = marked.map(|(index, _)| (rule, index + 1)).collect();
    let found = examine(&text)?;
    let mut shown: Vec<(&str, usize)> = found.iter().map(|one| (one.rule, one.span.line as usize)).collect();
    shown.dedup();
    if shown == expected { Ok(()) } else { Err(format!("{rule}: {expected:?} {shown:?}\n{text}")) }
}

#[test]
fn every_rule_finds_its_fault_and_nothing_else() {
    let mut wrong = Vec::new();
    for (rule, faulty, good) in FAMILIES.iter().copied().flatten() {
        assert!(faulty.contains(MARK) && !good.contains(MARK), "{faulty}{good}");
        wrong.extend([faulty, good].into_iter().filter_map(|text| compare(rule, text).err()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_row() {
    let rows: Vec<&str> = FAMILIES.iter().copied().flatten().map(|row| row.0).collect();
    for rule in weir_lint::rules().filter(|rule| rule.name != "unknown-rule") {
        assert!(rows.contains(&rule.name), "{}", rule.name);
    }
}

#[test]
fn rules_have_names_and_one_line_each() {
    let mut names: Vec<&str> = weir_lint::rules().map(|rule| rule.name).collect();
    let many = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), many, "two rules have the same name");
    for rule in weir_lint::rules() {
        let in_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        assert!(rule.name.chars().all(in_name), "{}", rule.name);
        assert!(!rule.doc.contains('\n') && !rule.doc.ends_with('.') && rule.doc.len() <= 110, "{}", rule.doc);
    }
}

#[test]
fn findings_name_words_of_the_line() {
    for (_, faulty, _) in FAMILIES.iter().copied().flatten() {
        let text = format!("{HEAD}{faulty}");
        for Finding { span: Span { line, start, end, .. }, message, .. } in examine(&text).unwrap_or_default() {
            let length = text.lines().nth(line as usize - 1).map_or(0, str::len);
            assert!(start < end && end as usize <= length, "{message}");
            assert!(!message.ends_with('.'), "{message}");
        }
    }
}
