//! Arguments of converters that are constants or names of variables. Must never depend on what a converter does with
//! them.

use crate::sample::{Context, Type, Value, cast};
use crate::variable::Variable;
use crate::{Argument, Arguments, to_variable};

/// Parses an integer as HAProxy does: an optional sign, then digits; values out of range saturate. The empty text is
/// zero. `None`: anything else.
pub(super) fn read_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    digits.iter().try_fold(0_i64, |number, digit| {
        let digit = i64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        let number = number.saturating_mul(10);
        Some(if negative { number.saturating_sub(digit) } else { number.saturating_add(digit) })
    })
}

/// Replaces the nth argument with an integer or a variable.
pub(super) fn to_number(arguments: &mut Arguments, index: usize) -> Result<(), String> {
    let Some(text) = arguments.text(index) else {
        return Ok(());
    };
    let argument = match read_integer(text) {
        Some(number) => Argument::Int(number),
        None => {
            let name = arguments.utf8(index).unwrap_or_default();
            let wrong = |_| "expects an integer or a variable name".to_owned();
            Argument::Variable(Variable::parse(name).map_err(wrong)?)
        }
    };
    arguments.set(index, argument);
    Ok(())
}

/// Returns the nth argument as an integer; `None` when its variable has none.
pub(super) fn number<'a>(context: &Context<'a>, arguments: &'a Arguments, index: usize) -> Option<i64> {
    match arguments.get(index) {
        Argument::Int(number) => Some(*number),
        Argument::Variable(variable) => variable_as(context, variable, Type::Int)?.integer(),
        _ => None,
    }
}

/// Replaces the nth argument with a variable; anything else is an error.
pub(super) fn to_named_variable(arguments: &mut Arguments, index: usize) -> Result<(), String> {
    let name = arguments.utf8(index).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err("missing variable name".to_owned());
    }
    to_variable(arguments, index).map_err(|_| format!("failed to register variable name '{name}'"))
}

/// Replaces the nth argument with a variable, unless it is empty or missing.
pub(super) fn to_optional_variable(arguments: &mut Arguments, index: usize) -> Result<(), String> {
    match arguments.text(index) {
        None | Some([]) => Ok(()),
        Some(_) => to_named_variable(arguments, index),
    }
}

/// Replaces the nth argument with a variable if it names one; otherwise it stays text.
pub(super) fn to_text_or_variable(arguments: &mut Arguments, index: usize) {
    if let Some(variable) = arguments.utf8(index).and_then(|text| Variable::parse(text).ok()) {
        arguments.set(index, Argument::Variable(variable));
    }
}

/// Returns the nth argument as bytes; `None` when its variable has none.
pub(super) fn bytes<'a>(context: &Context<'a>, arguments: &'a Arguments, index: usize) -> Option<&'a [u8]> {
    match arguments.get(index) {
        Argument::Str(text) => Some(text),
        Argument::Variable(variable) => variable_as(context, variable, Type::Bin)?.bytes(),
        _ => None,
    }
}

/// Returns a variable's value, cast to that type.
pub(super) fn variable_as<'a>(context: &Context<'a>, variable: &Variable, kind: Type) -> Option<Value<'a>> {
    let value = context.variables.get(context, variable)?;
    cast(value.kind(), kind)?(context, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read() {
        let rows: &[(&str, Option<i64>)] = &[
            ("", Some(0)),
            ("12", Some(12)),
            ("+3", Some(3)),
            ("-5", Some(-5)),
            ("010", Some(10)),
            ("99999999999999999999", Some(i64::MAX)),
            ("-99999999999999999999", Some(i64::MIN)),
            ("1x", None),
            (" 3", None),
            ("0x10", None),
        ];
        for (text, expected) in rows {
            assert_eq!(read_integer(text.as_bytes()), *expected, "{text}");
        }
    }
}
