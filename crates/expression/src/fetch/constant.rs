//! Fetches of constants and variables (section 7.3.2).

use super::Fetch;
use crate::sample::{Context, Places, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature, to_variable};

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    Fetch::new("always_false", Signature::NONE, Type::Bool, Places::EVERYWHERE, "Always false.", always_false),
    Fetch::new("always_true", Signature::NONE, Type::Bool, Places::EVERYWHERE, "Always true.", always_true),
    Fetch::new("bool", STR, Type::Bool, Places::EVERYWHERE, "Constant boolean: true, false, 1 or 0.", boolean)
        .checked(check_boolean),
    Fetch::new("int", INT, Type::Int, Places::EVERYWHERE, "Constant integer.", integer),
    Fetch::new("str", STR, Type::Str, Places::EVERYWHERE, "Constant string.", string),
    Fetch::new("bin", STR, Type::Bin, Places::EVERYWHERE, "Constant bytes, given in hexadecimal digits.", block)
        .checked(check_block),
    Fetch::new("ipv4", IPV4, Type::Ipv4, Places::EVERYWHERE, "Constant IPv4 address.", ipv4),
    Fetch::new("ipv6", IPV6, Type::Ipv6, Places::EVERYWHERE, "Constant IPv6 address.", ipv6),
    Fetch::new("meth", STR, Type::Method, Places::EVERYWHERE, "Constant method.", method).checked(check_method),
    Fetch::new(
        "var",
        VAR,
        Type::Any,
        Places::EVERYWHERE,
        "Value of a variable, or the default given after it.",
        variable,
    )
    .checked(check_variable),
];

const STR: Signature = Signature::new(1, &[Kind::Str]);
const VAR: Signature = Signature::new(1, &[Kind::Str, Kind::Str]);
const INT: Signature = Signature::new(1, &[Kind::Int]);
const IPV4: Signature = Signature::new(1, &[Kind::Ipv4]);
const IPV6: Signature = Signature::new(1, &[Kind::Ipv6]);

fn always_false<'a>(_: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(false))
}

fn always_true<'a>(_: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(true))
}

fn check_boolean(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let value = match arguments.utf8(0).unwrap_or_default() {
        "true" | "1" => 1,
        "false" | "0" => 0,
        other => return Err(format!("invalid boolean value '{other}'")),
    };
    arguments.set(0, Argument::Int(value));
    Ok(())
}

fn boolean<'a>(_: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    arguments.int(0).map(|value| Value::Bool(value != 0))
}

fn integer<'a>(_: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    arguments.int(0).map(Value::Int)
}

fn string<'a>(_: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    arguments.text(0).map(Value::Str)
}

fn check_block(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let Some(bytes) = base::hex::decode(arguments.text(0).unwrap_or_default()) else {
        return Err("invalid hex string".to_owned());
    };
    arguments.set(0, Argument::Str(bytes.into()));
    Ok(())
}

fn block<'a>(_: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    arguments.text(0).map(Value::Bin)
}

fn ipv4<'a>(_: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    match arguments.get(0) {
        Argument::Ipv4(address) => Some(Value::Ipv4(*address)),
        _ => None,
    }
}

fn ipv6<'a>(_: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    match arguments.get(0) {
        Argument::Ipv6(address) => Some(Value::Ipv6(*address)),
        _ => None,
    }
}

/// A method is a token (RFC 9110, section 5.6.2).
fn check_method(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let text = arguments.text(0).unwrap_or_default();
    if text.iter().all(is_token) { Ok(()) } else { Err("expects valid method.".to_owned()) }
}

fn method<'a>(_: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    arguments.text(0).map(Value::Method)
}

fn check_variable(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    to_variable(arguments, 0)
}

fn variable<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let variable = arguments.variable(0)?;
    if !context.variables.reaches(variable.scope) {
        // The default replaces only a variable that could be set here.
        return None;
    }
    let value = context.variables.get(context, variable);
    value.or_else(|| arguments.text(1).map(Value::Str))
}
