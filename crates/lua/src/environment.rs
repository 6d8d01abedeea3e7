//! `os.getenv` on the environment of the configuration (`setenv`, `presetenv`, `unsetenv`, `resetenv`). Must never
//! change it.

use std::collections::HashMap;

use mlua::{Lua, Table, Value};

use crate::shared::CLASSES;

const GETENV: &str = "
local os, get, given = ...
function os.getenv(name) return (get(given(name, 1, 'getenv', 'string'))) end
";

/// Replaces the library's function, if scripts have the library. `variables`: `NAME=value`.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, variables: &[String]) -> mlua::Result<()> {
    let Value::Table(os) = lua.globals().get::<Value>("os")? else { return Ok(()) };
    let bytes = config::text::to_bytes;
    let pairs = variables.iter().filter_map(|variable| variable.split_once('='));
    let known: HashMap<Vec<u8>, Vec<u8>> =
        pairs.map(|(name, value)| (bytes(name).to_vec(), bytes(value).to_vec())).collect();
    let get = lua.create_function(move |lua, name: mlua::LuaString| {
        known.get(&*name.as_bytes()).map(|value| lua.create_string(value)).transpose()
    })?;
    let kit: Table = lua.named_registry_value::<Table>("native")?.get("kit")?;
    lua.load(GETENV).set_name(format!("={CLASSES}")).call((os, get, kit.get::<Value>("given")?))
}
