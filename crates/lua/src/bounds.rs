//! What ends functions that run where no hook of Lua is asked: finalizers, and loops of the table library. Must never end what has
//! time left.

use std::sync::Arc;
use std::time::Duration;

use mlua::{Function, Lua, Table, Value};
use parking_lot::Mutex;

use crate::machine::{cut_off, deadline, is_late};
use crate::shared::{Burst, CLASSES, Cut};

const FUNCTIONS: &str = include_str!("prelude/bounds.lua");

/// Replaces the functions. A finalizer that runs beside a script, when its state is closed for instance, has `burst`.
///
/// # Errors
/// Lua's.
pub(crate) fn open(lua: &Lua, runs: Arc<Mutex<Burst>>, burst: Option<Duration>) -> mlua::Result<()> {
    let native: Table = lua.named_registry_value("native")?;
    native.set("check", lua.create_function(|lua, ()| if is_late(deadline(lua)) { Err(cut_off(lua)) } else { Ok(()) })?)?;
    let finalize = move |lua: &Lua, (function, dying): (Function, Value)| {
        let before = begin(&runs, burst);
        // A coroutine is asked by hooks where its creator is not. What it fails with is a warning in Lua, which is off.
        let result = lua.create_thread(function).and_then(|thread| thread.resume::<()>(dying));
        if let Some(cut) = before {
            let mut runs = runs.lock();
            (runs.deadline, runs.cut) = (None, cut);
        }
        result
    };
    native.set("finalize", lua.create_function(finalize)?)?;
    lua.load(FUNCTIONS).set_name(format!("={CLASSES}")).call(native)
}

/// Sets a deadline where none is set; what was cut before, then.
fn begin(runs: &Mutex<Burst>, burst: Option<Duration>) -> Option<Option<Cut>> {
    let mut runs = runs.lock();
    let is_free = runs.deadline.is_none();
    if is_free {
        runs.deadline = burst.map(|burst| (rt::clock::moment() + burst, Cut::Burst));
    }
    is_free.then_some(runs.cut)
}
