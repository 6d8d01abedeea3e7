//! Import cycles within a crate: top-level modules that use each other, directly or indirectly. A member of a cycle
//! cannot be read, moved or replaced without the others.

use crate::{product, tree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Number of top-level modules of a crate in cycles. Crates that are not listed have none. Numbers may only decrease;
/// when one does, the test asks to update it here.
const MEMBERS: &[(&str, usize)] = &[("engine", 10), ("expression", 8), ("policy", 4), ("rt", 8)];

type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn circles_only_shrink() {
    let mut wrong = Vec::new();
    let mut crates: BTreeMap<String, Vec<&(PathBuf, String)>> = BTreeMap::new();
    for entry in product::files() {
        let (file, _) = entry;
        let name = file.components().nth(1).expect("a crate").as_os_str().to_string_lossy().into_owned();
        crates.entry(name).or_default().push(entry);
    }
    assert!(MEMBERS.iter().all(|(name, _)| crates.contains_key(*name)), "the table names a crate that is gone");
    for (name, files) in &crates {
        let arrows = arrows(&Path::new("crates").join(name).join("src"), files);
        let circles = circles(&arrows);
        let found: usize = circles.iter().map(BTreeSet::len).sum();
        let allowed = MEMBERS.iter().find(|(listed, _)| listed == name).map_or(0, |(_, members)| *members);
        if found > allowed {
            wrong.push(format!("{name}: {found} modules are members of circles, {allowed} are allowed"));
            wrong.extend(circles.iter().flat_map(|circle| within(&arrows, circle)));
        } else if found < allowed {
            wrong.push(format!("{name}: only {found} modules are members of circles: write that into the table"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the imports inside a cycle, each with its files.
fn within(arrows: &Arrows, circle: &BTreeSet<String>) -> Vec<String> {
    let from = circle.iter().flat_map(|from| arrows[from].iter().map(move |(to, files)| (from, to, files)));
    from.filter(|(_, to, _)| circle.contains(*to))
        .map(|(from, to, files)| format!("  {from} -> {to}: {files:?}"))
        .collect()
}

/// Returns the imports between the top-level modules of a crate, with their files.
fn arrows(src: &Path, files: &[&(PathBuf, String)]) -> Arrows {
    let tops: BTreeSet<String> = files.iter().filter_map(|(file, _)| module(src, file).into_iter().next()).collect();
    let again = reexports(src, files, &tops);
    let mut arrows: Arrows = tops.iter().map(|top| (top.clone(), BTreeMap::new())).collect();
    for (file, code) in files {
        let path = module(src, file);
        let Some(own) = path.first() else { continue };
        for name in used(code, path.len()) {
            let to = again.get(&name).unwrap_or(&name);
            if to != own && tops.contains(to) {
                let drawn = arrows.entry(own.clone()).or_default().entry(to.clone()).or_default();
                drawn.insert(file.display().to_string());
            }
        }
    }
    arrows
}

/// Returns the module path of a file; empty for the root of the crate.
fn module(src: &Path, file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(src).map(|inside| inside.with_extension("")).unwrap_or_default();
    let mut path: Vec<_> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod") || path == ["lib"] || path == ["main"] {
        path.pop();
    }
    path
}

/// Returns the names that the root of a crate re-exports, each with its module.
fn reexports(src: &Path, files: &[&(PathBuf, String)], tops: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (_, code) in files.iter().filter(|(file, _)| module(src, file).is_empty()) {
        for import in product::after_words(code, "use") {
            let import = import.split(';').next().unwrap_or_default().trim().trim_start_matches("crate::");
            let Some((top, names)) = import.split_once("::").filter(|(top, _)| tops.contains(*top)) else { continue };
            let names = names.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
            found.extend(names.filter(|name| !name.is_empty()).map(|name| (name.to_owned(), top.to_owned())));
        }
    }
    found
}

/// Returns the first names after `crate::`, and after the number of `super::` that leads to the root from this depth.
fn used(code: &str, depth: usize) -> Vec<String> {
    let up = "super::".repeat(depth);
    let from_root = product::after_words(code, "crate::");
    let from_here = product::after_words(code, &up).filter(|after| !after.starts_with("super::"));
    from_root.chain(from_here).flat_map(first_names).collect()
}

/// Returns the first name of a path, or of each path of a group.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut depth = 0_usize;
    let mut names = vec![name(group)];
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

/// Returns the strongly connected components with more than one member.
fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = arrows.keys().map(|from| (from, reached(arrows, from))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (from, to) in &reach {
        let circle: BTreeSet<String> =
            to.iter().filter(|to| reach[**to].contains(from)).map(|member| (*member).clone()).collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

fn reached<'a>(arrows: &'a Arrows, from: &'a String) -> BTreeSet<&'a String> {
    let mut met = BTreeSet::new();
    let mut next: Vec<&String> = arrows[from].keys().collect();
    while let Some(name) = next.pop() {
        if met.insert(name) {
            next.extend(arrows[name].keys());
        }
    }
    met
}

#[test]
fn a_circle_is_found_along_every_form_of_path() {
    let file = |name: &str, text: &str| (Path::new("crates/x/src").join(name), tree::code(text));
    let files = [
        file("lib.rs", "pub use a::{Kind, Other};\nmod a;\nmod b;\nmod c;\nmod d;\nmod e;"),
        file("a.rs", "use crate::{c::{d, e}, b};"),
        file("b/mod.rs", "use super::d;"),
        file("b/deep.rs", "use super::c; // crate::e"),
        file("d.rs", "fn f() -> crate::Kind { my_crate::e() }"),
        file("c.rs", "const E: &str = \"crate::e\";"),
        file("e.rs", "use crate::e::own; use super::super::a;"),
    ];
    let arrows = arrows(Path::new("crates/x/src"), &files.iter().collect::<Vec<_>>());
    let drawn: Vec<_> =
        arrows.iter().map(|(from, to)| (from.as_str(), to.keys().cloned().collect::<Vec<_>>().join(" "))).collect();
    assert_eq!(
        drawn,
        [
            ("a", "b c".to_owned()),
            ("b", "d".to_owned()),
            ("c", String::new()),
            ("d", "a".to_owned()),
            ("e", String::new())
        ]
    );
    let members: Vec<_> = circles(&arrows).into_iter().flatten().collect();
    assert_eq!(members, ["a", "b", "d"]);
}
