//! `capture`: a sample goes into a slot of the log.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::keyword::rule::{HTTP_AFTER_RESPONSE, HTTP_REQUEST, HTTP_RESPONSE};
use config::spec::ProxyKind;

/// Every action of the family.
pub(super) const TABLE: &[Row] = &[row("capture", HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE, capture)];

fn capture(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects <expression> [ 'len' <length> | id <idx> ]";
    let of_request = parsing.is_request();
    if words.peek().is_none() {
        return Err(RuleError::new(USAGE));
    }
    let at = words.span();
    let expression = parsing.expression(words)?;
    let kind = words.expect(USAGE)?;
    let index = match kind.text.as_str() {
        "len" if of_request => {
            let value = words.expect(USAGE)?;
            let length = crate::rule::parse::leading_number(&value.text);
            if length == 0 {
                return Err(RuleError::at(Some(value), "length must be > 0"));
            }
            if parsing.proxy.kind == ProxyKind::Backend {
                let name = &parsing.proxy.name.value;
                return Err(RuleError::new(format!("proxy '{name}' has no frontend capability")));
            }
            // The slot was made when the line was read.
            let slots = &parsing.proxy.captures.request;
            slots.iter().position(|slot| slot.span == at).ok_or_else(|| RuleError::new(USAGE))?
        }
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
