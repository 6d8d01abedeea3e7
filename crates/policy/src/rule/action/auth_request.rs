//! `auth-request` (an extension of Weir): asks a server of another backend whether a request is allowed. Must never know how it is
//! asked.

use super::{Action, Row, Wait, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::document::Word;
use config::text::to_bytes;
use expression::log_format::LogFormat;
use expression::sample::{Context, Value};
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

/// The parameters of `auth-request`.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthRequest {
    /// Index of the backend that is asked.
    pub backend: usize,
    /// The target of the subrequest; `None`: that of the request.
    path: Option<LogFormat>,
    pub method: Box<str>,
    /// Names of the fields that an allowed request gets from the answer, in lower case.
    copies: Box<[Box<[u8]>]>,
    /// Variables and the fields of the answer that they are set to.
    variables: Box<[AnswerVariable]>,
    /// `on-error allow`: without a usable answer, the request is allowed.
    pub allows_on_error: bool,
}

/// A variable that is set to a field of the answer.
#[derive(Debug, Clone, PartialEq)]
struct AnswerVariable {
    variable: Variable,
    name: Box<[u8]>,
}

impl AuthRequest {
    /// Appends the target of the subrequest; without `path`, nothing.
    pub fn render_target(&self, context: &Context<'_>, out: &mut Vec<u8>) {
        if let Some(path) = &self.path {
            path.render_in(context, out);
        }
    }

    /// Whether the target is that of the request.
    pub fn keeps_target(&self) -> bool {
        self.path.is_none()
    }

    /// Returns the names of the fields that are copied.
    pub fn copies(&self) -> impl Iterator<Item = &[u8]> {
        self.copies.iter().map(|name| &**name)
    }

    /// Whether a field of the client would be taken for one that is copied. Applications that get fields as variables of the
    /// environment (RFC 3875) cannot tell `-` from `_`.
    pub fn is_copied(&self, name: &[u8]) -> bool {
        let is_same = |one: &[u8]| {
            let fold = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
            one.len() == name.len() && one.iter().zip(name).all(|(one, other)| fold(*one) == fold(*other))
        };
        self.copies().any(is_same)
    }

    /// Sets the variables to the fields that `first` returns by their names. A variable without a field is unset.
    pub fn set_variables<'f>(&self, context: &Context<'_>, first: impl Fn(&[u8]) -> Option<&'f [u8]>) {
        for AnswerVariable { variable, name } in &self.variables {
            match first(name) {
                Some(value) => {
                    context.variables.set(variable, Value::Str(value));
                }
                None => context.variables.unset(variable),
            }
        }
    }
}

fn read(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let name = words.expect(USAGE)?;
    let backend = parsing.names.side_backend(&name.text, "subrequests");
    let backend = backend.map_err(|message| RuleError::at(Some(name), message))?;
    let (mut path, mut method, mut allows_on_error) = (None, "GET", false);
    let (mut copies, mut variables) = (Vec::new(), Vec::new());
    while let Some(word) = words.take() {
        let mut value = || words.expect(&format!("missing argument for '{}'", word.text));
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
