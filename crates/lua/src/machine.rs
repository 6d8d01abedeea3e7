//! A Lua state: its libraries, its lock, its limits, and the functions registered by its scripts. Must never be locked
//! while waiting.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::moment::Moment;
use config::spec::{LuaLibraries, LuaSpec};
use mlua::{Error, Function, HookTriggers, Lua, LuaOptions, StdLib, Thread, Value, VmState};
use parking_lot::{Mutex, ReentrantMutex};

use crate::registrations::Registrations;
use crate::shared::{Burst, Functions, TimeoutKind};

/// Limits of scripts.
#[derive(Debug, Clone)]
pub(crate) struct ScriptLimits {
    /// Maximum time between two yields.
    pub(crate) burst: Option<Duration>,
    /// Maximum run time of an action, a fetch or a converter.
    pub(crate) session: Option<Duration>,
    /// Maximum run time of a service.
    pub(crate) service: Option<Duration>,
    /// Maximum run time of a task.
    pub(crate) task: Option<Duration>,
    /// Number of instructions after which a function that may yield is forced to; `None`: never.
    pub(crate) forced_yield: Option<u32>,
    /// Whether booleans are passed as booleans, rather than integers.
    pub(crate) keeps_booleans: bool,
}

/// Maximum number of cached coroutines.
const MOST_IDLE: usize = 16;
/// Instructions between two checks of the time, without forced yields.
const LOOK_AFTER: u32 = 10_000;
/// Minimum number of instructions between two forced yields of a shared state.
const LEAST_YIELD: u32 = 500;

impl ScriptLimits {
    /// Returns the limits of a state; `sharers`: the number of threads that share it.
    pub(crate) fn new(spec: &LuaSpec, sharers: u32) -> Self {
        let period = |written: Option<u64>, usual: u64| {
            Some(written.unwrap_or(usual)).filter(|period| *period > 0).map(Duration::from_millis)
        };
        let usual_yield = (LOOK_AFTER / sharers.max(1)).max(LEAST_YIELD);
        Self {
            burst: period(spec.burst_timeout, 1_000),
            session: period(spec.session_timeout, 4_000),
            service: period(spec.service_timeout, 4_000),
            task: period(spec.task_timeout, 0),
            forced_yield: Some(spec.forced_yield.unwrap_or(usual_yield)).filter(|number| *number > 0),
            keeps_booleans: spec.keeps_booleans,
        }
    }
}

/// A Lua state.
pub(crate) struct Machine {
    lua: ReentrantMutex<Lua>,
    /// Cached coroutines whose functions have returned.
    idle: Mutex<Vec<Thread>>,
    /// The current run.
    pub(crate) burst: Arc<Mutex<Burst>>,
    /// The function that calls functions with their transactions.
    caller: OnceLock<Function>,
    /// The number of its thread, from 1; 0: shared by all.
    pub(crate) number: usize,
    pub(crate) limits: ScriptLimits,
}

impl Machine {
    /// Creates a state with HAProxy's classes.
    ///
    /// # Errors
    /// Lua's error.
    pub(crate) fn new(spec: &LuaSpec, number: usize, limits: ScriptLimits, memory: usize) -> mlua::Result<Arc<Self>> {
        let lua = Lua::new_with(StdLib::COROUTINE, LuaOptions::default())?;
        lua.load_std_libs(libraries(&spec.libraries))?;
        if introspects(&spec.libraries) {
            crate::introspection::open(&lua)?;
        }
        crate::loading::open(&lua)?;
        if memory > 0 {
            lua.set_memory_limit(memory)?;
        }
        lua.set_app_data(Functions::default());
        lua.set_app_data(Registrations::default());
        let burst = Arc::new(Mutex::new(Burst { deadline: None, thread: None, may_block: false, cut: None }));
        lua.set_app_data(Arc::clone(&burst));
        prepend_paths(&lua, spec)?;
        let often = limits.forced_yield.unwrap_or(LOOK_AFTER);
        let watched = Arc::clone(&burst);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(often), move |lua, _| watch(lua, &watched))?;
        let (lua, idle) = (ReentrantMutex::new(lua), Mutex::default());
        let machine = Self { lua, idle, burst, caller: OnceLock::new(), number, limits };
        machine.with(|lua| crate::prelude::open(lua, number, machine.limits.keeps_booleans))?;
        Ok(Arc::new(machine))
    }

    /// Calls `with` under the state's lock, which is reentrant.
    pub(crate) fn with<T>(&self, with: impl FnOnce(&Lua) -> T) -> T {
        with(&self.lua.lock())
    }

    /// Returns a coroutine for a function.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn coroutine(&self, function: Function) -> mlua::Result<Thread> {
        self.with(|lua| match self.idle.lock().pop() {
            Some(idle) => {
                idle.reset(function)?;
                Ok(idle)
            }
            None => lua.create_thread(function),
        })
    }

    /// Caches the coroutine of a function that has returned.
    pub(crate) fn keep(&self, thread: &Thread) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(thread.clone());
        }
    }

    /// Replaces the current run and returns the previous one.
    pub(crate) fn run(&self, burst: Burst) -> Burst {
        std::mem::replace(&mut *self.burst.lock(), burst)
    }

    /// Returns the function that calls functions with their transactions, once known.
    pub(crate) fn caller(&self) -> Option<&Function> {
        self.caller.get()
    }

    /// Stores the caller if there is none, and returns it.
    pub(crate) fn keep_caller(&self, caller: Function) -> Function {
        self.caller.get_or_init(|| caller).clone()
    }

    /// Returns the function registered under a key.
    pub(crate) fn function(&self, key: &str) -> Option<Function> {
        self.with(|lua| lua.app_data_ref::<Functions>().and_then(|functions| functions.0.get(key).cloned()))
    }
}

/// Returns the deadline of the current run, and the timeout that it stems from.
pub(crate) fn deadline(lua: &Lua) -> Option<(Moment, TimeoutKind)> {
    lua.app_data_ref::<Arc<Mutex<Burst>>>().and_then(|burst| burst.lock().deadline)
}

/// Whether the current run may block.
pub(crate) fn may_block(lua: &Lua) -> bool {
    lua.app_data_ref::<Arc<Mutex<Burst>>>().is_some_and(|burst| burst.lock().may_block)
}

/// Whether a deadline has passed.
pub(crate) fn is_late(deadline: Option<(Moment, TimeoutKind)>) -> bool {
    deadline.is_some_and(|(deadline, _)| rt::clock::moment() >= deadline)
}

/// Aborts the current run because its time is over. Returns the error to raise; further instructions raise it as well.
pub(crate) fn cut_off(lua: &Lua) -> Error {
    if let Some(burst) = lua.app_data_ref::<Arc<Mutex<Burst>>>() {
        let mut burst = burst.lock();
        burst.cut = burst.deadline.map(|(_, why)| why);
    }
    // After a protected call only one more instruction is executed.
    let set = lua.set_hook(HookTriggers::new().every_nth_instruction(1), |_, _| Err(Error::runtime("timeout")));
    set.err().unwrap_or_else(|| Error::runtime("timeout"))
}

/// Checks the time, and forces a coroutine that may yield to do so.
fn watch(lua: &Lua, burst: &Mutex<Burst>) -> mlua::Result<VmState> {
    let burst = burst.lock();
    if is_late(burst.deadline) {
        drop(burst);
        return Err(cut_off(lua));
    }
    let pauses = burst.thread.as_ref().is_some_and(|thread| *thread == lua.current_thread());
    Ok(if pauses { VmState::Yield } else { VmState::Continue })
}

fn libraries(written: &LuaLibraries) -> StdLib {
    let LuaLibraries::Some(names) = written else { return StdLib::ALL_SAFE };
    let mut all = StdLib::NONE;
    for name in names {
        all |= match name.as_str() {
            "table" => StdLib::TABLE,
            "io" => StdLib::IO,
            "os" => StdLib::OS,
            "string" => StdLib::STRING,
            "math" => StdLib::MATH,
            "utf8" => StdLib::UTF8,
            "package" => StdLib::PACKAGE,
            _ => StdLib::NONE,
        };
    }
    all
}

/// Whether the readable part of `debug` is opened.
fn introspects(written: &LuaLibraries) -> bool {
    match written {
        LuaLibraries::Some(names) => names.iter().any(|name| name == "debug"),
        _ => true,
    }
}

/// Folders where distributions install modules.
const INSTALLED: &str = ";/usr/share/lua/5.4/?.lua;/usr/share/lua/5.4/?/init.lua;./";

/// Adds the folders of the distribution, and those of `lua-prepend-path` in front of all others.
fn prepend_paths(lua: &Lua, spec: &LuaSpec) -> mlua::Result<()> {
    let Value::Table(package) = lua.globals().get::<Value>("package")? else { return Ok(()) };
    let usual: String = package.get("path").unwrap_or_default();
    package.set("path", usual.replacen(";./", INSTALLED, 1))?;
    for path in &spec.paths {
        let key = if path.of_libraries { "cpath" } else { "path" };
        let known: String = package.get(key).unwrap_or_default();
        package.set(key, format!("{};{known}", path.pattern))?;
    }
    Ok(())
}

/// Formats an error of Lua as HAProxy does: `MESSAGE from PLACE, PLACE.`
pub(crate) fn describe(error: &Error) -> String {
    let text = match error {
        Error::MemoryError(_) => return "out of memory error.".to_owned(),
        Error::CallbackError { traceback, cause } => {
            let mut cause: &Error = cause;
            while let Error::CallbackError { cause: inner, .. } = cause {
                cause = inner;
            }
            if matches!(cause, Error::MemoryError(_)) {
                return "out of memory error.".to_owned();
            }
            format!("{cause}\n{traceback}")
        }
        Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains("not enough memory") {
        return "out of memory error.".to_owned();
    }
    text
}

/// Splits an error into its message and its traceback, in HAProxy's format.
pub(crate) fn split_traceback(text: &str) -> (String, String) {
    let (message, trace) = text.split_once("\nstack traceback:").unwrap_or((text, ""));
    let mut places: Vec<String> = Vec::new();
    for line in trace.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // A tail call has no name.
        if line == "(...tail calls...)" {
            continue;
        }
        let line = line.replace("in function <", "in function line ");
        let line = match line.split_once("in function line ") {
            Some((before, place)) => {
                let number = place.rsplit(':').next().unwrap_or("").trim_end_matches('>');
                format!("{before}in function line {number}")
            }
            None => line.replace("in function '", "in global '"),
        };
        match line.strip_prefix(crate::shared::CLASSES) {
            // Functions that HAProxy implements in C are shown as one place.
            Some(inside) => {
                let inside = inside.trim_start_matches(|found: char| found == ':' || found.is_ascii_digit());
                if places.last().is_some_and(|last| last.starts_with("[C]")) {
                    places.pop();
                }
                places.push(format!("[C]:{inside}"));
            }
            None => places.push(line),
        }
    }
    if places.last().is_some_and(|last| last.starts_with("[C]: in ?")) {
        places.pop();
    }
    (message.to_owned(), places.join(", "))
}

#[cfg(test)]
mod tests {
    use super::split_traceback;

    #[test]
    fn places_read_as_haproxys() {
        let rows = [
            (
                "rt.lua:40: taskboom\nstack traceback:\n\t[C]: in function 'error'\n\trt.lua:40: in function <rt.lua:40>",
                ("rt.lua:40: taskboom", "[C]: in global 'error', rt.lua:40: in function line 40"),
            ),
            (
                "rt.lua:34: Lua: x\nstack traceback:\n\t[C]: in function 'error'\n\t[haproxy]:7: in method 'send'\n\t\
                 rt.lua:34: in function <rt.lua:34>",
                ("rt.lua:34: Lua: x", "[C]: in method 'send', rt.lua:34: in function line 34"),
            ),
            ("plain", ("plain", "")),
        ];
        for (text, (message, places)) in rows {
            assert_eq!(split_traceback(text), (message.to_owned(), places.to_owned()));
        }
    }
}
