//! The pattern functions of the string library: searches that may take long use [`crate::matching`], which is aborted
//! together with the script; Lua's own cannot be aborted. Must never keep a text.

use mlua::{Lua, LuaString, MultiValue, Table, Value, Variadic};
use std::ops::Range;

use crate::machine::{cut_off, deadline, is_late};
use crate::matching::{Extent, Fault, Search, longest_text};
use crate::shared::CLASSES;

/// Maximum number of steps for Lua's own functions: some hundredths of a second.
const STEPS: f64 = 1e7;

const FUNCTIONS: &str = include_str!("prelude/strings.lua");

/// Replaces the functions, if scripts have the library.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua) -> mlua::Result<()> {
    let Value::Table(string) = lua.globals().get::<Value>("string")? else { return Ok(()) };
    let native: Table = lua.named_registry_value("native")?;
    native.set(
        "longest_text",
        lua.create_function(|_, pattern: LuaString| Ok(longest_text(&pattern.as_bytes(), STEPS)))?,
    )?;
    type Seek = (LuaString, LuaString, usize, Option<usize>, (bool, bool));
    native.set(
        "seek",
        lua.create_function(|lua, (text, pattern, from, last, (is_whole, is_anchored)): Seek| {
            seek(lua, &text.as_bytes(), &pattern.as_bytes(), from, last, is_whole, is_anchored)
        })?,
    )?;
    native.set(
        "seek_text",
        lua.create_function(|_, (text, part, from): (LuaString, LuaString, usize)| {
            Ok(seek_text(&text.as_bytes(), &part.as_bytes(), from))
        })?,
    )?;
    native.set(
        "expand",
        lua.create_function(|lua, (replacement, whole, captures): (LuaString, LuaString, Variadic<Value>)| {
            expand(lua, &replacement.as_bytes(), &whole.as_bytes(), &captures)
        })?,
    )?;
    lua.load(FUNCTIONS).set_name(format!("={CLASSES}")).call((native, string))
}

/// Returns a function that checks whether the script's deadline has passed.
fn is_over(lua: &Lua) -> impl Fn() -> bool + use<> {
    let deadline = deadline(lua);
    move || is_late(deadline)
}

/// Converts a fault to an error, or to values that the caller raises.
fn fault_values(lua: &Lua, fault: Fault) -> mlua::Result<MultiValue> {
    match fault {
        Fault::Stopped => Err(cut_off(lua)),
        Fault::Malformed(why) => wrong(lua, &why),
    }
}

fn wrong(lua: &Lua, why: &str) -> mlua::Result<MultiValue> {
    Ok([Value::Boolean(false), Value::String(lua.create_string(why)?)].into_iter().collect())
}

/// Finds the first match at `from` or later that does not end at `last`. Returns
/// its start, its end and its captures; with `is_whole` the match itself if there are no captures. Nothing if there is
/// no match; false and the reason if the pattern is malformed.
fn seek(
    lua: &Lua,
    text: &[u8],
    pattern: &[u8],
    from: usize,
    last: Option<usize>,
    is_whole: bool,
    is_anchored: bool,
) -> mlua::Result<MultiValue> {
    let pattern = if is_anchored { &pattern[1..] } else { pattern };
    let is_over = is_over(lua);
    let go_on = || !is_over();
    let mut search = Search::new(text, pattern, &go_on);
    for start in from..=text.len() {
        match search.at(start) {
            Err(fault) => return fault_values(lua, fault),
            Ok(Some(end)) if Some(end) != last => return found(lua, &search, text, start..end, is_whole),
            Ok(_) if is_anchored => break,
            Ok(_) => {}
        }
    }
    Ok(MultiValue::new())
}

fn found(lua: &Lua, search: &Search<'_>, text: &[u8], found: Range<usize>, is_whole: bool) -> mlua::Result<MultiValue> {
    let number = |place: usize| Value::Integer(i64::try_from(place).unwrap_or(i64::MAX));
    let mut all = vec![number(found.start + 1), number(found.end)];
    for (start, extent) in search.captures() {
        all.push(match extent {
            Extent::Open => return wrong(lua, "unfinished capture"),
            Extent::Place => number(start + 1),
            Extent::Length(length) => Value::String(lua.create_string(&text[*start..start + length])?),
        });
    }
    if is_whole && search.captures().is_empty() {
        all.push(Value::String(lua.create_string(&text[found])?));
    }
    Ok(all.into_iter().collect())
}

/// Finds a plain text; returns its start and its end.
fn seek_text(text: &[u8], part: &[u8], from: usize) -> (Option<usize>, Option<usize>) {
    let place = text.get(from..).and_then(|rest| memchr::memmem::find(rest, part)).map(|place| place + from);
    (place.map(|place| place + 1), place.map(|place| place + part.len()))
}

/// Expands `%0` (the whole match), `%1` to `%9` (its captures) and `%%` in a replacement.
fn expand(lua: &Lua, replacement: &[u8], whole: &[u8], captures: &[Value]) -> mlua::Result<MultiValue> {
    let (mut out, mut bytes) = (Vec::with_capacity(replacement.len()), replacement.iter());
    while let Some(byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'%', Some(b'%')) => out.push(b'%'),
            (b'%', Some(b'0')) => out.extend_from_slice(whole),
            (b'%', Some(digit @ b'1'..=b'9')) => match captures.get(usize::from(digit - b'1')) {
                Some(Value::String(text)) => out.extend_from_slice(&text.as_bytes()),
                Some(Value::Integer(place)) => out.extend_from_slice(place.to_string().as_bytes()),
                _ => {
                    let number = digit - b'0';
                    return wrong(lua, &format!("invalid capture index %{number}"));
                }
            },
            (b'%', _) => return wrong(lua, "invalid use of '%' in replacement string"),
            (byte, _) => {
                out.push(*byte);
                continue;
            }
        }
        bytes.next();
    }
    Ok([Value::String(lua.create_string(&out)?)].into_iter().collect())
}
