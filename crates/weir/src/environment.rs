//! The variables that a configuration sees: the process's own, and those that HAProxy defines at start-up
//! (configuration manual, section 2.3). Must never change the variables of the process itself.

use crate::arguments::Settings;
use crate::version;
use config::InputFile;
use config::environment::Environment;

/// The variables for one run.
#[must_use]
pub fn variables(settings: &Settings, files: &[InputFile]) -> Environment {
    let mut environment = Environment::of_process();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    define(&mut environment, settings.local_peer.as_deref(), &names);
    environment
}

/// Sets what the running version and the command line define.
fn define(environment: &mut Environment, local_peer: Option<&str>, files: &[&str]) {
    let peer = local_peer.map_or_else(host_name, str::to_owned);
    let defined = [
        ("HAPROXY_STARTUP_VERSION", config::LANGUAGE_LEVEL),
        ("HAPROXY_BRANCH", version::branch()),
        ("HAPROXY_CFGFILES", &files.join(";")),
        ("HAPROXY_LOCALPEER", &peer),
    ];
    for (name, value) in defined {
        // The names are right, and a process environment that leaves no room for them is refused by the system first.
        let _ = environment.set(name, value);
    }
}

/// The host's name as the kernel has it.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_haproxy_defines_is_there() {
        let mut environment = Environment::new();
        define(&mut environment, Some("here"), &["a.cfg", "b.cfg"]);
        let rows = [
            ("HAPROXY_STARTUP_VERSION", config::LANGUAGE_LEVEL),
            ("HAPROXY_BRANCH", version::branch()),
            ("HAPROXY_CFGFILES", "a.cfg;b.cfg"),
            ("HAPROXY_LOCALPEER", "here"),
        ];
        for (name, value) in rows {
            assert_eq!(environment.get(name), Some(value), "{name}");
        }
    }

    #[test]
    fn the_local_peer_is_the_host_when_nobody_says() {
        let mut environment = Environment::new();
        define(&mut environment, None, &[]);
        assert!(environment.get("HAPROXY_LOCALPEER").is_some_and(|name| !name.is_empty()));
    }
}
