//! BGP speakers, as text.

use std::fmt::Write as _;
use weir_config::spec::{BgpAnnounceSpec, BgpNeighborSpec, BgpSpec, RuleLineSpec};

/// A `bgp` section.
pub fn show(section: &BgpSpec, out: &mut String) {
    let BgpSpec { span, name, local_as, router_id, neighbors, acls, announcements } = section;
    let number = local_as.as_ref().map(|number| number.value);
    let _ = writeln!(out, "bgp {name} @{} as={number:?} id={router_id:?}", span.line);
    for BgpNeighborSpec { name, address, number, port, source, hold_time, password_file, multihop } in neighbors {
        let password = password_file.as_ref().map(|file| &file.value);
        let _ = writeln!(
            out,
            "  neighbor@{} {} {address} as={number} port={port} source={source:?} hold={hold_time} password={password:?} \
             multihop={multihop:?}",
            name.span.line, name.value
        );
    }
    for acl in acls {
        let _ = writeln!(out, "  acl {}", words(acl));
    }
    for BgpAnnounceSpec { prefix, next_hop, med, local_preference, communities, condition } in announcements {
        let (next_hop, preference) =
            (next_hop.as_ref().map(|hop| hop.value), local_preference.as_ref().map(|number| number.value));
        let _ = writeln!(
            out,
            "  announce@{} {}/{} next-hop={next_hop:?} med={med:?} preference={preference:?} {communities:x?} {}",
            prefix.span.line,
            prefix.value.address,
            prefix.value.length,
            words(condition)
        );
    }
}

fn words(line: &RuleLineSpec) -> String {
    line.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}
