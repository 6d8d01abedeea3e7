//! Rules for Rust files.

use crate::{product, tree};
use std::path::Path;

/// Maximum number of lines of a file.
const LONGEST: usize = 600;

/// Files that may be longer, each with its maximum and the reason.
const LONGER: &[(&str, usize, &str)] = &[];

#[test]
fn every_file_says_first_what_it_owns() {
    for file in tree::rust_files() {
        assert!(tree::read(&file).starts_with("//! "), "{} does not open with //!", file.display());
    }
}

#[test]
fn files_stay_short() {
    let mut wrong = Vec::new();
    for file in tree::rust_files() {
        let lines = tree::read(&file).lines().count();
        let listed = LONGER.iter().find(|(path, _, _)| file == Path::new(path));
        let limit = listed.map_or(LONGEST, |(_, limit, _)| *limit);
        if lines > limit {
            wrong.push(format!("{} has {lines} lines, {limit} are allowed", file.display()));
        }
        if listed.is_some() && lines <= LONGEST {
            wrong.push(format!("{} is short again: take it off the list", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unsafe_code_lives_in_rt_and_says_why_it_is_sound() {
    let mut wrong = Vec::new();
    for file in tree::rust_files() {
        let text = tree::read(&file);
        let lines: Vec<&str> = text.lines().collect();
        for (number, code) in tree::code(&text).lines().enumerate() {
            if !words(code).any(|word| word == "unsafe") {
                continue;
            }
            if !file.starts_with("crates/rt") {
                wrong.push(format!("{}:{}: unsafe outside of rt", file.display(), number + 1));
            } else if !explained(&lines, number) {
                wrong.push(format!("{}:{}: unsafe without SAFETY", file.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every connection of the engine is a [`conn::transport::Transport`], so that a new transport is added in one place.
#[test]
fn the_engine_knows_no_socket() {
    let mut wrong = Vec::new();
    let engine = |file: &Path| file.starts_with("crates/engine/src") || file.starts_with("crates/control/src");
    for file in tree::rust_files().into_iter().filter(|file| engine(file)) {
        let text = tree::read(&file);
        let code = tree::code(&text);
        for import in code.split("use rt::net::").skip(1) {
            let import = import.split(';').next().unwrap_or_default();
            if words(import).any(|word| word == "Stream" || word == "ParkedStream") {
                wrong.push(format!("{}: a stream of rt", file.display()));
            }
        }
        if code.contains("net::Stream") {
            wrong.push(format!("{}: a stream of rt", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Parsing of protocols belongs to `conn`. Checks have their own protocol code.
#[test]
fn the_engine_parses_no_http() {
    let mut wrong = Vec::new();
    for file in tree::rust_files().into_iter().filter(|file| file.starts_with("crates/engine/src")) {
        if file.starts_with("crates/engine/src/check") || file.starts_with("crates/engine/src/service") {
            continue;
        }
        let text = tree::read(&file);
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in ["wire::h1", "\\r\\n", "ChunkDecoder", "ConnectionLine", "transfer-encoding"] {
            if text.lines().any(|line| !is_comment(line) && line.contains(word)) {
                wrong.push(format!("{}: {word}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether the line or the comment above it contains `SAFETY:` (or `# Safety`, for an unsafe function). The statement
/// may begin a few lines above its `unsafe`.
fn explained(lines: &[&str], number: usize) -> bool {
    let says = |line: &&str| line.contains("SAFETY:") || line.contains("# Safety");
    let mut above = lines[..number].iter().rev();
    let code_above = above.by_ref().take(4).collect::<Vec<_>>();
    says(&lines[number])
        || code_above.into_iter().any(says)
        || lines[..number]
            .iter()
            .rev()
            .skip_while(|line| !is_comment(line))
            .take_while(|line| is_comment(line))
            .any(says)
            && lines[..number].iter().rev().take_while(|line| !is_comment(line)).count() <= 4
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
}

#[test]
fn nothing_unwraps_outside_of_tests() {
    let found =
        product_lines(|_, line| [".unwrap()", "todo!(", "unimplemented!("].iter().any(|word| line.contains(word)));
    assert!(found.is_empty(), "{found:#?}");
}

/// The controller is a program of its own, on another event loop.
#[test]
fn only_rt_and_the_controller_read_a_clock() {
    let found = product_lines(|file, line| {
        let reads = ["Instant::now", "SystemTime::now", "EPOCH.elapsed", "clock_gettime"]
            .iter()
            .any(|word| line.contains(word));
        reads && !file.starts_with("crates/rt") && !file.starts_with("crates/gateway/src/cluster")
    });
    assert!(found.is_empty(), "{found:#?}");
}

/// Returns the lines of the product's code for which `satisfies` is true.
fn product_lines(satisfies: impl Fn(&Path, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (file, code) in product::files() {
        for (number, line) in code.lines().enumerate().filter(|(_, line)| satisfies(file, line)) {
            found.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
        }
    }
    found
}

#[test]
fn an_explanation_is_found_above_and_missed_when_absent() {
    let text = "// SAFETY: fine.\nlet x = y\n    .map(|z| unsafe { z });\n\nlet a = 1;\nlet b = 2;\nlet c = 3;\nlet d = 4;\nunsafe { e }";
    let lines: Vec<_> = text.lines().collect();
    assert!(explained(&lines, 2));
    assert!(!explained(&lines, 8));
}
