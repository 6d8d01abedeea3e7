//! Frontends: the entries of all routes by address and port, kept sorted, so that a change of one route touches its entries alone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::desired::{ClientCertificates, Frontend, FrontendKind, PathMatch, Route, Tls, TlsTarget};

use super::attach::Isolation;
use super::gateways::GatewayTable;
use super::listeners::{Listener, Protocol};
use super::routes::{Entry, EntryKind};

/// The backend of requests that no route of their listener fits.
pub const NOT_FOUND: &str = "weir:not-found";

/// The backend of connections that no route of their listener fits: it has no servers.
pub const REFUSED: &str = "weir:refused";

/// Precedes no other order: times begin with digits.
const LAST: &str = "~";

/// The entries of one address and port.
#[derive(Debug, Default)]
struct Table {
    routes: BTreeSet<Arc<Route>>,
    tls: BTreeMap<StreamKey, TlsTarget>,
    tcp: BTreeMap<String, String>,
}

/// The name and the order of an entry for connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StreamKey {
    name: String,
    order: String,
}

/// The entries of all frontends, and the frontends themselves.
#[derive(Debug, Default)]
pub struct Frontends {
    tables: BTreeMap<SocketAddr, Table>,
    stale: BTreeSet<SocketAddr>,
    built: BTreeMap<SocketAddr, Arc<Frontend>>,
}

impl Frontends {
    pub fn remove(&mut self, entries: &[Entry]) {
        for entry in entries {
            let Some(table) = self.tables.get_mut(&entry.socket) else { continue };
            match &entry.kind {
                EntryKind::Http(route) => drop(table.routes.remove(route)),
                EntryKind::Tls { name, order, .. } => {
                    drop(table.tls.remove(&StreamKey { name: name.clone(), order: order.clone() }))
                }
                EntryKind::Tcp { order, .. } => drop(table.tcp.remove(order)),
            }
            self.stale.insert(entry.socket);
        }
    }

    pub fn insert(&mut self, entries: &[Entry]) {
        for entry in entries {
            let table = self.tables.entry(entry.socket).or_default();
            match &entry.kind {
                EntryKind::Http(route) => drop(table.routes.insert(route.clone())),
                EntryKind::Tls { name, order, target } => {
                    drop(table.tls.insert(StreamKey { name: name.clone(), order: order.clone() }, target.clone()));
                }
                EntryKind::Tcp { order, backend } => drop(table.tcp.insert(order.clone(), backend.clone())),
            }
            self.stale.insert(entry.socket);
        }
    }

    /// Returns the frontends of all listeners. Those without changes keep their addresses.
    pub fn build(
        &mut self,
        gateways: &GatewayTable,
        isolation: &Isolation,
        is_environment: bool,
    ) -> &BTreeMap<SocketAddr, Arc<Frontend>> {
        if is_environment {
            self.stale.extend(isolation.sockets());
            let known: BTreeSet<SocketAddr> = isolation.sockets().collect();
            self.built.retain(|socket, _| known.contains(socket));
            self.tables.retain(|socket, _| known.contains(socket));
        }
        if self.stale.is_empty() {
            return &self.built;
        }
        let mut listeners: BTreeMap<SocketAddr, Vec<&Listener>> = BTreeMap::new();
        for listener in gateways.serving() {
            for socket in listener.sockets.iter().filter(|socket| self.stale.contains(socket)) {
                listeners.entry(*socket).or_default().push(listener);
            }
        }
        let empty = Table::default();
        for (socket, listeners) in listeners {
            let table = self.tables.get(&socket).unwrap_or(&empty);
            let Some(kind) = kind(table, &listeners, isolation, socket) else {
                self.built.remove(&socket);
                continue;
            };
            let frontend = Frontend { kind };
            if self.built.get(&socket).is_none_or(|old| **old != frontend) {
                self.built.insert(socket, Arc::new(frontend));
            }
        }
        self.stale.clear();
        &self.built
    }
}

fn kind(table: &Table, listeners: &[&Listener], isolation: &Isolation, socket: SocketAddr) -> Option<FrontendKind> {
    match listeners.first()?.protocol? {
        Protocol::Http => Some(FrontendKind::Http { tls: None, routes: routes(table, isolation, socket) }),
        Protocol::Https => {
            Some(FrontendKind::Http { tls: Some(tls(listeners)), routes: routes(table, isolation, socket) })
        }
        Protocol::Tls => Some(FrontendKind::Tls { names: names(table, isolation, socket) }),
        Protocol::Tcp => table.tcp.values().next().map(|backend| FrontendKind::Tcp { backend: backend.clone() }),
    }
}

/// The entries in their order, without those that can never win, and with the catch-all entries of listeners.
fn routes(table: &Table, isolation: &Isolation, socket: SocketAddr) -> Vec<Route> {
    let mut result: Vec<Route> = Vec::with_capacity(table.routes.len());
    for route in &table.routes {
        if result.last().is_none_or(|last| !has_same_conditions(last, route)) {
            result.push((**route).clone());
        }
    }
    for host in isolation.overlapping(socket) {
        let route = Route {
            host: host.to_owned(),
            path: PathMatch::Prefix(String::new()),
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
            order: LAST.to_owned(),
            backend: NOT_FOUND.to_owned(),
        };
        if let Err(at) = result.binary_search(&route)
            && at
                .checked_sub(1)
                .and_then(|before| result.get(before))
                .is_none_or(|before| !has_same_conditions(before, &route))
        {
            result.insert(at, route);
        }
    }
    result
}

fn has_same_conditions(one: &Route, other: &Route) -> bool {
    one.host == other.host
        && one.path == other.path
        && one.method == other.method
        && one.headers == other.headers
        && one.query == other.query
}

fn tls(listeners: &[&Listener]) -> Tls {
    let mut certificates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for listener in listeners {
        let names = certificates.entry(listener.hostname.clone()).or_default();
        for certificate in listener.certificates.iter().filter(|c| !names.contains(c)).cloned().collect::<Vec<_>>() {
            names.push(certificate);
        }
    }
    let clients = listeners.iter().find_map(|l| l.clients.clone());
    Tls {
        hostnames: certificates.keys().cloned().collect(),
        certificates,
        clients: clients.map(|c| ClientCertificates { authorities: c.authorities, optional: c.optional }),
    }
}

/// The targets of names, with those of listeners whose connections must not reach a less specific one.
fn names(table: &Table, isolation: &Isolation, socket: SocketAddr) -> BTreeMap<String, TlsTarget> {
    let mut result: BTreeMap<String, TlsTarget> = BTreeMap::new();
    for (key, target) in &table.tls {
        result.entry(key.name.clone()).or_insert_with(|| target.clone());
    }
    for host in isolation.overlapping(socket) {
        result.entry(host.to_owned()).or_insert_with(|| TlsTarget::Passthrough { backend: REFUSED.to_owned() });
    }
    result
}
