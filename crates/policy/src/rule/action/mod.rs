//! The actions of rules. Owns the form of their table and the list of families; a family is a file with its parsers and
//! its rows. Must never perform one.

mod answer;
mod attach;
mod bandwidth;
mod cache;
mod capture;
mod head;
mod list;
mod log;
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
pub use bandwidth::BandwidthChange;
pub use list::{ListChange, ListVerb};
pub use mirror::Mirror;
pub use packet::{Packets, Peer};
pub use queue::{Number, integer};
pub use redirect::{Redirect, RedirectKind, Text};
pub(crate) use reply::error_answer;
pub use reply::{Answer, Body};
pub use resolve::NameLookup;
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

/// What a rule does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Changes the head of the message.
    Edit(Edit),
    /// `set-var`: the variable, when it is set, and what it gets.
    SetVariable(Variable, VariableCondition, Expression),
    /// `set-var-fmt`.
    FormatVariable(Variable, VariableCondition, LogFormat),
    /// `unset-var`.
    UnsetVariable(Variable),
    /// Changes a list of patterns.
    ChangeList(Box<ListChange>),
    /// `do-log`: a line is written, at that step.
    Log {
        /// What the step is called.
        step: LogStep,
        /// `profile`: the index of the one that counts for all targets.
        profile: Option<usize>,
    },
    /// `otel-group`: the names of the filter and of the group.
    OtelGroup(Arc<(Box<str>, Box<str>)>),
    /// `set-log-level`; `None`: nothing is logged.
    SetLogLevel(Option<LogLevel>),
    /// `capture`: a sample goes into a slot.
    Capture {
        /// One of the request's.
        of_request: bool,
        /// Which, from 0.
        index: usize,
        /// The sample.
        expression: Expression,
    },
    /// Makes the message wait.
    Wait(Wait),
    /// `set-timeout`.
    SetTimeout(TimeoutKind, Period),
    /// `strict-mode`: whether a change of a head that does not fit is an error from here on.
    SetStrict(bool),
    /// `set-fc-mark`, `set-bc-tos` and their kin.
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
    /// `sc-inc-gpc` and its kin.
    ChangeTracked(Box<StickChange>),
    /// `disable-l7-retry`.
    DisableRetry,
    /// Nothing that anybody could see.
    Nothing,
    /// `set-src` and its kin.
    SetEnd(End, Expression),
    /// `expect-proxy`.
    Expect(Expected),
    /// `cache-use`: the cache may answer the request.
    UseCache {
        /// Index of the cache.
        cache: usize,
        /// It may send hints, where it has nothing else.
        hints: bool,
    },
    /// `cache-purge`: the cache of that index forgets what it has for the request.
    PurgeCache(usize),
    /// `cache-store`: the cache of that index may store the response.
    StoreInCache(usize),
    /// `replace-body`: what matches in the body is replaced.
    ReplaceBody(Box<Replacement>),
    /// `mirror`: a copy goes to another backend.
    Mirror(Mirror),
    /// `attach-srv`: the connection becomes one to a server.
    Attach(Box<Attach>),
    /// Ends the evaluation of the rule set.
    Final(Box<Final>),
}

/// Reads the arguments of an action.
pub type ParseAction = fn(&mut Words<'_>, &Parsing<'_>) -> Result<Action, RuleError>;

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name, without parentheses.
    pub name: &'static str,
    /// Reads its arguments.
    pub parse: ParseAction,
}

/// Reads the arguments of an action; a registered one owns it.
pub type ReadAction = dyn Fn(&mut Words<'_>, &Parsing<'_>) -> Result<Action, RuleError> + Send + Sync;

/// An action that is registered.
pub struct RegisteredAction {
    pub(crate) name: Box<str>,
    pub(crate) sets: RuleSets,
    pub(crate) parse: Box<ReadAction>,
}

impl RegisteredAction {
    /// An action of these rule sets. `parse` reads its arguments and says what a rule with them does.
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

/// Every family.
const FAMILIES: &[&[Row]] = &[
    answer::TABLE,
    attach::TABLE,
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

/// Every action that works.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The action of that name. Which rule sets have it is said where their lines are read.
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
