//! Registrations of scripts while they are loaded. Must never call a registered function.

use mlua::{Function, Value};

/// The kind of a registration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// `core.register_fetches`.
    Fetch,
    /// `core.register_converters`.
    Converter,
    /// `core.register_action`: the names of the rule sets, and the number of arguments.
    Action(Vec<String>, usize),
    /// `core.register_service`, for HTTP or TCP.
    Service(bool),
    /// `core.register_cli`: the line for help. The name is the path, its words joined by dots.
    Command(Vec<String>, String),
    /// `core.register_filter`.
    Filter,
}

impl Kind {
    /// Returns the key of its function. Actions of different rule sets may share a name.
    pub(crate) fn key(&self, name: &str) -> String {
        match self {
            Self::Fetch => format!("fetch.{name}"),
            Self::Converter => format!("converter.{name}"),
            Self::Action(sets, _) => {
                let mut sets = sets.clone();
                sets.sort();
                format!("action.{name} {}", sets.join(" "))
            }
            Self::Service(_) => format!("service.{name}"),
            Self::Command(..) => format!("cli.{name}"),
            Self::Filter => format!("filter.{name}"),
        }
    }

    /// Returns the name in HAProxy's messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Fetch => "sample-fetch",
            Self::Converter => "sample-converter",
            Self::Action(..) => "action",
            Self::Service(_) => "service",
            Self::Command(..) => "CLI keyword",
            Self::Filter => "filter",
        }
    }
}

/// Registrations that were not processed yet.
#[derive(Default)]
pub(crate) struct Registrations {
    pub(crate) rows: Vec<(Kind, String, Function)>,
    pub(crate) inits: Vec<Function>,
    pub(crate) tasks: Vec<(Function, Vec<Value>)>,
    /// The script sends the mails of `mailers` sections.
    pub(crate) sends_mails: bool,
}
