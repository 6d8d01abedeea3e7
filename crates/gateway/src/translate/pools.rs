//! All backends, by name, with their servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::desired::{Backend, BackendKind};
use crate::snapshot::ObjectKey;

use super::backends::BackendPlan;
use super::endpoints::Endpoints;
use super::frontends::{NOT_FOUND, REFUSED};

/// A plan with the number of routes that use it.
#[derive(Debug)]
struct Slot {
    plan: Arc<BackendPlan>,
    users: usize,
}

/// The plans of all routes, and the backends themselves.
#[derive(Debug)]
pub struct Pools {
    slots: BTreeMap<String, Slot>,
    stale: BTreeSet<String>,
    built: BTreeMap<String, Arc<Backend>>,
}

impl Default for Pools {
    fn default() -> Self {
        let not_found = Arc::new(BackendPlan::new(NOT_FOUND.to_owned(), BackendKind::Status(404)));
        let refused = Arc::new(BackendPlan::new(REFUSED.to_owned(), BackendKind::Tcp));
        let mut pools = Self { slots: BTreeMap::new(), stale: BTreeSet::new(), built: BTreeMap::new() };
        pools.insert(&[not_found, refused]);
        pools
    }
}

impl Pools {
    pub fn remove(&mut self, plans: &[Arc<BackendPlan>]) {
        for plan in plans {
            let Some(slot) = self.slots.get_mut(&plan.name) else { continue };
            slot.users = slot.users.saturating_sub(1);
            if slot.users == 0 {
                self.slots.remove(&plan.name);
                self.stale.insert(plan.name.clone());
            }
        }
    }

    pub fn insert(&mut self, plans: &[Arc<BackendPlan>]) {
        for plan in plans {
            match self.slots.get_mut(&plan.name) {
                Some(slot) => {
                    slot.users += 1;
                    if slot.plan != *plan {
                        slot.plan = plan.clone();
                        self.stale.insert(plan.name.clone());
                    }
                }
                None => {
                    self.slots.insert(plan.name.clone(), Slot { plan: plan.clone(), users: 1 });
                    self.stale.insert(plan.name.clone());
                }
            }
        }
    }

    /// Returns all backends. `services` are those whose endpoints have changed.
    pub fn build(&mut self, endpoints: &Endpoints, services: &BTreeSet<ObjectKey>) -> &BTreeMap<String, Arc<Backend>> {
        if !services.is_empty() {
            let depends = |slot: &Slot| slot.plan.members.iter().any(|m| services.contains(&m.service));
            self.stale.extend(self.slots.iter().filter(|(_, slot)| depends(slot)).map(|(name, _)| name.clone()));
        }
        for name in std::mem::take(&mut self.stale) {
            let Some(slot) = self.slots.get(&name) else {
                self.built.remove(&name);
                continue;
            };
            let backend = slot.plan.build(endpoints);
            if self.built.get(&name).is_none_or(|old| **old != backend) {
                self.built.insert(name, Arc::new(backend));
            }
        }
        &self.built
    }
}
