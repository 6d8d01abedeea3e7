//! Rules for documents: valid links, one test command, and no references to the machines that the project was developed
//! on.

use crate::tree;
use std::path::{Path, PathBuf};

/// Forbidden references: package registries and folders of one machine. The strings are split, so that this file does
/// not contain them.
const FORBIDDEN: &[&str] = &[
    concat!("crates", ".io"),
    concat!("npmjs", ".org"),
    concat!("pypi", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("/work", "/main"),
    concat!("/work", "/shared"),
    concat!("/root", "/"),
];

fn texts() -> Vec<PathBuf> {
    const KINDS: &[&str] = &["md", "rs", "toml", "cfg", "sh", "txt", "yml", "http", "vtc", "py"];
    let mut found = tree::files("");
    found.retain(|path| {
        let kind = path.extension().map(|kind| kind.to_string_lossy().into_owned());
        let known = kind.is_some_and(|kind| KINDS.contains(&kind.as_str()));
        (known || path.starts_with(".ci")) && !path.ends_with("Cargo.lock")
    });
    found
}

fn documents() -> Vec<PathBuf> {
    texts().into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect()
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let mut wrong = Vec::new();
    for path in texts() {
        let Ok(text) = std::fs::read_to_string(tree::root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
                wrong.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_link_of_a_document_leads_to_a_file_and_its_heading() {
    let mut wrong = Vec::new();
    for path in documents() {
        for target in links(&tree::read(&path)) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = path.parent().unwrap_or(Path::new(""));
            let file = if file.is_empty() { path.clone() } else { folder.join(file) };
            let exists = tree::root().join(&file).exists();
            if !exists || !heading.is_empty() && !anchors(&tree::read(&file)).iter().any(|anchor| anchor == heading) {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_book_lists_every_page() {
    let summary = tree::read(Path::new("docs/SUMMARY.md"));
    let listed: Vec<&str> = links(&summary);
    let pages = documents().into_iter().filter_map(|path| Some(path.strip_prefix("docs").ok()?.to_owned()));
    let missing: Vec<PathBuf> = pages
        .filter(|page| page != Path::new("SUMMARY.md") && !listed.iter().any(|target| Path::new(target) == page))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

/// Returns the anchors of the headings of a text: lower-case letters, digits, dashes for blanks; other characters are
/// removed.
fn anchors(text: &str) -> Vec<String> {
    let letter = |letter: char| match letter {
        ' ' => Some('-'),
        _ => Some(letter.to_ascii_lowercase()).filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')),
    };
    let headings = text
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    headings.map(|heading| heading.chars().filter_map(letter).collect()).collect()
}

/// Returns the targets of Markdown links within the project.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

#[test]
fn the_index_of_docs_names_every_page() {
    let index = tree::read(Path::new("docs/README.md"));
    for page in tree::files("docs").iter().filter(|page| page.extension().is_some_and(|kind| kind == "md")) {
        let name = page.strip_prefix("docs").expect("in docs").to_string_lossy().into_owned();
        assert!(name == "README.md" || index.contains(&format!("({name})")), "docs/README.md does not name {name}");
    }
}

#[test]
fn the_machine_runs_the_test_command_of_the_readme() {
    let readme = tree::read(Path::new("README.md"));
    let script = tree::read(Path::new(".ci/run"));
    assert!(
        readme.contains("\n    cargo test\n") || readme.contains("\ncargo test\n"),
        "README.md names the test command"
    );
    assert!(script.lines().any(|line| line.trim().ends_with("cargo test")), ".ci/run calls it");
}

/// `contrib/layout.sh` substitutes Weir's program in shipped scenarios.
#[test]
fn the_layout_runs_scenarios_that_ship() {
    let script = tree::read(Path::new("contrib/layout.sh"));
    let (_, behind) = script.split_once("SCENARIOS=\"").expect("the list of scenarios");
    let (names, _) = behind.split_once('"').expect("its end");
    assert!(names.split_whitespace().count() > 10);
    for name in names.split_whitespace() {
        let scenario = tree::read(&Path::new("crates/tools/scenarios").join(name).with_extension("toml"));
        assert!(scenario.contains("command = [\"{weir}\", \"-db\""), "{name}");
    }
}

#[test]
fn every_row_of_a_table_has_as_many_cells_as_its_header() {
    let mut wrong = Vec::new();
    for path in documents() {
        wrong.extend(uneven_rows(&tree::read(&path)).iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(wrong.is_empty(), "a bar in a cell is written \\|: {wrong:#?}");
}

/// Returns the line numbers of rows of Markdown tables with more or fewer cells than the first row.
fn uneven_rows(text: &str) -> Vec<usize> {
    let (mut fence, mut header, mut found) = (false, None, Vec::new());
    for (index, line) in text.lines().enumerate() {
        fence ^= line.trim_start().starts_with("```");
        if fence || !line.starts_with('|') {
            header = None;
        } else if *header.get_or_insert(cells(line)) != cells(line) {
            found.push(index + 1);
        }
    }
    found
}

/// Returns the number of cells of a row. A bar ends a cell unless it is escaped by a backslash, even between
/// backquotes.
fn cells(row: &str) -> usize {
    row.trim_end().replace("\\|", "").matches('|').count().saturating_sub(1)
}

#[test]
fn cells_are_counted() {
    let table =
        "| a | b |\n|---|---|\n| `x \\| y` | c |\n| `x | y` | c |\n| c |\n\n| a |\n|---|\n```\n| a | b |\n```\n";
    assert_eq!(uneven_rows(table), [4, 5]);
}

#[test]
fn headings_have_anchors() {
    assert_eq!(anchors("# A `b-c` d?\n#no\n text\n## E, f\n"), ["a-b-c-d", "e-f"]);
}

#[test]
fn links_are_found() {
    let text = "[a](docs/a.md) and [b](https://example.org/b) and [c](#c), [d](d.md#e)";
    assert_eq!(links(text), ["docs/a.md", "#c", "d.md#e"]);
}
