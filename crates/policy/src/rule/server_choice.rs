//! Rules that select the server of a request before load balancing: `use-server`, `force-persist`, `ignore-persist`,
//! `option persist` (configuration manual, section 4.2). Must never select a server without such a rule.

use super::stick::StickRule;
use crate::program::ProgramContext;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::sample::{Context, RulePlace};
use std::collections::HashMap;

/// The rules of a backend that select servers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerChoice {
    /// `use-server`, in order.
    pub rules: Box<[ServerRule]>,
    /// `force-persist` and `ignore-persist`, in order.
    pub persistence: Box<[PersistRule]>,
    /// `option persist`: persistence selects a server even if it is down.
    pub persists: bool,
    /// `stick`, in order.
    pub stick: Box<[StickRule]>,
    /// Indices of the servers by name.
    pub names: HashMap<Box<[u8]>, usize>,
}

/// A `use-server` rule.
#[derive(Debug, Clone)]
pub struct ServerRule {
    pub condition: Condition,
    /// The selected server.
    pub target: ServerTarget,
    /// Location in the configuration.
    pub place: RulePlace,
}

/// Compares everything except the location.
impl PartialEq for ServerRule {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.target == other.target
    }
}

/// The server that a rule selects.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTarget {
    /// The index of a server.
    Server(usize),
    /// A format that evaluates to the name of a server.
    Named(LogFormat),
}

/// A `force-persist` or `ignore-persist` rule.
#[derive(Debug, Clone, PartialEq)]
pub struct PersistRule {
    pub condition: Condition,
    /// Whether it is `force-persist`.
    pub forces: bool,
}

/// The effect of a persistence rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistOrder {
    /// `force-persist`.
    Force,
    /// `ignore-persist`.
    Ignore,
}

/// The selected server of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedServer {
    /// Index of the server.
    pub server: usize,
    /// The server is used even if it is down.
    pub forced: bool,
    /// The request is never redispatched after a failure (`force-persist`).
    pub stays: bool,
}

impl ServerChoice {
    /// Returns the first matching persistence rule.
    pub fn order(&self, context: &Context<'_>) -> Option<PersistOrder> {
        let rule = self.persistence.iter().find(|rule| rule.condition.holds(context))?;
        Some(if rule.forces { PersistOrder::Force } else { PersistOrder::Ignore })
    }

    /// Returns the selection of a server.
    pub fn bound(&self, server: usize, order: Option<PersistOrder>) -> SelectedServer {
        let stays = order == Some(PersistOrder::Force);
        SelectedServer { server, forced: stays || self.persists, stays }
    }

    /// Returns the server that `use-server` selects. Rules whose server is not usable are skipped, unless it is forced;
    /// a dynamic name that is not a server's leaves the selection to load balancing.
    pub fn named(
        &self,
        context: &Context<'_>,
        order: Option<PersistOrder>,
        is_usable: impl Fn(usize) -> bool,
    ) -> Option<SelectedServer> {
        self.named_watched(context, order, is_usable, &mut |_, _| {})
    }

    /// Like [`Self::named`]; calls `watch` after each rule with its index and whether its condition matches.
    #[inline]
    pub fn named_watched(
        &self,
        context: &Context<'_>,
        order: Option<PersistOrder>,
        is_usable: impl Fn(usize) -> bool,
        watch: &mut impl FnMut(usize, bool),
    ) -> Option<SelectedServer> {
        for (at, rule) in self.rules.iter().enumerate() {
            let holds = rule.condition.holds(context);
            watch(at, holds);
            if !holds {
                continue;
            }
            let server = match &rule.target {
                ServerTarget::Server(index) => *index,
                ServerTarget::Named(format) => {
                    let mut name = Vec::new();
                    format.render_in(context, &mut name);
                    let known = self.names.get(name.as_slice()).copied();
                    match known.filter(|index| !is_removed(context, *index)) {
                        Some(index) => index,
                        None => added(context, &name)?,
                    }
                }
            };
            let bound = self.bound(server, order);
            if bound.forced || is_usable(server) {
                return Some(bound);
            }
        }
        None
    }
}

/// Whether the runtime API has removed a server.
fn is_removed(context: &Context<'_>, index: usize) -> bool {
    let backend = context.backend().and_then(|proxy| proxy.backend.as_ref());
    backend.is_some_and(|backend| !backend.servers.is_present(index))
}

/// Returns the server with that name that the runtime API has added.
#[cold]
fn added(context: &Context<'_>, name: &[u8]) -> Option<usize> {
    let mut servers = context.backend()?.servers();
    servers.find(|server| server.name.as_bytes() == name).map(|server| server.index)
}
