//! Settings have an effect: every field of a specification is read by the crates that apply it, and every field of a
//! program by those that serve with it. Fields of the same name count as one.

use crate::product;
use std::collections::BTreeSet;
use std::path::Path;

/// Fields of specifications that only `config` reads, each with the reason.
const SETTLED_BY_CONFIG: &[(&str, &str)] = &[
    ("case_adjust_file", "its lines are read into 'case_adjust'"),
    ("conversion_is_set", "orders the lines of the section"),
    ("expose_deprecated", "no keyword of this level of the language is deprecated"),
    ("expose_experimental", "decides which keywords are accepted"),
    ("history", "read by 'defaults_at'"),
    ("identifies", "decides about a warning"),
    ("no_delay", "what is available is always sent at once (docs/http-options.md)"),
    ("parity", "read by 'ThreadRange::holds'"),
    ("purge", "decides which 'defaults' sections are kept"),
    ("upgrades", "decides about warnings"),
];

/// Fields of programs that only the compiler reads, each with the reason.
const SETTLED_BY_POLICY: &[(&str, &str)] = &[
    ("clitcpka", "'Listening::keepalive' is made of it"),
    ("fullconn_is_written", "decides whether a reload may change the number"),
    ("srvtcpka", "'Connecting::keepalive' is made of it"),
];

#[test]
fn every_setting_is_read_by_those_who_give_it_an_effect() {
    let is_of_config = |file: &Path| file.starts_with("crates/config");
    let of_specs = |file: &Path| file.starts_with("crates/config/src/spec");
    assert_eq!(unread(of_specs, is_of_config), exceptions(SETTLED_BY_CONFIG));
}

#[test]
fn every_part_of_a_program_is_read_by_those_who_serve_with_it() {
    let is_of_compiler = |file: &Path| {
        let of_policy = file.starts_with("crates/policy/src/compile") || file.ends_with("program/shape.rs");
        of_policy || file.starts_with("crates/config")
    };
    let of_programs = |file: &Path| file.starts_with("crates/policy/src/program") && !file.ends_with("shape.rs");
    assert_eq!(unread(of_programs, is_of_compiler), exceptions(SETTLED_BY_POLICY));
}

fn exceptions(rows: &[(&str, &str)]) -> BTreeSet<String> {
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted");
    rows.iter().map(|row| row.0.to_owned()).collect()
}

/// Returns the public fields defined by some files and read only in their own crate, or nowhere.
fn unread(defines: fn(&Path) -> bool, does_not_count: fn(&Path) -> bool) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let mut read = BTreeSet::new();
    for (file, code) in product::files() {
        if defines(file) {
            fields.extend(public_fields(code));
        }
        let is_tool =
            ["fuzz", "tools", "testkit", "cases"].iter().any(|name| file.starts_with(format!("crates/{name}")));
        if !is_tool && !does_not_count(file) {
            read.extend(fields_read(code));
        }
    }
    assert!(fields.len() > 100, "the definitions were found");
    fields.into_iter().filter(|field| !read.contains(field.as_str())).collect()
}

/// Returns the names of a file's public fields.
fn public_fields(code: &str) -> impl Iterator<Item = String> {
    let lines = code.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
    lines.filter(|(name, _)| name.chars().all(is_of_name)).map(|(name, _)| name.to_owned())
}

/// Returns the names after a dot, or between a brace or a comma and `,` or `}`, without a call or an assignment: fields
/// that are read or destructured.
fn fields_read(code: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut rest = code;
    while let Some(at) = rest.find(|letter: char| is_of_name(letter)) {
        let before = rest[..at].trim_end().chars().next_back();
        let name_and_rest = &rest[at..];
        let end = name_and_rest.find(|letter: char| !is_of_name(letter)).unwrap_or(name_and_rest.len());
        let (name, after) = name_and_rest.split_at(end);
        let next = after.trim_start();
        let is_assigned = next.starts_with('=') && !next.starts_with("==") && !next.starts_with("=>");
        let is_read = match before {
            Some('.') => !next.starts_with('(') && !next.starts_with("::") && !is_assigned,
            Some('{' | ',') => next.starts_with([',', '}']),
            _ => false,
        };
        if is_read {
            found.insert(name);
        }
        rest = after;
    }
    found
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[test]
fn a_field_is_read_where_its_value_is_taken() {
    let code = "a.read; a.called(); a.written = 1; a.compared == 1; _ if a.guards => 1; let B { taken, named: x, .. } = b; C { made: 1 }";
    let found = fields_read(code);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["compared", "guards", "read", "taken"]);
}
