//! Addresses that are bound twice. Must never report sockets that differ in what they receive.

use crate::finding::Findings;
use crate::model::Model;
use crate::rule::Rule;
use config::spec::{AddressSpec, BindSpec, Family, HostSpec};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[Rule {
    name: "address-bound-twice",
    doc: "two 'bind' lines have the same address, so that each gets a part of its connections at random",
    check: bound_twice,
}];

/// Identifies the socket of an address; `None` if its connections come in another way.
fn key(bind: &BindSpec) -> Option<String> {
    let listening = &bind.listening;
    // Lines for different threads or networks share an address on purpose.
    let apart = format!("{:?} {:?} {:?}", listening.threads, listening.interface, listening.namespace);
    let address = match &bind.address {
        AddressSpec::Inet { host, family, port, kind, .. } => {
            let host = match (host, family) {
                (HostSpec::Any, Family::Unspecified | Family::V4) => IpAddr::V4(Ipv4Addr::UNSPECIFIED).to_string(),
                (HostSpec::Any, Family::V6) => "::".to_owned(),
                (HostSpec::Ip(address), _) => address.to_string(),
                (HostSpec::Name(name), _) => name.clone(),
            };
            format!("{host} {port:?} {kind:?}")
        }
        AddressSpec::Unix { path, kind } => format!("{path} {kind:?}"),
        AddressSpec::Abstract { name, unpadded, kind } => format!("@{name} {unpadded} {kind:?}"),
        AddressSpec::Descriptor { .. } | AddressSpec::Reverse { .. } => return None,
    };
    Some(format!("{address} {apart}"))
}

fn bound_twice(model: &Model<'_>, findings: &mut Findings) {
    let mut known: BTreeMap<String, (&BindSpec, &str)> = BTreeMap::new();
    for proxy in model.proxies.iter().filter(|proxy| !proxy.spec.disabled) {
        for bind in &proxy.spec.binds {
            let Some(key) = key(bind) else { continue };
            let Some((first, owner)) = known.get(&key) else {
                known.insert(key, (bind, proxy.name()));
                continue;
            };
            let message = format!(
                "'{}' is bound in line {} as well, by '{owner}': connections are divided at random",
                bind.text, first.span.line
            );
            findings.add(bind.span, message);
        }
    }
}
