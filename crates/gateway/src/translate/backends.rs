//! Backends: what routes decide about them, and their servers, which are the endpoints of Services.

use std::collections::BTreeMap;

use crate::desired::{Backend, BackendKind, Filter, Protocol, Retries, Server, ServerTls, SessionCookie, Timeouts};

use super::endpoints::{Endpoint, Endpoints};
use super::members::Member;

/// The largest weight of a server.
const LARGEST_WEIGHT: u64 = 256;

/// A backend without its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendPlan {
    pub name: String,
    pub kind: BackendKind,
    pub filters: Vec<Filter>,
    pub members: Vec<Member>,
    /// The sum of the weights of references that cannot be followed: their share of requests is answered 500.
    pub refused: u64,
    pub protocol: Protocol,
    pub tls: Option<ServerTls>,
    pub timeouts: Timeouts,
    pub retries: Option<Retries>,
    pub cookie: Option<SessionCookie>,
}

impl BackendPlan {
    pub fn new(name: String, kind: BackendKind) -> Self {
        Self {
            name,
            kind,
            filters: Vec::new(),
            members: Vec::new(),
            refused: 0,
            protocol: Protocol::Http1,
            tls: None,
            timeouts: Timeouts::default(),
            retries: None,
            cookie: None,
        }
    }

    /// Returns the backend with the servers of its Services' endpoints.
    pub fn build(&self, endpoints: &Endpoints) -> Backend {
        let mut backend = Backend {
            kind: self.kind.clone(),
            filters: self.filters.clone(),
            servers: BTreeMap::new(),
            protocol: self.protocol,
            tls: self.tls.clone(),
            timeouts: self.timeouts,
            retries: self.retries.clone(),
            cookie: self.cookie.clone(),
        };
        let pools: Vec<Pool<'_>> = self.members.iter().map(|member| Pool::of(member, endpoints)).collect();
        backend.filters.extend(self.answers(&pools));
        let scale = Scale::of(&pools);
        for (index, pool) in pools.iter().enumerate() {
            let prefix = if pools.len() > 1 { format!("{index}:") } else { String::new() };
            pool.add_servers(&prefix, scale.weight(pool), &mut backend.servers);
        }
        backend
    }

    /// The answers to the shares of references that cannot be followed (500), and of Services without endpoints (503).
    fn answers(&self, pools: &[Pool<'_>]) -> Vec<Filter> {
        if matches!(self.kind, BackendKind::Tcp) {
            return Vec::new();
        }
        let empty: u64 = pools.iter().filter(|p| p.is_empty()).map(|p| u64::from(p.member.weight)).sum();
        let total: u64 = self.refused + self.members.iter().map(|m| u64::from(m.weight)).sum::<u64>();
        let mut rest = total;
        let mut result = Vec::new();
        for (status, share) in [(500, self.refused), (503, empty)] {
            // Without any other member there is no share to draw: a backend without servers answers 503 by itself.
            if share > 0 && (status == 500 || share < rest) {
                result.push(Filter::Answer { status, numerator: narrow(share), denominator: narrow(rest) });
            }
            rest = rest.saturating_sub(share);
        }
        result
    }
}

/// Weights are at most a million each, and a rule has at most 16 references.
fn narrow(weight: u64) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}

/// The endpoints of a member.
struct Pool<'a> {
    member: &'a Member,
    endpoints: Vec<Bound<'a>>,
}

/// An endpoint with the number of the member's port.
struct Bound<'a> {
    endpoint: &'a Endpoint,
    port: u16,
}

impl<'a> Pool<'a> {
    fn of(member: &'a Member, endpoints: &'a Endpoints) -> Self {
        let bound = endpoints.of(&member.service).filter_map(|endpoint| {
            let port = match endpoint.ports.as_ref() {
                None => Some(member.target_port),
                Some(ports) => ports.get(&member.port_name).copied(),
            };
            port.map(|port| Bound { endpoint, port })
        });
        Self { member, endpoints: bound.collect() }
    }

    fn ready(&self) -> u64 {
        self.endpoints.iter().filter(|b| !b.endpoint.is_draining).count() as u64
    }

    fn is_empty(&self) -> bool {
        self.ready() == 0
    }

    fn add_servers(&self, prefix: &str, weight: u16, servers: &mut BTreeMap<String, Server>) {
        for bound in &self.endpoints {
            let server = Server {
                address: bound.endpoint.address,
                port: bound.port,
                weight,
                is_draining: bound.endpoint.is_draining,
                request_headers: self.member.filters.clone(),
            };
            let name = format!("{prefix}{}:{}", bound.endpoint.name, bound.port);
            // An endpoint may be in two EndpointSlices at a time: the one that is ready counts.
            match servers.get(&name) {
                Some(other) if !other.is_draining => {}
                _ => drop(servers.insert(name, server)),
            }
        }
    }
}

/// The scale of servers' weights: a member's weight is shared by its endpoints, and the largest weight of a server is that of Weir.
struct Scale {
    /// The largest weight of an endpoint, as a fraction.
    weight: u64,
    endpoints: u64,
    is_single: bool,
}

impl Scale {
    fn of(pools: &[Pool<'_>]) -> Self {
        let mut largest = Self { weight: 0, endpoints: 1, is_single: pools.len() == 1 };
        for pool in pools.iter().filter(|p| !p.is_empty()) {
            let weight = u64::from(pool.member.weight);
            if weight * largest.endpoints > largest.weight * pool.ready() {
                largest = Self { weight, endpoints: pool.ready(), ..largest };
            }
        }
        largest
    }

    /// The weight of each server of a member.
    fn weight(&self, pool: &Pool<'_>) -> u16 {
        let weight = u64::from(pool.member.weight);
        if weight == 0 {
            return 0;
        }
        if self.is_single || self.weight == 0 {
            return 1;
        }
        // weight / ready of 256 / (largest weight / its endpoints), rounded.
        let numerator = weight * self.endpoints * LARGEST_WEIGHT;
        let denominator = pool.ready().max(1) * self.weight;
        let rounded = (numerator + denominator / 2) / denominator;
        u16::try_from(rounded.clamp(1, LARGEST_WEIGHT)).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{EndpointSlice, ObjectKey};
    use serde_json::json;
    use std::sync::Arc;

    fn endpoints(counts: &[(&str, usize)]) -> Endpoints {
        let mut result = Endpoints::default();
        let slices = counts.iter().map(|(service, count)| {
            let list: Vec<_> = (0..*count).map(|n| json!({"addresses": [format!("10.1.0.{n}")], "targetRef": {"name": format!("{service}-{n}")}})).collect();
            let slice: EndpointSlice = serde_json::from_value(json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [{"name": "", "port": 3000}],
                "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}}, "endpoints": list,
            }))
            .unwrap();
            (ObjectKey::new("d", *service), Arc::new(slice))
        });
        result.update(&slices.collect());
        result
    }

    fn member(service: &str, weight: u32) -> Member {
        Member {
            service: ObjectKey::new("d", service),
            port: 80,
            port_name: String::new(),
            target_port: 3000,
            weight,
            filters: Vec::new(),
            protocol: Protocol::Http1,
            tls: None,
        }
    }

    #[test]
    fn weights_keep_their_ratios() {
        for (members, counts, expected) in [
            (&[("a", 1)][..], &[("a", 2)][..], "a-0:3000=1 a-1:3000=1"),
            (&[("a", 7)][..], &[("a", 1)][..], "a-0:3000=1"),
            (&[("a", 90), ("b", 10)][..], &[("a", 1), ("b", 1)][..], "0:a-0:3000=256 1:b-0:3000=28"),
            (
                &[("a", 1), ("b", 1)][..],
                &[("a", 1), ("b", 3)][..],
                "0:a-0:3000=256 1:b-0:3000=85 1:b-1:3000=85 1:b-2:3000=85",
            ),
            (&[("a", 1), ("b", 0)][..], &[("a", 1), ("b", 1)][..], "0:a-0:3000=256 1:b-0:3000=0"),
            (&[("a", 1_000_000), ("b", 1)][..], &[("a", 1), ("b", 1)][..], "0:a-0:3000=256 1:b-0:3000=1"),
            (&[("a", 1), ("b", 1)][..], &[("a", 1)][..], "0:a-0:3000=256"),
            (&[("a", 1)][..], &[][..], ""),
        ] {
            let plan = BackendPlan {
                members: members.iter().map(|(s, w)| member(s, *w)).collect(),
                ..BackendPlan::new("n".into(), BackendKind::Http)
            };
            let backend = plan.build(&endpoints(counts));
            let found: Vec<_> =
                backend.servers.iter().map(|(name, server)| format!("{name}={}", server.weight)).collect();
            assert_eq!(found.join(" "), expected);
        }
    }

    #[test]
    fn shares_without_servers_are_answered() {
        let answer = |status, numerator, denominator| Filter::Answer { status, numerator, denominator };
        for (members, refused, expected) in [
            (&[("a", 1)][..], 0, vec![]),
            (&[("none", 1)][..], 0, vec![]),
            (&[("a", 1)][..], 1, vec![answer(500, 1, 2)]),
            (&[("a", 3), ("none", 1)][..], 0, vec![answer(503, 1, 4)]),
            (&[("a", 3), ("none", 1)][..], 4, vec![answer(500, 4, 8), answer(503, 1, 4)]),
            (&[("none", 1)][..], 1, vec![answer(500, 1, 2)]),
        ] {
            let members = members.iter().map(|(s, w)| member(s, *w)).collect();
            let plan = BackendPlan { members, refused, ..BackendPlan::new("n".into(), BackendKind::Http) };
            assert_eq!(plan.build(&endpoints(&[("a", 1)])).filters, expected);
            // Connections have no status.
            let plan = BackendPlan { kind: BackendKind::Tcp, ..plan };
            assert_eq!(plan.build(&endpoints(&[("a", 1)])).filters, []);
        }
    }
}
