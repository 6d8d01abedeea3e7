//! Files of the workspace, and Rust text without comments and strings.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Returns every file below a folder of the workspace, as paths from the root, without build results and hidden folders
/// (except `.ci` and similar ones at the top).
pub fn files(under: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root().join(under), &mut found);
    let root = root();
    let mut found: Vec<_> =
        found.into_iter().map(|path| path.strip_prefix(&root).expect("below the root").to_owned()).collect();
    found.sort();
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let skipped = matches!(name.as_str(), ".git" | "target" | "corpus" | "artifacts" | "proptest-regressions");
        if path.is_dir() && !skipped {
            walk(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

/// Returns the Rust files of every crate and of the fuzz targets.
pub fn rust_files() -> Vec<PathBuf> {
    let mut found = files("crates");
    found.extend(files("fuzz"));
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    assert!(found.len() > 20, "the tree was found");
    found
}

/// Reads a file of the workspace.
pub fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Blanks out comments, strings and character literals of Rust text; line numbers are kept.
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_noise(bytes, at);
        if end > at {
            out.extend(bytes[at..end].iter().map(|&byte| if byte == b'\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(char::from(bytes[at]));
            at += 1;
        }
    }
    out
}

/// Returns the end of the comment or literal that starts here; `at` if none does.
fn end_of_noise(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let to = |length: usize| (at + length).min(bytes.len());
    if rest.starts_with(b"//") {
        return to(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return to(find(rest, b"*/").map_or(rest.len(), |end| end + 2));
    }
    if rest[0] == b'"' {
        return to(quoted(rest, b'"'));
    }
    let before = at.checked_sub(1).map(|before| bytes[before]);
    if rest[0] == b'r' && !before.is_some_and(|byte| byte.is_ascii_alphanumeric() && byte != b'b' || byte == b'_') {
        let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
        if rest.get(1 + hashes) == Some(&b'"') {
            let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
            return to(find(&rest[2 + hashes..], &close).map_or(rest.len(), |end| end + 2 + hashes + close.len()));
        }
    }
    let literal = rest[0] == b'\'' && (rest.get(1) == Some(&b'\\') || rest.get(2) == Some(&b'\''));
    if literal { to(quoted(rest, b'\'')) } else { at }
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += 1 + usize::from(rest[at] == b'\\');
    }
    at + 1
}

fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

#[test]
fn noise_is_blanked_and_code_is_kept() {
    let rows = [
        ("a // unsafe\nb", "a          \nb"),
        ("\"un\\\"safe\" x", "           x"),
        ("r#\"a\"b\"# x", "         x"),
        ("'\"' x '\\'' <'a>", "    x      <'a>"),
        ("br\"x\" /* y */ z", "b             z"),
        ("for r in x", "for r in x"),
    ];
    for (text, expected) in rows {
        assert_eq!(code(text), expected, "{text}");
    }
}
