//! Permissions of clients of the runtime API on a listening address (configuration manual, section 5.1, "level").
//! Must never name an address.

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
