//! The actions of rules. Owns the type of their table and the list of families; each family is a file with its parsers
//! and its rows. Must never perform one.

mod answer;
mod attach;
mod auth_request;
mod authorization;
mod bandwidth;
mod cache;
mod capture;
mod head;
mod list;
mod log;
mod lookup;
mod mirror;
mod otel;
mod packet;
mod queue;
mod redirect;
mod reply;
mod resolve;
mod spoe;
mod tcp;
mod timeout;
mod track;
mod variable;
mod wait;

pub use answer::Final;
pub(crate) use answer::redirect_rule;
pub use attach::Attach;
pub use authorization::{AuthRequest, DecisionCaching};
pub use bandwidth::BandwidthChange;
pub use list::{ListChange, ListVerb};
pub use lookup::NameLookup;
pub use mirror::Mirror;
pub use packet::{Packets, Peer};
pub use queue::{Number, integer};
pub use redirect::{Redirect, RedirectKind, Text};
pub(crate) use reply::error_answer;
pub use tcp::{End, Expected};
pub use timeout::TimeoutKind;
pub use track::{StickChange, Track};
pub use wait::{BodyWait, Decompression, Period, ScriptCall, Wait};

use super::edit::{Edit, Replacement};
use super::parse::{Parsing, RuleError, Words};
use config::keyword::rule::RuleSets;
use config::spec::{LogLevel, LogStep};
use expression::Expression;
use expression::log_format::LogFormat;
use expression::variable::{Variable, VariableCondition};
use std::sync::Arc;

/// The action of a rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Changes the head of the message.
    Edit(Edit),
    /// `set-var`: the variable, its conditions, and the value.
    SetVariable(Variable, VariableCondition, Expression),
    /// `set-var-fmt`.
    FormatVariable(Variable, VariableCondition, LogFormat),
    /// `unset-var`.
    UnsetVariable(Variable),
    /// Changes a pattern list.
    ChangeList(Box<ListChange>),
    /// `do-log`: writes a line for a step.
    Log {
        step: LogStep,
        /// `profile`: index of the profile for all targets.
        profile: Option<usize>,
    },
    /// `otel-group`: the names of the filter and of the group.
    OtelGroup(Arc<(Box<str>, Box<str>)>),
    /// `set-log-level`; `None` for `silent`.
    SetLogLevel(Option<LogLevel>),
    /// `capture`: stores a sample in a slot.
    Capture {
        /// The slot is one of the request's.
        of_request: bool,
        /// Index of the slot.
        index: usize,
        expression: Expression,
    },
    /// Delays the message.
    Wait(Wait),
    /// `set-timeout`.
    SetTimeout(TimeoutKind, Period),
    /// `strict-mode`: whether a change of a head that does not fit is an error from now on.
    SetStrict(bool),
    /// `set-fc-mark`, `set-bc-tos` and others.
    SetPackets(Peer, Packets, Number),
    /// `set-retries`.
    SetRetries(Number),
    /// `set-priority-class`.
    SetPriorityClass(Expression),
    /// `set-priority-offset`.
    SetPriorityOffset(Expression),
    /// `set-bandwidth-limit`.
    LimitBandwidth(Box<BandwidthChange>),
    /// `track-sc`.
    Track(Box<Track>),
    /// `sc-inc-gpc` and others.
    ChangeTracked(Box<StickChange>),
    /// `disable-l7-retry`.
    DisableRetry,
    /// Has no visible effect.
    Nothing,
    /// `set-src` and others.
    SetEnd(End, Expression),
    /// `expect-proxy`.
    Expect(Expected),
    /// `cache-use`: the cache may respond to the request.
    UseCache {
        /// Index in [`crate::Program::caches`].
        cache: usize,
        /// It may send early hints if it has no response.
        hints: bool,
    },
    /// `cache-purge`: removes the request's entry from the cache with that index.
    PurgeCache(usize),
    /// `cache-store`: the cache with that index may store the response.
    StoreInCache(usize),
    /// `replace-body`: replaces matches in the body.
    ReplaceBody(Box<Replacement>),
    /// `mirror`: sends a copy to another backend.
    Mirror(Mirror),
    /// `attach-srv`: turns the connection into one to a server.
    Attach(Box<Attach>),
    /// Ends the evaluation of the rule set.
    Final(Box<Final>),
}

/// Parses the arguments of an action.
pub type ParseAction = fn(&mut Words<'_>, &Parsing<'_>) -> Result<Action, RuleError>;

/// A row of the table of actions.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Name without parentheses.
    pub name: &'static str,
    /// Parses its arguments.
    pub parse: ParseAction,
}

/// Parses the arguments of an action; owned by a registered one.
pub type ReadAction = dyn Fn(&mut Words<'_>, &Parsing<'_>) -> Result<Action, RuleError> + Send + Sync;

/// A registered action.
pub struct RegisteredAction {
    pub(crate) name: Box<str>,
    pub(crate) sets: RuleSets,
    pub(crate) parse: Box<ReadAction>,
}

impl RegisteredAction {
    /// Creates an action for these rule sets. `parse` parses its arguments and returns the action of the rule.
    pub fn new(
        name: impl Into<Box<str>>,
        sets: RuleSets,
        parse: impl Fn(&mut Words<'_>, &Parsing<'_>) -> Result<Action, RuleError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), sets, parse: Box::new(parse) }
    }
}

impl expression::rows::Row for RegisteredAction {
    fn name(&self) -> &str {
        &self.name
    }
}

const fn row(name: &'static str, parse: ParseAction) -> Row {
    Row { name, parse }
}

/// The tables of all families.
const FAMILIES: &[&[Row]] = &[
    answer::TABLE,
    attach::TABLE,
    auth_request::TABLE,
    bandwidth::TABLE,
    cache::TABLE,
    capture::TABLE,
    head::TABLE,
    list::TABLE,
    log::TABLE,
    mirror::TABLE,
    packet::TABLE,
    queue::TABLE,
    resolve::TABLE,
    otel::TABLE,
    spoe::TABLE,
    tcp::TABLE,
    timeout::TABLE,
    track::TABLE,
    variable::TABLE,
    wait::TABLE,
];

/// Returns all actions.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Returns the action with that name. The parser of each line checks whether its rule set has it.
pub(crate) fn find(word: &str) -> Option<&'static Row> {
    let name = word.split('(').next().unwrap_or_default();
    let name = if name.starts_with("track-sc") { "track-sc" } else { name };
    rows().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn whatever_the_rule_sets_let_pass_has_its_row_and_nothing_else_has() {
        let own: Vec<&str> = rows().map(|row| row.name).collect();
        let known: BTreeSet<&str> = own.iter().copied().collect();
        assert_eq!(known.len(), own.len(), "a name stands twice");
        assert_eq!(known, config::keyword::rule::working().collect::<BTreeSet<&str>>());
    }
}
