//! Implicit casts between the types of samples, as in HAProxy. Must never lose a value silently: if a cast fails, there
//! is no sample.

use super::embedded::embedded_ipv4;
use super::parse::ipv4;
use super::{Context, Type, Value};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Casts one sample.
pub type Cast = for<'a> fn(&Context<'a>, Value<'a>) -> Option<Value<'a>>;

/// Returns the cast between two types; `None`: there is none. A value that already has the target type is not changed.
pub fn cast(from: Type, to: Type) -> Option<Cast> {
    use Type::{Addr, Any, Bin, Bool, Int, Ipv4, Ipv6, Method, Str};
    Some(match (from, to) {
        (Any, Any) => same,
        (_, Any) => same,
        (from, to) if from == to => same,
        (Any, Bool) => to_bool,
        (Any, Int) => to_int,
        (Any, Str) => to_str,
        (Any, Bin) => to_bin,
        (Any, Addr) => to_addr,
        (Any, Ipv4) => to_ipv4,
        (Any, Ipv6) => to_ipv6,
        (Int | Str | Ipv4, Bool) => to_bool,
        (Bool | Str | Ipv4, Int) => to_int,
        (Bool | Int | Addr | Ipv4 | Ipv6 | Bin | Method, Str) => to_str,
        (Bool | Int | Addr | Ipv4 | Ipv6 | Str | Method, Bin) => to_bin,
        (Ipv4 | Ipv6, Addr) => same,
        (Str | Int, Addr) => to_addr,
        (Addr | Ipv6 | Int | Str, Ipv4) => to_ipv4,
        (Addr | Ipv4 | Int | Str, Ipv6) => to_ipv6,
        _ => return None,
    })
}

fn same<'a>(_: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    Some(value)
}

fn to_bool<'a>(context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    match value {
        Value::Bool(_) => Some(value),
        other => to_int(context, other)?.integer().map(|number| Value::Bool(number != 0)),
    }
}

fn to_int<'a>(_: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    Some(Value::Int(match value {
        Value::Int(number) => number,
        Value::Bool(flag) => i64::from(flag),
        Value::Ipv4(address) => i64::from(u32::from(address)),
        Value::Str(text) => parse_integer(text)?,
        Value::Ipv6(_) | Value::Bin(_) | Value::Method(_) => return None,
    }))
}

/// Parses the integer at the start of a text as HAProxy does: an optional sign, then digits; 0 without digits. Values
/// out of range saturate.
fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [] => return None,
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).map(|byte| i64::from(byte - b'0'));
    Some(digits.fold(0_i64, |number, digit| {
        let number = number.saturating_mul(10);
        if negative { number.saturating_sub(digit) } else { number.saturating_add(digit) }
    }))
}

fn to_str<'a>(context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    let mut text = match value {
        Value::Str(bytes) | Value::Method(bytes) => return Some(Value::Str(bytes)),
        // Binary becomes text up to its first NUL.
        Value::Bin(bytes) => {
            let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
            return Some(Value::Str(&bytes[..end]));
        }
        Value::Bool(flag) => return Some(Value::Str(if flag { b"1" } else { b"0" })),
        _ => context.text(40),
    };
    match value {
        Value::Int(number) => write!(text, "{number}"),
        Value::Ipv4(address) => write!(text, "{address}"),
        Value::Ipv6(address) => write!(text, "{address}"),
        Value::Bool(_) | Value::Str(_) | Value::Bin(_) | Value::Method(_) => Ok(()),
    }
    .ok()?;
    text.finish().map(Value::Str)
}

fn to_bin<'a>(context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    let bytes = match value {
        Value::Str(bytes) | Value::Bin(bytes) | Value::Method(bytes) => bytes,
        Value::Int(number) => context.copy(&number.to_be_bytes())?,
        Value::Ipv4(address) => context.copy(&address.octets())?,
        Value::Ipv6(address) => context.copy(&address.octets())?,
        Value::Bool(flag) => context.copy(&i64::from(flag).to_be_bytes())?,
    };
    Some(Value::Bin(bytes))
}

fn to_addr<'a>(context: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    match value {
        Value::Ipv4(_) | Value::Ipv6(_) => Some(value),
        Value::Str(text) => match leading_ipv4(text) {
            Some(address) => Some(Value::Ipv4(address)),
            None => std::str::from_utf8(text).ok()?.parse().map(Value::Ipv6).ok(),
        },
        other => to_ipv4(context, other),
    }
}

fn to_ipv4<'a>(_: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    Some(Value::Ipv4(match value {
        Value::Ipv4(address) => address,
        Value::Ipv6(address) => embedded_ipv4(address)?,
        Value::Int(number) => Ipv4Addr::from(number as u32),
        Value::Str(text) => leading_ipv4(text)?,
        Value::Bool(_) | Value::Bin(_) | Value::Method(_) => return None,
    }))
}

/// Parses the IPv4 address at the start of a text as HAProxy does: a port or other text may follow it, but not a dot.
fn leading_ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let (address, rest) = ipv4(text)?;
    (!rest.starts_with(b".")).then_some(address)
}

fn to_ipv6<'a>(_: &Context<'a>, value: Value<'a>) -> Option<Value<'a>> {
    Some(Value::Ipv6(match value {
        Value::Ipv6(address) => address,
        Value::Ipv4(address) => address.to_ipv6_mapped(),
        Value::Int(number) => Ipv4Addr::from(number as u32).to_ipv6_mapped(),
        Value::Str(text) => std::str::from_utf8(text).ok()?.parse().ok()?,
        Value::Bool(_) | Value::Bin(_) | Value::Method(_) => return None,
    }))
}
