//! Time limits for functions that Lua's hooks do not interrupt: finalizers, and loops of the table library. Must never
//! interrupt a function that has time left.

use std::sync::Arc;
use std::time::Duration;

use base::moment::Moment;
use mlua::{Function, Lua, Table, Value};
use parking_lot::Mutex;

use crate::machine::{Machine, cut_off, deadline, is_late};
use crate::shared::{Burst, CLASSES, TimeoutKind};

/// After a finalizer was interrupted, no finalizer outside of a run is called for this multiple of the burst timeout:
/// if many are due, only one can use up its time.
const REST: u32 = 10;

const FUNCTIONS: &str = include_str!("prelude/bounds.lua");

/// Replaces the functions. A finalizer outside of a run, for example when its state is closed, is limited to `burst`;
/// finalizers that are due after the deadline of their run, or shortly after an interrupted one, are skipped.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(machine: &Machine) -> mlua::Result<()> {
    let (runs, burst) = (Arc::clone(&machine.burst), machine.limits.burst);
    machine.with(|lua| replace(lua, runs, burst))
}

fn replace(lua: &Lua, runs: Arc<Mutex<Burst>>, burst: Option<Duration>) -> mlua::Result<()> {
    let native: Table = lua.named_registry_value("native")?;
    native.set(
        "check",
        lua.create_function(|lua, ()| if is_late(deadline(lua)) { Err(cut_off(lua)) } else { Ok(()) })?,
    )?;
    // After an interruption, finalizers outside of a run are skipped until this time.
    let barred: Mutex<Option<Moment>> = Mutex::default();
    let finalize = move |lua: &Lua, (function, dying): (Function, Value)| {
        let now = rt::clock::moment();
        let of_run = runs.lock().deadline;
        let is_over = of_run.is_some_and(|(deadline, _)| now >= deadline);
        if is_over || of_run.is_none() && barred.lock().is_some_and(|until| now < until) {
            return Ok(());
        }
        let before = {
            let mut runs = runs.lock();
            if of_run.is_none() {
                runs.deadline = burst.map(|burst| (now + burst, TimeoutKind::Burst));
            }
            runs.cut
        };
        // Hooks apply to a new coroutine where they do not apply to its creator. In Lua an error here is only a
        // warning, and warnings are off.
        let result = lua.create_thread(function).and_then(|thread| thread.resume::<()>(dying));
        if of_run.is_none() {
            let mut runs = runs.lock();
            if runs.cut.is_some() {
                *barred.lock() = burst.map(|burst| rt::clock::moment() + REST * burst);
            }
            (runs.deadline, runs.cut) = (None, before);
        }
        result
    };
    native.set("finalize", lua.create_function(finalize)?)?;
    lua.load(FUNCTIONS).set_name(format!("={CLASSES}")).call(native)
}
