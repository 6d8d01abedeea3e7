//! Metrics of `udp-lb` sections (Weir's own): lost datagrams and evicted flows. Must never change a flow.

use std::fmt::Write as _;

use engine::worker::Process;
use live::counters::DatagramCounters;
use policy::program::Program;

use super::metric::Type;
use super::selection::Selection;
use super::text::{Labels, PIECE, begin};

/// The metrics, in the order of [`DatagramCounters::NAMES`].
const METRICS: [(&str, &str); DatagramCounters::NAMES.len()] = [
    ("weir_udp_flows_evicted_total", "Flows that ended because another one needed their slot"),
    ("weir_udp_datagrams_refused_total", "Datagrams that would have begun a flow beyond a limit or a rate"),
    ("weir_udp_datagrams_oversized_total", "Datagrams above accepted-payload-size"),
    ("weir_udp_datagrams_unsent_total", "Datagrams that the system has not taken"),
    ("weir_udp_flows_rejected_total", "Flows whose server has rejected a datagram"),
    ("weir_udp_datagrams_held_total", "Datagrams of QUIC that were held until their ClientHello was complete"),
    ("weir_udp_connections_nameless_total", "QUIC connections that were passed on without a complete ClientHello"),
];

/// Appends the samples of a metric, of proxies from the index `object` on. Returns whether there are more; `None`: there is no such
/// metric.
pub(super) fn write(
    process: &Process,
    program: &Program,
    selection: &Selection,
    metric: usize,
    object: usize,
    out: &mut String,
) -> Option<bool> {
    let (name, help) = METRICS.get(metric)?;
    if !selection.wants(name) {
        return Some(false);
    }
    if object == 0 {
        begin(out, name, Type::Counter, help);
    }
    let end = (object + PIECE).min(program.proxies.places());
    for index in object..end {
        let Some(proxy) = program.proxies.get(index).filter(|_| program.proxies.is_present(index)) else { continue };
        if proxy.flows.is_some() {
            let sum = process.counters.datagrams(index)[metric];
            // A string accepts all text.
            let _ = writeln!(out, "{name}{} {sum}", Labels(&[("proxy", &*proxy.name)]));
        }
    }
    Some(end < program.proxies.places())
}
