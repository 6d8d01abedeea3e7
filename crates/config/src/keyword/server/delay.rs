//! Times between two checks (section 5.2, "inter" and related options). Must never know which check they are of.

use super::{Problem, ServerContext};
use crate::diagnostic::Severity;
use crate::document::Word;
use crate::units::{self, TimeError};

/// Parses a time between two checks in milliseconds, above 0. HAProxy's sentence about a wrong unit names `agent-inter`
/// for every option.
pub(super) fn delay(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) -> Option<u64> {
    let (name, server) = (&keyword.text, context.shown_name());
    let Some(word) = value else {
        context.error(keyword.span, format!("'{name}' expects a delay as argument.."));
        return None;
    };
    let message = match context.milliseconds(word) {
        Ok(time) if time.value > 0 => {
            if units::lacks_unit(&word.text, time.value) {
                let message = format!(
                    "'{name} {}' in server '{server}' is suspiciously small for a value in milliseconds. Please use an \
                     explicit unit ('{}ms') if that was the intent.",
                    word.text, word.text
                );
                context.problems.push(Problem { severity: Severity::Warning, span: word.span, message });
            }
            return Some(time.value);
        }
        Ok(_) => format!("invalid value 0 for argument '{name}' of server {server}.."),
        Err(TimeError::Unexpected(found)) => {
            format!("unexpected character '{found}' in 'agent-inter' argument of server {server}..")
        }
        Err(_) => format!(
            "timer overflow in argument <{}> to <{name}> of server {server}, maximum value is 2147483647 ms (~24.8 \
             days)..",
            word.text
        ),
    };
    context.error(word.span, message);
    None
}
