//! Metrics of stores and of their limits (Weir's own). Must never send a command to a store, and never visit keys.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use engine::store::{Client, Stores};
use engine::worker::Worker;
use live::lease::LimitCounts;

use super::metric::Type;
use super::selection::Selection;
use super::text::{Labels, PIECE, begin};

/// A metric of a store: its name, its type, its description, and its value.
struct StoreMetric(&'static str, Type, &'static str, fn(&Client) -> f64);

/// The samples to write: those of a metric, for the objects from an index on.
pub(super) struct Part<'a> {
    pub(super) worker: &'a Worker,
    pub(super) selection: &'a Selection,
    pub(super) metric: usize,
    pub(super) object: usize,
}

/// A metric of a limit on this node.
struct LimitMetric(&'static str, Type, &'static str, fn(&LimitCounts) -> u64);

fn number(count: &AtomicU64) -> f64 {
    count.load(Relaxed) as f64
}

#[rustfmt::skip]
const STORES: [StoreMetric; 6] = [
    StoreMetric("weir_store_up", Type::Gauge, "Whether the store can be used (1) or is lost (0)", |client| f64::from(u8::from(client.is_ready()))),
    StoreMetric("weir_store_round_trip_seconds", Type::Gauge, "Duration of the last periodic command until its answer", |client| number(&client.counts.round_trip) / 1e6),
    StoreMetric("weir_store_connections_total", Type::Counter, "Connections to the store that were established", |client| number(&client.counts.connections)),
    StoreMetric("weir_store_commands_total", Type::Counter, "Commands sent to the store", |client| number(&client.counts.commands)),
    StoreMetric("weir_store_refused_total", Type::Counter, "Commands that did not fit into the queue of the store", |client| number(&client.counts.refused)),
    StoreMetric("weir_store_faults_total", Type::Counter, "Faults of the store, failed attempts to connect included", |client| number(&client.counts.faults)),
];

#[rustfmt::skip]
const LIMITS: [LimitMetric; 6] = [
    LimitMetric("weir_limit_keys", Type::Gauge, "Keys that this node keeps", |counts| counts.keys),
    LimitMetric("weir_limit_leased", Type::Gauge, "Tokens of this node that were not spent", |counts| counts.leased),
    LimitMetric("weir_limit_admitted_total", Type::Counter, "Requests that were admitted", |counts| counts.admitted),
    LimitMetric("weir_limit_unleased_total", Type::Counter, "Requests that were admitted before the store knew", |counts| counts.optimistic),
    LimitMetric("weir_limit_exceeded_total", Type::Counter, "Requests that exceeded the limit", |counts| counts.exceeded),
    LimitMetric("weir_limit_evicted_total", Type::Counter, "Keys that were dropped for others", |counts| counts.evicted),
];

/// Appends samples. Returns whether there are more objects; `None`: there is no such metric.
pub(super) fn write(part: &Part<'_>, counts: &[LimitCounts], out: &mut String) -> Option<bool> {
    let Part { worker, selection, metric, object } = *part;
    let process = &worker.process;
    let stores = process.service::<Stores>().all();
    let wants = |name: &str, objects: usize| object < objects && selection.wants(name);
    if let Some(StoreMetric(name, kind, help, value)) = STORES.get(metric) {
        if !wants(name, stores.len()) {
            return Some(false);
        }
        if object == 0 {
            begin(out, name, *kind, help);
        }
        for store in stores.iter().skip(object).take(PIECE) {
            // A string accepts all text.
            let _ = writeln!(out, "{name}{} {}", Labels(&[("store", &store.plan.name)]), value(store));
        }
        return Some(object + PIECE < stores.len());
    }
    let LimitMetric(name, kind, help, value) = LIMITS.get(metric - STORES.len())?;
    if !wants(name, counts.len()) {
        return Some(false);
    }
    if object == 0 {
        begin(out, name, *kind, help);
    }
    for (at, counts) in counts.iter().enumerate().skip(object).take(PIECE) {
        let Some(limit) = process.live.limits.get(at) else { break };
        let store = stores.get(limit.plan.store).map_or("", |store| &*store.plan.name);
        let labels = [("store", store), ("limit", &*limit.plan.name)];
        let _ = writeln!(out, "{name}{} {}", Labels(&labels), value(counts));
    }
    Some(object + PIECE < counts.len())
}
