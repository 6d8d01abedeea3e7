//! The translation of Kubernetes' objects to what Weir has to serve. It is a pure function of a snapshot and the time: it does no I/O
//! and reads no clock.
//!
//! The translator keeps results by the addresses of objects: a change of one route or EndpointSlice is translated alone, and a change of
//! listeners, grants, namespaces, policies and Services with the routes that depend on it.

mod addresses;
mod attach;
mod backends;
mod cache;
mod certificates;
mod changes;
mod conditions;
mod conflicts;
mod durations;
mod endpoints;
mod features;
mod filters;
mod frontends;
mod gateways;
mod hostnames;
mod listeners;
mod matches;
mod members;
mod memo;
mod model;
mod names;
mod objects;
mod policies;
mod pools;
mod references;
mod routes;
mod rules;
mod settings;
mod staleness;
mod statuses;
#[cfg(test)]
mod tests;
mod variants;

use std::collections::{BTreeMap, BTreeSet};

use gateway_api::apis::experimental::gateways::GatewayStatus;
use gateway_api::apis::standard::backendtlspolicies::BackendTlsPolicyStatus;
use gateway_api::apis::standard::gatewayclasses::GatewayClassStatus;
use gateway_api::apis::standard::listenersets::ListenerSetStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use settings::{Addresses, Network, Settings};
pub use statuses::{Statuses, StatusesOf};

use crate::desired::Desired;
use crate::snapshot::{
    BackendTLSPolicy, GRPCRoute, Gateway, GatewayClass, HTTPRoute, ListenerSet, ObjectKey, Objects, Service, Snapshot,
    TCPRoute, TLSRoute,
};

use attach::Isolation;
use cache::{Change, Replacement, RouteCache};
use endpoints::Endpoints;
use frontends::Frontends;
use gateways::{GatewayPlan, GatewayTable, SetPlan};
use listeners::{Listener, OwnerKind};
use memo::StatusMemo;
use objects::Counts;
use policies::{PolicyPlan, PolicyTable};
use pools::Pools;
use routes::{Environment, RouteResult};
use staleness::Staleness;

/// The result of translating a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    pub desired: Desired,
    pub statuses: Statuses,
    /// One line for each value that cannot be served, with its object's kind, namespace and name. Without control characters.
    pub warnings: Vec<String>,
}

/// Translates snapshots, and reuses the results of objects that are the same as in the snapshot before.
#[derive(Debug, Default)]
pub struct Translator {
    settings: Settings,
    /// The objects of the last snapshot that are few, or that routes refer to.
    former: Former,
    table: GatewayTable,
    isolation: Isolation,
    policies: PolicyTable,
    endpoints: Endpoints,
    http_routes: RouteCache<HTTPRoute>,
    grpc_routes: RouteCache<GRPCRoute>,
    tls_routes: RouteCache<TLSRoute>,
    tcp_routes: RouteCache<TCPRoute>,
    counts: Counts,
    frontends: Frontends,
    pools: Pools,
    memos: Memos,
    /// The number of changes of listeners, grants, namespaces and policies.
    environments: u64,
}

/// Statuses of objects that are few.
#[derive(Debug, Default)]
struct Memos {
    classes: StatusMemo<GatewayClass, GatewayClassStatus, ()>,
    gateways: StatusMemo<Gateway, GatewayStatus, ListenerInput>,
    sets: StatusMemo<ListenerSet, ListenerSetStatus, ListenerInput>,
    policies: StatusMemo<BackendTLSPolicy, BackendTlsPolicyStatus, PolicyInput>,
}

/// The input of a status with listeners.
#[derive(Debug, PartialEq)]
struct ListenerInput {
    counts: Vec<i32>,
    environments: u64,
}

impl ListenerInput {
    fn of(listeners: &[Listener], counts: &Counts, environments: u64) -> Self {
        Self { counts: listeners.iter().map(|l| counts.get(&l.id()).copied().unwrap_or(0)).collect(), environments }
    }
}

/// The input of the status of a policy.
#[derive(Debug, PartialEq)]
struct PolicyInput {
    gateways: BTreeSet<ObjectKey>,
    environments: u64,
}

/// Objects of the last snapshot.
#[derive(Debug, Default)]
struct Former {
    /// All kinds apart from routes, Services and EndpointSlices.
    snapshot: Snapshot,
    services: Objects<Service>,
}

impl Former {
    fn has_same_environment(&self, now: &Snapshot) -> bool {
        let old = &self.snapshot;
        changes::is_same(&old.gateway_classes, &now.gateway_classes)
            && changes::is_same(&old.gateways, &now.gateways)
            && changes::is_same(&old.listener_sets, &now.listener_sets)
            && changes::is_same(&old.secrets, &now.secrets)
            && changes::is_same(&old.config_maps, &now.config_maps)
            && changes::is_same(&old.backend_tls_policies, &now.backend_tls_policies)
            && changes::is_same(&old.reference_grants, &now.reference_grants)
            && changes::is_same(&old.namespaces, &now.namespaces)
    }

    fn keep(&mut self, now: &Snapshot) {
        self.snapshot = Snapshot {
            gateway_classes: now.gateway_classes.clone(),
            gateways: now.gateways.clone(),
            listener_sets: now.listener_sets.clone(),
            secrets: now.secrets.clone(),
            config_maps: now.config_maps.clone(),
            backend_tls_policies: now.backend_tls_policies.clone(),
            reference_grants: now.reference_grants.clone(),
            namespaces: now.namespaces.clone(),
            ..Snapshot::default()
        };
    }
}

impl Translator {
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Translates a snapshot. The time is that of transitions of conditions.
    pub fn translate(&mut self, snapshot: &Snapshot, now: &Time) -> Translation {
        let mut staleness = Staleness::default();
        let is_environment = self.update_environment(snapshot, &mut staleness);
        self.update_services(snapshot, &mut staleness);
        let endpoints = self.endpoints.update(&snapshot.endpoint_slices);
        let replacements = self.update_routes(snapshot, &staleness, now);
        for replacement in &replacements {
            self.replace(replacement);
        }
        let frontends = self.frontends.build(&self.table, &self.isolation, is_environment).clone();
        let backends = self.pools.build(&self.endpoints, &endpoints).clone();
        let mut authorities = self.table.contents.authorities.clone();
        authorities.extend(self.policies.authorities.clone());
        let desired =
            Desired { frontends, backends, certificates: self.table.contents.certificates.clone(), authorities };
        Translation { desired, statuses: self.statuses(snapshot, now), warnings: self.warnings(snapshot) }
    }

    /// Takes over listeners, grants, namespaces and policies. Returns whether any of them have changed.
    fn update_environment(&mut self, snapshot: &Snapshot, staleness: &mut Staleness) -> bool {
        if self.former.has_same_environment(snapshot) {
            return false;
        }
        staleness.add_permissions(&self.former.snapshot, snapshot);
        self.former.keep(snapshot);
        let table = GatewayTable::build(snapshot, &self.settings, &self.table);
        let isolation = Isolation::new(&table);
        staleness.add_tables(&self.table, &table);
        staleness.add_isolation(&self.isolation, &isolation, &table);
        self.table = table;
        self.isolation = isolation;
        let policies = PolicyTable::build(snapshot);
        staleness.add_policies(&self.policies, &policies);
        self.policies = policies;
        self.environments += 1;
        true
    }

    fn update_services(&mut self, snapshot: &Snapshot, staleness: &mut Staleness) {
        for key in changes::between(&self.former.services, &snapshot.services) {
            match snapshot.services.get(&key) {
                Some(service) => drop(self.former.services.insert(key.clone(), service.clone())),
                None => drop(self.former.services.remove(&key)),
            }
            staleness.services.insert(key);
        }
    }

    fn update_routes(&mut self, snapshot: &Snapshot, staleness: &Staleness, now: &Time) -> Vec<Replacement> {
        let environment =
            Environment { snapshot, table: &self.table, isolation: &self.isolation, policies: &self.policies };
        let change = Change { staleness, now, controller: &self.settings.controller_name };
        let mut replacements = self.http_routes.update(&snapshot.http_routes, environment, change);
        replacements.extend(self.grpc_routes.update(&snapshot.grpc_routes, environment, change));
        replacements.extend(self.tls_routes.update(&snapshot.tls_routes, environment, change));
        replacements.extend(self.tcp_routes.update(&snapshot.tcp_routes, environment, change));
        replacements
    }

    fn replace(&mut self, replacement: &Replacement) {
        if let Some(old) = &replacement.old {
            self.frontends.remove(&old.entries);
            self.pools.remove(&old.plans);
            for id in &old.attached {
                *self.counts.entry(id.clone()).or_default() -= 1;
            }
        }
        if let Some(new) = &replacement.new {
            self.frontends.insert(&new.entries);
            self.pools.insert(&new.plans);
            for id in &new.attached {
                *self.counts.entry(id.clone()).or_default() += 1;
            }
        }
        self.counts.retain(|_, count| *count > 0);
    }

    fn statuses(&mut self, snapshot: &Snapshot, now: &Time) -> Statuses {
        Statuses {
            gateway_classes: self.class_statuses(snapshot, now),
            gateways: self.gateway_statuses(snapshot, now),
            listener_sets: self.set_statuses(snapshot, now),
            backend_tls_policies: self.policy_statuses(snapshot, now),
            http_routes: self.http_routes.pending().clone(),
            grpc_routes: self.grpc_routes.pending().clone(),
            tls_routes: self.tls_routes.pending().clone(),
            tcp_routes: self.tcp_routes.pending().clone(),
        }
    }

    fn class_statuses(&mut self, snapshot: &Snapshot, now: &Time) -> StatusesOf<GatewayClassStatus> {
        let own = snapshot
            .gateway_classes
            .iter()
            .filter(|(_, class)| class.spec.controller_name == self.settings.controller_name);
        let inputs = own.map(|(key, _)| (key.clone(), ())).collect();
        self.memos.classes.update(&snapshot.gateway_classes, inputs, |_, class, ()| objects::class(class, now))
    }

    fn gateway_statuses(&mut self, snapshot: &Snapshot, now: &Time) -> StatusesOf<GatewayStatus> {
        let input = |plan: &GatewayPlan| ListenerInput::of(&plan.listeners, &self.counts, self.environments);
        let inputs = self.table.gateways.iter().map(|(key, plan)| (key.clone(), input(plan))).collect();
        let make = |key: &ObjectKey, gateway: &Gateway, _: &ListenerInput| {
            self.table.gateways.get(key).and_then(|plan| objects::gateway(gateway, plan, &self.counts, now))
        };
        self.memos.gateways.update(&snapshot.gateways, inputs, make)
    }

    fn set_statuses(&mut self, snapshot: &Snapshot, now: &Time) -> StatusesOf<ListenerSetStatus> {
        let input = |plan: &SetPlan| ListenerInput::of(&plan.listeners, &self.counts, self.environments);
        let inputs = self.table.sets.iter().map(|(key, plan)| (key.clone(), input(plan))).collect();
        let make = |key: &ObjectKey, set: &ListenerSet, _: &ListenerInput| {
            self.table.sets.get(key).and_then(|plan| objects::listener_set(set, plan, &self.counts, now))
        };
        self.memos.sets.update(&snapshot.listener_sets, inputs, make)
    }

    fn policy_statuses(&mut self, snapshot: &Snapshot, now: &Time) -> StatusesOf<BackendTlsPolicyStatus> {
        if self.policies.policies.is_empty() {
            return StatusesOf::new();
        }
        let users = self.gateways_by_service();
        let of = |plan: &PolicyPlan| PolicyInput {
            gateways: plan.services.iter().filter_map(|s| users.get(s)).flatten().cloned().collect(),
            environments: self.environments,
        };
        let inputs = self.policies.policies.iter().map(|(key, plan)| (key.clone(), of(plan))).collect();
        let make = |key: &ObjectKey, policy: &BackendTLSPolicy, input: &PolicyInput| {
            let plan = self.policies.policies.get(key)?;
            objects::policy(policy, plan, &input.gateways, &self.settings.controller_name, now)
        };
        self.memos.policies.update(&snapshot.backend_tls_policies, inputs, make)
    }

    /// The Gateways whose routes refer to a Service that has a policy.
    fn gateways_by_service(&self) -> BTreeMap<&ObjectKey, BTreeSet<ObjectKey>> {
        let targets: BTreeSet<&ObjectKey> = self.policies.policies.values().flat_map(|p| &p.services).collect();
        let mut result: BTreeMap<&ObjectKey, BTreeSet<ObjectKey>> = BTreeMap::new();
        let results: Vec<&RouteResult> = self.http_routes.results().chain(self.grpc_routes.results()).collect();
        for route in results {
            for service in route.services.iter().filter(|s| targets.contains(s)) {
                let gateways = route.attached.iter().filter_map(|id| match id.owner.kind {
                    OwnerKind::Gateway => Some(id.owner.key.clone()),
                    OwnerKind::ListenerSet => self.table.sets.get(&id.owner.key).map(|set| set.gateway.clone()),
                });
                result.entry(service).or_default().extend(gateways);
            }
        }
        result
    }

    /// Objects that are left out as a whole, without a status that would say so.
    fn warnings(&self, snapshot: &Snapshot) -> Vec<String> {
        let long = |kind: &str, key: &ObjectKey| {
            (!names::is_valid(key))
                .then(|| format!("{kind} {}: the name is too long", conditions::shorten(&key.to_string())))
        };
        let gateways = snapshot.gateways.keys().filter_map(|key| long("Gateway", key));
        let policies = snapshot.backend_tls_policies.keys().filter_map(|key| long("BackendTLSPolicy", key));
        gateways.chain(policies).collect()
    }
}
