//! `do-resolve`: a name is looked up while the message waits, and its address goes into a variable. Must never look it up
//! itself.

use super::{Action, Row, Wait, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use expression::Expression;
use expression::sample::{Context, Value};
use expression::variable::Variable;
use std::net::IpAddr;
use wire::dns::Name;

/// Every action of the family.
pub(super) const TABLE: &[Row] = &[row("do-resolve", read)];

/// A name that is looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct NameLookup {
    /// What gets the address.
    variable: Variable,
    /// The section that is asked, by its place in [`crate::Program::resolvers`]; `None`: there is none of that name.
    pub section: Option<usize>,
    /// Its name.
    pub section_name: Box<str>,
    /// IPv4 first; `None`: as elsewhere.
    pub prefers_ipv4: Option<bool>,
    /// The name.
    expression: Expression,
}

impl NameLookup {
    /// The name to look up; `None`: what the expression gives is none.
    pub fn name(&self, context: &Context<'_>) -> Option<Name> {
        let value = self.expression.evaluate(context)?;
        Name::parse(std::str::from_utf8(context.as_text(value)?).ok()?)
    }

    /// Its address has been found.
    pub fn store(&self, context: &Context<'_>, ip: IpAddr) {
        let value = match ip {
            IpAddr::V4(ip) => Value::Ipv4(ip),
            IpAddr::V6(ip) => Value::Ipv6(ip),
        };
        context.variables.set(&self.variable, value);
    }
}

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
