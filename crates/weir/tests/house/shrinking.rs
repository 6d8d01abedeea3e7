//! Tables of counts that only shrink: a larger count fails, and so does a smaller one until the table has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Places that are printed for a count that has grown.
const SHOWN: usize = 30;

/// The crate that a file of the workspace belongs to.
pub fn crate_of(file: &Path) -> String {
    file.components().nth(1).map(|part| part.as_os_str().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Compares what was found with a table, and prints the counts.
///
/// # Panics
/// A count differs.
#[allow(clippy::print_stdout)]
pub fn check(what: &str, table: &[(&str, usize)], found: &BTreeMap<String, Vec<String>>) {
    let wrong = differences(what, table, found);
    let counts: Vec<_> = found.iter().filter(|(_, places)| !places.is_empty()).collect();
    let total: usize = counts.iter().map(|(_, places)| places.len()).sum();
    println!("{what}: {total} in all");
    for (name, places) in counts {
        println!("{:8} {name}", places.len());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn differences(what: &str, table: &[(&str, usize)], found: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let listed: BTreeSet<&str> = table.iter().map(|(name, _)| *name).collect();
    let names = found.keys().map(String::as_str).chain(listed.iter().copied()).collect::<BTreeSet<_>>();
    let mut wrong = Vec::new();
    for name in names {
        let places = found.get(name).map_or(&[][..], Vec::as_slice);
        let allowed = table.iter().find(|(listed, _)| *listed == name).map_or(0, |(_, count)| *count);
        if places.len() > allowed {
            wrong.push(format!("{name}: {} {what}, {allowed} are allowed", places.len()));
            wrong.extend(places.iter().take(SHOWN).map(|place| format!("  {place}")));
        } else if places.len() < allowed {
            wrong.push(format!("{name}: only {} {what}: write that into the table", places.len()));
        }
    }
    wrong
}

#[test]
fn both_directions_are_reported() {
    let found = |count: usize| BTreeMap::from([("a".to_owned(), vec!["here".to_owned(); count])]);
    assert!(differences("faults", &[("a", 2)], &found(2)).is_empty());
    assert_eq!(differences("faults", &[("a", 0)], &found(1)), ["a: 1 faults, 0 are allowed", "  here"]);
    assert_eq!(differences("faults", &[("a", 2)], &found(1)), ["a: only 1 faults: write that into the table"]);
    assert_eq!(differences("faults", &[("b", 1)], &BTreeMap::new()), ["b: only 0 faults: write that into the table"]);
}
