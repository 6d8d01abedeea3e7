//! Endpoints of Services: the union of their EndpointSlices, kept from one snapshot to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::snapshot::{EndpointSlice, ObjectKey, Objects};

use super::names;

/// The label that names the Service of an EndpointSlice.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// An endpoint with the numbers of its ports by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The pod's name, or the address, in letters that a server's name can have.
    pub name: String,
    pub address: IpAddr,
    /// None if the EndpointSlice has no ports: all are allowed.
    pub ports: Arc<Option<BTreeMap<String, u16>>>,
    pub is_draining: bool,
}

/// The endpoints of all Services.
#[derive(Debug, Default)]
pub struct Endpoints {
    slices: BTreeMap<ObjectKey, Arc<EndpointSlice>>,
    by_service: BTreeMap<ObjectKey, BTreeMap<ObjectKey, Vec<Endpoint>>>,
}

impl Endpoints {
    /// Takes over the EndpointSlices of a snapshot. Returns the Services whose endpoints have changed.
    pub fn update(&mut self, now: &Objects<EndpointSlice>) -> BTreeSet<ObjectKey> {
        let changes = super::changes::between(&self.slices, now);
        let mut services = BTreeSet::new();
        for key in changes {
            if let Some(old) = self.slices.remove(&key) {
                self.forget(&key, &old, &mut services);
            }
            if let Some(slice) = now.get(&key) {
                self.slices.insert(key.clone(), slice.clone());
                if let Some(service) = service_of(&key, slice) {
                    self.by_service.entry(service.clone()).or_default().insert(key, read(slice));
                    services.insert(service);
                }
            }
        }
        services
    }

    fn forget(&mut self, key: &ObjectKey, slice: &EndpointSlice, services: &mut BTreeSet<ObjectKey>) {
        let Some(service) = service_of(key, slice) else { return };
        if let Some(slices) = self.by_service.get_mut(&service) {
            slices.remove(key);
            if slices.is_empty() {
                self.by_service.remove(&service);
            }
        }
        services.insert(service);
    }

    /// Returns the endpoints of a Service that are ready or drain.
    pub fn of(&self, service: &ObjectKey) -> impl Iterator<Item = &Endpoint> {
        self.by_service.get(service).into_iter().flat_map(|slices| slices.values().flatten())
    }
}

fn service_of(key: &ObjectKey, slice: &EndpointSlice) -> Option<ObjectKey> {
    let name = slice.metadata.labels.as_ref()?.get(SERVICE_LABEL)?;
    Some(ObjectKey::new(&*key.namespace, &**name))
}

fn read(slice: &EndpointSlice) -> Vec<Endpoint> {
    let ports = slice.ports.as_ref().map(|ports| {
        let ports = ports.iter().filter_map(|p| {
            Some((p.name.clone().unwrap_or_default(), u16::try_from(p.port?).ok().filter(|n| *n != 0)?))
        });
        ports.collect::<BTreeMap<String, u16>>()
    });
    let ports = Arc::new(ports);
    let mut result = Vec::new();
    for endpoint in &slice.endpoints {
        let conditions = endpoint.conditions.as_ref();
        let is_ready = conditions.and_then(|c| c.ready).unwrap_or(true);
        let is_terminating = conditions.and_then(|c| c.terminating).unwrap_or(false);
        let is_serving = conditions.and_then(|c| c.serving).unwrap_or(is_ready);
        let is_draining = !is_ready && is_serving && is_terminating;
        if !is_ready && !is_draining {
            continue;
        }
        // All addresses of an endpoint are equivalent: the first one is used.
        let Some(address) = endpoint.addresses.first().and_then(|a| a.parse::<IpAddr>().ok()) else { continue };
        let pod = endpoint.target_ref.as_ref().and_then(|r| r.name.as_deref());
        let name = names::part(pod.unwrap_or(&address.to_string().replace(':', "-")));
        result.push(Endpoint { name, address, ports: ports.clone(), is_draining });
    }
    result
}
