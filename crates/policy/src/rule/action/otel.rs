//! `otel-group`: runs the scopes of a group of `filter otel`. Must never open a span.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::spec::FilterSpec;
use config::suggest::nearest;
use std::sync::Arc;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("otel-group", otel_group)];

fn otel_group(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects 2 arguments: <filter-id> <group-id>";
    let (filter, group) = (words.expect(USAGE)?, words.expect(USAGE)?);
    if let Some(extra) = words.peek() {
        return Err(RuleError::at(Some(extra), USAGE));
    }
    let filters = parsing.proxy.filters.list.iter().filter_map(|filter| match filter {
        FilterSpec::Otel(own) => Some(own),
        _ => None,
    });
    let Some(own) = filters.clone().find(|own| own.name() == filter.text) else {
        let text = format!("unable to find the OpenTelemetry filter '{}'", filter.text);
        let hint = nearest(&filter.text, filters.map(|own| own.name())).map(|known| format!("write '{known}'"));
        return Err(RuleError { hint, ..RuleError::at(Some(filter), text) });
    };
    // Errors in the file have been reported.
    if own.content.is_some() && !own.groups.contains(&group.text) {
        let text = format!("unable to find the group '{}' of the OpenTelemetry filter '{}'", group.text, filter.text);
        let hint = nearest(&group.text, own.groups.iter().map(String::as_str));
        return Err(RuleError {
            hint: hint.map(|known| format!("write '{known}'")),
            ..RuleError::at(Some(group), text)
        });
    }
    Ok(Action::OtelGroup(Arc::new((filter.text.as_str().into(), group.text.as_str().into()))))
}
