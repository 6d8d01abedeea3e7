//! Faults of configurations that are accepted (`weir lint`): lines that cannot work, whatever the traffic. Owns the table
//! of the rules that detect them. Must never do I/O, nor report what reading a configuration already reports.
//!
//! To add a rule: write its function and its row in the file of its family in `rules`, and its rows in `tests/rules`.

mod allow;
mod finding;
mod model;
mod report;
mod rule;
mod rules;

pub use finding::Finding;
pub use report::{json, text};
pub use rule::Rule;
pub use rules::all as rules;

use config::document::{Document, Sources};
use config::spec::Spec;

/// A configuration that was accepted.
#[derive(Clone, Copy)]
pub struct Configuration<'a> {
    pub sources: &'a Sources,
    pub document: &'a Document,
    pub spec: &'a Spec,
}

/// Returns the findings about a configuration, in the order of its lines, without those that a comment allows.
pub fn examine(configuration: Configuration<'_>) -> Vec<Finding> {
    let model = model::Model::new(configuration);
    let mut findings = finding::Findings::default();
    for rule in rules::all() {
        findings.begin(rule.name);
        (rule.check)(&model, &mut findings);
    }
    allow::apply(findings.into_sorted(), configuration, rules::is_known)
}
