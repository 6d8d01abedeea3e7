//! The runtime API: its sockets and who may do what on them (configuration manual, sections 3.1 "stats socket" and 5.1).

use super::BindSpec;

/// What a connection to the runtime API may do (`level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuntimeLevel {
    /// Read what is not sensitive.
    User,
    /// Read everything, change nothing that lasts.
    Operator,
    /// Everything.
    Admin,
}

impl RuntimeLevel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::Operator, Self::Admin];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// From what is written.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// How the severity of an answer is shown (`severity-output`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SeverityOutput {
    /// Not at all.
    #[default]
    None,
    /// `[6]: `
    Number,
    /// `[info]: `
    Text,
}

impl SeverityOutput {
    /// From what is written.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "number" => Some(Self::Number),
            "string" => Some(Self::Text),
            _ => None,
        }
    }
}

/// What a listening address says about the runtime API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuntimeAccess {
    /// `level`; default operator.
    pub level: Option<RuntimeLevel>,
    /// `expose-fd listeners`.
    pub expose_listeners: bool,
    /// `severity-output`.
    pub severity_output: SeverityOutput,
}

/// The runtime API as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuntimeSpec {
    /// `stats socket` lines, one an address.
    pub sockets: Vec<BindSpec>,
    /// `stats timeout` in milliseconds; default 10 seconds.
    pub timeout: Option<u64>,
    /// `stats maxconn`: connections at once; default 10.
    pub maxconn: Option<u32>,
    /// `tune.cli.max-payload-size` in bytes; default 128 kB.
    pub max_payload: Option<u32>,
    /// `stats calculate-max-counters off`.
    pub without_maxima: bool,
}
