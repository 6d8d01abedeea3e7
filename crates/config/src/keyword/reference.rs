//! The reference pages about keywords, generated from the tables: `docs/keywords.md` and `docs/tuning-keywords.md`. A
//! test keeps them up to date. Must never add anything to the tables' content.

use super::SupportLevel;
use super::catalogue::{Entry, entries, tuning};
use std::fmt::Write as _;

/// Returns `docs/keywords.md`: every keyword and its status in Weir.
pub fn keywords() -> String {
    let entries = entries();
    let mut page = String::from(
        "# Keywords\n\nEvery keyword of HAProxy's configuration language and its status in Weir. This page is generated from \
         the parser's tables (`crates/config/src/keyword`); HAProxy's manual describes the keywords in full.\n\n| Status \
         | Meaning |\n|---|---|\n",
    );
    for (standing, meaning) in MEANINGS {
        let count = entries.iter().filter(|entry| entry.standing == *standing).count();
        let _ = writeln!(page, "| {} | {meaning} ({count}) |", standing.name());
    }
    let mut heading = ("", "");
    for entry in &entries {
        if heading.0 != entry.kind {
            let _ = write!(page, "\n## {}\n", kind_title(entry));
        }
        if heading != (entry.kind, entry.family) {
            heading = (entry.kind, entry.family);
            let sentence = entry.family.ends_with('.');
            let _ =
                if sentence { write!(page, "\n{}\n", entry.family) } else { write!(page, "\n### {}\n", entry.family) };
            page.push_str("\n| Keyword | Status | What it does |\n|---|---|---|\n");
        }
        row(&mut page, entry);
    }
    page
}

const MEANINGS: &[(SupportLevel, &str)] = &[
    (SupportLevel::Supported, "works"),
    (SupportLevel::Group, "its first argument has a table of its own"),
    (SupportLevel::NotYet, "refused with an error; planned"),
    (SupportLevel::Tuning, "accepted without effect; `-dD` lists it"),
    (SupportLevel::Removed, "removed from HAProxy; the error names its replacement"),
    (SupportLevel::Refused, "refused on purpose; the error says why"),
];

fn kind_title(entry: &Entry) -> String {
    match entry.kind {
        "global" => "The `global` section".into(),
        "proxy" => "`defaults`, `frontend`, `listen` and `backend`".into(),
        "option" => "`option …`".into(),
        "bind" => "Options of `bind`".into(),
        "server" => "Options of `server` and `default-server`".into(),
        "action" => "Actions".into(),
        kind => format!("`{kind}`"),
    }
}

fn row(page: &mut String, entry: &Entry) {
    let prefix = if entry.kind == "option" { "option " } else { "" };
    let space = if entry.usage.is_empty() || entry.usage.starts_with('(') { "" } else { " " };
    let usage = entry.usage.replace('|', "\\|");
    let places = if entry.places.is_empty() { String::new() } else { format!(" ({})", entry.places) };
    let removed = entry.removed.replace("%1", "...").replace('\n', " ").replace("  ", " ");
    let gap = if removed.is_empty() { "" } else { " " };
    let _ = writeln!(
        page,
        "| `{prefix}{}{space}{usage}` | {} | {}{gap}{removed}{places} |",
        entry.name,
        entry.standing.name(),
        entry.doc.replace('|', "\\|")
    );
}

/// Returns `docs/tuning-keywords.md`: keywords that are accepted without effect.
pub fn tuning_keywords() -> String {
    let mut page = String::from(
        "# Accepted without effect\n\nThese keywords tune parts of HAProxy that Weir does not have. They are accepted so \
         that configurations need not be changed; `-dD` lists those that a configuration uses. This page is generated \
         from the parser's tables.\n\n| Where | Keyword | What it does in HAProxy |\n|---|---|---|\n",
    );
    for entry in tuning() {
        let _ = writeln!(page, "| {} | `{}` | {} |", entry.kind, entry.name, entry.doc.replace('|', "\\|"));
    }
    page
}
