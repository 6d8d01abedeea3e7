//! `weir lint`: what it prints, and its exit status.

use crate::support::{DEFAULTS, Folder, weir};
use serde_json::Value;

/// A configuration with one finding.
const FAULTY: &str =
    "frontend f\n bind 127.0.0.1:8080\n acl a path /a\n default_backend b\nbackend b\n server s 127.0.0.1:1\n";

/// The number of the line with the ACL.
fn acl_line() -> usize {
    DEFAULTS.lines().count() + 3
}

#[test]
fn a_finding_has_its_place_and_its_reason() {
    let folder = Folder::new();
    let file = folder.write("lint.cfg", &format!("{DEFAULTS}{FAULTY}"));
    let found = weir(["lint", "-f", &file]);
    let line = acl_line();
    let expected = format!(
        "{file}:{line}: unused-acl: no condition of this section names the ACL 'a'.\n  acl a path /a\n      ^\n"
    );
    assert_eq!((found.code(), found.stdout.as_str(), found.stderr.as_str()), (Some(1), expected.as_str(), ""));
    let found = weir(["lint", "--", &file]);
    assert_eq!((found.code(), found.stdout), (Some(1), expected));
}

#[test]
fn programs_read_one_object() {
    let folder = Folder::new();
    let file = folder.write("lint.cfg", &format!("{DEFAULTS}{FAULTY}"));
    let found = weir(["lint", "-j", "-f", &file]);
    assert_eq!((found.code(), found.stdout.lines().count(), found.stderr.as_str()), (Some(1), 1, ""));
    let read: Value = serde_json::from_str(&found.stdout).expect("an object");
    let expected = serde_json::json!({ "findings": [{
        "file": file,
        "line": acl_line(),
        "column": 6,
        "end_column": 7,
        "rule": "unused-acl",
        "message": "no condition of this section names the ACL 'a'",
        "hint": null,
    }] });
    assert_eq!(read, expected);
    let clean =
        folder.write("clean.cfg", &format!("{DEFAULTS}{}", FAULTY.replace("/a\n", "/a # lint: allow unused-acl\n")));
    let found = weir(["lint", "-f", &clean, "-j"]);
    assert_eq!((found.code(), found.stdout.as_str()), (Some(0), "{\"findings\":[]}\n"));
}

#[test]
fn nothing_is_printed_without_findings() {
    let folder = Folder::new();
    // Warnings are those of 'weir -c': the order of the rules.
    let text = FAULTY.replace("acl a path /a\n", "use_backend b if { path /a }\n http-request deny if { path /b }\n");
    let file = folder.write("clean.cfg", &format!("{DEFAULTS}{text}"));
    assert!(weir(["-c", "-f", &file]).stderr.contains("will still be processed before"));
    let found = weir(["lint", "-f", &file]);
    assert_eq!((found.code(), found.stdout.as_str(), found.stderr.as_str()), (Some(0), "", ""));
}

#[test]
fn a_configuration_that_cannot_be_read_has_status_2() {
    let folder = Folder::new();
    let file =
        folder.write("broken.cfg", &format!("{DEFAULTS}{FAULTY} balance nonsense\n server t nowhere.invalid:1\n"));
    let (checked, found) = (weir(["-c", "-f", &file]), weir(["lint", "-f", &file]));
    let without_process = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_once(") : ").map_or(line, |(_, rest)| rest).to_owned()).collect()
    };
    assert_eq!((checked.code(), found.code(), found.stdout.as_str()), (Some(1), Some(2), ""));
    assert_eq!(without_process(&found.stderr), without_process(&checked.stderr));
    assert!(found.stderr.contains("nonsense") && found.stderr.contains("nowhere.invalid"), "{}", found.stderr);
    for words in [&["lint", "-f", "/nowhere/at.all"][..], &["lint"], &["lint", "-f"], &["lint", "-zz", "-f", &file]] {
        let found = weir(words);
        assert_eq!((found.code(), found.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(found.stderr.contains("[ALERT]"), "{words:?}: {}", found.stderr);
    }
}

#[test]
fn rules_and_help_are_printed() {
    let rules = weir(["lint", "--rules"]);
    assert_eq!((rules.code(), rules.stderr.as_str()), (Some(0), ""));
    let page = include_str!("../../../../docs/lint.md");
    for line in rules.stdout.lines() {
        let (name, doc) = line.split_once(' ').expect("a name and a text");
        let row = format!("| `{name}` | {} |\n", doc.trim());
        assert!(page.contains(&row), "docs/lint.md lacks {row}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 3);
    assert!(rows.count() >= rules.stdout.lines().count());
    for flag in ["-h", "--help"] {
        let help = weir(["lint", flag]);
        assert!(help.code() == Some(0) && help.stdout.contains("USAGE") && help.stdout.contains("STATUS"), "{flag}");
    }
}
