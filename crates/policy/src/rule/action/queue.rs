//! Actions on the queueing of a request: its retries, its priority. Must never know a queue.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::spec::ProxyKind;
use expression::Expression;
use expression::sample::{Context, Type, cast};

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[
    row("set-retries", set_retries),
    row("set-priority-class", |words, parsing| Ok(Action::SetPriorityClass(parsing.expression(words)?))),
    row("set-priority-offset", |words, parsing| Ok(Action::SetPriorityOffset(parsing.expression(words)?))),
];

/// Permitted number of retries.
const RETRIES: std::ops::RangeInclusive<i64> = 0..=100;

/// A constant or evaluated number.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    Fixed(i64),
    /// Evaluated when the rule is executed.
    Computed(Expression),
}

impl Number {
    /// Returns the number; `None` if the expression has no value.
    pub fn evaluate(&self, context: &Context<'_>) -> Option<i64> {
        match self {
            Self::Fixed(number) => Some(*number),
            Self::Computed(expression) => integer(expression, context),
        }
    }
}

/// Evaluates an expression as an integer.
pub fn integer(expression: &Expression, context: &Context<'_>) -> Option<i64> {
    let value = expression.evaluate(context)?;
    cast(value.kind(), Type::Int).and_then(|cast| cast(context, value))?.integer()
}

fn set_retries(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects exactly 1 argument (an expression or an integer between 1 and 100)";
    if parsing.proxy.kind == ProxyKind::Frontend {
        return Err(RuleError::new(format!("'{}' has no backend capability", parsing.proxy.name.value)));
    }
    let Some(word) = words.peek() else { return Err(RuleError::new(USAGE)) };
    let digits = word.text.strip_prefix('-').unwrap_or(&word.text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Action::SetRetries(Number::Computed(parsing.expression(words)?)));
    }
    words.take();
    let number = word.text.parse().ok().filter(|number| RETRIES.contains(number));
    let wrong = || RuleError::at(Some(word), "expects an expression or an integer between 1 and 100");
    Ok(Action::SetRetries(Number::Fixed(number.ok_or_else(wrong)?)))
}
