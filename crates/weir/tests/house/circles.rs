//! Circles within a crate: files that import from each other, directly or through others. Nothing in a circle can be read, moved
//! or replaced without all of it.

use crate::imports::{self, Imports, Module};
use crate::{product, shrinking};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Files that are members of circles, by crate. Crates that are not listed have none.
const MEMBERS: &[(&str, usize)] = &[
    ("config", 20),
    ("conn", 13),
    ("control", 15),
    ("engine", 31),
    ("expression", 32),
    ("live", 6),
    ("policy", 33),
    ("rt", 19),
    ("tls", 2),
    ("tools", 11),
    ("weir", 4),
    ("wire", 2),
];

/// Files of the largest circle of each crate.
const LARGEST: &[(&str, usize)] = &[
    ("config", 6),
    ("conn", 5),
    ("control", 13),
    ("engine", 8),
    ("expression", 18),
    ("live", 4),
    ("policy", 10),
    ("rt", 14),
    ("tls", 2),
    ("tools", 4),
    ("weir", 2),
    ("wire", 2),
];

#[test]
fn circles_only_shrink() {
    let mut crates: BTreeMap<String, Vec<&(PathBuf, String)>> = BTreeMap::new();
    for entry in product::files() {
        crates.entry(shrinking::crate_of(&entry.0)).or_default().push(entry);
    }
    let (mut members, mut largest) = (BTreeMap::new(), BTreeMap::new());
    for (name, files) in &crates {
        let imports = imports::of_crate(&Path::new("crates").join(name).join("src"), files);
        let mut circles: Vec<Vec<String>> = circles(&imports).iter().map(|circle| within(&imports, circle)).collect();
        circles.sort_by_key(Vec::len);
        members.insert(name.clone(), circles.concat());
        largest.insert(name.clone(), circles.pop().unwrap_or_default());
    }
    shrinking::check("files in circles", MEMBERS, &members);
    shrinking::check("files in the largest circle", LARGEST, &largest);
}

/// Files of the engine outside `stream/` that start sessions, and the only ones that may import from there.
const ABOVE_STREAMS: &[&str] = &["listener", "reversing"];

#[test]
fn nothing_below_streams_imports_them() {
    let files: Vec<_> = product::files().iter().filter(|(file, _)| shrinking::crate_of(file) == "engine").collect();
    let imports = imports::of_crate(Path::new("crates/engine/src"), &files);
    let is_stream = |module: &Module| module.first().is_some_and(|first| first == "stream");
    let found: Vec<_> = imports
        .iter()
        .filter(|(from, to)| !is_stream(from) && to.iter().any(is_stream))
        .map(|(from, _)| from.join("::"))
        .collect();
    assert_eq!(found, ABOVE_STREAMS);
}

/// The members of a circle, each with those that it imports from.
fn within(imports: &Imports, circle: &BTreeSet<Module>) -> Vec<String> {
    let line = |from: &Module| {
        let to = imports[from].intersection(circle).map(|to| to.join("::")).collect::<Vec<_>>();
        format!("{} -> {}", from.join("::"), to.join(", "))
    };
    circle.iter().map(line).collect()
}

/// The strongly connected components of more than one member: those that reach each other.
fn circles(imports: &Imports) -> Vec<BTreeSet<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|from| (from, reached(imports, from))).collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for (from, to) in &reach {
        let circle: BTreeSet<Module> =
            to.iter().filter(|to| reach[**to].contains(from)).map(|member| (*member).clone()).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

fn reached<'a>(imports: &'a Imports, from: &'a Module) -> BTreeSet<&'a Module> {
    let mut met = BTreeSet::new();
    let mut next: Vec<&Module> = imports[from].iter().collect();
    while let Some(name) = next.pop() {
        if met.insert(name) {
            next.extend(&imports[name]);
        }
    }
    met
}

#[test]
fn a_circle_has_all_that_reach_each_other() {
    let module = |name: &str| vec![name.to_owned()];
    let edges = [("a", "b"), ("b", "d"), ("d", "a"), ("a", "c"), ("e", "a")];
    let mut imports: Imports = ["a", "b", "c", "d", "e"].iter().map(|name| (module(name), BTreeSet::new())).collect();
    for (from, to) in edges {
        imports.entry(module(from)).or_default().insert(module(to));
    }
    let members: Vec<_> = circles(&imports).into_iter().flatten().flatten().collect();
    assert_eq!(members, ["a", "b", "d"]);
}
