//! Compiled SPOE engines, which send messages about streams to external agents (SPOE.txt, section 2). Must never hold
//! state of a stream or a connection.

use config::spec::SpoeEvent;
use expression::Expression;
use expression::condition::Condition;
use expression::variable::Variable;
use std::sync::Arc;
use std::time::Duration;

use super::LogTarget;
use crate::rule::Rule;

/// The agent of an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct SpoeAgent {
    pub engine: Box<str>,
    /// Name of the agent, used as the tag of its log lines.
    pub name: Box<str>,
    /// Index in [`super::Program::spoe_logs`].
    pub index: usize,
    /// It has log targets.
    pub logs: bool,
    /// `use-backend`: index of the proxy.
    pub backend: usize,
    /// `max-frame-size` in bytes.
    pub max_frame_size: u32,
    /// `option pipelining`.
    pub pipelining: bool,
    /// `timeout processing`.
    pub processing: Option<Duration>,
    /// `option continue-on-error`.
    pub continues_on_error: bool,
    /// `option dontlog-normal`.
    pub dontlog_normal: bool,
    /// `option var-prefix`, else the agent's name.
    pub prefix: Box<str>,
    /// `option force-set-var`.
    pub sets_any_variable: bool,
    /// Scripts are loaded, which may read variables that the configuration does not name.
    pub serves_scripts: bool,
    /// `option set-on-error`.
    pub on_error: Option<Variable>,
    /// `option set-process-time`.
    pub process_time: Option<Variable>,
    /// `option set-total-time`.
    pub total_time: Option<Variable>,
}

/// The trigger of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpoeTrigger {
    Event(SpoeEvent),
    /// A rule that names a group.
    Group(Box<str>),
}

/// Messages that are sent together.
#[derive(Debug, Clone, PartialEq)]
pub struct SpoeCall {
    pub agent: Arc<SpoeAgent>,
    pub trigger: SpoeTrigger,
    /// The messages in order.
    pub messages: Box<[SpoeMessage]>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SpoeMessage {
    pub name: Box<[u8]>,
    /// Names and values of the arguments; a name may be empty.
    pub arguments: Box<[(Box<[u8]>, Expression)]>,
    /// The condition; `None` for none.
    pub condition: Option<Condition>,
}

/// Events of a proxy's filters that belong to none of its own rule sets, as rules that send messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpoeEvents {
    /// `on-backend-tcp-request` of a frontend's filters.
    pub backend_content: Box<[Rule]>,
    /// `on-backend-http-request` of a frontend's filters.
    pub backend_request: Box<[Rule]>,
    /// `on-server-session`.
    pub server_session: Box<[Rule]>,
    /// `on-tcp-response` and `on-http-response`, if the proxy is not the backend.
    pub answers: Box<[Rule]>,
}

impl SpoeEvents {
    pub fn is_empty(&self) -> bool {
        [&self.backend_content, &self.backend_request, &self.server_session, &self.answers]
            .iter()
            .all(|list| list.is_empty())
    }
}

/// Log targets of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct SpoeLog {
    /// Name of the engine; empty for a removed one.
    pub engine: Box<str>,
    /// `log`.
    pub targets: Vec<LogTarget>,
}
