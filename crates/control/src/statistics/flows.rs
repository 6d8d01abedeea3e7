//! Flows and lost datagrams of `udp-lb` sections, which are Weir's own and no columns of `show stat`. Must never count anything.

use live::counters::DatagramCounters;

use super::{Kind, Object};

/// A count of a `udp-lb` section.
pub(crate) struct FlowCount {
    /// The name of its member in JSON.
    pub(crate) member: &'static str,
    /// Its title on the statistics page.
    pub(crate) title: &'static str,
}

const fn count(member: &'static str, title: &'static str) -> FlowCount {
    FlowCount { member, title }
}

/// The counts, in the order of [`DatagramCounters::NAMES`].
const COUNTS: [FlowCount; DatagramCounters::NAMES.len()] = [
    count("flows_evicted", "Evicted flows"),
    count("datagrams_refused", "Refused datagrams"),
    count("datagrams_oversized", "Oversized datagrams"),
    count("datagrams_unsent", "Unsent datagrams"),
    count("flows_rejected", "Flows rejected by servers"),
    count("datagrams_held", "Datagrams held for a ClientHello"),
    count("connections_nameless", "QUIC connections without a name"),
];

/// Returns the counts of a frontend; none if it is that of another proxy.
pub(crate) fn counts(object: &Object<'_>) -> impl Iterator<Item = (&'static FlowCount, u64)> {
    let has_flows = matches!(object.kind, Kind::Frontend) && object.proxy.flows.is_some();
    let sums = has_flows.then(|| object.worker.process.counters.datagrams(object.proxy.index));
    sums.into_iter().flat_map(|sums| COUNTS.iter().zip(sums))
}
