//! Listeners that are not distinct. Of one object's listeners all that conflict lose; an older object's precede those of others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::listeners::{Listener, Protocol};

/// The use of a port of an address.
#[derive(Debug)]
struct Claim {
    protocol: Protocol,
    hostnames: BTreeSet<String>,
}

/// Ports of addresses, as the listeners of preceding objects use them.
#[derive(Debug, Default)]
pub struct Claims {
    ports: BTreeMap<SocketAddr, Claim>,
}

impl Claims {
    /// Marks the listeners of one object that conflict with those before or with each other, and claims the ports of the others.
    pub fn admit(&mut self, listeners: &mut [Listener], addresses: &[IpAddr]) {
        for listener in listeners.iter_mut() {
            let (Some(protocol), Some(port), true) = (listener.protocol, listener.port(), listener.accepted.holds)
            else {
                continue;
            };
            let reason =
                addresses.iter().find_map(|a| self.conflict(&SocketAddr::new(*a, port), protocol, &listener.hostname));
            if let Some(reason) = reason {
                listener.conflict(
                    reason,
                    format!("a preceding listener uses the port {port} with this hostname or another protocol"),
                );
            }
        }
        mark_indistinct(listeners);
        for listener in listeners.iter().filter(|l| l.accepted.holds) {
            let (Some(protocol), Some(port)) = (listener.protocol, listener.port()) else { continue };
            for address in addresses {
                self.claim(SocketAddr::new(*address, port), protocol, &listener.hostname);
            }
        }
    }

    fn conflict(&self, socket: &SocketAddr, protocol: Protocol, hostname: &str) -> Option<&'static str> {
        let claim = self.ports.get(socket)?;
        conflict_of(claim.protocol, protocol, claim.hostnames.contains(hostname))
    }

    fn claim(&mut self, socket: SocketAddr, protocol: Protocol, hostname: &str) {
        let claim = self.ports.entry(socket).or_insert_with(|| Claim { protocol, hostnames: BTreeSet::new() });
        claim.hostnames.insert(hostname.to_owned());
    }
}

/// Returns the reason of a conflict on a port between listeners with these protocols.
fn conflict_of(one: Protocol, other: Protocol, is_same_hostname: bool) -> Option<&'static str> {
    if one != other {
        Some("ProtocolConflict")
    } else if one == Protocol::Tcp {
        Some("HostnameConflict")
    } else {
        is_same_hostname.then_some("HostnameConflict")
    }
}

fn mark_indistinct(listeners: &mut [Listener]) {
    let mut found: Vec<Option<&'static str>> = vec![None; listeners.len()];
    for (i, one) in listeners.iter().enumerate() {
        for (j, other) in listeners.iter().enumerate().skip(i + 1) {
            let (Some(p), Some(q)) = (one.protocol, other.protocol) else { continue };
            if one.spec.port != other.spec.port || !one.accepted.holds || !other.accepted.holds {
                continue;
            }
            if let Some(reason) = conflict_of(p, q, one.hostname == other.hostname) {
                found[i] = Some(reason);
                found[j] = Some(reason);
            }
        }
    }
    for (listener, reason) in listeners.iter_mut().zip(found) {
        if let Some(reason) = reason {
            let port = listener.spec.port;
            listener.conflict(reason, format!("listeners of the port {port} are not distinct"));
        }
    }
}
