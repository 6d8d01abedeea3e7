//! What makes functions of texts (`load`, `loadfile`, `dofile`, `require`), without compiled code: nothing checks that, so that
//! it could reach any memory. Must never read a file by itself.

use mlua::Lua;

use crate::shared::CLASSES;

const FUNCTIONS: &str = include_str!("prelude/loading.lua");

/// Replaces Lua's own functions, of the libraries that are open.
///
/// # Errors
/// Lua's.
pub(crate) fn open(lua: &Lua) -> mlua::Result<()> {
    lua.load(FUNCTIONS).set_name(format!("={CLASSES}")).exec()
}
