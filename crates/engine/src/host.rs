//! Data about the program that runs the engine, for statistics, the runtime API and messages. Must never decide anything.

use config::environment::Environment;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use base::{Moment, WallTime};
use config::diagnostic::Severity;

/// Description of the machine and of the process at start.
#[derive(Debug, Clone, Default)]
pub struct Platform {
    /// Names and values about the machine.
    pub machine: Vec<(&'static str, String)>,
    /// Names and values about the process.
    pub process: Vec<(&'static str, String)>,
    /// Mapped files with code, one per line.
    pub libraries: String,
}

/// Key by which the runtime API replaces names and addresses in answers: `set anon global-key`, or `anonkey`; 0: none.
#[derive(Debug, Default)]
pub struct AnonymousKey(AtomicU32);

impl From<u32> for AnonymousKey {
    fn from(key: u32) -> Self {
        Self(key.into())
    }
}

impl AnonymousKey {
    /// Returns the key.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the key.
    pub fn set(&self, key: u32) {
        self.0.store(key, Ordering::Relaxed);
    }
}

/// Data about the program that runs the engine.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// For developers (`show dev`).
    pub platform: Platform,
    /// `Name` of `show info`, by which clients identify the product.
    pub product: String,
    /// `Implementation` of `show info`: the program and its own version.
    pub implementation: String,
    /// Version in `show version` and `show info`.
    pub version: String,
    /// `Release_date` of `show info`.
    pub release_date: String,
    /// Name of the node: `node`, else the host name.
    pub node: String,
    /// `Driver` of `show info`: how sockets are called, and why.
    pub driver: String,
    /// `description`.
    pub description: Option<String>,
    /// Environment of the configuration after it was read: `NAME=value`.
    pub environment: Vec<String>,
    /// Process ID.
    pub pid: u32,
    /// Memory limit in megabytes (`-m`); 0: unlimited.
    pub memory: u64,
    /// Number of warnings at start.
    pub warnings: u64,
    /// Time of the start; `None`: unknown.
    pub began: Option<Moment>,
    /// Time at which the process began to serve; set by the first reader.
    pub started: OnceLock<(Moment, WallTime)>,
    /// Messages logged at start.
    pub startup_logs: String,
    /// Output of `filter trace`; `None`: discarded.
    pub tell: Option<fn(&[u8])>,
    /// Prints messages about proxies and servers on standard error; set once the process serves, unless it is quiet.
    pub say: OnceLock<fn(Severity, &str)>,
}

impl Host {
    /// Returns the time at which the process began to serve.
    pub fn started(&self) -> (Moment, WallTime) {
        *self.started.get_or_init(|| (rt::now(), rt::wall()))
    }

    /// Returns the time from the start until the process served.
    pub fn boot_time(&self) -> std::time::Duration {
        self.began.map_or(std::time::Duration::ZERO, |began| self.started().0.saturating_since(began))
    }

    /// Prints a message on standard error, unless the process is quiet.
    pub fn say(&self, severity: Severity, text: &str) {
        if let Some(say) = self.say.get() {
            say(severity, text);
        }
    }

    /// Returns the environment, for parsing runtime API input like configuration text.
    pub fn variables(&self) -> Environment {
        let mut environment = Environment::new();
        for (name, value) in self.environment.iter().filter_map(|line| line.split_once('=')) {
            // The values were valid before.
            let _ = environment.set(name, value);
        }
        environment
    }

    /// Returns the value of an environment variable.
    pub fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.environment.iter().find_map(|line| line.as_bytes().strip_prefix(name)?.strip_prefix(b"="))
    }

    /// Returns the time since the process began to serve.
    pub fn uptime(&self) -> std::time::Duration {
        rt::now().saturating_since(self.started().0)
    }
}
