//! Turns a specification into a [`Program`]: names become indices, addresses are looked up through a [`Resolver`],
//! limits are worked out. Must never open anything, and must not repeat what the configuration language checks itself.

use crate::program::Program;
use config::diagnostic::Diagnostic;
use config::spec::{Family, Spec};
use std::net::IpAddr;

/// Looks names up.
pub trait Resolver {
    /// The first address of `host` in the family asked for. The error is a reason for the log.
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, String>;
}

/// What the system and the command line allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Descriptors that the process may have: the larger of the soft and the hard limit.
    pub descriptors: u64,
    /// Processors that it may use: the default of `nbthread`.
    pub processors: u32,
    /// `-n`: takes precedence over the global `maxconn`.
    pub maxconn: Option<u32>,
    /// `-m`, megabytes: bounds the `maxconn` that is worked out.
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { descriptors: 1024, processors: 1, maxconn: None, memory: None }
    }
}

/// Compiles a specification. `None` when a diagnostic of severity alert was added to `out`.
pub fn compile(
    spec: &Spec,
    resolver: &mut dyn Resolver,
    limits: &Limits,
    out: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let _ = (spec, resolver, limits, out);
    None
}
