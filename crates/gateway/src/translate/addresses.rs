//! Addresses of Gateways. A Gateway keeps the address that its status has.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::snapshot::{Gateway, ObjectKey};

use super::settings::{Addresses, Network};

/// The most addresses of a network that are tried.
const MOST_ADDRESSES: u128 = 1 << 16;

/// The addresses of a Gateway, or why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment {
    Assigned(Vec<IpAddr>),
    /// A type of address that is not supported: the Gateway is not accepted.
    UnsupportedType(String),
    /// An address that cannot be used. The Gateway is accepted, but not programmed.
    NotUsable {
        message: String,
        usable: Vec<IpAddr>,
    },
    /// There is no free address.
    NotAssigned,
}

impl Assignment {
    pub fn addresses(&self) -> &[IpAddr] {
        match self {
            Self::Assigned(addresses) | Self::NotUsable { usable: addresses, .. } => addresses,
            Self::UnsupportedType(_) | Self::NotAssigned => &[],
        }
    }
}

/// Assigns addresses to Gateways, in this order. `former` are the assignments of the translation before.
pub fn assign(
    gateways: &[(&ObjectKey, &Arc<Gateway>)],
    settings: &Addresses,
    former: &BTreeMap<ObjectKey, Assignment>,
) -> BTreeMap<ObjectKey, Assignment> {
    let mut result: BTreeMap<ObjectKey, Assignment> = BTreeMap::new();
    let mut taken: BTreeSet<IpAddr> = BTreeSet::new();
    let mut rest = Vec::new();
    for &(key, gateway) in gateways {
        match requested(gateway, settings) {
            Some(assignment) => {
                taken.extend(assignment.addresses());
                result.insert(key.clone(), assignment);
            }
            None => rest.push((key, gateway)),
        }
    }
    let networks = match settings {
        Addresses::Shared(address) => {
            result.extend(rest.into_iter().map(|(key, _)| (key.clone(), Assignment::Assigned(vec![*address]))));
            return result;
        }
        Addresses::Pool(networks) => networks,
    };
    rest.retain(|&(key, gateway)| {
        let kept = kept(gateway, former.get(key))
            .into_iter()
            .find(|a| networks.iter().any(|n| n.contains(*a)) && taken.insert(*a));
        kept.map(|address| result.insert(key.clone(), Assignment::Assigned(vec![address]))).is_none()
    });
    let mut free = networks.iter().flat_map(Network::hosts);
    for (key, _) in rest {
        let assignment =
            free.find(|a| taken.insert(*a)).map_or(Assignment::NotAssigned, |a| Assignment::Assigned(vec![a]));
        result.insert(key.clone(), assignment);
    }
    result
}

/// The addresses that a Gateway had: those of the last translation, then those of its status.
fn kept(gateway: &Gateway, former: Option<&Assignment>) -> Vec<IpAddr> {
    let mut result: Vec<IpAddr> = former.map(|f| f.addresses().to_vec()).unwrap_or_default();
    let status = gateway.status.as_ref().and_then(|s| s.addresses.as_ref());
    result.extend(status.into_iter().flatten().filter_map(|a| a.value.parse::<IpAddr>().ok()));
    result
}

/// The addresses that a Gateway's specification asks for by value, if it does.
fn requested(gateway: &Gateway, settings: &Addresses) -> Option<Assignment> {
    let mut usable = Vec::new();
    let mut unusable = None;
    for address in gateway.spec.addresses.as_ref()? {
        let kind = address.r#type.as_deref().unwrap_or("IPAddress");
        if kind != "IPAddress" {
            return Some(Assignment::UnsupportedType(format!(
                "addresses of the type {kind} are not supported, only IPAddress"
            )));
        }
        let Some(value) = address.value.as_deref().filter(|v| !v.is_empty()) else { continue };
        match value.parse::<IpAddr>().ok().filter(|a| settings.has(*a)) {
            Some(parsed) if !usable.contains(&parsed) => usable.push(parsed),
            Some(_) => {}
            None => unusable = Some(format!("the address {value} is not one of this controller's")),
        }
    }
    match unusable {
        Some(message) => Some(Assignment::NotUsable { message, usable }),
        None if usable.is_empty() => None,
        None => Some(Assignment::Assigned(usable)),
    }
}

impl Addresses {
    fn has(&self, address: IpAddr) -> bool {
        match self {
            Self::Shared(shared) => *shared == address,
            Self::Pool(networks) => networks.iter().any(|n| n.contains(address)),
        }
    }
}

impl Network {
    /// Whether an address has the network's prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                same_prefix(u128::from(own.to_bits()) << 96, u128::from(other.to_bits()) << 96, self.prefix)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => same_prefix(own.to_bits(), other.to_bits(), self.prefix),
            _ => false,
        }
    }

    /// The network's addresses from its first one on, at most some ten thousand.
    fn hosts(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let network = *self;
        let start = match self.address {
            IpAddr::V4(a) => u128::from(a.to_bits() & mask32(self.prefix)),
            IpAddr::V6(a) => a.to_bits() & mask128(self.prefix),
        };
        (0..MOST_ADDRESSES)
            .map_while(move |offset| {
                let bits = start.checked_add(offset)?;
                match network.address {
                    IpAddr::V4(_) => u32::try_from(bits).ok().map(|b| IpAddr::V4(b.into())),
                    IpAddr::V6(_) => Some(IpAddr::V6(bits.into())),
                }
            })
            .take_while(move |a| network.contains(*a))
    }
}

fn same_prefix(one: u128, other: u128, prefix: u8) -> bool {
    (one ^ other) & mask128(prefix) == 0
}

fn mask128(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128u32.saturating_sub(prefix.into())).unwrap_or(0)
}

fn mask32(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32u32.saturating_sub(prefix.into())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gateway(spec: serde_json::Value, status: Option<&str>) -> Arc<Gateway> {
        let status = status.map(|a| json!({"addresses": [{"type": "IPAddress", "value": a}]}));
        Arc::new(
            serde_json::from_value(json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "g"},
                "spec": {"gatewayClassName": "weir", "listeners": [], "addresses": spec}, "status": status,
            }))
            .unwrap(),
        )
    }

    fn pool() -> Addresses {
        Addresses::Pool(vec![Network { address: "10.0.0.9".parse().unwrap(), prefix: 30 }])
    }

    fn assigned(addresses: &[&str]) -> Assignment {
        Assignment::Assigned(addresses.iter().map(|a| a.parse().unwrap()).collect())
    }

    #[test]
    fn gateways_get_addresses() {
        let cases = [
            (json!([]), None, assigned(&["10.0.0.8"])),
            (json!([]), Some("10.0.0.10"), assigned(&["10.0.0.10"])),
            (json!([]), Some("10.0.0.12"), assigned(&["10.0.0.8"])),
            (json!([]), Some("no address"), assigned(&["10.0.0.8"])),
            (json!([{"type": "IPAddress"}]), None, assigned(&["10.0.0.8"])),
            (json!([{"type": "IPAddress", "value": "10.0.0.11"}]), Some("10.0.0.10"), assigned(&["10.0.0.11"])),
            (json!([{"value": "10.0.0.11"}, {"value": "10.0.0.9"}]), None, assigned(&["10.0.0.11", "10.0.0.9"])),
            (
                json!([{"value": "192.0.2.1"}, {"value": "10.0.0.11"}]),
                None,
                Assignment::NotUsable {
                    message: "the address 192.0.2.1 is not one of this controller's".into(),
                    usable: vec!["10.0.0.11".parse().unwrap()],
                },
            ),
            (
                json!([{"type": "Hostname", "value": "a.example"}]),
                None,
                Assignment::UnsupportedType("addresses of the type Hostname are not supported, only IPAddress".into()),
            ),
        ];
        for (spec, status, expected) in cases {
            let key = ObjectKey::new("default", "g");
            let gateway = gateway(spec.clone(), status);
            let result = assign(&[(&key, &gateway)], &pool(), &BTreeMap::new());
            assert_eq!(result[&key], expected, "{spec} with {status:?}");
        }
    }

    #[test]
    fn a_pool_ends_and_is_kept() {
        let plain = gateway(json!([]), None);
        let keys: Vec<ObjectKey> = (0..6).map(|n| ObjectKey::new("default", format!("g{n}"))).collect();
        let gateways: Vec<_> = keys.iter().map(|key| (key, &plain)).collect();
        let first = assign(&gateways, &pool(), &BTreeMap::new());
        let texts: Vec<_> = keys
            .iter()
            .map(|k| first[k].addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(texts, ["10.0.0.8", "10.0.0.9", "10.0.0.10", "10.0.0.11", "", ""]);
        assert_eq!(first[&keys[5]], Assignment::NotAssigned);
        let second = assign(&gateways[2..], &pool(), &first);
        assert_eq!(second[&keys[3]], first[&keys[3]]);
        assert_eq!(second[&keys[5]], assigned(&["10.0.0.9"]));
        // Two Gateways whose statuses have the same address: the first one keeps it.
        let twin = gateway(json!([]), Some("10.0.0.10"));
        let twins = assign(&[(&keys[0], &twin), (&keys[1], &twin)], &pool(), &BTreeMap::new());
        assert_eq!((&twins[&keys[0]], &twins[&keys[1]]), (&assigned(&["10.0.0.10"]), &assigned(&["10.0.0.8"])));
    }
}
