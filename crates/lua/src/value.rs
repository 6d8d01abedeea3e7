//! Conversion of values between samples and Lua, and between Lua and jobs outside of its lock. Must never evaluate
//! anything.

use std::net::IpAddr;
use std::pin::Pin;

use expression::sample::{self, Context};
use mlua::{IntoLua, Lua, Value};

/// A value that is not part of a state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plain {
    /// `nil`.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Text(Vec<u8>),
    /// A table.
    Table(Vec<(Plain, Plain)>),
}

impl From<&str> for Plain {
    fn from(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }
}

impl IntoLua for Plain {
    fn into_lua(self, lua: &Lua) -> mlua::Result<Value> {
        Ok(match self {
            Self::Nil => Value::Nil,
            Self::Bool(flag) => Value::Boolean(flag),
            Self::Int(number) => Value::Integer(number),
            Self::Text(text) => Value::String(lua.create_string(&text)?),
            Self::Table(rows) => Value::Table(lua.create_table_from(rows)?),
        })
    }
}

/// A job that a function waits for outside of Lua, and the return values of its yield.
pub(crate) type Job = Pin<Box<dyn Future<Output = Vec<Plain>>>>;

/// Converts a sample for Lua.
pub(crate) fn of_sample(sample: sample::Value<'_>, keeps_booleans: bool) -> Plain {
    match sample {
        sample::Value::Bool(flag) if keeps_booleans => Plain::Bool(flag),
        sample::Value::Bool(flag) => Plain::Int(flag.into()),
        sample::Value::Int(number) => Plain::Int(number),
        sample::Value::Ipv4(address) => Plain::Text(IpAddr::V4(address).to_string().into_bytes()),
        sample::Value::Ipv6(address) => Plain::Text(IpAddr::V6(address).to_string().into_bytes()),
        sample::Value::Str(text) | sample::Value::Bin(text) | sample::Value::Method(text) => Plain::Text(text.to_vec()),
    }
}

/// Converts a Lua value to a sample; anything but a boolean, a number or a string is false.
pub(crate) fn to_sample<'a>(value: &Value, context: &Context<'a>) -> Option<sample::Value<'a>> {
    Some(match value {
        Value::Boolean(flag) => sample::Value::Bool(*flag),
        Value::Integer(number) => sample::Value::Int(*number),
        Value::Number(number) if number.fract() == 0.0 => sample::Value::Int(*number as i64),
        Value::Number(_) => sample::Value::Int(0),
        Value::String(text) => sample::Value::Str(context.copy(&text.as_bytes())?),
        _ => sample::Value::Bool(false),
    })
}
