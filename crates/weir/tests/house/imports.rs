//! Which file of a crate imports which other one. A path is followed to the file that defines its item, through `pub use`.

use crate::product;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The path of a module; empty for the root of the crate.
pub type Module = Vec<String>;

/// The modules of a crate that are files, each with those that it imports from. The root of the crate is left out.
pub type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Re-exports that are followed from one path at most.
const MOST_REEXPORTS: usize = 8;

/// What each module re-exports: names with absolute paths.
type Reexports = BTreeMap<Module, BTreeMap<String, Vec<String>>>;

/// One path in the code of a module.
struct Used {
    path: Vec<String>,
    /// The name that the module has it by.
    name: String,
    /// It is a `pub use`, which imports nothing for the module itself.
    is_reexport: bool,
}

/// Reads the imports of a crate whose code is below `src`.
pub fn of_crate(src: &Path, files: &[&(PathBuf, String)]) -> Imports {
    let used: BTreeMap<Module, Vec<Used>> = files.iter().map(|(file, code)| (module(src, file), paths(code))).collect();
    let reexports = reexports(&used);
    let is_module = |module: &[String]| used.contains_key(module);
    let mut imports = Imports::new();
    for (own, paths) in used.iter().filter(|(own, _)| !own.is_empty()) {
        let from = imports.entry(own.clone()).or_default();
        for path in paths.iter().filter(|path| !path.is_reexport) {
            let Some(path) = absolute(own, &path.path, &is_module) else { continue };
            from.extend(resolve(path, &reexports).filter(|module| module != own && !module.is_empty()));
        }
    }
    imports
}

/// The path of the module that a file is.
fn module(src: &Path, file: &Path) -> Module {
    let inside = file.strip_prefix(src).map(|inside| inside.with_extension("")).unwrap_or_default();
    let mut path: Vec<_> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod") || path == ["lib"] || path == ["main"] {
        path.pop();
    }
    path
}

/// Names that each module re-exports, with their absolute paths; modules without any have an empty map.
fn reexports(used: &BTreeMap<Module, Vec<Used>>) -> Reexports {
    let of_module = |own: &Module, paths: &[Used]| -> BTreeMap<String, Vec<String>> {
        let is_module = |module: &[String]| used.contains_key(module);
        let found = paths.iter().filter(|path| path.is_reexport);
        found.filter_map(|path| Some((path.name.clone(), absolute(own, &path.path, &is_module)?))).collect()
    };
    used.iter().map(|(own, paths)| (own.clone(), of_module(own, paths))).collect()
}

/// The path from the crate's root; `None`: it leads to another crate.
fn absolute(own: &[String], path: &[String], is_module: &dyn Fn(&[String]) -> bool) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([own, &path[1..]].concat()),
        "super" => {
            let up = path.iter().take_while(|part| *part == "super").count();
            Some([own.get(..own.len().checked_sub(up)?)?, &path[up..]].concat())
        }
        child => {
            let inside = [own, &[child.to_owned()]].concat();
            is_module(&inside).then(|| [own, path].concat())
        }
    }
}

/// The module that defines what an absolute path names.
fn resolve(mut path: Vec<String>, reexports: &Reexports) -> Option<Module> {
    for _ in 0..MOST_REEXPORTS {
        let depth = (0..=path.len()).rev().find(|depth| reexports.contains_key(&path[..*depth]))?;
        let module = path[..depth].to_vec();
        let Some(from) = path.get(depth).and_then(|name| reexports[&module].get(name)) else { return Some(module) };
        path = [from, &path[depth + 1..]].concat();
    }
    None
}

/// The paths that code imports, and those that it writes out.
fn paths(code: &str) -> Vec<Used> {
    let mut found = Vec::new();
    let mut rest = String::with_capacity(code.len());
    let mut last = 0;
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].trim_end_matches(' ');
        let begins = at == 0 || code[..at].ends_with(char::is_whitespace);
        let Some(end) = code[at..].find(';').filter(|_| begins && at >= last) else { continue };
        let is_reexport = before.ends_with("pub") || before.ends_with(')') && before.contains("pub(");
        rest.push_str(&code[last..at]);
        last = at + end;
        expand(&code[at + 4..last], &[], is_reexport, &mut found);
    }
    rest.push_str(&code[last..]);
    for start in ["crate::", "super::", "self::"] {
        let written = product::after_words(&rest, start).map(|after| {
            let whole = after.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'));
            let parts = whole.take(1).flat_map(|path| path.split("::")).filter(|part| !part.is_empty());
            let path = [start.trim_end_matches(':')].into_iter().chain(parts).map(str::to_owned).collect();
            Used { path, name: String::new(), is_reexport: false }
        });
        found.extend(written);
    }
    found
}

/// Splits a tree of `use` into its paths.
fn expand(tree: &str, before: &[String], is_reexport: bool, found: &mut Vec<Used>) {
    let join = |text: &str| {
        let parts = text.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned);
        before.iter().cloned().chain(parts).collect::<Vec<_>>()
    };
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
        let path = join(path);
        let name = alias.map(str::to_owned).or_else(|| path.last().cloned()).unwrap_or_default();
        return found.push(Used { path, name, is_reexport });
    };
    let head = join(head);
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let mut depth = 0_usize;
    let mut begin = 0;
    for (at, letter) in group.char_indices().chain([(group.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                if !group[begin..at].trim().is_empty() {
                    expand(&group[begin..at], &head, is_reexport, found);
                }
                begin = (at + 1).min(group.len());
            }
            _ => {}
        }
    }
}

#[test]
fn paths_are_followed_in_every_form() {
    let file = |name: &str, text: &str| (Path::new("crates/x/src").join(name), crate::tree::code(text));
    let files = [
        file("lib.rs", "pub use a::Kind;\nmod a;\nmod b;\nmod c;\nmod d;\nmod e;"),
        file("a.rs", "use crate::{c::{d, e}, b::Deep};\npub struct Kind;"),
        file("b/mod.rs", "mod deep;\npub use deep::{Deep, Other as Another};\nuse super::d;"),
        file("b/deep.rs", "use super::super::c; // crate::e\npub struct Deep;"),
        file("d.rs", "fn f() -> crate::Kind { my_crate::e() }"),
        file("c.rs", "const E: &str = \"crate::e\";"),
        file(
            "e.rs",
            "use std::{fmt, collections::BTreeMap};\nuse crate::e::own;\npub(crate) use crate::a;\nfn g() { super::b::Another }",
        ),
    ];
    let imports = of_crate(Path::new("crates/x/src"), &files.iter().collect::<Vec<_>>());
    let drawn: Vec<_> = imports
        .iter()
        .map(|(from, to)| (from.join("/"), to.iter().map(|to| to.join("/")).collect::<Vec<_>>().join(" ")))
        .collect();
    let expected = [("a", "b/deep c"), ("b", "d"), ("b/deep", "c"), ("c", ""), ("d", "a"), ("e", "b/deep")];
    assert_eq!(drawn, expected.map(|(from, to)| (from.to_owned(), to.to_owned())));
}
