//! Rules that bind a request to a server before the balance is asked: `use-server`, `force-persist`, `ignore-persist`,
//! `option persist` (configuration manual, section 4.2). Must never choose where nothing binds.

use super::stick::StickRule;
use crate::program::Lent;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::sample::{Context, RulePlace};
use std::collections::HashMap;

/// What a backend's lines say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerChoice {
    /// `use-server`, in order.
    pub rules: Box<[ServerRule]>,
    /// `force-persist` and `ignore-persist`, in order.
    pub persistence: Box<[PersistRule]>,
    /// `option persist`: who is bound to a server goes there even when it is down.
    pub persists: bool,
    /// `stick`, in order.
    pub stick: Box<[StickRule]>,
    /// The servers, by name.
    pub names: HashMap<Box<[u8]>, usize>,
}

/// One `use-server`.
#[derive(Debug, Clone)]
pub struct ServerRule {
    /// When it is taken.
    pub condition: Condition,
    /// Which server it names.
    pub target: ServerTarget,
    /// Where it is written.
    pub place: RulePlace,
}

/// Where it is written makes no difference.
impl PartialEq for ServerRule {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.target == other.target
    }
}

/// The server that a rule names.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerTarget {
    /// This one.
    Server(usize),
    /// The one whose name this gives.
    Named(LogFormat),
}

/// One `force-persist` or `ignore-persist`.
#[derive(Debug, Clone, PartialEq)]
pub struct PersistRule {
    /// When it is taken.
    pub condition: Condition,
    /// Whether it is `force-persist`.
    pub forces: bool,
}

/// What a rule about persistence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistOrder {
    /// `force-persist`.
    Force,
    /// `ignore-persist`.
    Ignore,
}

/// The server that a request is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Its index.
    pub server: usize,
    /// It has to be that one even when that is down.
    pub forced: bool,
    /// It is never another one after a failure (`force-persist`).
    pub stays: bool,
}

impl ServerChoice {
    /// The first rule about persistence that holds.
    pub fn order(&self, context: &Context<'_>) -> Option<PersistOrder> {
        let rule = self.persistence.iter().find(|rule| rule.condition.holds(context))?;
        Some(if rule.forces { PersistOrder::Force } else { PersistOrder::Ignore })
    }

    /// What binds a request to that server.
    pub fn bound(&self, server: usize, order: Option<PersistOrder>) -> Bound {
        let stays = order == Some(PersistOrder::Force);
        Bound { server, forced: stays || self.persists, stays }
    }

    /// The server that `use-server` names. Rules that name one that is not usable are passed over, unless it is forced; a
    /// name that is put together and is no server's leaves the choice to others.
    pub fn named(
        &self,
        context: &Context<'_>,
        order: Option<PersistOrder>,
        is_usable: impl Fn(usize) -> bool,
    ) -> Option<Bound> {
        self.named_watched(context, order, is_usable, &mut |_, _| {})
    }

    /// The same; `watch` is called after each rule, with its index and whether its condition holds.
    #[inline]
    pub fn named_watched(
        &self,
        context: &Context<'_>,
        order: Option<PersistOrder>,
        is_usable: impl Fn(usize) -> bool,
        watch: &mut impl FnMut(usize, bool),
    ) -> Option<Bound> {
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

/// The server of that name which the runtime API has added.
#[cold]
fn added(context: &Context<'_>, name: &[u8]) -> Option<usize> {
    let mut servers = context.backend()?.servers();
    servers.find(|server| server.name.as_bytes() == name).map(|server| server.index)
}
