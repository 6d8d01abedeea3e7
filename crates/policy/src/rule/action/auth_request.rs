//! `auth-request` (an extension of Weir): its arguments. Must never know how the server is asked.

use super::authorization::{AnswerVariable, AuthRequest};
use super::{Action, Row, Wait, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::document::Word;
use config::text::to_bytes;
use expression::variable::Variable;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("auth-request", read)];

const USAGE: &str = "expects <backend> [path <format>] [method <method>] [copy <name>[,<name>]*] [set-var(<var>) <name>]* \
                     [on-error { deny | allow }]";

/// Fields of the answer that describe its own message or connection.
const FRAMING: [&str; 8] =
    ["connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Maximum number of fields that a rule copies, and of variables that it sets.
const MOST: usize = 64;

fn read(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let name = words.expect(USAGE)?;
    let backend = parsing.names.side_backend(&name.text, "subrequests");
    let backend = backend.map_err(|message| RuleError::at(Some(name), message))?;
    let (mut path, mut method, mut allows_on_error) = (None, "GET", false);
    let (mut copies, mut variables) = (Vec::new(), Vec::new());
    while let Some(word) = words.take() {
        let missing = || RuleError::at(Some(word), format!("missing argument for '{}'", word.text));
        let mut value = || words.take().ok_or_else(missing);
        match word.text.as_str() {
            "path" => path = Some(parsing.format(value()?)?),
            "method" => {
                let value = value()?;
                // The answer to others has no body, or they connect.
                if !is_token(&value.text) || matches!(value.text.as_str(), "HEAD" | "CONNECT") {
                    return Err(RuleError::at(Some(value), "expects a method other than HEAD and CONNECT"));
                }
                method = &value.text;
            }
            "copy" => {
                let value = value()?;
                for name in value.text.split(',') {
                    copies.push(field_name(name, value)?);
                }
            }
            "on-error" => {
                let value = value()?;
                allows_on_error = match value.text.as_str() {
                    "deny" => false,
                    "allow" => true,
                    _ => return Err(RuleError::at(Some(value), "'on-error' expects 'deny' or 'allow'")),
                };
            }
            "cache" => return Err(RuleError::at(Some(word), "'cache' is not supported yet")),
            text => {
                let inside = text.strip_prefix("set-var(").and_then(|rest| rest.strip_suffix(')'));
                let inside = inside.ok_or_else(|| RuleError::at(Some(word), USAGE))?;
                let variable = Variable::parse(inside).map_err(|message| RuleError::at(Some(word), message))?;
                let value = value()?;
                parsing.names.declare(&variable);
                variables.push(AnswerVariable { variable, name: field_name(&value.text, value)? });
            }
        }
        if copies.len() > MOST || variables.len() > MOST {
            return Err(RuleError::at(Some(word), format!("at most {MOST} fields can be copied")));
        }
    }
    Ok(Action::Wait(Wait::Authorization(Box::new(AuthRequest {
        backend,
        path,
        method: method.into(),
        copies: copies.into(),
        variables: variables.into(),
        allows_on_error,
    }))))
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Parses the name of a field of the answer.
fn field_name(name: &str, word: &Word) -> Result<Box<[u8]>, RuleError> {
    let lower = name.to_ascii_lowercase();
    if !is_token(name) {
        return Err(RuleError::at(Some(word), format!("'{name}' is not a field name")));
    }
    if FRAMING.contains(&lower.as_str()) {
        return Err(RuleError::at(Some(word), format!("field '{name}' describes the answer's own message")));
    }
    Ok(to_bytes(&lower).into())
}
