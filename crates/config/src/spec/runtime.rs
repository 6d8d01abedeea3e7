//! The runtime API: its sockets and their access levels (configuration manual, sections 3.1 "stats socket" and 5.1).

use super::BindSpec;

/// Access level of a connection to the runtime API (`level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuntimeLevel {
    /// Reads of non-sensitive data.
    User,
    /// All reads, and changes without lasting effect.
    Operator,
    Admin,
}

impl RuntimeLevel {
    pub const ALL: [Self; 3] = [Self::User, Self::Operator, Self::Admin];

    /// Returns the name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Parses the name in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// Format of the severity of a response (`severity-output`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeverityOutput {
    #[default]
    None,
    /// `[6]: `
    Number,
    /// `[info]: `
    Text,
}

impl SeverityOutput {
    /// Parses the name in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "number" => Some(Self::Number),
            "string" => Some(Self::Text),
            _ => None,
        }
    }
}

/// Runtime API settings of a listening address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuntimeAccess {
    /// `level`; default operator.
    pub level: Option<RuntimeLevel>,
    /// `expose-fd listeners`.
    pub expose_listeners: bool,
    /// `severity-output`.
    pub severity_output: SeverityOutput,
}

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
