//! What the program that runs the engine knows of itself, for those who tell it: statistics, the runtime API, messages.
//! Must never decide anything.

use config::environment::Environment;
use std::sync::OnceLock;

use base::{Moment, WallTime};
use config::diagnostic::Severity;

/// The machine and the process as they were at the start.
#[derive(Debug, Clone, Default)]
pub struct Platform {
    /// Names and values of the machine.
    pub machine: Vec<(&'static str, String)>,
    /// Names and values of the process.
    pub process: Vec<(&'static str, String)>,
    /// Files with code that are mapped, one a line.
    pub libraries: String,
}

/// What the program that runs the engine knows of itself.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// For developers.
    pub platform: Platform,
    /// `Name` of `show info`: what clients look for to know whom they speak with.
    pub product: String,
    /// `Implementation` of `show info`: the program and its own version.
    pub implementation: String,
    /// The version that `show version` and `show info` tell.
    pub version: String,
    /// `Release_date` of `show info`.
    pub release_date: String,
    /// The name of the node: `node`, else the host's.
    pub node: String,
    /// `description`.
    pub description: Option<String>,
    /// The environment of the configuration, as it was when it had been read: `NAME=value`.
    pub environment: Vec<String>,
    /// The process number.
    pub pid: u32,
    /// Megabytes that the process may have (`-m`); 0: as many as there are.
    pub memory: u64,
    /// Warnings that were given at the start.
    pub warnings: u64,
    /// When the start began; `None`: unknown.
    pub began: Option<Moment>,
    /// When the process began to serve; set by the first reader.
    pub started: OnceLock<(Moment, WallTime)>,
    /// What was said at the start.
    pub startup_logs: String,
    /// Where `filter trace` tells what it sees; `None`: nowhere.
    pub tell: Option<fn(&[u8])>,
    /// How it says on standard error what becomes of proxies and servers; set once it serves, unless it is to be quiet.
    pub say: OnceLock<fn(Severity, &str)>,
}

impl Host {
    /// When the process began to serve.
    pub fn started(&self) -> (Moment, WallTime) {
        *self.started.get_or_init(|| (rt::now(), rt::wall()))
    }

    /// How long it took until the process served.
    pub fn boot_time(&self) -> std::time::Duration {
        self.began.map_or(std::time::Duration::ZERO, |began| self.started().0.saturating_since(began))
    }

    /// Says something on standard error, unless nothing is to be said.
    pub fn say(&self, severity: Severity, text: &str) {
        if let Some(say) = self.say.get() {
            say(severity, text);
        }
    }

    /// The environment, for what the runtime API reads as the configuration is read.
    pub fn variables(&self) -> Environment {
        let mut environment = Environment::new();
        for (name, value) in self.environment.iter().filter_map(|line| line.split_once('=')) {
            // What was read once can be read again.
            let _ = environment.set(name, value);
        }
        environment
    }

    /// A variable of the environment.
    pub fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.environment.iter().find_map(|line| line.as_bytes().strip_prefix(name)?.strip_prefix(b"="))
    }

    /// How long ago the process began.
    pub fn uptime(&self) -> std::time::Duration {
        rt::now().saturating_since(self.started().0)
    }
}
