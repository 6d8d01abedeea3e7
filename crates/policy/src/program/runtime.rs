//! Compiled parameters of the runtime API (configuration manual, section 3.1 "stats socket"). Must never hold a socket.

use super::Bind;
use config::spec::{RuntimeLevel, SeverityOutput};
use std::time::Duration;

/// A `stats socket`.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeSocket {
    pub bind: Bind,
    /// `level`: the initial level of its connections.
    pub level: RuntimeLevel,
    /// `expose-fd listeners`: a new process may request the listening sockets here.
    pub expose_listeners: bool,
    /// `severity-output`.
    pub severity_output: SeverityOutput,
}

/// The runtime API.
#[derive(Debug, Clone, PartialEq)]
pub struct Runtime {
    pub sockets: Vec<RuntimeSocket>,
    /// `stats timeout`: maximum idle time of a connection and of a reader.
    pub timeout: Duration,
    /// `stats maxconn`.
    pub maxconn: u32,
    /// `tune.cli.max-payload-size` in bytes.
    pub max_payload: usize,
    /// `stats calculate-max-counters`.
    pub counts_maxima: bool,
}
