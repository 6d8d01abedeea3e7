//! What ends functions that run where no hook of Lua is asked: finalizers, and loops of the table library. Must never end what has
//! time left.

use std::sync::Arc;
use std::time::Duration;

use base::moment::Moment;
use mlua::{Function, Lua, Table, Value};
use parking_lot::Mutex;

use crate::machine::{Machine, cut_off, deadline, is_late};
use crate::shared::{Burst, CLASSES, Cut};

/// Bursts for which no finalizer runs by itself after one that was cut: of many that are due, one alone takes its time.
const REST: u32 = 10;

const FUNCTIONS: &str = include_str!("prelude/bounds.lua");

/// Replaces the functions. A finalizer that belongs to no run, when its state is closed for instance, has `burst`; those that are due
/// when their run is over, or after one that was cut, do not run.
///
/// # Errors
/// Lua's.
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
    // Until when none runs that belongs to no run, because one was cut.
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
                runs.deadline = burst.map(|burst| (now + burst, Cut::Burst));
            }
            runs.cut
        };
        // A coroutine is asked by hooks where its creator is not. What it fails with is a warning in Lua, which is off.
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
