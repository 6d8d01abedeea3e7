//! Circles within a crate: files that import from each other, directly or through others. Nothing in a circle can be read, moved
//! or replaced without all of it.

use crate::imports::{self, Imports, Module};
use crate::{product, shrinking};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Files that are members of circles, by crate. Crates that are not listed have none.
const MEMBERS: &[(&str, usize)] =
    &[("conn", 4), ("engine", 23), ("expression", 15), ("policy", 10), ("rt", 5), ("tools", 2)];

/// Files of the largest circle of each crate.
const LARGEST: &[(&str, usize)] =
    &[("conn", 4), ("engine", 7), ("expression", 8), ("policy", 5), ("rt", 5), ("tools", 2)];

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
