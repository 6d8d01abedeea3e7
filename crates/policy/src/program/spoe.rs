//! Engines that ask external agents about streams (SPOE.txt, section 2), ready to be used. Must never hold what belongs to
//! one stream, or to a connection.

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
    /// The engine's name.
    pub engine: Box<str>,
    /// Its own name, which is that of its lines.
    pub name: Box<str>,
    /// Its place in [`super::Program::spoe_logs`].
    pub index: usize,
    /// It has targets for lines.
    pub logs: bool,
    /// `use-backend`: the index of a proxy.
    pub backend: usize,
    /// `max-frame-size`, bytes.
    pub max_frame_size: u32,
    /// `option pipelining`.
    pub pipelining: bool,
    /// `timeout processing`.
    pub processing: Option<Duration>,
    /// `option continue-on-error`.
    pub continues_on_error: bool,
    /// `option dontlog-normal`.
    pub dontlog_normal: bool,
    /// `option var-prefix`, else its name.
    pub prefix: Box<str>,
    /// `option force-set-var`.
    pub sets_any_variable: bool,
    /// `option set-on-error`.
    pub on_error: Option<Variable>,
    /// `option set-process-time`.
    pub process_time: Option<Variable>,
    /// `option set-total-time`.
    pub total_time: Option<Variable>,
}

/// What has messages sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpoeTrigger {
    /// An event of a stream.
    Event(SpoeEvent),
    /// A rule, which names a group.
    Group(Box<str>),
}

/// Messages that are sent together.
#[derive(Debug, Clone, PartialEq)]
pub struct SpoeCall {
    /// Whose they are.
    pub agent: Arc<SpoeAgent>,
    /// What has them sent.
    pub trigger: SpoeTrigger,
    /// The messages, in order.
    pub messages: Box<[SpoeMessage]>,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct SpoeMessage {
    /// Its name.
    pub name: Box<[u8]>,
    /// Names and values of its arguments; a name may be empty.
    pub arguments: Box<[(Box<[u8]>, Expression)]>,
    /// When it is sent; `None`: always.
    pub condition: Option<Condition>,
}

/// The events of a proxy's filters that belong to no set of its own rules, each as rules that ask agents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpoeEvents {
    /// `on-backend-tcp-request` of a frontend's filters.
    pub backend_content: Box<[Rule]>,
    /// `on-backend-http-request` of a frontend's filters.
    pub backend_request: Box<[Rule]>,
    /// `on-server-session`.
    pub server_session: Box<[Rule]>,
    /// `on-tcp-response` and `on-http-response`, where the proxy is not the backend.
    pub answers: Box<[Rule]>,
}

impl SpoeEvents {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        [&self.backend_content, &self.backend_request, &self.server_session, &self.answers]
            .iter()
            .all(|list| list.is_empty())
    }
}

/// Where an agent's lines go.
#[derive(Debug, Clone, PartialEq)]
pub struct SpoeLog {
    /// The engine's name; empty where one has been that was removed.
    pub engine: Box<str>,
    /// `log`.
    pub targets: Vec<LogTarget>,
}
