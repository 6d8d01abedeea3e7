//! Prints the tables of fetches, converters and ACL keywords, for `-dK` and for the reference manual. Must never print
//! anything that the tables do not contain.

use crate::running;
use expression::Signature;
use expression::rows::Row;
use expression::sample::{EvalPlace, Type};
use expression::{condition, log_format};
use std::fmt::Write as _;

/// `-dKsmp`: prints every fetch with the places where it is permitted, in HAProxy's format.
pub fn dump_fetches(out: &mut String) {
    out.push_str("# List of registered sample fetch functions:\n");
    let places = EvalPlace::ALL.len();
    for (index, place) in EvalPlace::ALL.into_iter().enumerate() {
        // A line for each place: bars for the previous ones, a corner, and dashes up to its name.
        let indent = " ".repeat(places + 1 - index);
        let bars: String = (0..index).map(|_| "/ ").collect();
        let dashes = "-".repeat(places - index);
        let _ = writeln!(out, "#{indent}{bars}_.{dashes} {}", place.name());
    }
    out.push_str(&format!("# {} \n# {}\n", "/ ".repeat(places), "| ".repeat(places)));
    let mut rows: Vec<_> = running::FETCHES.all().collect();
    rows.sort_by_key(|row| row.name());
    for row in rows {
        let columns: String = row.places.columns().map(|has| if has { "Y " } else { ". " }).collect();
        let _ = writeln!(out, "[ {columns}] {}{}: {}", row.name, row.signature, row.output);
    }
}

/// `-dKcnv`: prints every converter in HAProxy's format, with the output type before the input type.
pub fn dump_converters(out: &mut String) {
    out.push_str("# List of registered sample converter functions:\n");
    let mut rows: Vec<_> = running::CONVERTERS.all().collect();
    rows.sort_by_key(|row| row.name());
    for row in rows {
        let _ = writeln!(out, "{}{}: {} => {}", row.name, row.signature, output(row.output), row.input);
    }
}

/// Returns HAProxy's name of an output type; "same" for the type of the input.
fn output(kind: Type) -> String {
    if kind == Type::Any { "same".to_owned() } else { kind.to_string() }
}

/// `-dKacl`: prints every ACL keyword that is a fetch with a match method, in HAProxy's format.
pub fn dump_acls(out: &mut String) {
    out.push_str("# List of registered ACL keywords:\n");
    for row in condition::shorthands().iter().filter(|row| running::FETCHES.find(row.fetch).is_some()) {
        let _ = writeln!(out, "{} = {} -m {}", row.name, row.fetch, row.method.name());
    }
}

/// Generates the page of the reference manual about fetches.
pub fn fetches_page() -> String {
    let mut page = String::from(
        "# Fetches\n\nAll supported sample fetches, generated from the program's tables (`crates/expression/src/fetch` and \
         `crates/policy/src/running`). HAProxy's \
         manual describes them in full in section 7.3. HAProxy's other fetches are listed at the end; a configuration that \
         uses one of them is refused.\n\n| Fetch | Type | Available from | Value |\n|---|---|---|---|\n",
    );
    let mut rows: Vec<_> = running::FETCHES.all().collect();
    rows.sort_by_key(|row| row.name());
    for row in rows {
        let first = EvalPlace::ALL.into_iter().find(|place| row.places.has(*place)).map_or("", EvalPlace::name);
        let _ = writeln!(page, "| `{}{}` | {} | {first} | {} |", row.name, shown(&row.signature), row.output, row.doc);
    }
    waiting(&mut page, running::FETCHES.waiting());
    page
}

/// Generates the page of the reference manual about the aliases and flags of log formats.
pub fn log_formats_page() -> String {
    let mut page = String::from(
        "# Log formats\n\nFormats consist of text, [expressions](fetches.md) in `%[...]`, aliases and flags. This page lists all \
         aliases and flags, generated from the program's tables (`crates/expression/src/log_format`). \
         [logging.md](../logging.md) describes the syntax of formats.\n\n## Aliases\n\nH: in HTTP mode only; S: with TLS \
         only; L: in logs only. Otherwise an alias prints what it prints for a missing value. *End*: a line with it is \
         written when the stream has ended, others when the answer's head has arrived (HTTP) or the connection to the server \
         is established (TCP). `%o` prints nothing: flags in its braces apply to all that follows.\n\n| Alias | Type | R | \
         End | Value |\n|---|---|---|---|---|\n",
    );
    let mut rows: Vec<_> = log_format::aliases().collect();
    rows.sort_by_key(|row| row.name);
    for row in rows {
        let end = if row.at_end { "end" } else { "" };
        let _ = writeln!(
            page,
            "| `%{}` | {} | {} | {end} | {} |",
            row.name,
            row.kind.name(),
            row.restriction.letter(),
            prose(row.doc)
        );
    }
    page.push_str("\n## Flags\n\n`%{+Q}r` sets a flag for this alias, `%{+Q}o` for all that follow, `-` removes one.\n\n| Flag | What it does |\n|---|---|\n");
    for row in log_format::FLAGS {
        let _ = writeln!(page, "| `{}` | {} |", row.name, prose(row.doc));
    }
    page
}

/// Generates the page of the reference manual about converters.
pub fn converters_page() -> String {
    let mut page = String::from(
        "# Converters\n\nAll supported sample converters, generated from the program's tables (`crates/expression/src/convert` and \
         `crates/policy/src/running`). \
         HAProxy's manual describes them in full in section 7.3.1. HAProxy's other converters are listed at the end.\n\n| \
         Converter | Input | Output | Result |\n|---|---|---|---|\n",
    );
    let mut rows: Vec<_> = running::CONVERTERS.all().collect();
    rows.sort_by_key(|row| row.name());
    for row in rows {
        let (name, signature) = (&row.name, shown(&row.signature));
        let _ = writeln!(page, "| `{name}{signature}` | {} | {} | {} |", row.input, output(row.output), row.doc);
    }
    waiting(&mut page, running::CONVERTERS.waiting());
    page
}

/// Generates the page of the reference manual about ACLs.
pub fn acls_page() -> String {
    let mut page = String::from(
        "# ACL keywords\n\nKeywords that combine a fetch with a match method, and the predefined ACLs (HAProxy's manual, \
         sections 7.3 and 7.4), generated from the program's tables.\n\n| Keyword | Stands for |\n|---|---|\n",
    );
    for row in condition::shorthands().iter().filter(|row| running::FETCHES.find(row.fetch).is_some()) {
        let _ = writeln!(page, "| `{}` | `{} -m {}` |", row.name, row.fetch, row.method.name());
    }
    page.push_str("\n## Predefined\n\n| Name | Stands for |\n|---|---|\n");
    for (name, words) in condition::PREDEFINED {
        let _ = writeln!(page, "| `{name}` | `{}` |", words.join(" "));
    }
    page
}

fn shown(signature: &Signature) -> String {
    cell(&signature.to_string())
}

/// Escapes text for a cell of a Markdown table, where a bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Escapes prose for a cell of a Markdown table: names in angle brackets are not HTML tags, text in backticks is
/// unchanged.
pub fn prose(text: &str) -> String {
    let text = cell(text);
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 0 { part.replace('<', "\\<") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

fn waiting(page: &mut String, names: &[&str]) {
    let _ = write!(page, "\n## Not supported yet\n\n{} that are refused by name:", names.len());
    for name in names {
        let _ = write!(page, " `{name}`");
    }
    page.push_str(".\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_have_haproxys_form() {
        let mut out = String::new();
        dump_fetches(&mut out);
        assert!(out.contains("\n[ Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y . . ] src: addr\n"), "{out}");
        assert!(
            out.contains("\n#                       _.---------------------- frontend tcp-request connection rule\n")
        );
        assert!(out.contains("\n#  / / / / / / / / / / / / / / / / / / / / / _.- CLI parser\n"));
        out.clear();
        dump_converters(&mut out);
        assert!(out.contains("\nlength: sint => str\n"));
        out.clear();
        dump_acls(&mut out);
        assert!(out.contains("\npath_beg = path -m beg\n"));
    }
}
