//! Rules of routes of HTTP and gRPC: the backend of each match.

use std::sync::Arc;

use crate::desired::{BackendKind, Filter, PathMatch, Protocol, Retries, SessionCookie, Timeouts};
use crate::snapshot::ObjectKey;

use super::backends::BackendPlan;
use super::durations::milliseconds;
use super::filters::{self, RuleFilters, Unsupported, is_token};
use super::matches::{self, Conditions};
use super::members::{Member, RefFailure, Resolution, Resolver};
use super::model::{BackendRef, Match, Mirror, Rule, SessionPersistence};
use super::names;

/// The statuses after which Weir can repeat a request (`retry-on`).
const RETRIED: [u16; 12] = [401, 403, 404, 408, 421, 425, 429, 500, 501, 502, 503, 504];

/// The cookie of a rule whose session has no name.
const DEFAULT_COOKIE: &str = "weir-session";

/// A match of a rule with the backend that it leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    pub conditions: Conditions,
    pub backend: String,
    /// The position of the rule and of the match in it.
    pub rule: usize,
    pub position: usize,
}

/// The result of translating the rules of a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub matches: Vec<Matched>,
    pub plans: Vec<Arc<BackendPlan>>,
    pub failure: Option<RefFailure>,
    pub unsupported: Option<Unsupported>,
    /// How many rules can be served.
    pub served: usize,
    /// The Services that rules refer to, found or not.
    pub services: Vec<ObjectKey>,
}

/// A route whose rules are translated.
#[derive(Clone, Copy, Debug)]
pub struct RouteContext<'a> {
    pub key: &'a ObjectKey,
    /// The letter of the kind in names of backends.
    pub letter: char,
    pub resolver: Resolver<'a>,
}

impl Rules {
    /// Translates the rules of a route.
    pub fn translate(context: RouteContext<'_>, rules: &[Rule]) -> Self {
        let mut result = Self::default();
        for (index, rule) in rules.iter().enumerate() {
            result.services.extend(rule.backend_refs.iter().map(|r| context.resolver.key(r)));
            match result.add_rule(context, index, rule) {
                Ok(()) => result.served += 1,
                Err(unsupported) => {
                    result.refuse_rule(context, index, rule);
                    result.unsupported = Some(unsupported);
                }
            }
        }
        result
    }

    fn add_rule(&mut self, context: RouteContext<'_>, index: usize, rule: &Rule) -> Result<(), Unsupported> {
        let any = [Match::default()];
        let matches = if rule.matches.is_empty() { &any[..] } else { &rule.matches };
        let conditions = matches.iter().map(matches::conditions).collect::<Result<Vec<_>, _>>()?;
        let targets = self.targets(context, rule)?;
        let mut built: Vec<Matched> = Vec::with_capacity(conditions.len());
        let mut plans = Vec::new();
        for (position, conditions) in conditions.into_iter().enumerate() {
            let prefix = match &conditions.path {
                PathMatch::Prefix(prefix) => Some(prefix.as_str()),
                PathMatch::Exact(_) | PathMatch::Regex(_) => None,
            };
            let filters = filters::of_rule(&rule.filters, prefix)?;
            // Matches share a backend unless it depends on the prefix that has matched.
            let backend = match built.first() {
                Some(first) if !filters.needs_prefix => first.backend.clone(),
                _ => {
                    let plan = self.plan(context, Place { index, position }, rule, filters, &targets)?;
                    plans.push(Arc::new(plan));
                    plans.last().map(|p| p.name.clone()).unwrap_or_default()
                }
            };
            built.push(Matched { conditions, backend, rule: index, position });
        }
        self.matches.append(&mut built);
        self.plans.append(&mut plans);
        Ok(())
    }

    /// A rule that cannot be served answers 500, as far as its matches are known.
    fn refuse_rule(&mut self, context: RouteContext<'_>, index: usize, rule: &Rule) {
        let any = [Match::default()];
        let matches = if rule.matches.is_empty() { &any[..] } else { &rule.matches };
        let name = names::rule_backend(context.key, context.letter, index, 0);
        let conditions: Vec<Conditions> = matches.iter().filter_map(|m| matches::conditions(m).ok()).collect();
        if !conditions.is_empty() {
            self.plans.push(Arc::new(BackendPlan::new(name.clone(), BackendKind::Status(500))));
        }
        for (position, conditions) in conditions.into_iter().enumerate() {
            self.matches.push(Matched { conditions, backend: name.clone(), rule: index, position });
        }
    }

    fn targets(&mut self, context: RouteContext<'_>, rule: &Rule) -> Result<Targets, Unsupported> {
        let mut targets = Targets { members: Vec::new(), refused: 0 };
        for reference in &rule.backend_refs {
            let weight = reference.weight.map_or(1, |w| u64::try_from(w).unwrap_or(0).min(1_000_000));
            match context.resolver.resolve(reference) {
                Resolution::Found(member) => targets.add(*member)?,
                Resolution::Refused => targets.refused += weight,
                Resolution::Unsupported(unsupported) => return Err(unsupported),
                Resolution::Failed(failure) => {
                    targets.refused += weight;
                    self.failure.get_or_insert(failure);
                }
            }
        }
        targets.check()?;
        Ok(targets)
    }

    fn plan(
        &mut self,
        context: RouteContext<'_>,
        place: Place,
        rule: &Rule,
        filters: RuleFilters,
        targets: &Targets,
    ) -> Result<BackendPlan, Unsupported> {
        let options = Options::of(rule)?;
        if let Some(plan) = shared_plan(context, &filters, targets, &options) {
            return Ok(plan);
        }
        let name = names::rule_backend(context.key, context.letter, place.index, place.position);
        let RuleFilters { filters, redirect, mirrors, .. } = filters;
        let kind = match redirect {
            Some(redirect) => BackendKind::Redirect(redirect),
            None if targets.has_no_weight() => BackendKind::Status(500),
            None => BackendKind::Http,
        };
        let mut plan = BackendPlan { filters, ..BackendPlan::new(name, kind) };
        for mirror in &mirrors {
            self.add_mirror(context, mirror, &mut plan);
        }
        if matches!(plan.kind, BackendKind::Http) {
            targets.fill(&mut plan);
            plan.timeouts = options.timeouts;
            plan.retries = options.retries;
            plan.cookie = options.cookie;
        }
        Ok(plan)
    }

    fn add_mirror(&mut self, context: RouteContext<'_>, mirror: &Mirror, plan: &mut BackendPlan) {
        self.services.push(context.resolver.key(&mirror.backend_ref));
        match context.resolver.resolve(&BackendRef { weight: Some(1), ..mirror.backend_ref.clone() }) {
            Resolution::Found(member) => {
                let target = service_plan(context, *member);
                if let Some(share) = filters::share(mirror) {
                    plan.filters.push(Filter::Mirror {
                        backend: target.name.clone(),
                        numerator: share.numerator,
                        denominator: share.denominator,
                    });
                    self.plans.push(Arc::new(target));
                }
            }
            Resolution::Failed(failure) => {
                self.failure.get_or_insert(failure);
            }
            Resolution::Refused | Resolution::Unsupported(_) => {}
        }
    }
}

/// The position of a match.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: usize,
    position: usize,
}

/// The results of following a rule's references.
#[derive(Debug)]
struct Targets {
    members: Vec<Member>,
    refused: u64,
}

impl Targets {
    fn add(&mut self, member: Member) -> Result<(), Unsupported> {
        if let Some(first) = self.members.first()
            && (first.protocol != member.protocol || first.tls != member.tls)
        {
            return Err(Unsupported::value("Services of one rule have different protocols"));
        }
        self.members.push(member);
        Ok(())
    }

    /// Header fields of answers cannot be changed for one of several members.
    fn check(&self) -> Result<(), Unsupported> {
        let is_request = |f: &Filter| {
            matches!(
                f,
                Filter::SetRequestHeader { .. } | Filter::AddRequestHeader { .. } | Filter::RemoveRequestHeader { .. }
            )
        };
        if self.members.len() > 1 && !self.members.iter().flat_map(|m| &m.filters).all(is_request) {
            return Err(Unsupported::value(
                "ResponseHeaderModifier is supported for a backend only if it is the rule's only one",
            ));
        }
        Ok(())
    }

    /// Whether no member gets requests.
    fn has_no_weight(&self) -> bool {
        self.members.iter().all(|m| m.weight == 0)
    }

    fn fill(&self, plan: &mut BackendPlan) {
        plan.members = self.members.iter().filter(|m| m.weight > 0).cloned().collect();
        plan.refused = self.refused;
        if let Some(first) = plan.members.first() {
            plan.protocol = first.protocol;
            plan.tls = first.tls.clone();
        }
        // Header fields of answers are changed by the whole backend: that is right for one member.
        if let [member] = &mut plan.members[..] {
            plan.filters.append(&mut member.filters);
        }
    }
}

/// Timeouts, retries and the session of a rule.
#[derive(Debug, Default, PartialEq)]
struct Options {
    timeouts: Timeouts,
    retries: Option<Retries>,
    cookie: Option<SessionCookie>,
}

impl Options {
    fn of(rule: &Rule) -> Result<Self, Unsupported> {
        let mut retries = None;
        if let Some(retry) = &rule.retry {
            let mut statuses = Vec::new();
            for code in &retry.codes {
                match u16::try_from(*code).ok().filter(|code| RETRIED.contains(code)) {
                    Some(code) => statuses.push(code),
                    None => return Err(Unsupported::value(format!("retries after status {code} are not supported"))),
                }
            }
            let attempts = retry.attempts.map_or(1, |n| u32::try_from(n).unwrap_or(0).min(100));
            retries = Some(Retries { attempts, statuses });
        }
        Ok(Self {
            timeouts: Timeouts {
                request: timeout(rule.timeouts.request.as_deref())?,
                backend_request: timeout(rule.timeouts.backend_request.as_deref())?,
            },
            retries,
            cookie: rule.session_persistence.as_ref().map(cookie).transpose()?,
        })
    }
}

/// A timeout of zero is none.
fn timeout(text: Option<&str>) -> Result<Option<u64>, Unsupported> {
    let Some(text) = text else { return Ok(None) };
    let time = milliseconds(text).ok_or_else(|| Unsupported::value(format!("{text} is not a duration")))?;
    Ok((time > 0).then_some(time))
}

fn cookie(session: &SessionPersistence) -> Result<SessionCookie, Unsupported> {
    if session.r#type.as_deref().is_some_and(|kind| kind != "Cookie") {
        return Err(Unsupported::value("sessions are kept with cookies only"));
    }
    let name = session.session_name.as_deref().unwrap_or(DEFAULT_COOKIE);
    if !is_token(name) {
        return Err(Unsupported::value(format!("{name} is not the name of a cookie")));
    }
    let is_permanent = session.cookie_config.as_ref().and_then(|c| c.lifetime_type.as_deref()) == Some("Permanent");
    let lifetime =
        session.absolute_timeout.as_deref().filter(|_| is_permanent).and_then(milliseconds).map(|ms| ms / 1000);
    Ok(SessionCookie { name: name.to_owned(), lifetime })
}

/// The backend that all plain rules with the same port of a Service share.
fn shared_plan(
    context: RouteContext<'_>,
    filters: &RuleFilters,
    targets: &Targets,
    options: &Options,
) -> Option<BackendPlan> {
    let is_plain = filters.filters.is_empty() && filters.mirrors.is_empty() && filters.redirect.is_none();
    let [member] = &targets.members[..] else { return None };
    let is_whole = targets.refused == 0 && member.weight > 0 && member.filters.is_empty();
    (is_plain && is_whole && *options == Options::default()).then(|| service_plan(context, member.clone()))
}

/// The backend of a Service's port, the same for all rules that refer to it.
fn service_plan(context: RouteContext<'_>, member: Member) -> BackendPlan {
    let mut name = names::service_backend(&member.service, member.port);
    if context.resolver.kind == "GRPCRoute" {
        name.push_str(":grpc");
    }
    let member = Member { weight: 1, filters: Vec::new(), ..member };
    let protocol: Protocol = member.protocol;
    BackendPlan {
        protocol,
        tls: member.tls.clone(),
        members: vec![member],
        ..BackendPlan::new(name, BackendKind::Http)
    }
}
