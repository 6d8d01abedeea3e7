//! Attachment of routes to listeners.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::snapshot::Snapshot;

use super::conditions::Verdict;
use super::gateways::{GatewayTable, allows};
use super::hostnames::{self, ANY};
use super::listeners::{Listener, Owner, OwnerKind};
use super::model::{GROUP, ParentRef};

/// The properties of a route that decide whether it is attached.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub kind: &'static str,
    pub namespace: &'a str,
    pub hostnames: &'a [String],
}

/// A listener with the hosts that a route has there.
#[derive(Debug)]
pub struct Attachment<'a> {
    pub listener: &'a Listener,
    pub hosts: Vec<String>,
}

/// A parent of a route with the listeners that accept the route.
#[derive(Debug)]
pub struct Parent<'a> {
    pub accepted: Verdict,
    pub attachments: Vec<Attachment<'a>>,
}

/// The name of a listener of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenerId {
    pub owner: Owner,
    pub name: String,
}

impl Listener {
    pub fn id(&self) -> ListenerId {
        ListenerId { owner: self.owner.clone(), name: self.spec.name.clone() }
    }
}

/// Attaches a route to a parent. None for a parent that is not the controller's.
pub fn attach<'a>(
    table: &'a GatewayTable,
    snapshot: &Snapshot,
    route: Candidate<'_>,
    parent: &ParentRef,
) -> Option<Parent<'a>> {
    let listeners = listeners_of(table, route.namespace, parent)?;
    let fits = |l: &&Listener| {
        parent.section_name.as_deref().is_none_or(|name| name == l.spec.name)
            && parent.port.is_none_or(|port| port == l.spec.port)
    };
    let named: Vec<&Listener> = listeners.iter().filter(fits).collect();
    if named.is_empty() {
        return Some(refused("NoMatchingParent", "no listener has the name and port of the reference"));
    }
    let allowed: Vec<&Listener> = named.into_iter().filter(|l| is_allowed(snapshot, l, route)).collect();
    if allowed.is_empty() {
        return Some(refused("NotAllowedByListeners", "no listener accepts routes of this kind and namespace"));
    }
    let attachments: Vec<Attachment<'_>> = allowed
        .into_iter()
        .map(|listener| Attachment { listener, hosts: hosts(listener, route) })
        .filter(|a| !a.hosts.is_empty())
        .collect();
    if attachments.is_empty() {
        return Some(refused("NoMatchingListenerHostname", "no hostname fits one of a listener"));
    }
    Some(Parent { accepted: Verdict::yes("Accepted"), attachments })
}

fn refused(reason: &'static str, message: &str) -> Parent<'static> {
    Parent { accepted: Verdict::no(reason, message), attachments: Vec::new() }
}

fn listeners_of<'a>(table: &'a GatewayTable, namespace: &str, parent: &ParentRef) -> Option<&'a [Listener]> {
    if parent.group.as_deref().unwrap_or(GROUP) != GROUP {
        return None;
    }
    let kind = match parent.kind.as_deref().unwrap_or("Gateway") {
        "Gateway" => OwnerKind::Gateway,
        "ListenerSet" => OwnerKind::ListenerSet,
        _ => return None,
    };
    let key = crate::snapshot::ObjectKey::new(parent.namespace.as_deref().unwrap_or(namespace), &*parent.name);
    table.listeners(kind, &key)
}

fn is_allowed(snapshot: &Snapshot, listener: &Listener, route: Candidate<'_>) -> bool {
    listener.accepted.holds
        && listener.kinds.contains(&route.kind)
        && allows(snapshot, &listener.spec.allowed_routes.namespaces, &listener.owner.key.namespace, route.namespace)
}

/// The hosts that fit both the listener and the route.
fn hosts(listener: &Listener, route: Candidate<'_>) -> Vec<String> {
    if route.hostnames.is_empty() || route.kind == "TCPRoute" {
        return vec![listener.hostname.clone()];
    }
    let mut result = BTreeSet::new();
    for hostname in route.hostnames {
        let hostname = hostname.to_ascii_lowercase();
        if hostnames::is_valid(&hostname) {
            result.extend(hostnames::intersect(&listener.hostname, &hostname).map(str::to_owned));
        }
    }
    result.into_iter().collect()
}

/// The hostnames of the listeners of each socket: a request reaches routes of the listener with the most specific one only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    hostnames: BTreeMap<SocketAddr, BTreeSet<String>>,
}

impl Isolation {
    pub fn new(table: &GatewayTable) -> Self {
        let mut result = Self::default();
        for listener in table.serving() {
            for socket in &listener.sockets {
                result.hostnames.entry(*socket).or_default().insert(listener.hostname.clone());
            }
        }
        result
    }

    /// Whether requests for all of a host's names reach the listener with this hostname, unless another one's is within the host.
    pub fn reaches(&self, socket: SocketAddr, hostname: &str, host: &str) -> bool {
        let Some(known) = self.hostnames.get(&socket) else { return true };
        most_specific(known, host).is_none_or(|found| found == hostname)
    }

    /// Whether the hostnames of an address and port are the same in another table.
    pub fn is_same_at(&self, other: &Self, socket: SocketAddr) -> bool {
        self.hostnames.get(&socket) == other.hostnames.get(&socket)
    }

    /// The hostnames of listeners that less specific listeners of the socket would also fit.
    pub fn overlapping(&self, socket: SocketAddr) -> impl Iterator<Item = &str> {
        let known = self.hostnames.get(&socket);
        known
            .into_iter()
            .flat_map(|known| known.iter().filter(|h| wider(h).any(|w| known.contains(&w))).map(String::as_str))
    }

    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> {
        self.hostnames.keys().copied()
    }
}

fn most_specific<'a>(known: &'a BTreeSet<String>, host: &str) -> Option<&'a str> {
    known.get(host).map(String::as_str).or_else(|| wider(host).find_map(|w| known.get(&w).map(String::as_str)))
}

/// The wildcards that a hostname fits, apart from itself, from the most specific one on.
fn wider(host: &str) -> impl Iterator<Item = String> {
    let name = host.strip_prefix("*.").unwrap_or(host);
    let own = (host != ANY).then_some(());
    let suffixes =
        name.match_indices('.').map(|(at, _)| format!("*{}", name.get(at..).unwrap_or_default())).collect::<Vec<_>>();
    own.into_iter().flat_map(move |()| suffixes.clone().into_iter().chain([ANY.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_found_by_labels() {
        for (host, expected) in [
            ("*", &[][..]),
            ("com", &["*"][..]),
            ("a.b.com", &["*.b.com", "*.com", "*"][..]),
            ("*.b.com", &["*.com", "*"][..]),
        ] {
            assert_eq!(wider(host).collect::<Vec<_>>(), expected, "{host}");
        }
    }

    #[test]
    fn the_most_specific_listener_has_a_host() {
        let socket: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let known = ["*", "*.example.com", "*.foo.example.com", "abc.foo.example.com"].map(str::to_owned);
        let isolation = Isolation { hostnames: BTreeMap::from([(socket, BTreeSet::from(known))]) };
        for (hostname, host, expected) in [
            ("*", "*", true),
            ("*", "bar.com", true),
            ("*", "a.example.com", false),
            ("*", "*.a.example.com", false),
            ("*.example.com", "*.a.example.com", true),
            ("*.example.com", "*.foo.example.com", false),
            ("*.example.com", "abc.foo.example.com", false),
            ("*.foo.example.com", "abc.foo.example.com", false),
            ("abc.foo.example.com", "abc.foo.example.com", true),
        ] {
            assert_eq!(isolation.reaches(socket, hostname, host), expected, "{host} at {hostname}");
        }
        let overlapping: Vec<_> = isolation.overlapping(socket).collect();
        assert_eq!(overlapping, ["*.example.com", "*.foo.example.com", "abc.foo.example.com"]);
    }
}
