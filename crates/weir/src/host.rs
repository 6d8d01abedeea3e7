//! Information on the machine and the process for a configuration. Must never change environment variables of the
//! process.

use crate::material;
use crate::messages::Messages;
use crate::{identity, platform, preloaded, version};
use config::environment::Environment;
use config::spec::GlobalSpec;
use control::runtime::process::address;
use engine::host::Host;
use policy::program::Program;
use std::io::Write as _;

/// Returns the information for the runtime API. `memory`: the megabytes of `-m`.
pub fn describe(global: &GlobalSpec, environment: &Environment, memory: Option<u64>, messages: &Messages) -> Host {
    Host {
        platform: platform::describe(),
        memory: memory.unwrap_or(0),
        began: Some(identity::began()),
        product: identity::product().to_owned(),
        implementation: format!("Weir {}", version::VERSION),
        version: version::of_runtime(),
        release_date: version::RELEASE_DATE.to_owned(),
        node: global.node.clone().unwrap_or_else(name),
        description: global.description.clone(),
        driver: preloaded::socket_calls(global.machine.driver).description(),
        environment: variables(environment),
        pid: std::process::id(),
        warnings: messages.warnings() as u64,
        startup_logs: messages.said().to_owned(),
        tell: Some(write_to_stderr),
        ..Host::default()
    }
}

/// Returns the environment as lines `name=value`.
#[must_use]
pub fn variables(environment: &Environment) -> Vec<String> {
    environment.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Writes the output of a filter to standard error. Errors are ignored.
fn write_to_stderr(text: &[u8]) {
    let _ = std::io::stderr().lock().write_all(text);
}

/// Returns the addresses of the runtime API: `$HAPROXY_CLI`.
#[must_use]
pub fn runtime_addresses(program: &Program) -> String {
    let sockets = program.runtime.sockets.iter();
    let addresses: Vec<String> = sockets.map(|socket| address(&socket.bind.address)).collect();
    addresses.join(";")
}

/// Returns the host name: the name of the local peer unless configured.
#[must_use]
pub fn name() -> String {
    material::host_name()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_name_of_one_line() {
        assert!(!name().is_empty() && !name().contains('\n'));
    }
}
