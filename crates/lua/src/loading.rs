//! Functions that compile text (`load`, `loadfile`, `dofile`, `require`), restricted to source code: Lua does not
//! verify bytecode, so it could access any memory. Must never read a file itself.

use mlua::Lua;

use crate::shared::CLASSES;

const FUNCTIONS: &str = include_str!("prelude/loading.lua");

/// Replaces the functions of the open libraries.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua) -> mlua::Result<()> {
    lua.load(FUNCTIONS).set_name(format!("={CLASSES}")).exec()
}
