//! Metrics of sections `bgp` (Weir's own): their sessions with routers, and their routes. Must never change a session.

use std::fmt::Write as _;

use engine::worker::Process;
use live::bgp::{Routes, SessionStatus, State};
use policy::program::{BgpSpeaker, Program};

use super::metric::Type;
use super::selection::Selection;
use super::text::{Labels, PIECE, begin};
use crate::bgp::Speakers;

/// The position in the metrics of the sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BgpPosition {
    pub(super) metric: usize,
    pub(super) section: usize,
    /// Index of a route.
    pub(super) route: usize,
}

/// A metric: its name, its type, its description, and its values.
struct BgpMetric(&'static str, Type, &'static str, Values);

/// The samples of a metric.
enum Values {
    /// One of each neighbor for each state: 1 for the present one.
    States,
    /// One of each neighbor.
    Neighbors(fn(&SessionStatus) -> u64),
    /// One of each route, by its index.
    Routes(fn(&Routes, usize) -> u64),
}

const STATES: [State; 5] = [State::Idle, State::Connect, State::OpenSent, State::OpenConfirm, State::Established];

#[rustfmt::skip]
const METRICS: [BgpMetric; 11] = [
    BgpMetric("weir_bgp_neighbor_state", Type::Gauge, "State of the session with a router, per state label value", Values::States),
    BgpMetric("weir_bgp_neighbor_routes", Type::Gauge, "Routes that the router has", Values::Neighbors(|status| status.announced as u64)),
    BgpMetric("weir_bgp_neighbor_sessions_total", Type::Counter, "Sessions that were established", Values::Neighbors(|status| status.established)),
    BgpMetric("weir_bgp_neighbor_messages_sent_total", Type::Counter, "Messages sent", Values::Neighbors(|status| status.sent.all)),
    BgpMetric("weir_bgp_neighbor_messages_received_total", Type::Counter, "Messages received", Values::Neighbors(|status| status.received.all)),
    BgpMetric("weir_bgp_neighbor_updates_sent_total", Type::Counter, "UPDATE messages sent", Values::Neighbors(|status| status.sent.updates)),
    BgpMetric("weir_bgp_neighbor_updates_received_total", Type::Counter, "UPDATE messages received", Values::Neighbors(|status| status.received.updates)),
    BgpMetric("weir_bgp_neighbor_routes_dropped_total", Type::Counter, "Routes that the router has sent; all are dropped", Values::Neighbors(|status| status.dropped)),
    BgpMetric("weir_bgp_neighbor_malformed_total", Type::Counter, "UPDATE messages with malformed attributes", Values::Neighbors(|status| status.faulty)),
    BgpMetric("weir_bgp_route_announced", Type::Gauge, "Whether the prefix is announced (1) or withdrawn (0)", Values::Routes(|routes, at| routes.current(at).is_some().into())),
    BgpMetric("weir_bgp_route_changes_total", Type::Counter, "Announcements and withdrawals of the prefix", Values::Routes(|routes, at| routes.changes(at).1)),
];

/// Appends the samples of one metric of a section. Returns the next position; `None`: there is no such metric.
pub(super) fn write(
    process: &Process,
    program: &Program,
    selection: &Selection,
    at: BgpPosition,
    out: &mut String,
) -> Option<BgpPosition> {
    let metric = METRICS.get(at.metric)?;
    let BgpMetric(name, kind, help, values) = metric;
    let Some(speaker) = program.bgp.get(at.section).filter(|_| selection.wants(name)) else {
        return Some(BgpPosition { metric: at.metric + 1, ..BgpPosition::default() });
    };
    if (at.section, at.route) == (0, 0) {
        begin(out, name, *kind, help);
    }
    let next = BgpPosition { section: at.section + 1, route: 0, ..at };
    let Some(state) = process.service::<Speakers>().lock(at.section) else { return Some(next) };
    if let Values::Routes(value) = values {
        for (route, plan) in speaker.routes.iter().enumerate().skip(at.route).take(PIECE) {
            let prefix = plan.prefix.to_string();
            let labels = [("section", &*speaker.name), ("prefix", &prefix)];
            // A string accepts all text.
            let _ = writeln!(out, "{name}{} {}", Labels(&labels), value(&state.routes, route));
        }
        let route = at.route + PIECE;
        return Some(if route < speaker.routes.len() { BgpPosition { route, ..at } } else { next });
    }
    let statuses: Vec<SessionStatus> = state.sessions.iter().map(live::bgp::Session::status).collect();
    drop(state);
    neighbors(metric, speaker, &statuses, out);
    Some(next)
}

/// Appends the samples of the neighbors of a section: at most 64.
fn neighbors(metric: &BgpMetric, speaker: &BgpSpeaker, statuses: &[SessionStatus], out: &mut String) {
    let BgpMetric(name, _, _, values) = metric;
    for (neighbor, status) in speaker.neighbors.iter().zip(statuses) {
        let labels = [("section", &*speaker.name), ("neighbor", &*neighbor.name)];
        match values {
            Values::Neighbors(value) => {
                let _ = writeln!(out, "{name}{} {}", Labels(&labels), value(status));
            }
            Values::States => {
                for state in STATES {
                    let [section, neighbor] = labels;
                    let labels = [section, neighbor, ("state", state.name())];
                    let _ = writeln!(out, "{name}{} {}", Labels(&labels), u8::from(status.state == state));
                }
            }
            Values::Routes(_) => {}
        }
    }
}
