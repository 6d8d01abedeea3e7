//! Routes of all kinds: their entries in tables of routes, their backends, and their conditions.

use std::net::SocketAddr;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::desired::{BackendKind, Route, TlsTarget};
use crate::snapshot::{ObjectKey, Snapshot};

use super::attach::{Attachment, Candidate, Isolation, ListenerId, Parent, attach};
use super::backends::BackendPlan;
use super::conditions::{Named, Verdict};
use super::gateways::GatewayTable;
use super::listeners::Protocol;
use super::members::{Resolution, Resolver};
use super::model::{ParentRef, RouteSpec, Rule};
use super::names;
use super::policies::PolicyTable;
use super::rules::{Matched, RouteContext, Rules};
use super::variants::Variant;

/// The most hostnames of a route, as the API has it.
const MOST_HOSTNAMES: usize = 64;

/// The most entries of a route in all tables: matches, hosts and listeners multiply.
const MOST_ENTRIES: usize = 20_000;

/// A kind of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Http,
    Grpc,
    Tls,
    Tcp,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTPRoute",
            Self::Grpc => "GRPCRoute",
            Self::Tls => "TLSRoute",
            Self::Tcp => "TCPRoute",
        }
    }

    /// The letter of names of backends.
    fn letter(self) -> char {
        match self {
            Self::Http => 'h',
            Self::Grpc => 'g',
            Self::Tls => 's',
            Self::Tcp => 't',
        }
    }

    fn is_http(self) -> bool {
        matches!(self, Self::Http | Self::Grpc)
    }
}

/// The objects that routes are translated with.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    pub snapshot: &'a Snapshot,
    pub table: &'a GatewayTable,
    pub isolation: &'a Isolation,
    pub policies: &'a PolicyTable,
}

/// A route to translate.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub kind: Kind,
    pub key: &'a ObjectKey,
    pub metadata: &'a ObjectMeta,
    pub spec: &'a RouteSpec,
}

/// The result of translating a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteResult {
    pub entries: Vec<Entry>,
    pub plans: Vec<Arc<BackendPlan>>,
    /// The listeners that count the route.
    pub attached: Vec<ListenerId>,
    /// The Services that it depends on.
    pub services: Vec<ObjectKey>,
    /// The parents that are the controller's, with their conditions.
    pub parents: Vec<ParentVerdict>,
}

/// The conditions of a route for a parent.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentVerdict {
    pub parent: ParentRef,
    pub verdicts: Vec<Named>,
}

/// An entry of a frontend.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub socket: SocketAddr,
    pub kind: EntryKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EntryKind {
    Http(Arc<Route>),
    Tls { name: String, order: String, target: TlsTarget },
    Tcp { order: String, backend: String },
}

/// Translates a route.
pub fn translate(environment: Environment<'_>, source: Source<'_>) -> RouteResult {
    let resolver = Resolver {
        snapshot: environment.snapshot,
        policies: environment.policies,
        kind: source.kind.name(),
        namespace: &source.key.namespace,
    };
    let context = RouteContext { key: source.key, letter: source.kind.letter(), resolver };
    let rules = if source.kind.is_http() {
        Rules::translate(context, &source.spec.rules)
    } else {
        stream_rules(context, &source.spec.rules)
    };
    let mut result = RouteResult { services: rules.services.clone(), ..RouteResult::default() };
    for parent in &source.spec.parent_refs {
        result.add_parent(environment, source, &rules, parent);
    }
    if result.entries.len() > MOST_ENTRIES { result.without_entries(&rules) } else { result }
}

impl RouteResult {
    fn add_parent(&mut self, environment: Environment<'_>, source: Source<'_>, rules: &Rules, parent: &ParentRef) {
        let hostnames = source.spec.hostnames.get(..MOST_HOSTNAMES).unwrap_or(&source.spec.hostnames);
        let candidate = Candidate { kind: source.kind.name(), namespace: &source.key.namespace, hostnames };
        let Some(mut found) = attach(environment.table, environment.snapshot, candidate, parent) else { return };
        if let Some(verdict) = refusal(source.key, rules)
            && found.accepted.holds
        {
            found = Parent { accepted: verdict, attachments: Vec::new() };
        }
        self.parents.push(ParentVerdict { parent: parent.clone(), verdicts: verdicts(&found.accepted, rules) });
        for attachment in &found.attachments {
            let id = attachment.listener.id();
            if !self.attached.contains(&id) {
                self.attached.push(id);
                let gateway = environment.table.gateways.get(&attachment.listener.gateway);
                let variant = Variant::new(&rules.plans, gateway.and_then(|g| g.client_certificate.as_deref()));
                self.add_entries(
                    Backends { isolation: environment.isolation, variant: &variant },
                    source,
                    rules,
                    attachment,
                );
                self.add_plans(variant);
            }
        }
    }

    fn add_entries(&mut self, backends: Backends<'_>, source: Source<'_>, rules: &Rules, attachment: &Attachment<'_>) {
        let listener = attachment.listener;
        for socket in &listener.sockets {
            for host in
                attachment.hosts.iter().filter(|host| backends.isolation.reaches(*socket, &listener.hostname, host))
            {
                for matched in &rules.matches {
                    let backend = backends.variant.name(&matched.backend).to_owned();
                    let kind = entry(attachment, host, matched, Target { order: order(source, matched), backend });
                    self.entries.push(Entry { socket: *socket, kind });
                }
            }
        }
    }

    /// The result for a route that is too large to be served.
    fn without_entries(self, rules: &Rules) -> Self {
        let accepted = Verdict::no(
            "UnsupportedValue",
            format!("the matches, hosts and listeners make more than {MOST_ENTRIES} entries"),
        );
        let parents = self.parents.into_iter().map(|p| ParentVerdict { verdicts: verdicts(&accepted, rules), ..p });
        Self { parents: parents.collect(), services: self.services, ..Self::default() }
    }

    fn add_plans(&mut self, variant: Variant) {
        for plan in variant.plans {
            if !self.plans.iter().any(|known| known.name == plan.name) {
                self.plans.push(plan);
            }
        }
    }
}

/// The backends of a route at a listener, and which hosts reach it.
#[derive(Clone, Copy, Debug)]
struct Backends<'a> {
    isolation: &'a Isolation,
    variant: &'a Variant,
}

/// The order of an entry and its backend.
#[derive(Debug)]
struct Target {
    order: String,
    backend: String,
}

fn entry(attachment: &Attachment<'_>, host: &str, matched: &Matched, target: Target) -> EntryKind {
    let listener = attachment.listener;
    let Target { order, backend } = target;
    match listener.protocol {
        Some(Protocol::Tcp) => EntryKind::Tcp { order, backend },
        Some(Protocol::Tls) if listener.terminates_tls() => {
            let target = TlsTarget::Terminate { backend, certificates: listener.certificates.clone() };
            EntryKind::Tls { name: host.to_owned(), order, target }
        }
        Some(Protocol::Tls) => {
            EntryKind::Tls { name: host.to_owned(), order, target: TlsTarget::Passthrough { backend } }
        }
        Some(Protocol::Http | Protocol::Https) | None => {
            let conditions = matched.conditions.clone();
            EntryKind::Http(Arc::new(Route {
                host: host.to_owned(),
                path: conditions.path,
                method: conditions.method,
                headers: conditions.headers,
                query: conditions.query,
                order,
                backend,
            }))
        }
    }
}

/// Returns what decides between equal matches: the age of the route, its name, the positions. The comma precedes all letters of names.
fn order(source: Source<'_>, matched: &Matched) -> String {
    // Times have one length as long as the year has four digits.
    let time = source
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or_else(|| "9999".to_owned(), |time| time.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let key = source.key;
    format!(
        "{time},{},{},{:04},{:04},{}",
        key.namespace,
        key.name,
        matched.rule,
        matched.position,
        source.kind.letter()
    )
}

/// Why a route is not accepted by any parent.
fn refusal(key: &ObjectKey, rules: &Rules) -> Option<Verdict> {
    if !names::is_valid(key) {
        return Some(Verdict::no("UnsupportedValue", "the name is too long"));
    }
    rules.unsupported.as_ref().filter(|_| rules.served == 0).map(|u| Verdict::no(u.reason, &*u.message))
}

fn verdicts(accepted: &Verdict, rules: &Rules) -> Vec<Named> {
    let resolved =
        rules.failure.as_ref().map_or_else(|| Verdict::yes("ResolvedRefs"), |f| Verdict::no(f.reason, &*f.message));
    let mut result = vec![Named::new("Accepted", accepted.clone()), Named::new("ResolvedRefs", resolved)];
    if let Some(unsupported) = rules.unsupported.as_ref().filter(|_| accepted.holds) {
        let verdict = Verdict::yes_with(unsupported.reason, format!("Dropped Rule: {}", unsupported.message));
        result.push(Named::new("PartiallyInvalid", verdict));
    }
    result
}

/// Rules of connections, of which a route has one.
fn stream_rules(context: RouteContext<'_>, rules: &[Rule]) -> Rules {
    let mut result = Rules::default();
    for (index, rule) in rules.iter().enumerate() {
        let mut plan = BackendPlan::new(names::rule_backend(context.key, context.letter, index, 0), BackendKind::Tcp);
        for reference in &rule.backend_refs {
            result.services.push(context.resolver.key(reference));
            match context.resolver.resolve(reference) {
                Resolution::Found(member) if member.weight > 0 => plan.members.push(*member),
                Resolution::Failed(failure) => drop(result.failure.get_or_insert(failure)),
                Resolution::Found(_) | Resolution::Refused | Resolution::Unsupported(_) => {}
            }
        }
        if let [member] = &mut plan.members[..] {
            member.weight = 1;
            plan.name = format!("{}:tcp", names::service_backend(&member.service, member.port));
        }
        // TLS of a connection goes through to the server.
        plan.members.iter_mut().for_each(|member| member.tls = None);
        let conditions = super::matches::any();
        result.matches.push(Matched { conditions, backend: plan.name.clone(), rule: index, position: 0 });
        result.plans.push(Arc::new(plan));
        result.served += 1;
    }
    result
}
