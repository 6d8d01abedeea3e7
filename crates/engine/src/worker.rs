//! One worker: its generation, idle connections, open sessions, log. Everything here belongs to one thread. Must never hold state
//! that workers share or that outlives a configuration: that belongs to the process.

pub(crate) mod agents;
pub(crate) mod arrivals;
pub(crate) mod attachments;
pub(crate) mod connection_waiter;
mod lifecycle;
mod listeners;
mod loads;
pub mod open_frontends;
mod recycled;
pub(crate) mod reverse_connections;
mod stopping;
mod tasks;
pub(crate) mod tracing;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use base::AppendOnlyVec;
use base::moment::Moment;
use base::slab::Slab;
use bumpalo::Bump;
use config::diagnostic::Severity;
use config::spec::{LogLevel, MultiQueue};
use conn::link::{IdleLimits, Pool};
use conn::worker_links::WorkerLinks;
use expression::sample::{Meter, ProcessFacts};
use live::counters::{Counters, WorkerCounters};
use live::table::TableHandle;
use live::{Live, Local, ServerSlot};
use policy::program::Proxy;
use rt::LocalRc;

use crate::certificates::Certificates;
use crate::filter::Filters;
use crate::generation::{Generation, Generations, ProcessGenerations, WorkerGeneration};
use crate::host::{AnonymousKey, Host};
use crate::outgoing::{Outgoing, idle_limits};
use crate::peering::Exchange;
use crate::quic_connections::QuicConnections;
use crate::registry::Registry;
use crate::resolve::{Resolving, Section};
use crate::rule_costs::RuleCosts;
use crate::service::activity::WorkerActivity;
use crate::service::log::{Logger, Targets};
use crate::service::registry::Services;
use crate::session::task::StreamTask;
use crate::sockets::Sockets;
use crate::stream_state::StreamState;
use agents::{AgentCounters, AgentLinks};
use arrivals::Arrivals;
use attachments::Attachments;
use lifecycle::Lifecycle;
use listeners::Listeners;
use loads::Loads;
use open_frontends::{Frontends, Opening};

/// State that all workers share, independent of configurations.
pub struct Process {
    /// The configurations that it serves.
    pub(crate) generations: ProcessGenerations,
    /// Live state: counts, queues, load balancing.
    pub live: Arc<Live>,
    /// Threads for blocking jobs.
    pub helpers: rt::Helpers,
    /// The files of caches.
    pub disks: crate::disk_cache::Disks,
    /// Destinations of log lines.
    pub log_targets: Arc<Targets>,
    /// Idle connections to servers.
    pub pool: Pool,
    /// Statistics counters.
    pub counters: Counters,
    /// Settings and addresses of connections to servers.
    pub outgoing: Outgoing,
    /// State of checks.
    pub checks: crate::check::Checks,
    /// Event callback for scripts.
    pub events: crate::service::events::Events,
    /// ACME certificates, and OCSP responses.
    pub upkeep: crate::certificates::Maintenance,
    /// Services inside the process, by the number that the program refers to.
    pub services: Services,
    /// Data of the program that runs the engine, for the runtime API.
    pub host: Host,
    /// Requests processed by SPOE agents, by engine.
    pub(crate) agents: AppendOnlyVec<AgentCounters>,
    /// Reverse HTTP connections.
    pub(crate) attachments: Attachments,
    /// Whether it stops, or is paused.
    lifecycle: Lifecycle,
    /// State of each frontend: open, paused or shut.
    pub frontends: Frontends,
    /// Listening sockets, and the tasks that accept.
    listeners: Listeners,
    /// Numbers of sessions and streams.
    loads: Loads,
    /// Services that requests do not need ([`Process::service`]).
    registry: Registry,
}

/// Maximum number of queued jobs for helper threads: with more, a job would wait longer than a client does.
const WAITING_FOR_HELPERS: usize = 256;

impl Process {
    /// Creates the state for a first configuration.
    pub fn new(generation: Generation, live: Arc<Live>, log_targets: Arc<Targets>, workers: usize) -> Self {
        let program = &*generation.program;
        let mut limits = vec![IdleLimits::default(); program.servers];
        for server in program.proxies.iter().filter_map(|proxy| proxy.backend.as_ref()).flat_map(|b| &b.servers) {
            limits[server.serial] = idle_limits(server);
        }
        let pool = Pool::new(&limits, workers, program.global.idle_pool_shared);
        let counters = program.counters(workers);
        let caches = program.caches.len();
        tracing::begin(program, &live, &log_targets);
        let registry = Registry::default()
            .with(AnonymousKey::from(program.global.anonymous_key))
            .with(Certificates::of(program))
            .with(Exchange::new(program, &live))
            .with(Resolving::new(program));
        Self {
            outgoing: Outgoing::new(program),
            checks: crate::check::Checks::default(),
            agents: program.spoe_logs.iter().map(|_| AgentCounters::default()).collect(),
            frontends: Frontends::new(program.proxies.len()),
            generations: ProcessGenerations::new(generation.logging(log_targets.newest())),
            counters,
            disks: crate::disk_cache::Disks::new(caches),
            live,
            helpers: rt::Helpers::new(workers.div_ceil(4), WAITING_FOR_HELPERS),
            log_targets,
            pool,
            events: crate::service::events::Events::default(),
            upkeep: crate::certificates::Maintenance::default(),
            services: Services::default(),
            host: Host::default(),
            attachments: Attachments::default(),
            lifecycle: Lifecycle::default(),
            listeners: Listeners::new(workers),
            loads: Loads::new(workers),
            registry,
        }
    }

    /// Returns a service of the process that requests do not need; one that is used for the first time is created. It is found by a
    /// search.
    pub fn service<T: Default + Any + Send + Sync>(&self) -> &T {
        self.registry.get()
    }

    /// Returns the newest configuration, used for new connections. It takes a lock: code that processes requests uses that of the
    /// session ([`Session::generation`]) or of the worker.
    pub fn generation(&self) -> Arc<Generation> {
        self.generations.newest()
    }

    /// Whether a soft stop was requested.
    pub fn is_stopping(&self) -> bool {
        self.lifecycle.is_stopping()
    }

    /// Requests a soft stop; the caller then calls [`Worker::wake_sessions`] on every worker. Returns true the first time.
    pub fn stop(&self) -> bool {
        self.lifecycle.stop()
    }

    /// Invalidates all connections to a server that has moved or is out of service. Idle connections are closed, those in use end
    /// with their current requests.
    pub fn forget_links(&self, server: usize) {
        self.pool.forget(server);
        for worker in 0..self.workers() {
            let close = move |worker: &Rc<Worker>| worker.links.close_stale(&worker.process.pool, server);
            rt::post(worker as rt::WorkerId, Box::new(move || crate::on_worker(close)));
        }
    }

    /// Marks the process as leaving, possibly still within `grace`. Returns true from the second call on. Tasks that watch for a
    /// stop are woken by [`crate::begin_to_leave`].
    pub(crate) fn begin_to_leave(&self) -> bool {
        self.lifecycle.begin_to_leave()
    }

    /// Whether the process leaves: it accepts connections during `grace`, and stops then.
    pub fn is_leaving(&self) -> bool {
        self.lifecycle.is_leaving()
    }

    /// Returns the time of the soft stop; `None` before it.
    pub fn stopped_at(&self) -> Option<Moment> {
        self.lifecycle.stopped_at()
    }

    /// Whether accepting is paused.
    pub fn is_paused(&self) -> bool {
        self.lifecycle.is_paused()
    }

    /// Returns whether a frontend accepts, considering the state of the process and of the frontend.
    pub fn opening(&self, frontend: usize) -> Opening {
        match self.frontends.opening(frontend) {
            _ if self.is_stopping() => Opening::Shut,
            Opening::Open if self.is_paused() => Opening::Paused,
            own => own,
        }
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        self.lifecycle.set_paused(paused);
    }

    /// Records the listening sockets, without keeping them open. Only the first call has an effect.
    pub fn know_sockets(&self, sockets: Sockets) {
        let _ = self.listeners.sockets.set(sockets);
    }

    /// Returns the listening sockets; `None` before [`Process::know_sockets`].
    pub fn sockets(&self) -> Option<&Sockets> {
        self.listeners.sockets.get()
    }

    /// Whether accepting has ended, and no session is left. A worker that stops accepting has counted all connections it
    /// accepted.
    pub fn is_drained(&self) -> bool {
        self.listeners.accepting.load(Ordering::Acquire) == 0 && self.sessions() == 0
    }

    /// Returns a number that no listener had before.
    pub(crate) fn number_listener(&self) -> usize {
        self.listeners.number()
    }

    /// Returns the number of a new stream: the count of streams before it.
    pub fn number_stream(&self) -> u32 {
        self.loads.number_stream()
    }

    /// Returns the number of open sessions of all workers.
    pub fn sessions(&self) -> usize {
        self.loads.sessions()
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.loads.workers()
    }

    /// Chooses the worker for a connection that `this` accepted, out of `among` (`None`: all). The connection is counted at once,
    /// so that connections of one batch are distributed. `choice` is `tune.listener.multi-queue`: the less loaded of this worker
    /// and another that `random` selects, round robin, or always this one.
    #[inline]
    pub fn reserve(
        &self,
        this: usize,
        among: Option<&[usize]>,
        choice: MultiQueue,
        random: impl FnOnce() -> u64,
    ) -> usize {
        self.loads.reserve(this, among, choice, random)
    }

    fn leave(&self, worker: usize) {
        self.loads.leave(worker);
    }
}

/// The state of one stream, shared by its session and the future that serves it.
pub type SharedStreamState = Rc<RefCell<StreamState>>;

/// A request's slot at a server, in a worker's own handle.
pub type Slot = ServerSlot<Local>;

/// One worker.
pub struct Worker {
    /// Number of the worker.
    pub id: usize,
    /// State that all workers share.
    pub process: Arc<Process>,
    /// Its handles to live state.
    handles: Handles,
    /// Its counters.
    counters: Arc<WorkerCounters>,
    /// The configurations of its sessions.
    generations: Generations,
    /// Its part of the pool of idle connections.
    pub links: WorkerLinks,
    /// Requests that wait for a connection opened by their server.
    pub(crate) arrivals: Arrivals,
    /// Its connections to SPOE agents.
    pub(crate) agents: AgentLinks,
    /// Its log.
    pub logger: Logger,
    /// The `resolvers` sections that it serves, by index.
    pub(crate) sections: RefCell<BTreeMap<usize, Rc<Section>>>,
    tasks: RefCell<Slab<LocalRc<StreamTask>>>,
    /// Its QUIC connections of clients.
    pub quic: QuicConnections,
    /// Wakers for the stop of the process.
    wakers: StopWakers,
    /// Memory for reuse.
    recycled: Recycled,
    requests: Cell<u64>,
    /// Number of mirrored requests being sent (`http-request mirror`).
    pub(crate) copies: Cell<u32>,
    /// Cost meter of evaluations.
    pub meter: Meter,
    /// Measured costs of rules.
    pub rule_costs: RuleCosts,
    /// Counters for `show activity`.
    pub activity: WorkerActivity,
    /// The task call that last read its processor time ([`rt::calls`]), and that time.
    pub processor_time: Cell<Option<(u32, Duration)>>,
}

/// A worker's handles to the live state of the process.
struct Handles {
    /// To the states of proxies, by index.
    proxies: AppendOnlyVec<Local>,
    /// To stick tables, by index.
    tables: AppendOnlyVec<TableHandle>,
}

/// Wakers of tasks that wait for the stop of the process.
#[derive(Default)]
struct StopWakers {
    /// Tasks to wake at a stop.
    watchers: RefCell<Vec<Waker>>,
    /// Waker for the end of the last session of a stopping process.
    drained: RefCell<Option<Waker>>,
}

/// Memory that a worker uses again.
struct Recycled {
    /// For evaluations.
    arena: Cell<Option<Box<Bump>>>,
    /// For rendered text.
    text: Cell<Vec<u8>>,
    /// A time in seconds, and its HTTP format.
    http_date: Cell<(i64, [u8; 29])>,
    /// Cleared states of streams.
    states: RefCell<Vec<SharedStreamState>>,
    /// Empty sets of filters.
    filters: RefCell<Vec<Filters>>,
}

impl Default for Recycled {
    fn default() -> Self {
        let http_date = Cell::new((i64::MIN, [0; 29]));
        Self {
            arena: Cell::default(),
            text: Cell::default(),
            http_date,
            states: RefCell::default(),
            filters: RefCell::default(),
        }
    }
}

impl Worker {
    /// Creates worker number `id`.
    pub fn new(id: usize, shared: Arc<Process>, logger: Logger) -> Self {
        let known = &shared.live.proxies;
        let proxies = (0..known.places()).filter_map(|place| known.get(place));
        let proxies = proxies.map(|proxy_state| Local::new(Arc::clone(proxy_state))).collect();
        let counters = Arc::clone(&shared.counters.workers[id]);
        let first = WorkerGeneration::new(shared.generation(), None, &counters);
        let tables = shared.live.tables.iter().map(|table| Rc::new(Arc::clone(table))).collect();
        let rule_costs = RuleCosts::default();
        rule_costs.measure(first.program.global.measure_rules);
        Self {
            id,
            process: shared,
            handles: Handles { proxies, tables },
            counters,
            generations: Generations::new(first),
            links: WorkerLinks::new(id),
            arrivals: Arrivals::default(),
            agents: AgentLinks::default(),
            logger,
            sections: RefCell::default(),
            tasks: RefCell::default(),
            quic: QuicConnections::default(),
            wakers: StopWakers::default(),
            recycled: Recycled::default(),
            requests: Cell::new(0),
            copies: Cell::new(0),
            meter: Meter::default(),
            rule_costs,
            activity: WorkerActivity::default(),
            processor_time: Cell::default(),
        }
    }

    /// Logs a message about a proxy or its servers in the proxy's log, and prints it on standard error.
    pub fn announce(&self, proxy: usize, level: LogLevel, text: &str) {
        self.logger.message(Some(proxy), level, text);
        self.process.host.say(Severity::Warning, text);
    }

    /// Logs that a proxy has stopped, with its cumulated connections on both sides.
    pub fn stopped(&self, proxy: &Proxy, front: u64, back: u64) {
        let name = &proxy.name;
        let text = format!("Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back}).");
        self.announce(proxy.index, LogLevel::Warning, &text);
    }

    /// Returns the newest configuration, for accepting and for tasks that start by themselves. Code that serves a session uses
    /// the session's own ([`Session::generation`]).
    pub fn generation(&self) -> Rc<WorkerGeneration> {
        self.generations.newest()
    }

    /// Returns the configuration with that number, for a connection that another worker accepted with it.
    pub(crate) fn generation_numbered(&self, number: u32) -> Rc<WorkerGeneration> {
        self.generations.numbered(number).unwrap_or_else(|| {
            // The other worker has adopted it earlier than this one.
            self.take_up();
            self.generation()
        })
    }

    /// Adopts the newest configuration of the process for accepting, and announces it to the other workers if it changed.
    pub(crate) fn take_up(&self) {
        let next = self.process.generation();
        if next.number() != self.generation().number() {
            let before = self.generation();
            let measures = next.program.global.measure_rules;
            if measures != before.program.global.measure_rules {
                self.rule_costs.measure(measures);
            }
            let next = WorkerGeneration::new(next, Some(&before), &self.counters);
            self.generations.put(next);
        }
        let Some(before) = self.generations.announce() else { return };
        self.process.generations.adopting.fetch_sub(1, Ordering::AcqRel);
        let workers = self.process.workers();
        for worker in 0..workers {
            // Processed after every connection that was handed over before.
            let pass = move |worker: &Rc<Worker>| worker.generations.pass(before, workers);
            rt::post(worker as rt::WorkerId, Box::new(move || crate::on_worker(pass)));
        }
    }

    /// Drops the handles of removed frontends, after their addresses are closed.
    pub(crate) fn let_frontends_go(&self) {
        self.generations.drop_leaving();
    }

    /// Returns this worker's handle to the state of a proxy.
    pub fn proxy_state(&self, index: usize) -> &Local {
        match self.handles.proxies.get(index) {
            Some(proxy_state) => proxy_state,
            None => self.first_state(index),
        }
    }

    /// The proxy was added since the last lookup.
    #[cold]
    fn first_state(&self, index: usize) -> &Local {
        while let Some(added) = self.process.live.proxies.get(self.handles.proxies.places()) {
            if self.handles.proxies.push(|_| Local::new(Arc::clone(added))).is_err() {
                break;
            }
        }
        &self.handles.proxies[index]
    }

    /// Returns this worker's handle to a stick table.
    pub fn table(&self, index: usize) -> Option<&TableHandle> {
        self.handles.tables.get(index).or_else(|| self.first_table(index))
    }

    #[cold]
    fn first_table(&self, index: usize) -> Option<&TableHandle> {
        while let Some(table) = self.process.live.tables.get(self.handles.tables.places()) {
            self.handles.tables.push(|_| Rc::new(Arc::clone(table))).ok()?;
        }
        self.handles.tables.get(index)
    }

    /// Returns this worker's counters.
    pub fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// Returns the data of the process for expressions.
    pub fn process_facts(&self) -> ProcessFacts<'_> {
        let shared = &self.process;
        ProcessFacts {
            pid: shared.host.pid,
            thread: self.id,
            stopping: shared.is_stopping(),
            uptime: shared.host.uptime().as_secs(),
            hostname: &shared.log_targets.hostname,
            quic: self.generation().program.global.quic.listens,
        }
    }

    /// Returns the number of concluded streams.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }
}
