//! The converter that takes tokens of limits which hold over several nodes (section `store`; Weir's own). Must never wait for a
//! store.

use crate::program::ProgramContext;
use expression::convert::Converter;
use expression::sample::{Context, Type, Value};
use expression::{Argument, Arguments, Checking, Kind, Signature};
use live::lease::LimitKey;

/// The converters of this family.
pub const TABLE: &[Converter] = &[Converter::new(
    "exceeds",
    Signature::new(1, &[Kind::Str]),
    Type::Any,
    Type::Bool,
    "Takes a token of the key from a limit, written as store/limit; true if there was none. Weir's own.",
    exceeds,
)
.checked(look_up)];

fn look_up(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    let name = arguments.utf8(0).unwrap_or_default();
    if !name.contains('/') {
        return Err(format!("expects <store>/<limit>, got '{name}'"));
    }
    let found = checking.names.limit(name).ok_or_else(|| format!("unable to find limit '{name}'"))?;
    let index = i64::try_from(found).map_err(|_| format!("unable to find limit '{name}'"))?;
    arguments.set(0, Argument::Int(index));
    Ok(())
}

fn exceeds<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let limit = context.live()?.limits.get(usize::try_from(arguments.int(0)?).ok()?)?;
    let key = LimitKey::of_sample(context, value)?;
    Some(Value::Bool(limit.exceeds(&key, context.now)))
}
