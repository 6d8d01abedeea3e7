//! Maps of scripts: they are named while a script is loaded, and read with the configuration, or by the first lookup where that comes
//! earlier. Must never read a file itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use engine::worker::Process;
use expression::Conversion;
use expression::sample::{Context, Type, Value as Sample};
use expression::variable::Variables;
use mlua::{Lua, Table, Value};
use policy::compile::lend_early;

use crate::prelude::lend;

/// The converters of all maps, by their numbers.
static NAMED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Maps that scripts look up in before the process has them, by their numbers.
static EARLY: Mutex<BTreeMap<usize, Arc<Conversion>>> = Mutex::new(BTreeMap::new());

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

/// What a key stands for in a map.
fn look_up(context: &Context<'_>, conversion: &Conversion, key: &Value) -> Option<Vec<u8>> {
    let sample = match key {
        Value::Integer(number) => Sample::Int(*number),
        Value::String(text) => Sample::Str(context.copy(&text.as_bytes())?),
        _ => return None,
    };
    let value = conversion.convert(context, sample)?;
    crate::lent::fit(context, value, Type::Str)?.bytes().map(<[u8]>::to_vec)
}

/// The map that was read for scripts that look up in it before the process has it.
fn early(number: usize) -> Result<Arc<Conversion>, String> {
    let mut early = EARLY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = early.get(&number) {
        return Ok(Arc::clone(known));
    }
    let text = NAMED.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned().unwrap_or_default();
    let read = crate::MAP.get().ok_or("no file can be read")?;
    let conversion = Arc::new(read(&text)?);
    early.insert(number, Arc::clone(&conversion));
    Ok(conversion)
}

/// Forgets the maps that the process has itself: it has begun.
pub(crate) fn forget_early(process: &Process) {
    let known = process.generation().program.script_maps.len();
    EARLY.lock().unwrap_or_else(PoisonError::into_inner).retain(|number, _| *number >= known);
}

/// What a text, or the number of a map of numbers, stands for in a map.
///
/// # Errors
/// What is wrong with the map's file, where it is read for that.
fn find(number: usize, key: &Value) -> Result<Option<Vec<u8>>, String> {
    if let Some(process) = crate::process() {
        let generation = process.generation();
        if let Some(conversion) = generation.program.script_maps.get(number) {
            return Ok(match crate::here() {
                Some(worker) => lend(&worker, |context| look_up(context, conversion, key)),
                None => lend_early(Some(&generation.lists), Variables::default(), |context| {
                    look_up(context, conversion, key)
                }),
            });
        }
    }
    let conversion = early(number)?;
    Ok(lend_early(None, Variables::default(), |context| look_up(context, &conversion, key)))
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
            Ok(match find(number, &key) {
                Ok(found) => (found.map(|found| lua.create_string(&found)).transpose()?, None),
                Err(why) => (None, Some(why)),
            })
        })?,
    )
}
