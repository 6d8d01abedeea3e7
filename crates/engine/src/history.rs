//! Records the history for the dashboard: one task of the first worker reads the counters of all workers every ten seconds, and their
//! latencies every five, while a configuration with a dashboard is served. Must never count anything, and never keep a worker for
//! longer than a time slice.

use std::rc::Rc;

use base::Moment;
use config::spec::Mode;
use live::counters::{LatencySum, Sum};
use live::history::{
    Activities, History, HistoryKind, INTERVAL, Interval, Kept, LATENCY_INTERVAL, LatencyReading, Levels, QUANTILES,
    Quantiles, Reading, Totals,
};
use policy::program::{Program, Proxy};

use crate::worker::Worker;

/// Starts recording if the newest configuration has a dashboard. Only the first worker does so.
pub(crate) fn start(worker: &Rc<Worker>) {
    let history = worker.process.service::<History>();
    if worker.id == 0 && worker.generation().program.has_dashboard() && history.begin() {
        rt::spawn(rt::Class::Background, rt::NO_TAG, record(Rc::clone(worker)));
    }
}

/// Runs until a configuration without a dashboard is served.
async fn record(worker: Rc<Worker>) {
    let history = worker.process.service::<History>();
    let (mut due, mut before) = (rt::now(), None);
    while worker.generation().program.has_dashboard() {
        before = Some(record_interval(history, &worker, before).await);
        // Intervals that the machine has slept through have no samples.
        due = (due + INTERVAL).max(rt::now());
        let mut next = rt::now() + LATENCY_INTERVAL;
        while next < due {
            rt::sleep_until(next).await;
            note_latencies(&worker, history).await;
            next = next + LATENCY_INTERVAL;
        }
        rt::sleep_until(due).await;
    }
    history.end();
}

/// Records the latencies of the last seconds.
async fn note_latencies(worker: &Worker, history: &History) {
    let generation = worker.process.generation();
    let (now, counters) = (rt::now(), &worker.process.counters);
    let (mut kept, mut readings, mut all) = (history.kept(), Vec::new(), LatencySum::default());
    for proxy in &generation.program.proxies {
        let index = proxy.index;
        if proxy.frontend.is_some() {
            let sum = counters.of(|counters| Some(&counters.proxies[index].front)).latencies(now);
            all.join(&sum);
            if kept.has(HistoryKind::Frontend, index) {
                readings.push(LatencyReading { kind: HistoryKind::Frontend, index, latencies: quantiles(&sum) });
            }
        }
        if proxy.backend.is_some() && kept.has(HistoryKind::Backend, index) {
            let sum = counters.of(|counters| counters.proxies[index].known_back()).latencies(now);
            readings.push(LatencyReading { kind: HistoryKind::Backend, index, latencies: quantiles(&sum) });
        }
        if rt::slice_is_over() {
            rt::yield_now().await;
        }
    }
    readings.push(LatencyReading { kind: HistoryKind::Process, index: 0, latencies: quantiles(&all) });
    history.note(&readings);
}

/// Records the interval since `before`. Returns its end.
async fn record_interval(history: &History, worker: &Worker, before: Option<Moment>) -> Moment {
    let generation = worker.process.generation();
    let (now, end) = (rt::now(), rt::wall());
    let interval = before.map(|before| Interval { end, length: now.saturating_since(before) });
    let mut collection = Collection {
        worker,
        now,
        kept: history.kept(),
        readings: Vec::new(),
        activities: Activities::default(),
        process: Reading::of_process(),
        latencies: LatencySum::default(),
    };
    let program: &Program = &generation.program;
    for index in 0..program.proxies.places() {
        let proxy = program.proxies.get(index).filter(|proxy| program.proxies.is_present(index) && !proxy.disabled);
        collection.add(proxy.map(|proxy| &**proxy));
        if rt::slice_is_over() {
            rt::yield_now().await;
        }
    }
    let Collection { mut readings, activities, mut process, latencies, .. } = collection;
    let counters = &worker.process.counters.workers;
    process.totals.connections = counters.iter().map(|one| one.process.connections.get()).sum();
    process.levels.sessions = u32::try_from(worker.process.sessions()).unwrap_or(u32::MAX);
    process.levels.latencies = quantiles(&latencies);
    readings.push(process);
    history.record(interval, readings, &activities);
    now
}

/// The readings of an interval in progress.
struct Collection<'a> {
    worker: &'a Worker,
    now: Moment,
    kept: Kept,
    readings: Vec<Reading>,
    activities: Activities,
    /// The sum over all proxies.
    process: Reading,
    /// Those of all frontends.
    latencies: LatencySum,
}

impl Collection<'_> {
    /// Adds the next proxy; `None`: there is none of that index.
    fn add(&mut self, proxy: Option<&Proxy>) {
        let front = proxy.filter(|proxy| proxy.frontend.is_some()).map(|proxy| self.frontend(proxy));
        self.activities.frontends.push(front);
        let back = proxy.filter(|proxy| proxy.backend.is_some()).map(|proxy| self.backend(proxy));
        self.activities.backends.push(back);
    }

    /// Reads a proxy as a frontend. Returns its activity.
    fn frontend(&mut self, proxy: &Proxy) -> u64 {
        let process = &self.worker.process;
        let sum = process.counters.of(|counters| Some(&counters.proxies[proxy.index].front));
        let is_tcp = proxy.mode != Mode::Http;
        let mut totals = totals(&sum);
        totals.requests = sum.count(|counters| if is_tcp { &counters.sessions } else { &counters.requests });
        // Connections that ended before their first byte are all three of these.
        let unused = process.counters.unused_connections(proxy.index);
        totals.requests = totals.requests.saturating_sub(unused);
        totals.client_errors = totals.client_errors.saturating_sub(unused);
        totals.failures = sum.count(|counters| &counters.request_errors).saturating_sub(unused);
        totals.connections = sum.count(|counters| &counters.connections);
        let latencies = sum.latencies(self.now);
        self.latencies.join(&latencies);
        let own = &mut self.process.totals;
        own.requests += totals.requests;
        own.client_errors += totals.client_errors;
        own.server_errors += totals.server_errors;
        own.failures += totals.failures;
        own.bytes_in += totals.bytes_in;
        own.bytes_out += totals.bytes_out;
        own.sessions += totals.sessions;
        let levels = Levels {
            sessions: process.live.proxies[proxy.index].feconn(),
            latencies: quantiles(&latencies),
            ..Levels::default()
        };
        self.keep(HistoryKind::Frontend, proxy, totals, levels);
        totals.requests + totals.connections
    }

    /// Reads a proxy as a backend. Returns its activity.
    fn backend(&mut self, proxy: &Proxy) -> u64 {
        let process = &self.worker.process;
        let sum = process.counters.of(|counters| counters.proxies[proxy.index].known_back());
        let mut totals = totals(&sum);
        totals.requests = totals.sessions;
        totals.failures =
            sum.count(|counters| &counters.connect_errors) + sum.count(|counters| &counters.response_errors);
        totals.connections = sum.count(|counters| &counters.connects);
        let state = &process.live.proxies[proxy.index];
        let (queue, counts) = (state.queued(None).0, state.server_counts());
        self.process.totals.failures += totals.failures;
        let own = &mut self.process.levels;
        own.queue = own.queue.saturating_add(queue);
        own.servers_usable = own.servers_usable.saturating_add(counts.usable);
        own.servers_down = own.servers_down.saturating_add(counts.down);
        let levels = Levels {
            sessions: state.counts(None).beconn,
            queue,
            servers_usable: counts.usable,
            servers_down: counts.down,
            latencies: quantiles(&sum.latencies(self.now)),
        };
        self.keep(HistoryKind::Backend, proxy, totals, levels);
        totals.sessions
    }

    fn keep(&mut self, kind: HistoryKind, proxy: &Proxy, totals: Totals, levels: Levels) {
        if self.kept.has(kind, proxy.index) {
            self.readings.push(Reading { kind, index: proxy.index, name: (*proxy.name).into(), totals, levels });
        }
    }
}

/// Reads the counters that frontends and backends have in common.
fn totals(sum: &Sum<'_>) -> Totals {
    Totals {
        client_errors: sum.count(|counters| &counters.answers[4]),
        server_errors: sum.count(|counters| &counters.answers[5]),
        bytes_in: sum.count(|counters| &counters.bytes_in),
        // As in the column `bout`.
        bytes_out: sum.count(|counters| &counters.received),
        sessions: sum.count(|counters| &counters.sessions),
        ..Totals::default()
    }
}

fn quantiles(sum: &LatencySum) -> Quantiles {
    QUANTILES.map(|per_mille| sum.bucket(per_mille))
}
