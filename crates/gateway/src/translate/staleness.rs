//! Changes of objects that routes depend on, so that only the routes that do are translated again.

use std::collections::BTreeSet;

use crate::snapshot::{Namespace, ObjectKey, Objects, Snapshot};

use super::attach::Isolation;
use super::changes;
use super::gateways::GatewayTable;
use super::listeners::{Owner, OwnerKind};
use super::model::ParentRef;
use super::policies::PolicyTable;

/// The objects that have changed since the snapshot before.
#[derive(Debug, Default)]
pub struct Staleness {
    /// Gateways and ListenerSets whose listeners have changed.
    pub parents: BTreeSet<Owner>,
    /// Namespaces whose labels have changed.
    pub namespaces: BTreeSet<String>,
    /// Namespaces whose grants have changed.
    pub grants: BTreeSet<String>,
    /// Services that have changed, or whose policies have.
    pub services: BTreeSet<ObjectKey>,
}

/// A route that may be stale.
#[derive(Clone, Copy, Debug)]
pub struct Dependent<'a> {
    pub namespace: &'a str,
    pub parents: &'a [ParentRef],
    pub services: &'a [ObjectKey],
}

impl Staleness {
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty() && self.namespaces.is_empty() && self.grants.is_empty() && self.services.is_empty()
    }

    /// Whether a route depends on what has changed.
    pub fn affects(&self, route: Dependent<'_>) -> bool {
        self.namespaces.contains(route.namespace)
            || route.services.iter().any(|s| self.services.contains(s) || self.grants.contains(&s.namespace))
            || (!self.parents.is_empty() && route.parents.iter().any(|parent| self.has_parent(route.namespace, parent)))
    }

    fn has_parent(&self, namespace: &str, parent: &ParentRef) -> bool {
        let kind = match parent.kind.as_deref() {
            Some("ListenerSet") => OwnerKind::ListenerSet,
            _ => OwnerKind::Gateway,
        };
        let key = ObjectKey::new(parent.namespace.as_deref().unwrap_or(namespace), &*parent.name);
        self.parents.contains(&Owner { kind, key })
    }

    /// Adds the namespaces whose labels or grants differ.
    pub fn add_permissions(&mut self, old: &Snapshot, new: &Snapshot) {
        let labels =
            |objects: &Objects<Namespace>, key: &ObjectKey| objects.get(key).map(|n| n.metadata.labels.clone());
        for key in changes::between(&old.namespaces, &new.namespaces) {
            if labels(&old.namespaces, &key) != labels(&new.namespaces, &key) {
                self.namespaces.insert(key.name);
            }
        }
        self.grants.extend(
            changes::between(&old.reference_grants, &new.reference_grants).into_iter().map(|key| key.namespace),
        );
    }

    /// Adds the Gateways and ListenerSets whose listeners differ.
    pub fn add_tables(&mut self, old: &GatewayTable, new: &GatewayTable) {
        for key in different(&old.gateways, &new.gateways) {
            self.parents.insert(Owner { kind: OwnerKind::Gateway, key });
        }
        for key in different(&old.sets, &new.sets) {
            self.parents.insert(Owner { kind: OwnerKind::ListenerSet, key });
        }
    }

    /// Adds the owners of listeners on addresses and ports where hostnames differ.
    pub fn add_isolation(&mut self, old: &Isolation, new: &Isolation, table: &GatewayTable) {
        if old == new {
            return;
        }
        for listener in table.serving() {
            if listener.sockets.iter().any(|socket| !old.is_same_at(new, *socket)) {
                self.parents.insert(listener.owner.clone());
            }
        }
    }

    /// Adds the Services whose policies differ.
    pub fn add_policies(&mut self, old: &PolicyTable, new: &PolicyTable) {
        for key in different(&old.policies, &new.policies) {
            let plans = [old.policies.get(&key), new.policies.get(&key)];
            self.services.extend(plans.into_iter().flatten().flat_map(|plan| plan.services.clone()));
        }
    }
}

/// Returns the keys of values that differ.
fn different<V: PartialEq>(
    old: &std::collections::BTreeMap<ObjectKey, V>,
    new: &std::collections::BTreeMap<ObjectKey, V>,
) -> Vec<ObjectKey> {
    let keys: BTreeSet<&ObjectKey> = old.keys().chain(new.keys()).collect();
    keys.into_iter().filter(|key| old.get(key) != new.get(key)).cloned().collect()
}
