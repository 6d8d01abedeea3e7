//! `do-resolve`: resolves a name while the message waits, and stores its address in a variable. Must never resolve it
//! itself.

use super::lookup::NameLookup;
use super::{Action, Row, Wait, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use expression::variable::Variable;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("do-resolve", read)];

const USAGE: &str =
    "Expects 'do-resolve(<varname>,<resolvers>[,<options>]) <expr>'. Available options are 'ipv4' and 'ipv6'.";

fn read(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let malformed = || RuleError {
        span: Some(words.span()),
        ..RuleError::new(format!("Can't parse '{}'. {}", words.action(), USAGE.trim_end_matches('.')))
    };
    let inside = words.parentheses().ok_or_else(malformed)?;
    let mut parts = inside.split(',').map(str::trim);
    let (Some(variable), Some(section)) = (parts.next(), parts.next().filter(|name| !name.is_empty())) else {
        return Err(malformed());
    };
    let prefers_ipv4 = match parts.next() {
        None => None,
        Some("ipv4") => Some(true),
        Some("ipv6") => Some(false),
        Some(_) => return Err(malformed()),
    };
    if parts.next().is_some() {
        return Err(malformed());
    }
    let variable = Variable::parse(variable).map_err(RuleError::new)?;
    parsing.names.declare(&variable);
    let first = words.peek_text();
    let expression = parsing.expression(words).map_err(|error| RuleError {
        message: format!("Can't parse '{first}': {}. {}", error.message, USAGE.trim_end_matches('.')),
        ..error
    })?;
    let lookup = NameLookup {
        variable,
        section: parsing.names.resolvers(section),
        section_name: section.into(),
        prefers_ipv4,
        expression,
    };
    Ok(Action::Wait(Wait::Lookup(Box::new(lookup))))
}
