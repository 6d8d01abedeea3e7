//! Maps of scripts: they are named while a script is loaded, and read with the configuration. Must never read a file.

use std::sync::{Mutex, PoisonError};

use expression::sample::{Type, Value as Sample};
use mlua::{Lua, Table, Value};

use crate::prelude::lend;

/// The converters of all maps, by their numbers.
static NAMED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The methods, by the names of the converters that look up by them.
const METHODS: [&str; 9] = ["int", "ip", "str", "beg", "sub", "dir", "dom", "end", "reg"];

/// The maps that were named so far.
pub(crate) fn named() -> Vec<Box<str>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|text| text.as_str().into()).collect()
}

/// The number of a map.
fn number(file: &str, method: usize) -> Option<usize> {
    let mut text = format!("map_{}(\"", METHODS.get(method)?);
    for letter in file.chars() {
        if matches!(letter, '"' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push_str("\")");
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = named.iter().position(|known| *known == text);
    Some(known.unwrap_or_else(|| {
        named.push(text);
        named.len() - 1
    }))
}

/// What a text, or the number of a map of numbers, stands for in a map.
fn find(number: usize, key: &Value) -> Option<Vec<u8>> {
    let worker = crate::here()?;
    lend(&worker, |context| {
        let generation = worker.generation();
        let conversion = generation.program.script_maps.get(number)?;
        let sample = match key {
            Value::Integer(number) => Sample::Int(*number),
            Value::String(text) => Sample::Str(context.copy(&text.as_bytes())?),
            _ => return None,
        };
        let value = conversion.convert(context, sample)?;
        crate::lent::fit(context, value, Type::Str)?.bytes().map(<[u8]>::to_vec)
    })
}

/// The functions of maps.
///
/// # Errors
/// Lua's.
pub(crate) fn open(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set(
        "map",
        lua.create_function(|_, (file, method): (String, i64)| {
            Ok(usize::try_from(method).ok().and_then(|method| number(&file, method)))
        })?,
    )?;
    native.set(
        "map_find",
        lua.create_function(|lua, (number, key): (usize, Value)| {
            let found = find(number, &key);
            found.map(|found| lua.create_string(&found)).transpose()
        })?,
    )
}
