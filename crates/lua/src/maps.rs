//! Maps of scripts: declared while a script is loaded, and read with the configuration, or earlier by the first lookup.
//! Maps created by functions of `core.register_init` are added to the program. Must never read a file itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use engine::worker::Process;
use expression::Conversion;
use expression::sample::{Context, Type, Value as Sample};
use expression::variable::Variables;
use mlua::{Lua, Table, Value};
use policy::compile::{ScriptMap, lend_early};

use crate::prelude::lend;

/// The converters of all maps, by number.
static NAMED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Maps outside of the compiled configuration, by number: those used by scripts before it was compiled, and those
/// created after.
static APART: RwLock<BTreeMap<usize, Arc<Conversion>>> = RwLock::new(BTreeMap::new());

/// The match methods, by the names of their converters.
const METHODS: [&str; 9] = ["int", "ip", "str", "beg", "sub", "dir", "dom", "end", "reg"];

/// Returns the converters of all declared maps.
pub(crate) fn named() -> Vec<Box<str>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|text| text.as_str().into()).collect()
}

/// Returns the number of a map, assigning one if it is new.
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

/// Declares a map; once there is a program, the map becomes one of its lists, which can be changed and looked up like
/// any other.
///
/// # Errors
/// The reason why the map cannot be created.
fn make(lua: &Lua, file: &str, method: usize) -> Result<Option<usize>, String> {
    let Some(number) = number(file, method) else { return Ok(None) };
    let Some(process) = crate::process() else { return Ok(Some(number)) };
    let generation = process.generation();
    let mut apart = APART.write().unwrap_or_else(PoisonError::into_inner);
    if number < generation.program.script_maps.len() || apart.contains_key(&number) {
        return Ok(Some(number));
    }
    let converter = NAMED.lock().unwrap_or_else(PoisonError::into_inner).get(number).cloned().unwrap_or_default();
    // The caller of `Map.new`, which calls this function.
    let place = lua.inspect_stack(2, |caller| {
        let script = caller.source().short_src.map(|name| name.into_owned());
        (script.unwrap_or_default(), caller.current_line().unwrap_or(0))
    });
    let (script, line) = place.unwrap_or_default();
    let map = ScriptMap { converter: &converter, file, place: (&script, line) };
    let add = crate::ADD_MAP.get().ok_or("no file can be read")?;
    let made = add(&generation, map).map_err(|why| match why.split_once("' : ") {
        // The script did not write this converter call.
        Some((head, rest)) if head.starts_with("invalid args in converter") => rest.to_owned(),
        _ => why,
    })?;
    apart.insert(number, Arc::new(made));
    Ok(Some(number))
}

/// Looks up a key in a map.
fn look_up(context: &Context<'_>, conversion: &Conversion, key: &Value) -> Option<Vec<u8>> {
    let sample = match key {
        Value::Integer(number) => Sample::Int(*number),
        Value::String(text) => Sample::Str(context.copy(&text.as_bytes())?),
        _ => return None,
    };
    let value = conversion.convert(context, sample)?;
    crate::stream_handle::fit(context, value, Type::Str)?.bytes().map(<[u8]>::to_vec)
}

/// Returns a map that scripts use before the process has it.
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

/// Drops the maps that the process has loaded.
pub(crate) fn forget_early(process: &Process) {
    let known = process.generation().program.script_maps.len();
    APART.write().unwrap_or_else(PoisonError::into_inner).retain(|number, _| *number >= known);
}

/// Looks up a text, or the number in a map of numbers.
///
/// # Errors
/// The reason why the map's file cannot be loaded, if this is the first lookup.
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

/// Adds the functions for maps.
///
/// # Errors
/// Lua's error.
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
