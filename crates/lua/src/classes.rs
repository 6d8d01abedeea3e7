//! Opens the classes that access the process: proxies, lists, events. Must never run a script.

use mlua::{Lua, Table};

use crate::shared::CLASSES;

/// Opens the classes that require the state's machine.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua) -> mlua::Result<()> {
    let native: Table = lua.named_registry_value("native")?;
    crate::events::open(lua, &native)?;
    crate::proxies::open(lua, &native)?;
    crate::tables::open(lua, &native)?;
    crate::certificates::open(lua, &native)?;
    crate::patterns::open(lua, &native)?;
    for part in [include_str!("prelude/proxies.lua"), include_str!("prelude/lists.lua")] {
        lua.load(part).set_name(format!("={CLASSES}")).call::<()>(native.clone())?;
    }
    Ok(())
}
