//! List of all rows of all keyword tables: for the reference manual, `-dK` and the house tests. Must never
//! be needed to read a configuration.

use super::argument::Arity;
use super::table::{Family, Keyword, Status, SupportLevel};
use super::{bind, filter, global, option, proxy, rule, section, server, udp_lb};
use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `global`, `proxy`, `option`, `bind`, `server`, `action`, or the name of a section.
    pub kind: &'static str,
    pub family: &'static str,
    pub name: &'static str,
    /// Usage of the arguments.
    pub usage: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Level of support in Weir.
    pub standing: SupportLevel,
    /// HAProxy's sentence about the replacement; empty if there is none.
    pub removed: &'static str,
    /// Sections that accept it; empty where its kind implies them.
    pub places: String,
}

/// Returns all keywords, by kind and family, in the tables' order.
pub fn entries() -> Vec<Entry> {
    let mut list = Vec::new();
    add(&mut list, "global", global::FAMILIES, |()| String::new());
    add(&mut list, "proxy", proxy::FAMILIES, |place| place.sections());
    add(&mut list, "option", option::FAMILIES, |shape| shape.place.sections());
    add(&mut list, "bind", bind::FAMILIES, |_| String::new());
    add(&mut list, "server", server::FAMILIES, |_| String::new());
    for row in rule::TABLE {
        let sets = rule::RULE_SETS.iter().filter(|set| set.0 & row.extra != 0).map(|set| set.1);
        list.push(entry("action", "Actions", row, sets.collect::<Vec<_>>().join(", ")));
    }
    list.extend(filter::TABLE.iter().map(|row| entry("filter", "Filters.", row, String::new())));
    for table in section::TABLE.iter().chain(section::NAMES) {
        for row in table.rows {
            let standing = if table.removed.is_some() { SupportLevel::Removed } else { row.standing() };
            list.push(Entry { standing, ..entry(table.name, table.doc, row, String::new()) });
        }
    }
    list.extend(udp_lb::TABLE.iter().map(|row| entry(udp_lb::NAME, udp_lb::DOC, row, String::new())));
    list
}

fn add<P: Copy, X: Copy>(
    list: &mut Vec<Entry>,
    kind: &'static str,
    families: &'static [Family<Keyword<P, X>>],
    places: impl Fn(X) -> String,
) {
    for family in families {
        list.extend(family.rows.iter().map(|row| entry(kind, family.title, row, places(row.extra))));
    }
}

fn entry<P: Copy, X: Copy>(kind: &'static str, family: &'static str, row: &Keyword<P, X>, places: String) -> Entry {
    let Keyword { name, usage, doc, .. } = *row;
    let removed = if let Status::Removed(sentence) = row.status { sentence } else { "" };
    Entry { kind, family, name, usage, doc, standing: row.standing(), removed, places }
}

/// Returns the keywords that are accepted without effect.
pub fn tuning() -> impl Iterator<Item = Entry> {
    entries().into_iter().filter(|entry| entry.standing == SupportLevel::Tuning)
}

/// Classes of `-dK` and their descriptions in `-dKhelp`. All but `cfg` belong to other crates.
pub const DUMP_CLASSES: &[(&str, &str)] = &[
    ("all", "list all keywords"),
    ("acl", "ACL keywords"),
    ("cfg", "configuration keywords"),
    ("cli", "CLI keywords"),
    ("cnv", "sample converter keywords"),
    ("flt", "filter names"),
    ("smp", "sample fetch functions"),
    ("svc", "service names"),
];

/// Writes the output of `-dKcfg`: every accepted keyword, in a form similar to a configuration.
pub fn dump(out: &mut String) {
    let accepted = |standing: SupportLevel| {
        !matches!(standing, SupportLevel::NotYet | SupportLevel::Removed | SupportLevel::Refused)
    };
    let mut entries = entries();
    entries.retain(|entry| accepted(entry.standing));
    entries.sort_by_key(|entry| (order(entry.kind), entry.name));
    out.push_str("# List of registered configuration keywords:\n");
    for (heading, kinds) in [("global", &["global"][..]), ("listen", &["proxy", "option", "bind", "server"])] {
        out.push_str(heading);
        out.push('\n');
        for entry in entries.iter().filter(|entry| kinds.contains(&entry.kind)) {
            let _ = match entry.kind {
                "option" => writeln!(out, "\toption {} [ {} ]", entry.name, entry.places),
                "bind" => writeln!(out, "\tbind <addr> {}{}", entry.name, arity(entry)),
                "server" => writeln!(out, "\tserver <name> <addr> {}{}", entry.name, arity(entry)),
                _ => writeln!(out, "\t{}", entry.name),
            };
        }
    }
}

/// Writes the output of `-dKflt`: every supported filter, and the family that HAProxy assigns it to.
pub fn dump_filters(out: &mut String) {
    out.push_str("# List of registered filter names:\n");
    for (name, family) in filter::names() {
        let _ = writeln!(out, "{name} [{family}]");
    }
}

/// Returns the list of filters for `-vv`.
pub fn available_filters() -> String {
    filter::names().map(|(name, family)| format!("\n\t[{family}] {name}")).collect()
}

fn order(kind: &str) -> usize {
    ["global", "proxy", "bind", "server", "option"].iter().position(|&known| known == kind).unwrap_or(usize::MAX)
}

/// Returns the ` +1` that follows an option with an argument.
fn arity(entry: &Entry) -> &'static str {
    let arity = match entry.kind {
        "bind" => super::table::rows(bind::FAMILIES).find(|row| row.name == entry.name).map(|row| row.extra),
        _ => super::table::rows(server::FAMILIES).find(|row| row.name == entry.name).map(|row| row.extra),
    };
    if arity.is_some_and(|arity| arity != Arity::None) { " +1" } else { "" }
}
