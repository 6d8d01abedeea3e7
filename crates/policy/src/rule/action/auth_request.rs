//! `auth-request` (an extension of Weir): its arguments. Must never know how the server is asked.

use super::authorization::{AnswerVariable, AuthRequest, DecisionCaching, FailureVariables};
use super::{Action, Row, Wait, row};
use crate::rule::parse::{Parsing, RuleError, SideRequests, Words};
use config::document::Word;
use config::text::to_bytes;
use config::units;
use expression::variable::Variable;
use live::decisions::MOST_BYTES;
use std::time::Duration;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("auth-request", read)];

const USAGE: &str = "expects <backend> [path <format>] [method <method>] [copy <name>[,<name>]*] [set-var(<var>) <name>]* \
                     [on-error { deny | allow }] [cache <time> key <format> [size <size>]]";

/// Size of a rule's cache without `size`, in bytes, and the largest one.
const SIZE: u64 = 8 << 20;
const LARGEST_SIZE: u64 = 1 << 30;

/// The longest time of `cache`, in milliseconds: a day.
const LONGEST: u64 = 86_400_000;

/// Fields of the answer that describe its own message or connection.
const FRAMING: [&str; 8] =
    ["connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Maximum number of fields that a rule copies, and of variables that it sets.
const MOST: usize = 64;

fn read(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let name = words.expect(USAGE)?;
    let backend = parsing.names.side_backend(&name.text, SideRequests::Subrequests);
    let backend = backend.map_err(|message| RuleError::at(Some(name), message))?;
    let own = |name: &str| {
        let variable = Variable::parse(name).map_err(RuleError::new)?;
        parsing.names.declare(&variable);
        Ok(variable)
    };
    let failure = FailureVariables { server: own("txn.auth_request.server")?, error: own("txn.auth_request.error")? };
    let (mut path, mut method, mut allows_on_error) = (None, "GET", false);
    let (mut copies, mut variables, mut caching) = (Vec::new(), Vec::new(), None);
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
            "cache" => {
                let time = value()?;
                caching = Some(read_caching(word, time, words, parsing)?);
            }
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
        failure,
        caching,
    }))))
}

/// Parses the arguments of `cache` that follow its time.
fn read_caching(
    cache: &Word,
    time: &Word,
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
) -> Result<DecisionCaching, RuleError> {
    let milliseconds = units::milliseconds(&time.text).ok().map(|time| time.value);
    let Some(milliseconds) = milliseconds.filter(|time| (1..=LONGEST).contains(time)) else {
        return Err(RuleError::at(Some(time), "'cache' expects a time between 1ms and 1d"));
    };
    let Some(word) = words.peek().filter(|word| word.text == "key") else {
        let why = "'cache' requires 'key <format>': without it, one client's permission would be that of all clients";
        return Err(RuleError::at(Some(cache), why));
    };
    words.take();
    let format = words.take().ok_or_else(|| RuleError::at(Some(word), "missing argument for 'key'"))?;
    let key = parsing.text_format(format)?;
    if key.has_aliases() {
        let why = "'key' expects samples as in '%[req.cook(session)]', not aliases such as '%ci'";
        return Err(RuleError::at(Some(format), why));
    }
    if !key.has_expressions() {
        let why = "'key' contains no sample as in '%[req.cook(session)]': one client's permission would be that of all clients";
        return Err(RuleError::at(Some(format), why));
    }
    let mut size = SIZE;
    if let Some(word) = words.peek().filter(|word| word.text == "size") {
        words.take();
        let value = words.take().ok_or_else(|| RuleError::at(Some(word), "missing argument for 'size'"))?;
        let found = units::size(&value.text, LARGEST_SIZE).ok().filter(|size| *size >= MOST_BYTES as u64 * 16);
        size = found.ok_or_else(|| RuleError::at(Some(value), "'size' expects a size between 256k and 1g"))?;
    }
    Ok(DecisionCaching {
        place: usize::MAX,
        time: Duration::from_millis(milliseconds),
        size: usize::try_from(size).unwrap_or(usize::MAX),
        key,
    })
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
