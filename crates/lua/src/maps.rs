//! Maps of scripts: they are named while a script is loaded, and read with the configuration, or by the first lookup where that comes
//! earlier. Those that a function of `core.register_init` makes are added to the program. Must never read a file itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use engine::worker::Process;
use expression::Conversion;
use expression::sample::{Context, Type, Value as Sample};
use expression::variable::Variables;
use mlua::{Lua, Table, Value};
use policy::compile::{ScriptMap, lend_early};

use crate::prelude::lend;

/// The converters of all maps, by their numbers.
static NAMED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Maps that are not those of the compiled configuration, by their numbers: scripts have looked up in them before it was compiled, or
/// have made them after that.
static APART: RwLock<BTreeMap<usize, Arc<Conversion>>> = RwLock::new(BTreeMap::new());

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

/// A map that a script asks for: once there is a program, it becomes one of its lists, for all that look up in lists and change them.
///
/// # Errors
/// Why there is no such map.
fn make(lua: &Lua, file: &str, method: usize) -> Result<Option<usize>, String> {
    let Some(number) = number(file, method) else { return Ok(None) };
    let Some(process) = crate::process() else { return Ok(Some(number)) };
    let generation = process.generation();
    let mut apart = APART.write().unwrap_or_else(PoisonError::into_inner);
    if number < generation.program.script_maps.len() || apart.contains_key(&number) {
        return Ok(Some(number));
    }
    let converter = NAMED.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned().unwrap_or_default();
    // The caller of `Map.new`, which is the caller of this.
    let place = lua.inspect_stack(2, |caller| {
        let script = caller.source().short_src.map(|name| name.into_owned());
        (script.unwrap_or_default(), caller.current_line().unwrap_or(0))
    });
    let (script, line) = place.unwrap_or_default();
    let map = ScriptMap { converter: &converter, file, place: (&script, line) };
    let add = crate::ADD_MAP.get().ok_or("no file can be read")?;
    let made = add(&generation, map).map_err(|why| match why.split_once("' : ") {
        // The script has named no converter.
        Some((head, rest)) if head.starts_with("invalid args in converter") => rest.to_owned(),
        _ => why,
    })?;
    apart.insert(number, Arc::new(made));
    Ok(Some(number))
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
    if let Some(known) = APART.read().unwrap_or_else(PoisonError::into_inner).get(&number) {
        return Ok(Arc::clone(known));
    }
    let text = NAMED.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned().unwrap_or_default();
    let read = crate::MAP.get().ok_or("no file can be read")?;
    let conversion = Arc::new(read(&text)?);
    APART.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::clone(&conversion));
    Ok(conversion)
}

/// Forgets the maps that the process has itself: it has begun.
pub(crate) fn forget_early(process: &Process) {
    let known = process.generation().program.script_maps.len();
    APART.write().unwrap_or_else(PoisonError::into_inner).retain(|number, _| *number >= known);
}

/// What a text, or the number of a map of numbers, stands for in a map.
///
/// # Errors
/// What is wrong with the map's file, where it is read for that.
fn find(number: usize, key: &Value) -> Result<Option<Vec<u8>>, String> {
    let generation = crate::process().map(|process| process.generation());
    let known = generation.as_ref().and_then(|generation| generation.program.script_maps.get(number));
    let apart = if known.is_none() { Some(early(number)?) } else { None };
    let Some(conversion) = known.or(apart.as_deref()) else { return Ok(None) };
    Ok(match crate::here() {
        Some(worker) => lend(&worker, |context| look_up(context, conversion, key)),
        None => {
            let lists = generation.as_ref().map(|generation| &*generation.lists);
            lend_early(lists, Variables::default(), |context| look_up(context, conversion, key))
        }
    })
}

/// The functions of maps.
///
/// # Errors
/// Lua's.
pub(crate) fn open(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set(
        "map",
        lua.create_function(|lua, (file, method): (String, usize)| {
            Ok(match make(lua, &file, method) {
                Ok(number) => (number, None),
                Err(why) => (None, Some(why)),
            })
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
