//! Lua scripts with HAProxy's API: they are loaded with the configuration, and register fetches, converters, actions,
//! services and tasks. Must never be called, nor cost anything, if no script is loaded.

mod address;
mod certificates;
mod classes;
mod command;
mod environment;
mod events;
mod filter;
mod http_client;
mod introspection;
mod jobs;
mod loading;
mod machine;
mod maps;
mod matching;
mod methods;
mod names;
mod patterns;
mod payload;
mod prelude;
mod proxies;
mod queue;
mod registrations;
mod reply;
mod rows;
mod run;
mod script_messages;
mod service;
mod shared;
mod socket;
mod stream_handle;
mod strings;
mod tables;
mod task;
mod time_limits;
mod value;

#[cfg(test)]
mod manual;
#[cfg(test)]
mod tests;

pub use script_messages::Print;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use config::diagnostic::{Diagnostic, Severity};
use config::spec::{LuaScriptSpec, LuaSpec};
use engine::generation::Generation;
use engine::service::Outbox;
use engine::service::registry::Services;
use engine::worker::Process;
use expression::Conversion;
use expression::variable::StoredValue;
use mlua::chunk::ChunkMode;
use mlua::{Function, IntoLua, MultiValue, Value};
use policy::compile::ScriptMap;

use machine::{Machine, ScriptLimits};
use registrations::{Kind, Registrations};
use run::{Answer, Run, RunTerms};

/// Version of Lua.
pub const VERSION: &str = "5.4";

/// The names and values that `core.get_info` returns, also before the process serves.
pub type Info = fn(&Arc<Process>) -> Vec<(String, String)>;

static INFO: OnceLock<Info> = OnceLock::new();

/// Returns the worker of this thread; `None` before the workers run.
pub(crate) fn here() -> Option<std::rc::Rc<engine::worker::Worker>> {
    if rt::is_on_worker() { rt::local() } else { None }
}

/// The process that runs the scripts.
static PROCESS: OnceLock<std::sync::Weak<Process>> = OnceLock::new();

/// Returns the process, once it is created.
pub(crate) fn process() -> Option<Arc<Process>> {
    PROCESS.get().and_then(std::sync::Weak::upgrade)
}

/// Executes a command of the runtime API; `None`: not possible now.
pub(crate) fn run_command(words: &[String], payload: Option<&[u8]>) -> Option<Vec<u8>> {
    COMMAND.get().and_then(|command| command(&crate::process()?, words, payload))
}

/// Answers a command of the runtime API, which is given as words, at once. Also before the process serves, where it changes
/// nothing.
pub type Command = fn(&Arc<Process>, &[String], Option<&[u8]>) -> Option<Vec<u8>>;

static COMMAND: OnceLock<Command> = OnceLock::new();

/// Type of the function that loads the map of a converter (`map_beg("file")`) for a lookup before the process serves.
pub type ReadMap = fn(&str) -> Result<Conversion, String>;

static MAP: OnceLock<ReadMap> = OnceLock::new();

/// Type of the function that adds a map to a configuration before it is served.
pub type AddMap = fn(&Generation, ScriptMap<'_>) -> Result<Conversion, String>;

static ADD_MAP: OnceLock<AddMap> = OnceLock::new();

/// The variables of section `global`, until the process exists.
static VARIABLES: Mutex<Vec<(String, StoredValue)>> = Mutex::new(Vec::new());

fn info() -> Option<Vec<(String, String)>> {
    Some(INFO.get()?(&process()?))
}

/// The state that runs a function: one shared by all threads, or one per thread.
#[derive(Clone)]
pub(crate) enum StateLocation {
    Shared(Arc<Machine>),
    Threads(Arc<[Arc<Machine>]>),
}

impl StateLocation {
    /// Returns the state for this thread.
    pub(crate) fn machine(&self) -> Option<Arc<Machine>> {
        match self {
            Self::Shared(machine) => Some(Arc::clone(machine)),
            // Before the workers run, the first state is used.
            Self::Threads(machines) => {
                let number = if rt::is_on_worker() { usize::from(rt::worker()) } else { 0 };
                machines.get(number).cloned()
            }
        }
    }
}

/// Interfaces and settings of the program that loads scripts.
#[derive(Clone, Copy)]
pub struct ScriptHost<'a> {
    /// Number of threads.
    pub threads: u32,
    /// The environment after evaluation of the configuration: `NAME=value`.
    pub variables: &'a [String],
    /// Writes to standard error.
    pub print: Print,
    /// Provides `core.get_info`.
    pub info: Info,
    /// Executes commands of the runtime API.
    pub command: Command,
    /// Loads maps.
    pub map: ReadMap,
    /// Adds maps to the configuration.
    pub add_map: AddMap,
    /// The variables set in section `global`, with their names.
    pub process_variables: &'a [(String, StoredValue)],
}

/// The loaded scripts of a configuration.
#[derive(Default)]
pub struct Scripts {
    machines: Vec<Arc<Machine>>,
    /// The states of the threads.
    per_thread: Arc<[Arc<Machine>]>,
    inits: Vec<(Arc<Machine>, Function)>,
    tasks: Vec<(Arc<Machine>, Function, Vec<Value>)>,
    /// A script sends the mails of `mailers` sections.
    send_mails: bool,
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scripts({} states)", self.machines.len())
    }
}

/// Loads the scripts, and adds what they register to `services`. Errors are reported.
pub fn load(spec: &LuaSpec, around: ScriptHost<'_>, services: &mut Services, found: &mut Vec<Diagnostic>) -> Scripts {
    let mut scripts = Scripts::default();
    if spec.scripts.is_empty() {
        return scripts;
    }
    script_messages::open(spec, around.print);
    let _ = INFO.set(around.info);
    let _ = COMMAND.set(around.command);
    let _ = MAP.set(around.map);
    let _ = ADD_MAP.set(around.add_map);
    *VARIABLES.lock().unwrap_or_else(PoisonError::into_inner) = around.process_variables.to_vec();
    methods::know_names(&services.registry().vocabulary);
    let threads = around.threads.max(1);
    let states = 1 + if spec.scripts.iter().any(|script| script.per_thread) { threads } else { 0 };
    let memory = usize::try_from(spec.maxmem).unwrap_or(0).saturating_mul(1 << 20) / states as usize;
    let make = |number: usize, sharers: u32| {
        let machine = Machine::new(spec, number, ScriptLimits::new(spec, sharers), memory)?;
        task::open(&machine)?;
        machine.with(|lua| maps::open(lua, &lua.named_registry_value("native")?))?;
        machine.with(classes::open)?;
        machine.with(|lua| environment::open(lua, around.variables))?;
        machine.with(strings::open)?;
        time_limits::open(&machine)?;
        Ok(machine)
    };
    let made: mlua::Result<Vec<_>> =
        (0..states).map(|number| make(number as usize, if number == 0 { threads } else { 1 })).collect();
    let machines = match made {
        Ok(machines) => machines,
        Err(error) => {
            found.push(Diagnostic::general(Severity::Alert, format!("Lua initialization failed: {error}")));
            return scripts;
        }
    };
    let per_thread: Arc<[Arc<Machine>]> = machines[1..].into();
    for script in &spec.scripts {
        let (home, states) = if script.per_thread {
            (StateLocation::Threads(Arc::clone(&per_thread)), &machines[1..])
        } else {
            (StateLocation::Shared(Arc::clone(&machines[0])), &machines[..1])
        };
        for (index, machine) in states.iter().enumerate() {
            if let Err(message) = read(machine, script) {
                let span = script.span;
                let mut diagnostic = Diagnostic::alert(span, message);
                if script.per_thread {
                    diagnostic.span = Some(span);
                }
                found.push(diagnostic);
                break;
            }
            let known = machine.with(|lua| lua.set_app_data(Registrations::default())).unwrap_or_default();
            scripts.send_mails |= known.sends_mails;
            scripts.inits.extend(known.inits.into_iter().map(|init| (Arc::clone(machine), init)));
            let tasks = known.tasks.into_iter();
            scripts.tasks.extend(tasks.map(|(function, arguments)| (Arc::clone(machine), function, arguments)));
            for (kind, name, _) in known.rows {
                // The states of all threads register the same names.
                if !add(services, &kind, &name, &home) && index == 0 {
                    found.push(twice(&kind, &name));
                }
            }
        }
    }
    services.registry_mut().maps = maps::named();
    (scripts.machines, scripts.per_thread) = (machines, per_thread);
    scripts
}

fn twice(kind: &Kind, name: &str) -> Diagnostic {
    let message = format!(
        "Trying to register {} 'lua.{name}' more than once. This will become a hard error in version 2.5.",
        kind.name()
    );
    Diagnostic::general(Severity::Warning, message)
}

fn add(services: &mut Services, kind: &Kind, name: &str, home: &StateLocation) -> bool {
    match kind {
        Kind::Fetch => rows::add_fetch(services, name, home.clone()),
        Kind::Converter => rows::add_converter(services, name, home.clone()),
        Kind::Action(..) => rows::add_action(services, name, kind, home.clone()),
        Kind::Service(true) => service::add(services, name, home.clone()),
        Kind::Service(false) => service::add_of_bytes(services, name, home.clone()),
        Kind::Filter => filter::add(services, name, home.clone()),
        Kind::Command(words, usage) => command::add(services, name, words, usage, home.clone()),
    }
}

/// Loads a script and runs its body.
fn read(machine: &Arc<Machine>, script: &LuaScriptSpec) -> Result<(), String> {
    let path = match &script.folder {
        Some(folder) if !script.file.starts_with('/') => format!("{folder}{}", script.file),
        _ => script.file.clone(),
    };
    let failed = |why: String| format!("error in Lua file '{}': {why}", script.file);
    let text = std::fs::read(config::text::to_os_string(&path)).map_err(|error| {
        let text = error.to_string();
        let why = text.split(" (os error").next().unwrap_or_default();
        failed(format!("cannot open {} : {why}", script.file).replace(" :", ":"))
    })?;
    let function = machine.with(|lua| {
        let body = skip_first_line(&text);
        lua.load(body).set_name(format!("@{}", script.file)).set_mode(ChunkMode::Text).into_function()
    });
    let function = function.map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => failed(message),
        other => failed(other.to_string()),
    })?;
    let arguments = machine.with(|lua| {
        let texts = script.arguments.iter().map(|text| lua.create_string(config::text::to_bytes(text)));
        texts.map(|text| text.map(Value::String)).collect::<mlua::Result<Vec<_>>>()
    });
    let arguments = arguments.map_err(|error| failed(error.to_string()))?;
    at_once(machine, function, arguments, false).map(|_| ())
}

/// Skips a first line that begins with `#` (Lua manual, section 7).
fn skip_first_line(text: &[u8]) -> &[u8] {
    if !text.starts_with(b"#") {
        return text;
    }
    // The line feed is kept, so that line numbers match.
    text.iter().position(|byte| *byte == b'\n').map_or(b"", |end| &text[end..])
}

/// Runs a function during the start, without time limits. With `pauses` it may yield, but is resumed at once.
fn at_once(
    machine: &Arc<Machine>,
    function: Function,
    arguments: Vec<Value>,
    pauses: bool,
) -> Result<MultiValue, String> {
    let mut run =
        Run::new(machine, function, arguments, RunTerms { what: "init".into(), limit: None, yields: pauses })?;
    run.starting();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        match run.poll(&mut cx, None, &mut |_, _, _| Answer::Unknown) {
            std::task::Poll::Ready(outcome) => return outcome,
            std::task::Poll::Pending if pauses => {}
            std::task::Poll::Pending => return Err("Lua runtime error: yield not allowed".to_owned()),
        }
    }
}

impl Scripts {
    /// Whether no script is loaded.
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// Runs the functions of `core.register_init`, after the process is created and before it serves.
    ///
    /// # Errors
    /// The error of one of them.
    pub fn initialize(&mut self, process: &Arc<Process>) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let _ = PROCESS.set(Arc::downgrade(process));
        events::listen(process);
        if self.send_mails {
            process.service::<Outbox>().leave_to_scripts();
        }
        for machine in &self.machines {
            machine.with(|lua| describe(lua, process)).map_err(|error| format!("Lua init: {error}"))?;
        }
        filter::prepare(&self.machines, process).map_err(|why| why.replacen("Lua runtime error", "Lua filter", 1))?;
        let mut inits = VecDeque::from(std::mem::take(&mut self.inits));
        while let Some((machine, function)) = inits.pop_front() {
            let done = at_once(&machine, function, Vec::new(), true);
            done.map_err(|why| why.replacen("Lua runtime error", "Lua init", 1))?;
            inits.extend(self.take_late(&machine, process));
        }
        maps::forget_early(process);
        Ok(())
    }

    /// Processes what a function of `core.register_init` has registered, and returns further init functions.
    fn take_late(&mut self, machine: &Arc<Machine>, process: &Process) -> Vec<(Arc<Machine>, Function)> {
        let known = machine.with(|lua| lua.set_app_data(Registrations::default())).unwrap_or_default();
        let tasks = known.tasks.into_iter();
        self.tasks.extend(tasks.map(|(function, arguments)| (Arc::clone(machine), function, arguments)));
        for (kind, name, _) in known.rows {
            let home = match machine.number {
                0 => StateLocation::Shared(Arc::clone(machine)),
                _ => StateLocation::Threads(Arc::clone(&self.per_thread)),
            };
            // The states of all threads register the same names.
            let is_first = machine.number <= 1;
            if let Kind::Command(words, usage) = &kind {
                let is_new = command::add(&process.services, &name, words, usage, home);
                if !is_new && is_first {
                    script_messages::warn(&twice(&kind, &name).message);
                }
            } else if is_first {
                let what = kind.name();
                script_messages::warn(&format!(
                    "Lua init: the {what} 'lua.{name}' is registered after the configuration was read, so no line can use it."
                ));
            }
        }
        known.inits.into_iter().map(|init| (Arc::clone(machine), init)).collect()
    }

    /// Executes the changes ordered by functions of `core.register_init`, and starts the tasks of this worker: the
    /// first one also has those of the shared state.
    pub fn start_tasks(&self) {
        if self.is_empty() {
            return;
        }
        proxies::perform_orders();
        events::begin(rt::worker());
        let worker = usize::from(rt::worker());
        for (machine, function, arguments) in &self.tasks {
            if machine.number == worker + 1 || (machine.number == 0 && worker == 0) {
                task::start(machine, function.clone(), arguments.clone());
            }
        }
    }
}

/// Creates the objects of proxies.
fn describe(lua: &mlua::Lua, process: &Arc<Process>) -> mlua::Result<()> {
    let core: mlua::Table = lua.globals().get("core")?;
    let generation = process.generation();
    let make = prelude::native(lua, "proxy")?;
    let (all, fronts, backs) = (lua.create_table()?, lua.create_table()?, lua.create_table()?);
    for proxy in generation.program.proxies.iter() {
        let object: Value = make.call((&*proxy.name, proxy.index, proxy.id.to_string()))?;
        all.set(&*proxy.name, object.clone())?;
        if proxy.frontend.is_some() {
            fronts.set(&*proxy.name, object.clone())?;
        }
        if proxy.backend.is_some() {
            backs.set(&*proxy.name, object)?;
        }
    }
    core.set("proxies", all)?;
    core.set("frontends", fronts)?;
    core.set("backends", backs.into_lua(lua)?)
}
