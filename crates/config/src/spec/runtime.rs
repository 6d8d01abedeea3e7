//! The sockets of the runtime API and their limits (configuration manual, section 3.1, "stats socket").

use super::BindSpec;

/// Settings of the runtime API.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuntimeSpec {
    /// `stats socket` lines, one entry per address.
    pub sockets: Vec<BindSpec>,
    /// `stats timeout` in milliseconds; default 10 seconds.
    pub timeout: Option<u64>,
    /// `stats maxconn`: maximum number of concurrent connections; default 10.
    pub maxconn: Option<u32>,
    /// `tune.cli.max-payload-size` in bytes; default 128 kB.
    pub max_payload: Option<u32>,
    /// `stats calculate-max-counters off`.
    pub without_maxima: bool,
}
