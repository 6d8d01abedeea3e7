//! The runtime API, ready to be opened (configuration manual, section 3.1 "stats socket").

use super::Bind;
use config::spec::{RuntimeLevel, SeverityOutput};
use std::time::Duration;

/// One `stats socket`.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimeSocket {
    /// Where it listens.
    pub bind: Bind,
    /// `level`: what its connections may do at first.
    pub level: RuntimeLevel,
    /// `expose-fd listeners`: a successor may ask for the listening sockets here.
    pub expose_listeners: bool,
    /// `severity-output`.
    pub severity_output: SeverityOutput,
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Runtime {
    /// Its sockets.
    pub sockets: Vec<RuntimeSocket>,
    /// `stats timeout`: how long a connection may be silent, and how long a reader may read nothing.
    pub timeout: Duration,
    /// `stats maxconn`.
    pub maxconn: u32,
    /// `tune.cli.max-payload-size` in bytes.
    pub max_payload: usize,
    /// `stats calculate-max-counters`.
    pub counts_maxima: bool,
}
