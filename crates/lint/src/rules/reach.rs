//! Sections that nothing leads to. Must never report one whose name is computed, or written anywhere else.

use crate::finding::Findings;
use crate::model::{Model, names_in};
use crate::rule::Rule;
use config::document::Line;
use config::spec::ProxyKind;
use std::collections::BTreeMap;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "backend-not-reached",
        doc: "no frontend selects a backend, and nothing else names it",
        check: backend_not_reached,
    },
    Rule {
        name: "unused-section",
        doc: "nothing refers to a section that has no other effect ('resolvers', 'http-errors', 'peers' and others)",
        check: unused_section,
    },
    Rule {
        name: "cache-never-filled",
        doc: "a rule serves responses from a cache that no rule stores responses in",
        check: |model, findings| cache(model, "cache-use", "cache-store", "stores responses in", findings),
    },
    Rule {
        name: "cache-never-used",
        doc: "a rule stores responses in a cache that no rule serves them from",
        check: |model, findings| cache(model, "cache-store", "cache-use", "serves responses from", findings),
    },
];

/// For each name, the sections that contain it, by their first line.
struct Mentions<'m> {
    sections: BTreeMap<&'m str, Vec<(u32, u32)>>,
    model: &'m Model<'m>,
}

impl<'m> Mentions<'m> {
    fn of(model: &'m Model<'_>) -> Self {
        let mut found: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
        for section in &model.document.sections {
            let place = (section.line.file, section.line.number);
            // The name of the section itself is its second word.
            let opening = section.line.words.iter().skip(2);
            let words = opening.chain(section.body.iter().flat_map(|line| &line.words));
            for name in words.flat_map(names_in) {
                let places = found.entry(name).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
        Self { sections: found, model }
    }

    /// Whether another section than the one at that line contains the name.
    fn is_elsewhere(&self, name: &str, line: &Line) -> bool {
        let places = self.sections.get(name).map_or(&[][..], Vec::as_slice);
        places.iter().any(|place| *place != (line.file, line.number)) || self.model.is_named_elsewhere(name)
    }
}

fn backend_not_reached(model: &Model<'_>, findings: &mut Findings) {
    // A part of a configuration has its frontends elsewhere.
    if model.has_scripts() || !model.proxies.iter().any(|proxy| proxy.has_clients()) {
        return;
    }
    let mentions = Mentions::of(model);
    for proxy in model.proxies.iter().filter(|proxy| proxy.spec.kind == ProxyKind::Backend && !proxy.spec.disabled) {
        let is_named = proxy.section.is_none_or(|section| mentions.is_elsewhere(proxy.name(), &section.line));
        if !is_named && model.frontends_of(proxy).next().is_none() {
            findings.add(proxy.span(), format!("no frontend selects backend '{}', and nothing names it", proxy.name()));
        }
    }
}

/// Sections that have an effect only through the name by which others refer to them. Other programs read the accounts of
/// a `userlist`.
const NAMED: [&str; 9] =
    ["cache", "fcgi-app", "healthcheck", "http-errors", "log-profile", "mailers", "peers", "resolvers", "ring"];

fn unused_section(model: &Model<'_>, findings: &mut Findings) {
    let mentions = Mentions::of(model);
    for section in model.document.sections.iter().filter(|section| NAMED.contains(&section.line.keyword())) {
        let (kind, name) = (section.line.keyword(), section.line.text(1));
        // Name servers of this name are used where a line names none.
        let is_implied = kind == "resolvers" && name == "default";
        if name.is_empty() || is_implied || mentions.is_elsewhere(name, &section.line) {
            continue;
        }
        findings.add(section.line.whole(), format!("nothing refers to the section '{kind} {name}'"));
    }
}

/// Compares the caches of two actions.
fn cache(model: &Model<'_>, action: &str, other: &str, what: &str, findings: &mut Findings) {
    let of = |action: &str| {
        let statements = model.proxies.iter().flat_map(|proxy| &proxy.statements);
        let action = action.to_owned();
        statements.filter(move |statement| statement.text(0) == action)
    };
    for statement in of(action) {
        let name = statement.text(1);
        if of(other).all(|one| one.text(1) != name) {
            findings.add(statement.line.span, format!("no '{other}' rule {what} the cache '{name}'"));
        }
    }
}
