//! Conditions of `.if`, `.elif` and `-cc` (configuration manual, section 2.4). A condition is parsed completely before
//! any part of it is evaluated. Must never read anything but variables and `LanguageOptions`.

use crate::environment::Environment;
use crate::lexer::{self, Comments, LexErrorKind, Variables};
use crate::text;
pub use error::ConditionError;
pub use input::ConditionContext;
use parse::{Expression, Parser, Predicate};
use std::borrow::Cow;

mod error;
mod input;
mod parse;
mod predicate;
mod version;

/// Evaluates a condition whose words are already unquoted and whose variables are resolved.
///
/// # Errors
/// The condition cannot be parsed, or a part that decides the result cannot be evaluated.
pub fn eval(text: &str, context: &ConditionContext<'_>) -> Result<bool, ConditionError> {
    let expression = Parser::new(text).parse()?;
    evaluate(&expression, context)
}

/// Evaluates a condition of `-cc`: words, quotes and variables are as in a line of a file, comments are not recognized.
///
/// # Errors
/// As for [`eval`], or the line cannot be split into words.
pub fn eval_argument(argument: &[u8], context: &ConditionContext<'_>) -> Result<bool, ConditionError> {
    let tokens = lexer::lex(argument, &OnlyEnvironment(context.environment), Comments::Kept).map_err(|error| {
        let message = match error.kind {
            LexErrorKind::UnmatchedQuote => "Syntax Error in condition: Unmatched quote.".to_owned(),
            LexErrorKind::InvalidHexadecimal => {
                "Syntax Error in condition: Truncated or invalid hexadecimal sequence.".to_owned()
            }
            LexErrorKind::TooManyWords { .. } => "Error in condition: Too many words.".to_owned(),
            _ => format!("Syntax Error in condition: {}.", error.message().trim_end_matches(':')),
        };
        let hint = Some(error.hint().to_owned());
        ConditionError { message, position: error.start, start: error.start, end: error.end, hint }
    })?;
    let words: Vec<Vec<u8>> = tokens.into_iter().map(|token| token.text).collect();
    eval(&text::from_bytes(&words.join(&b' ')), context).map_err(|mut error| {
        error.message.insert_str(0, "Failed to evaluate condition: ");
        error
    })
}

/// Variables outside of a file; the pseudo-variables are defined here too.
struct OnlyEnvironment<'a>(&'a Environment);

impl Variables for OnlyEnvironment<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        match name {
            ".LINE" => Some(Cow::Borrowed(b"0")),
            ".FILE" | ".SECTION" => Some(Cow::Borrowed(b"")),
            _ => self.0.get(name).map(text::to_bytes),
        }
    }
}

fn evaluate(expression: &Expression, context: &ConditionContext<'_>) -> Result<bool, ConditionError> {
    match expression {
        Expression::Constant(value) => Ok(*value),
        Expression::Not(inner) => Ok(!evaluate(inner, context)?),
        Expression::All(parts) => {
            for part in parts {
                if !evaluate(part, context)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Expression::Any(parts) => {
            for part in parts {
                if evaluate(part, context)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Expression::Call { predicate, arguments, start, end } => (predicate.eval)(arguments, context)
            .map_err(|invalid| invalid_argument(predicate, &invalid.0, *start, *end)),
    }
}

fn invalid_argument(predicate: &Predicate, argument: &str, start: usize, end: usize) -> ConditionError {
    ConditionError {
        message: format!("invalid argument to conditional expression predicate '{}': '{argument}'", predicate.name),
        position: end,
        start,
        end,
        hint: Some(predicate.usage.to_owned()),
    }
}

#[cfg(test)]
mod tests;
