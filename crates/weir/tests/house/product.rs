//! The code of the product: everything that is built into it, without comments, strings and test code. Must never read
//! a file by itself (`tree` does).

use crate::tree;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Returns the Rust files of the product, each with its code; line numbers are kept.
pub fn files() -> &'static [(PathBuf, String)] {
    static FILES: LazyLock<Vec<(PathBuf, String)>> = LazyLock::new(find);
    &FILES
}

fn find() -> Vec<(PathBuf, String)> {
    let files = tree::rust_files().into_iter().filter(|file| is_product(file));
    let all: Vec<_> = files.map(|file| (tree::code(&tree::read(&file)), file)).collect();
    let for_tests: Vec<PathBuf> = all.iter().flat_map(|(code, file)| test_modules(file, code)).collect();
    let apart =
        |file: &Path| for_tests.iter().any(|module| file.starts_with(module) || file == module.with_extension("rs"));
    all.into_iter().filter(|(_, file)| !apart(file)).map(|(code, file)| (file, without_tests(&code))).collect()
}

/// Whether a file is built into the product.
fn is_product(file: &Path) -> bool {
    let peers = file.starts_with("crates/testkit") || file.starts_with("crates/cases");
    file.starts_with("crates") && file.components().any(|part| part.as_os_str() == "src") && !peers
}

/// Prefixes of attributes that exclude an item from the product. `not(test)` does not.
const FOR_TESTS: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test,"];

/// Returns the start of the first item for tests.
fn first_for_tests(code: &str) -> Option<usize> {
    FOR_TESTS.iter().filter_map(|attribute| code.find(attribute)).min()
}

/// Returns the test modules that a file declares, as paths without an extension.
fn test_modules(file: &Path, code: &str) -> Vec<PathBuf> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let own = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "lib" | "main") | None => folder.to_owned(),
        Some(stem) => folder.join(stem),
    };
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = first_for_tests(rest) {
        let item = &rest[at..];
        let declared = item.split([';', '{']).next().unwrap_or_default();
        found.extend(declared.rsplit_once("mod ").map(|(_, name)| own.join(name.trim())));
        rest = &item[end_of_item(item)..];
    }
    found
}

/// Blanks out items for tests.
fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = first_for_tests(rest) {
        let (before, item) = rest.split_at(at);
        let (blanked, after) = item.split_at(end_of_item(item));
        out.push_str(before);
        out.extend(blanked.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the length of the first item, including its attribute.
fn end_of_item(code: &str) -> usize {
    let ends_at = body(code).map(|block| block.end).or_else(|| code.find(';'));
    ends_at.map_or(code.len(), |last| last + 1)
}

/// Returns the range between the braces of the first item; nothing if it ends without a block.
pub fn body(code: &str) -> Option<Range<usize>> {
    let mut round = 0_usize;
    let mut start = 0;
    let mut depth = 0_usize;
    for (at, letter) in code.bytes().enumerate() {
        match letter {
            b'(' | b'[' if depth == 0 => round += 1,
            b')' | b']' if depth == 0 => round = round.saturating_sub(1),
            b';' if depth == 0 && round == 0 => return None,
            b'{' if depth == 0 && round == 0 => (start, depth) = (at + 1, 1),
            b'{' if depth > 0 => depth += 1,
            b'}' if depth == 1 => return Some(start..at),
            b'}' if depth > 1 => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the text after each occurrence of a keyword, or of the start of a path, except within a longer name or path.
pub fn after_words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(word).filter_map(move |(at, found)| {
        let after = &code[at + found.len()..];
        let inside = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let before = &code[..at];
        let part =
            before.ends_with(inside) || before.ends_with("::") || found.ends_with(inside) && after.starts_with(inside);
        (!part).then_some(after)
    })
}

#[test]
fn items_for_tests_are_left_out() {
    let code = "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod more {\n fn f() { g([1; 2]) }\n}\nc #[cfg(all(test, x))] fn t() {} d";
    assert_eq!(without_tests(code).split_whitespace().collect::<String>(), "abcd");
    assert_eq!(without_tests(code).lines().count(), code.lines().count());
    let modules = test_modules(Path::new("crates/x/src/y.rs"), code);
    assert_eq!(modules, [Path::new("crates/x/src/y/tests"), Path::new("crates/x/src/y/more")]);
}

#[test]
fn a_body_is_between_the_braces_of_its_item() {
    let rows = [
        ("f(x: [u8; 2]) -> A { b { c } } d", Some(" b { c } ")),
        ("f(x: u8); g() { h }", None),
        ("f<T>() where T: A, { b }", Some(" b ")),
        ("f(", None),
    ];
    for (text, expected) in rows {
        assert_eq!(body(text).map(|range| &text[range]), expected, "{text}");
    }
}

#[test]
fn words_are_not_found_within_words() {
    let found: Vec<_> = after_words("fn a crate::b my_crate::c fnx", "fn").collect();
    assert_eq!(found, [" a crate::b my_crate::c fnx"]);
    let found: Vec<_> = after_words("super::super::b my_super::c", "super::").collect();
    assert_eq!(found, ["super::b my_super::c"]);
}
