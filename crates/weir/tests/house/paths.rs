//! Paths in ARCHITECTURE.md: each leads to a file or a folder, from the root or from `crates/`. Must never follow a link.

use crate::tree;

/// Returns the paths that a text names between backticks: names with a slash that end with a known extension, or with a slash.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split('`').skip(1).step_by(2);
    let is_path = |name: &&str| {
        let is_file = [".rs", ".md", ".tsv", ".toml", ".py", ".sh"].iter().any(|end| name.ends_with(end));
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
        is_plain && name.contains('/') && !name.starts_with('/') && (is_file || name.ends_with('/'))
    };
    names.filter(is_path)
}

#[test]
fn paths_of_the_architecture_exist() {
    let root = tree::root();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let found: Vec<_> = paths(&text).collect();
    assert!(found.len() > 50, "paths are recognised: {found:?}");
    let exists = |path: &str| root.join(path).exists() || root.join("crates").join(path).exists();
    let missing: Vec<_> = found.into_iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn paths_differ_from_other_words() {
    let text = "`conn/src/lib.rs` and `a::b`, `GET /x`, `engine/src/check/`, `/abs/x.rs` and `x.rs`";
    assert_eq!(paths(text).collect::<Vec<_>>(), ["conn/src/lib.rs", "engine/src/check/"]);
}
