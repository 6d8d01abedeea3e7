//! Definitions that nothing refers to. Must never report one that a script or a command may use.

use crate::finding::Findings;
use crate::model::{Model, condition_start, names_in};
use crate::rule::Rule;
use config::document::{Line, Section};
use std::collections::BTreeSet;

/// The rules of this family.
pub(super) const TABLE: &[Rule] =
    &[Rule { name: "unused-acl", doc: "an ACL that no condition of its section names", check: unused_acl }];

/// Sections that may have ACLs.
const WITH_ACLS: [&str; 5] = ["defaults", "frontend", "backend", "listen", "fcgi-app"];

fn unused_acl(model: &Model<'_>, findings: &mut Findings) {
    for section in model.document.sections.iter().filter(|section| WITH_ACLS.contains(&section.line.keyword())) {
        let used = named_acls(section);
        let mut known = BTreeSet::new();
        for line in section.body.iter().filter(|line| line.keyword() == "acl") {
            let name = line.text(1);
            if known.insert(name) && !used.contains(name) && !model.is_named_elsewhere(name) {
                findings.add(line.span(1), format!("no condition of this section names the ACL '{name}'"));
            }
        }
    }
}

/// Returns every word of a section that may name an ACL.
fn named_acls(section: &Section) -> BTreeSet<&str> {
    section.body.iter().flat_map(names_of_line).collect()
}

fn names_of_line(line: &Line) -> Vec<&str> {
    let is_acl = line.keyword() == "acl";
    let start = if is_acl { None } else { condition_start(&line.words) };
    let condition = line.words.get(start.unwrap_or(line.words.len())..).unwrap_or_default();
    // Fetches and converters may name ACLs in their arguments: `acl(a,!b)`, `when(acl,a)`.
    let arguments = line.words.iter().filter(|word| word.text.contains("acl"));
    condition.iter().chain(arguments.skip(usize::from(is_acl))).flat_map(names_in).collect()
}
