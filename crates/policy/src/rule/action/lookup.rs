//! A name that a message waits for (`do-resolve`). Must never resolve it itself.

use expression::Expression;
use expression::sample::{Context, Value};
use expression::variable::Variable;
use std::net::IpAddr;
use wire::dns::Name;

/// The parameters of `do-resolve`.
#[derive(Debug, Clone, PartialEq)]
pub struct NameLookup {
    /// The variable for the address.
    pub(super) variable: Variable,
    /// Index of the `resolvers` section in [`crate::Program::resolvers`]; `None` if there is none with that name.
    pub section: Option<usize>,
    pub section_name: Box<str>,
    /// Whether IPv4 is preferred; `None` for the default.
    pub prefers_ipv4: Option<bool>,
    /// The expression of the name.
    pub(super) expression: Expression,
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
