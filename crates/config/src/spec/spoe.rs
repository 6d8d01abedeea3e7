//! Engines that query external agents (configuration manual, section 9.3; SPOE.txt, section 2). Must never compile an
//! expression.

use super::{LogSpec, RuleLineSpec};
use crate::span::{Span, Spanned};

/// `filter spoe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoeFilterSpec {
    pub span: Span,
    /// `engine`; `None`: the engine is named after the agent.
    pub engine: Option<Spanned<String>>,
    /// `config`, as written.
    pub file: Spanned<String>,
    /// The path under which the file is opened.
    pub path: String,
    /// Index in [`super::SectionsSpec::spoe_engines`]; `None`: the file was not read, or contains no agent.
    pub content: Option<usize>,
}

/// Content of a filter's file, in the scope of its engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpoeEngineSpec {
    /// Name of the filter's engine, or of the agent.
    pub name: String,
    /// `spoe-agent`.
    pub agent: Option<SpoeAgentSpec>,
    /// `spoe-message` sections.
    pub messages: Vec<SpoeMessageSpec>,
    /// `spoe-group` sections.
    pub groups: Vec<SpoeGroupSpec>,
}

/// A `spoe-agent` section (SPOE.txt, section 2.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpoeAgentSpec {
    pub name: Spanned<String>,
    /// `groups`.
    pub groups: Vec<Spanned<String>>,
    /// `messages`.
    pub messages: Vec<Spanned<String>>,
    /// `log global`.
    pub logs_globally: bool,
    /// `log` with a target.
    pub logs: Vec<LogSpec>,
    /// `max-frame-size`, bytes; `None`: `tune.bufsize` without the length.
    pub max_frame_size: Option<u32>,
    /// `option continue-on-error`.
    pub continues_on_error: bool,
    /// `option dontlog-normal`.
    pub dontlog_normal: bool,
    /// `option force-set-var`.
    pub sets_any_variable: bool,
    /// `no option pipelining`.
    pub no_pipelining: bool,
    /// `option set-on-error`: the name of a variable without scope and prefix.
    pub set_on_error: Option<Spanned<String>>,
    /// `option set-process-time`, likewise.
    pub set_process_time: Option<Spanned<String>>,
    /// `option set-total-time`, likewise.
    pub set_total_time: Option<Spanned<String>>,
    /// `option var-prefix`; `None`: the agent's name.
    pub var_prefix: Option<Spanned<String>>,
    /// `register-var-names`.
    pub variables: Vec<Spanned<String>>,
    /// `timeout processing`, milliseconds.
    pub processing: Option<u64>,
    /// `use-backend`.
    pub backend: Option<Spanned<String>>,
}

/// A `spoe-message` section (SPOE.txt, section 2.3).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpoeMessageSpec {
    pub name: Spanned<String>,
    /// `acl`: name and expression.
    pub acls: Vec<RuleLineSpec>,
    /// `args`: one word per argument.
    pub arguments: Vec<RuleLineSpec>,
    /// `event`, and its condition.
    pub event: Option<(SpoeEvent, RuleLineSpec)>,
}

/// A `spoe-group` section (SPOE.txt, section 2.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpoeGroupSpec {
    pub name: Spanned<String>,
    /// `messages`.
    pub messages: Vec<Spanned<String>>,
}

/// Event that sends a message (SPOE.txt, section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpoeEvent {
    ClientSession,
    ServerSession,
    FrontendTcpRequest,
    BackendTcpRequest,
    TcpResponse,
    FrontendHttpRequest,
    BackendHttpRequest,
    HttpResponse,
}

impl SpoeEvent {
    /// All events with their names.
    pub const NAMES: [(&str, Self); 8] = [
        ("on-client-session", Self::ClientSession),
        ("on-server-session", Self::ServerSession),
        ("on-frontend-tcp-request", Self::FrontendTcpRequest),
        ("on-backend-tcp-request", Self::BackendTcpRequest),
        ("on-tcp-response", Self::TcpResponse),
        ("on-frontend-http-request", Self::FrontendHttpRequest),
        ("on-backend-http-request", Self::BackendHttpRequest),
        ("on-http-response", Self::HttpResponse),
    ];

    /// Returns the event of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, event)| *event)
    }

    /// Returns the name of the event.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Whether the event occurs in frontends only.
    pub fn is_of_frontends(self) -> bool {
        matches!(self, Self::ClientSession | Self::FrontendTcpRequest | Self::FrontendHttpRequest)
    }

    /// Whether the event occurs only in backends that are not frontends too.
    pub fn is_of_backends(self) -> bool {
        matches!(self, Self::BackendTcpRequest | Self::BackendHttpRequest)
    }
}
