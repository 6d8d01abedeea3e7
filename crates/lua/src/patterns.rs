//! Pattern lists, ACLs and maps, read and changed by scripts. Must never access a file.

use std::sync::Arc;

use engine::generation::Generation;
use expression::pattern::{ChangeError, EntrySelector, List, ListEvent, ListName, ListState};
use mlua::{Lua, Table, Value, Variadic};

/// Entries visited per lock.
const PAGE: usize = 256;

/// Calls `with` with a list and its state; `None`: unknown list.
fn lend<T>(name: &str, with: impl FnOnce(&List, &ListState) -> T) -> Option<T> {
    let generation: Arc<Generation> = crate::process()?.generation();
    let at = generation.program.lists.find(ListName::parse(name).reference())?;
    let list = generation.program.lists.all.get(at)?;
    Some(with(list, generation.lists.get(at)?))
}

/// Returns HAProxy's message for a rejected change; none for an invalid value.
fn sentence(error: ChangeError) -> Option<String> {
    match error {
        ChangeError::Pattern(why) => Some(why),
        ChangeError::Value(_) => None,
        ChangeError::Missing => Some("entry not found".to_owned()),
        ChangeError::Future => Some("version in the future".to_owned()),
    }
}

/// Whether it succeeded, and the error message.
type MatchResult = (Option<bool>, Option<String>);

fn done(result: Result<(), ChangeError>) -> MatchResult {
    match result {
        Ok(()) => (Some(true), None),
        Err(error) => (None, sentence(error)),
    }
}

/// Subscribes to the events of a list.
pub(crate) fn observe(name: &str) -> bool {
    let own = name.to_owned();
    let listener =
        move |events: &[ListEvent]| events.iter().for_each(|event| crate::events::tell_of_list(&own, *event));
    lend(name, |_, state| state.observe(Box::new(listener))).is_some()
}

/// Adds entries to the given version, or to the current one.
fn add(name: &str, version: Option<u32>, entries: &[(Vec<u8>, Vec<u8>)]) -> Option<MatchResult> {
    lend(name, |_, state| {
        for (key, value) in entries {
            if let Err(error) = state.write(|change, _| change.add(version, key, value)) {
                return done(Err(error));
            }
        }
        done(Ok(()))
    })
}

/// Adds the functions for lists.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set("list_kind", lua.create_function(|_, name: String| Ok(lend(&name, |list, _| list.is_map)))?)?;
    native.set(
        "list_value",
        lua.create_function(|lua, (name, key): (String, mlua::LuaString)| {
            let key = key.as_bytes();
            let found = lend(&name, |_, state| state.read(|change| change.value_of(&key).map(<[u8]>::to_vec)));
            found.flatten().map(|value| lua.create_string(value)).transpose()
        })?,
    )?;
    native.set(
        "list_page",
        lua.create_function(|lua, (name, last): (String, u64)| {
            let page = lend(&name, |_, state| state.read(|change| change.page(None, last, PAGE))).unwrap_or_default();
            let rows = lua.create_table()?;
            let mut last = None;
            for (reference, key, value) in page {
                rows.push(lua.create_sequence_from([lua.create_string(key)?, lua.create_string(value)?])?)?;
                last = Some(reference);
            }
            Ok((rows, last))
        })?,
    )?;
    native.set(
        "list_add",
        lua.create_function(|_, (name, version, entries): (String, Option<u32>, Variadic<mlua::LuaString>)| {
            let bytes = |text: &mlua::LuaString| text.as_bytes().to_vec();
            let (pairs, _) = entries.as_chunks::<2>();
            let pairs: Vec<_> = pairs.iter().map(|[key, value]| (bytes(key), bytes(value))).collect();
            Ok(add(&name, version, &pairs).unwrap_or((None, None)))
        })?,
    )?;
    native.set(
        "list_set",
        lua.create_function(|_, (name, key, value): (String, mlua::LuaString, mlua::LuaString)| {
            let (key, value) = (key.as_bytes().to_vec(), value.as_bytes().to_vec());
            let set = lend(&name, |_, state| state.write(|change, _| change.set(EntrySelector::Key(&key), &value)));
            Ok(set.map_or((None, None), done))
        })?,
    )?;
    native.set(
        "list_remove",
        lua.create_function(|_, (name, key): (String, mlua::LuaString)| {
            let key = key.as_bytes().to_vec();
            Ok(lend(&name, |_, state| state.write(|change, fallen| change.remove(EntrySelector::Key(&key), fallen))))
        })?,
    )?;
    native.set(
        "list_order",
        lua.create_function(|_, (name, what, version): (String, String, Option<u32>)| order(&name, &what, version))?,
    )?;
    native.set("list_observe", lua.create_function(|_, name: String| Ok(observe(&name)))?)
}

fn order(name: &str, what: &str, version: Option<u32>) -> mlua::Result<Value> {
    let answer = lend(name, |_, state| {
        state.write(|change, fallen| match what {
            "prepare" => Value::Integer(change.prepare().into()),
            "commit" => Value::Boolean(version.is_some_and(|version| change.commit(version, fallen))),
            _ => {
                change.clear(version, fallen);
                Value::Nil
            }
        })
    });
    Ok(answer.unwrap_or(Value::Nil))
}
