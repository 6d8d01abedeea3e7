//! `capture`: stores a sample in a slot for the log. Must never store one.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words, leading_number};
use config::document::Word;
use config::keyword::rule::TCP_REQUEST_CONTENT;
use config::span::Span;
use config::spec::ProxyKind;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("capture", capture)];

fn capture(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    if parsing.set == TCP_REQUEST_CONTENT {
        return capture_bytes(words, parsing).map_err(|error| RuleError {
            message: format!("'tcp-request content capture' : {}", error.message),
            ..error
        });
    }
    const USAGE: &str = "expects <expression> [ 'len' <length> | id <idx> ]";
    let of_request = parsing.is_request();
    if words.peek().is_none() {
        return Err(RuleError::new(USAGE));
    }
    let at = words.span();
    let expression = parsing.expression(words)?;
    let kind = words.expect(USAGE)?;
    let index = match kind.text.as_str() {
        "len" if of_request => own_slot(words.expect(USAGE)?, at, parsing)?,
        "id" => {
            let value = words.expect(USAGE)?;
            let number = value.text.parse::<usize>();
            let index = number.map_err(|_| RuleError::at(Some(value), format!("cannot parse id '{}'", value.text)))?;
            let captures = &parsing.proxy.captures;
            let slots = if of_request { captures.request.len() } else { captures.response.len() };
            if parsing.proxy.kind != ProxyKind::Backend && index >= slots {
                let message = format!("unable to find capture id '{index}'");
                return Err(RuleError::at(Some(value), message));
            }
            index
        }
        _ if of_request => return Err(RuleError::at(Some(kind), USAGE)),
        other => return Err(RuleError::at(Some(kind), format!("expects 'id', found '{other}'"))),
    };
    Ok(Action::Capture { of_request, index, expression })
}

/// Returns the slot that the parser created for the line.
fn own_slot(length: &Word, at: Span, parsing: &Parsing<'_>) -> Result<usize, RuleError> {
    // HAProxy keeps 32 bits of the number.
    if leading_number(&length.text) as i32 <= 0 {
        return Err(RuleError::at(Some(length), "length must be > 0"));
    }
    if parsing.proxy.kind == ProxyKind::Backend {
        let name = &parsing.proxy.name.value;
        return Err(RuleError::new(format!("proxy '{name}' has no frontend capability")));
    }
    let slots = &parsing.proxy.captures.request;
    slots.iter().position(|slot| slot.span == at).ok_or_else(|| RuleError::at(Some(length), "there is no slot for it"))
}

/// Parses `capture` in `tcp-request content`, which only has slots of its own.
fn capture_bytes(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let at = words.span();
    let expression = parsing.key(words)?;
    if words.peek_text() != "len" {
        return Err(RuleError::at(words.peek(), "a positive 'len' argument is mandatory"));
    }
    words.take();
    let index = own_slot(words.expect("length must be > 0")?, at, parsing)?;
    Ok(Action::Capture { of_request: true, index, expression })
}
