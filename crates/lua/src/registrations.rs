//! What scripts register while they are loaded. Must never call it.

use mlua::{Function, Value};

/// Which kind of thing a function was registered as.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// `core.register_fetches`.
    Fetch,
    /// `core.register_converters`.
    Converter,
    /// `core.register_action`: the rule sets' names, and how many arguments there are.
    Action(Vec<String>, usize),
    /// `core.register_service`, for HTTP or TCP.
    Service(bool),
    /// `core.register_cli`: the line that help shows. The name is the path, its words joined by dots.
    Command(Vec<String>, String),
    /// `core.register_filter`.
    Filter,
}

impl Kind {
    /// The key of its function. Actions of different rule sets may share a name.
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

    /// As HAProxy's messages name it.
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

/// What is registered and was not taken over yet.
#[derive(Default)]
pub(crate) struct Registrations {
    pub(crate) rows: Vec<(Kind, String, Function)>,
    pub(crate) inits: Vec<Function>,
    pub(crate) tasks: Vec<(Function, Vec<Value>)>,
    /// The script sends the mails of `mailers` sections.
    pub(crate) sends_mails: bool,
}
