//! `do-resolve`: resolves a name while the message waits, and stores its address in a variable. Must never resolve it
//! itself.

use super::{Action, Row, Wait, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use expression::Expression;
use expression::sample::{Context, Value};
use expression::variable::Variable;
use std::net::IpAddr;
use wire::dns::Name;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("do-resolve", read)];

/// The parameters of `do-resolve`.
#[derive(Debug, Clone, PartialEq)]
pub struct NameLookup {
    /// The variable for the address.
    variable: Variable,
    /// Index of the `resolvers` section in [`crate::Program::resolvers`]; `None` if there is none with that name.
    pub section: Option<usize>,
    pub section_name: Box<str>,
    /// Whether IPv4 is preferred; `None` for the default.
    pub prefers_ipv4: Option<bool>,
    /// The expression of the name.
    expression: Expression,
}

impl NameLookup {
    /// Returns the name to resolve; `None` if the expression has no valid name.
    pub fn name(&self, context: &Context<'_>) -> Option<Name> {
        let value = self.expression.evaluate(context)?;
        Name::parse(std::str::from_utf8(context.as_text(value)?).ok()?)
    }

    /// Stores the resolved address in the variable.
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
