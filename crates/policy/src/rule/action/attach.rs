//! `attach-srv`: turns a client connection into one to a server (reverse HTTP). Must never perform it.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::spec::Mode;
use expression::Expression;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("attach-srv", attach)];

/// The parameters of `attach-srv`.
#[derive(Debug, Clone, PartialEq)]
pub struct Attach {
    /// Index of the backend.
    pub backend: usize,
    /// Index of the server in the backend.
    pub server: usize,
    /// Name of the connection.
    pub name: Option<Expression>,
}

fn attach(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let server = words.take().map_or("", |word| word.text.as_str());
    let mut name = None;
    if words.peek_text() == "name" {
        words.take();
        if words.peek().is_none() {
            return Err(RuleError::new("missing name value"));
        }
        name = Some(parsing.expression(words)?);
    }
    // HAProxy checks the rest after it has read the complete configuration.
    let late = |why: String| RuleError::whole(format!("Proxy '{}': {why}", parsing.proxy.name.value));
    if parsing.proxy.mode != Mode::Http {
        return Err(late("attach-srv rule requires HTTP proxy mode.".to_owned()));
    }
    let (backend, server) = parsing.names.reversed_server(server, name.is_some()).map_err(late)?;
    Ok(Action::Attach(Box::new(Attach { backend, server, name })))
}
