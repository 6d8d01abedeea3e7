//! Loads scripts and provides the parts of this program that they need. Must never run one while the process serves.

use crate::host;
use crate::resolve::{self, SystemResolver};
use config::diagnostic::Diagnostic;
use config::environment::Environment;
use config::spec::Spec;
use control::runtime::process;
use engine::generation::Generation;
use engine::service::registry::Services;
use engine::worker::Process;
use expression::Conversion;
use lua::{ScriptHost, Scripts};
use policy::compile::ScriptMap;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Loads the scripts of a configuration; what they register is added to `services`.
pub fn load(spec: &Spec, environment: &Environment, services: &mut Services, found: &mut Vec<Diagnostic>) -> Scripts {
    let threads = spec.global.nbthread.unwrap_or(1);
    // Only scripts need a copy of it.
    let has_scripts = !spec.global.lua.scripts.is_empty();
    let variables = if has_scripts { host::variables(environment) } else { Vec::new() };
    let process_variables = match has_scripts {
        true => policy::compile::early_variables(spec, &mut resolver(variables.clone())),
        false => Vec::new(),
    };
    let around = ScriptHost {
        threads,
        variables: &variables,
        print,
        info: information,
        command: execute,
        map: read_map,
        add_map,
        process_variables: &process_variables,
    };
    lua::load(&spec.global.lua, around, services, found)
}

/// The names and values of `core.get_info`.
fn information(process: &Arc<Process>) -> Vec<(String, String)> {
    if rt::is_on_worker() {
        return process::information();
    }
    aside(process, process::information).unwrap_or_default()
}

/// Answers a command of the runtime API.
fn execute(process: &Arc<Process>, words: &[String], payload: Option<&[u8]>) -> Option<Vec<u8>> {
    if rt::is_on_worker() {
        return process::execute(words, payload);
    }
    let (words, payload) = (words.to_vec(), payload.map(<[u8]>::to_vec));
    aside(process, move || process::execute(&words, payload.as_deref())).flatten()
}

/// Asks as a worker would, before there are any: by one that lives as long as that takes, on this thread. `None`: it could not
/// be started.
fn aside<T: Send + 'static>(process: &Arc<Process>, ask: impl Fn() -> T + Send + Sync + 'static) -> Option<T> {
    let (answer, process) = (Arc::new(Mutex::new(None)), Arc::clone(process));
    let told = Arc::clone(&answer);
    let main: rt::Main = Arc::new(move |_| {
        let found = engine::aside(&process, &ask);
        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        rt::stop();
        Box::pin(std::future::ready(()))
    });
    rt::run(&rt::Config::default(), main).ok()?;
    answer.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Reads a map for a script that looks up in it while the configuration is read.
fn read_map(text: &str) -> Result<Conversion, String> {
    policy::compile::script_map(text, &mut resolver(Vec::new()))
}

/// Adds a map to a configuration that is about to be served.
fn add_map(generation: &Generation, map: ScriptMap<'_>) -> Result<Conversion, String> {
    generation.add_script_map(map, &mut resolver(Vec::new()))
}

/// Returns the resolver for expressions that scripts evaluate before anything is compiled.
fn resolver(environment: Vec<String>) -> SystemResolver {
    SystemResolver {
        ipv4_only: false,
        files: Vec::new(),
        last_addresses: BTreeMap::new(),
        surroundings: resolve::ResolveContext { environment, hostname: host::name() },
        services: Services::default(),
    }
}

/// Writes the output of a script, which is not part of the start messages.
fn print(text: &str) {
    // The terminal may be closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
