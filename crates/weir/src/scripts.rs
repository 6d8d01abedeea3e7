//! Lends scripts what they need of this program, and loads them. Must never run one while the process serves.

use crate::host;
use config::diagnostic::Diagnostic;
use config::environment::Environment;
use config::spec::Spec;
use control::runtime::process;
use engine::service::registry::Services;
use lua::{Scripts, Surroundings};
use std::io::Write;

/// Loads the scripts of a configuration; `services` gets what they register.
pub fn load(spec: &Spec, environment: &Environment, services: &mut Services, found: &mut Vec<Diagnostic>) -> Scripts {
    let threads = spec.global.nbthread.unwrap_or(1);
    // Scripts alone ask for a copy of it.
    let variables = if spec.global.lua.scripts.is_empty() { Vec::new() } else { host::variables(environment) };
    let around =
        Surroundings { threads, variables: &variables, print, info: process::information, command: process::execute };
    lua::load(&spec.global.lua, around, services, found)
}

/// What a script says has no place in the messages of the start.
fn print(text: &str) {
    // There is no reader when the terminal is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
