//! Tasks of scripts: functions that run independently of traffic. Must never keep a worker from ending.

use std::sync::Arc;
use std::task::Poll;

use mlua::{Function, Lua, Table, Value, Variadic};

use crate::machine::Machine;
use crate::registrations::Registrations;
use crate::run::{Answer, Run, RunTerms};
use crate::script_messages;

/// The state that a function belongs to, for tasks started from within it.
struct OwnState(std::sync::Weak<Machine>);

/// Runs a task on this worker until it ends.
pub(crate) fn start(machine: &Arc<Machine>, function: Function, arguments: Vec<Value>) {
    let terms = RunTerms { what: "task".into(), limit: machine.limits.task, yields: true };
    let run = Run::new(machine, function, arguments, terms);
    rt::spawn(rt::Class::Normal, u64::MAX, async move {
        let outcome = match run {
            Ok(mut run) => {
                std::future::poll_fn(|cx| match run.poll(cx, None, &mut |_, _, _| Answer::Unknown) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(outcome) => Poll::Ready(outcome.map(|_| ())),
                })
                .await
            }
            Err(why) => Err(why),
        };
        if let Err(why) = outcome {
            script_messages::failed(None, &why);
        }
    });
}

/// Enables scripts of a state to register tasks.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(machine: &Arc<Machine>) -> mlua::Result<()> {
    machine.with(|lua| {
        lua.set_app_data(OwnState(Arc::downgrade(machine)));
        lua.named_registry_value::<Table>("native")?.set("register_task", lua.create_function(register)?)
    })
}

fn register(lua: &Lua, mut arguments: Variadic<Value>) -> mlua::Result<()> {
    if arguments.is_empty() {
        return Ok(());
    }
    let Value::Function(function) = arguments.remove(0) else { return Ok(()) };
    let arguments: Vec<Value> = arguments.into_iter().collect();
    if crate::here().is_some() {
        start_later(lua, function, arguments);
    } else if let Some(mut known) = lua.app_data_mut::<Registrations>() {
        known.tasks.push((function, arguments));
    }
    Ok(())
}

/// Returns the state that a function belongs to.
pub(crate) fn own(lua: &Lua) -> Option<Arc<Machine>> {
    lua.app_data_ref::<OwnState>().and_then(|own| own.0.upgrade())
}

/// Starts a task for a running script.
fn start_later(lua: &Lua, function: Function, arguments: Vec<Value>) {
    if let Some(machine) = own(lua) {
        start(&machine, function, arguments);
    }
}
