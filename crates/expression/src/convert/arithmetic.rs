//! Converters of integers: arithmetic, bit operations and tests. Must never wrap around: results beyond 64 bits with a
//! sign saturate.

use super::Converter;
use super::operand::{number, to_number};
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};

const NUMBER: Signature = Signature::new(1, &[Kind::Str]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new("add", NUMBER, Type::Int, Type::Int, "Adds a number or a variable.", add).checked(check),
    Converter::new("and", NUMBER, Type::Int, Type::Int, "Bitwise AND with a number or a variable.", and).checked(check),
    Converter::new("bool", Signature::NONE, Type::Int, Type::Bool, "True if the value is not zero.", boolean),
    Converter::new("cpl", Signature::NONE, Type::Int, Type::Int, "Bitwise complement.", complement),
    Converter::new(
        "div",
        NUMBER,
        Type::Int,
        Type::Int,
        "Divides by a number or a variable; a division by zero gives the largest integer.",
        divide,
    )
    .checked(check),
    Converter::new("even", Signature::NONE, Type::Int, Type::Bool, "True if the value is even.", even),
    Converter::new(
        "iif",
        Signature::new(2, &[Kind::Str, Kind::Str]),
        Type::Bool,
        Type::Str,
        "First string if the value is true, second one otherwise.",
        either,
    ),
    Converter::new(
        "mod",
        NUMBER,
        Type::Int,
        Type::Int,
        "Remainder of the division by a number or a variable; 0 for a division by zero.",
        remainder,
    )
    .checked(check),
    Converter::new("mul", NUMBER, Type::Int, Type::Int, "Multiplies by a number or a variable.", multiply)
        .checked(check),
    Converter::new("neg", Signature::NONE, Type::Int, Type::Int, "Changes the sign.", negate),
    Converter::new("not", Signature::NONE, Type::Int, Type::Bool, "True if the value is zero.", not),
    Converter::new("odd", Signature::NONE, Type::Int, Type::Bool, "True if the value is odd.", odd),
    Converter::new("or", NUMBER, Type::Int, Type::Int, "Bitwise OR with a number or a variable.", or).checked(check),
    Converter::new("sub", NUMBER, Type::Int, Type::Int, "Subtracts a number or a variable.", subtract).checked(check),
    Converter::new("xor", NUMBER, Type::Int, Type::Int, "Bitwise XOR with a number or a variable.", xor).checked(check),
];

fn check(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    to_number(arguments, 0)
}

fn with<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    arguments: &'a Arguments,
    operate: impl FnOnce(i64, i64) -> i64,
) -> Option<Value<'a>> {
    let operand = number(context, arguments, 0)?;
    Some(Value::Int(operate(value.integer()?, operand)))
}

fn add<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, i64::saturating_add)
}

fn subtract<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, i64::saturating_sub)
}

fn multiply<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, i64::saturating_mul)
}

fn divide<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, |number, by| number.checked_div(by).unwrap_or(i64::MAX))
}

fn remainder<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, |number, by| number.checked_rem(by).unwrap_or(0))
}

fn and<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, |number, mask| number & mask)
}

fn or<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, |number, mask| number | mask)
}

fn xor<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    with(context, value, arguments, |number, mask| number ^ mask)
}

fn complement<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    value.integer().map(|number| Value::Int(!number))
}

fn negate<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    value.integer().map(|number| Value::Int(number.saturating_neg()))
}

fn boolean<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    value.integer().map(|number| Value::Bool(number != 0))
}

fn not<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    value.integer().map(|number| Value::Bool(number == 0))
}

fn odd<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    value.integer().map(|number| Value::Bool(number & 1 == 1))
}

fn even<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    value.integer().map(|number| Value::Bool(number & 1 == 0))
}

fn either<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    arguments.text(usize::from(value.integer()? == 0)).map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    const N: &str = "int(5),set-var(txn.n)";

    #[test]
    fn numbers_are_counted_with() {
        check_rows(
            &Scene::default(),
            &[
                ("int(1),add(5)", "6"),
                ("int(1),add(-5)", "-4"),
                ("int(1),add", "1"),
                ("int(1),add()", "1"),
                ("int(1),add(txn.nope)", "<none>"),
                ("int(9223372036854775807),add(1)", "9223372036854775807"),
                ("int(-9223372036854775807),add(-5)", "-9223372036854775808"),
                ("int(9223372036854775807),sub(-1)", "9223372036854775807"),
                ("int(0),sub(-9223372036854775808)", "9223372036854775807"),
                ("int(5),mul(3)", "15"),
                ("int(9223372036854775807),mul(-3)", "-9223372036854775808"),
                ("int(-9223372036854775808),mul(-1)", "9223372036854775807"),
                ("int(-7),div(2)", "-3"),
                ("int(-7),div(0)", "9223372036854775807"),
                ("int(-9223372036854775808),div(-1)", "9223372036854775807"),
                ("int(7),mod(0)", "0"),
                ("int(-7),mod(4)", "-3"),
                ("int(7),mod(-4)", "3"),
                ("int(-9223372036854775808),mod(-1)", "0"),
                ("int(6),and(3)", "2"),
                ("int(6),or(1)", "7"),
                ("int(6),xor(3)", "5"),
                ("int(5),cpl", "-6"),
                ("int(-9223372036854775808),neg", "9223372036854775807"),
                ("str(12x),add(1)", "13"),
                ("str(x),add(1)", "1"),
                ("str(),add(1)", "<none>"),
                ("ipv4(1.2.3.4),add(1)", "16909061"),
                ("int(1),add(1x)", "!invalid args in converter 'add' : expects an integer or a variable name"),
            ],
        );
    }

    #[test]
    fn operands_may_be_variables() {
        check_rows(
            &Scene::default(),
            &[
                (&format!("{N},add(txn.n)"), "10"),
                (&format!("{N},sub(txn.n)"), "0"),
                (&format!("{N},set-var(txn.m),mul(txn.m)"), "25"),
                ("str(abc),set-var(txn.s),length,add(txn.s)", "3"),
                ("ipv4(1.2.3.4),set-var(txn.s),add(txn.s)", "33818120"),
                ("str(),set-var(txn.s),length,add(txn.s)", "<none>"),
                ("bin(00ff),set-var(txn.s),length,add(txn.s)", "<none>"),
            ],
        );
    }

    #[test]
    fn numbers_are_tested() {
        check_rows(
            &Scene::default(),
            &[
                ("int(-5),odd", "1"),
                ("int(-5),even", "0"),
                ("int(0),bool", "0"),
                ("int(-1),bool", "1"),
                ("int(0),not", "1"),
                ("bool(true),not", "0"),
                ("bool(true),iif(a,b)", "a"),
                ("str(a),iif(a,b)", "b"),
                ("int(0),iif(a,)", ""),
                ("str(),iif(a,b)", "<none>"),
            ],
        );
    }
}
