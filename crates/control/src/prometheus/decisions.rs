//! Metrics of the permissions that `auth-request` rules reuse (Weir's own). Must never show a key or a field of a permission.

use std::fmt::Write as _;

use engine::generation::Generation;
use live::decisions::DecisionCounts;

use super::metric::Type;
use super::selection::Selection;
use super::text::{Labels, begin};

/// A metric: its name, its type, its description, and its value.
struct Row {
    name: &'static str,
    kind: Type,
    help: &'static str,
    value: fn(&DecisionCounts) -> u64,
}

const fn row(name: &'static str, kind: Type, help: &'static str, value: fn(&DecisionCounts) -> u64) -> Row {
    Row { name, kind, help, value }
}

const METRICS: [Row; 6] = [
    row("weir_auth_cache_entries", Type::Gauge, "Permissions in effect", |counts| counts.entries as u64),
    row("weir_auth_cache_bytes", Type::Gauge, "Memory that permissions count for", |counts| counts.bytes as u64),
    row("weir_auth_cache_hits_total", Type::Counter, "Requests that were allowed without a subrequest", |counts| {
        counts.hits
    }),
    row("weir_auth_cache_misses_total", Type::Counter, "Requests with a key that were asked about", |counts| {
        counts.misses
    }),
    row("weir_auth_cache_stored_total", Type::Counter, "Permissions that were stored", |counts| counts.stored),
    row(
        "weir_auth_cache_evicted_total",
        Type::Counter,
        "Permissions that were removed because the cache was full",
        |counts| counts.evicted,
    ),
];

/// Appends the samples of a metric. Returns false if there is no such metric.
pub(super) fn write(generation: &Generation, selection: &Selection, metric: usize, out: &mut String) -> bool {
    let Some(row) = METRICS.get(metric) else { return false };
    if !selection.wants(row.name) {
        return true;
    }
    begin(out, row.name, row.kind, row.help);
    for rule in generation.program.decision_rules() {
        let Some(cache) = generation.decisions.get(rule.caching.place) else { continue };
        let value = (row.value)(&cache.counts(rt::now()));
        let (line, backend) = (rule.rule.place.line.to_string(), &generation.proxy(rule.request.backend).name);
        let labels = [("proxy", &*rule.proxy.name), ("line", &*line), ("backend", &**backend)];
        // A string accepts all text.
        let _ = writeln!(out, "{}{} {value}", row.name, Labels(&labels));
    }
    true
}
