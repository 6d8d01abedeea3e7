//! Variables that are read and never have a value. Must never report one that a script, an agent or a command may set.

use crate::finding::Findings;
use crate::model::{Model, StatementKind, samples_in};
use crate::rule::Rule;
use config::document::Line;
use config::keyword::rule::{HTTP_AFTER_RESPONSE, HTTP_RESPONSE, TCP_RESPONSE_CONTENT};
use config::spec::FilterSpec;
use std::collections::BTreeSet;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule { name: "variable-not-set", doc: "a variable is read, and nothing sets it", check: not_set },
    Rule {
        name: "variable-out-of-scope",
        doc: "a rule on responses reads a variable of the scope 'req', which ends with the request",
        check: out_of_scope,
    },
];

/// Whether something other than the lines may set variables.
fn is_open(model: &Model<'_>) -> bool {
    // The parts of other programs are in files of their own.
    let is_agent =
        |filter: &FilterSpec| matches!(filter, FilterSpec::Spoe(_) | FilterSpec::Otel(_) | FilterSpec::Script(_));
    model.has_scripts() || model.proxies.iter().any(|proxy| proxy.spec.filters.list.iter().any(is_agent))
}

/// Actions and converters that set the variable of their first argument.
const SETTERS: [&str; 3] = ["set-var(", "set-var-fmt(", "do-resolve("];

/// Returns the names that a line sets.
fn names_set(line: &Line) -> Vec<String> {
    let mut names = Vec::new();
    for word in &line.words {
        for setter in SETTERS {
            for (at, _) in word.text.match_indices(setter) {
                let rest = &word.text[at + setter.len()..];
                names.extend(rest.split([',', ')']).next().map(|name| name.trim().to_owned()));
            }
        }
    }
    if matches!(line.keyword(), "set-var" | "set-var-fmt") {
        names.push(line.text(1).to_owned());
    }
    names
}

fn not_set(model: &Model<'_>, findings: &mut Findings) {
    if is_open(model) {
        return;
    }
    let known: BTreeSet<String> = model.lines().flat_map(names_set).collect();
    for line in model.lines().filter(|line| !line.keyword().is_empty()) {
        for sample in samples_in(&line.words) {
            let Some(call) = sample.fetch().filter(|call| call.name == "var") else { continue };
            let [name] = call.arguments.as_deref().unwrap_or_default() else { continue };
            // Commands set variables of the process.
            let is_set = known.contains(name) || name.starts_with("proc.") || model.is_named_elsewhere(name);
            if !is_set {
                findings.add(sample.span, format!("nothing sets the variable '{name}'"));
            }
        }
    }
}

fn out_of_scope(model: &Model<'_>, findings: &mut Findings) {
    let on_responses = HTTP_RESPONSE | HTTP_AFTER_RESPONSE | TCP_RESPONSE_CONTENT;
    for proxy in &model.proxies {
        for statement in &proxy.statements {
            if !matches!(statement.kind, StatementKind::Rule(set) if set & on_responses != 0) {
                continue;
            }
            for sample in samples_in(&statement.line.words) {
                let Some(call) = sample.fetch().filter(|call| call.name == "var") else { continue };
                if let Some(name) = call.arguments.as_deref().and_then(|list| list.first())
                    && name.starts_with("req.")
                {
                    let message = format!("'{name}' has no value here: the scope 'req' ends with the request");
                    findings.add_with_hint(sample.span, message, "set and read it in the scope 'txn'");
                }
            }
        }
    }
}
