//! The translation of Kubernetes' objects to what Weir has to serve. It is a pure function of a snapshot and the time: it does no I/O
//! and reads no clock.
//!
//! The translator keeps results by the addresses of objects. A change of one route or EndpointSlice is translated alone; a change of
//! listeners, grants, namespaces or policies is an *environment* in which all routes are translated anew.

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
mod model;
mod names;
mod objects;
mod policies;
mod pools;
mod references;
mod routes;
mod rules;
mod settings;
mod statuses;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use settings::{Addresses, Network, Settings};
pub use statuses::{Statuses, StatusesOf};

use crate::desired::Desired;
use crate::snapshot::{GRPCRoute, HTTPRoute, ObjectKey, Objects, Service, Snapshot, TCPRoute, TLSRoute};

use attach::Isolation;
use cache::{Change, Replacement, RouteCache};
use endpoints::Endpoints;
use frontends::Frontends;
use gateways::GatewayTable;
use listeners::OwnerKind;
use objects::Counts;
use policies::PolicyTable;
use pools::Pools;
use routes::{Environment, RouteResult};

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
            && self.has_same_permissions(now)
    }

    fn has_same_permissions(&self, now: &Snapshot) -> bool {
        changes::is_same(&self.snapshot.reference_grants, &now.reference_grants)
            && changes::is_same(&self.snapshot.namespaces, &now.namespaces)
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
        let is_environment = self.update_environment(snapshot);
        let services = self.update_services(snapshot);
        let endpoints = self.endpoints.update(&snapshot.endpoint_slices);
        let replacements = self.update_routes(snapshot, is_environment, &services, now);
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

    /// Takes over listeners, grants, namespaces and policies. Returns whether routes may depend on a change of them.
    fn update_environment(&mut self, snapshot: &Snapshot) -> bool {
        if self.former.has_same_environment(snapshot) {
            return false;
        }
        let mut is_changed = !self.former.has_same_permissions(snapshot);
        self.former.keep(snapshot);
        let table = GatewayTable::build(snapshot, &self.settings, &self.table);
        is_changed |= !table.is_same_for_routes(&self.table);
        self.table = table;
        let policies = PolicyTable::build(snapshot);
        is_changed |= !policies.is_same_for_routes(&self.policies);
        self.policies = policies;
        if is_changed {
            self.isolation = Isolation::new(&self.table);
        }
        is_changed
    }

    /// Returns the Services that have changed.
    fn update_services(&mut self, snapshot: &Snapshot) -> BTreeSet<ObjectKey> {
        let changed: BTreeSet<ObjectKey> =
            changes::between(&self.former.services, &snapshot.services).into_iter().collect();
        for key in &changed {
            match snapshot.services.get(key) {
                Some(service) => drop(self.former.services.insert(key.clone(), service.clone())),
                None => drop(self.former.services.remove(key)),
            }
        }
        changed
    }

    fn update_routes(
        &mut self,
        snapshot: &Snapshot,
        is_environment: bool,
        services: &BTreeSet<ObjectKey>,
        now: &Time,
    ) -> Vec<Replacement> {
        let environment =
            Environment { snapshot, table: &self.table, isolation: &self.isolation, policies: &self.policies };
        let change = Change { is_environment, services, now, controller: &self.settings.controller_name };
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

    fn statuses(&self, snapshot: &Snapshot, now: &Time) -> Statuses {
        let mut statuses = Statuses {
            http_routes: self.http_routes.pending().clone(),
            grpc_routes: self.grpc_routes.pending().clone(),
            tls_routes: self.tls_routes.pending().clone(),
            tcp_routes: self.tcp_routes.pending().clone(),
            ..Statuses::default()
        };
        for (key, class) in
            snapshot.gateway_classes.iter().filter(|(_, c)| c.spec.controller_name == self.settings.controller_name)
        {
            statuses.gateway_classes.extend(objects::class(class, now).map(|status| (key.clone(), status)));
        }
        for (key, plan) in &self.table.gateways {
            let status =
                snapshot.gateways.get(key).and_then(|gateway| objects::gateway(gateway, plan, &self.counts, now));
            statuses.gateways.extend(status.map(|status| (key.clone(), status)));
        }
        for (key, plan) in &self.table.sets {
            let status =
                snapshot.listener_sets.get(key).and_then(|set| objects::listener_set(set, plan, &self.counts, now));
            statuses.listener_sets.extend(status.map(|status| (key.clone(), status)));
        }
        self.add_policies(snapshot, now, &mut statuses);
        statuses
    }

    fn add_policies(&self, snapshot: &Snapshot, now: &Time, statuses: &mut Statuses) {
        if self.policies.policies.is_empty() {
            return;
        }
        let users = self.gateways_by_service();
        for (key, plan) in &self.policies.policies {
            let Some(policy) = snapshot.backend_tls_policies.get(key) else { continue };
            let gateways: BTreeSet<ObjectKey> =
                plan.services.iter().filter_map(|s| users.get(s)).flatten().cloned().collect();
            let status = objects::policy(policy, plan, &gateways, &self.settings.controller_name, now);
            statuses.backend_tls_policies.extend(status.map(|status| (key.clone(), status)));
        }
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
