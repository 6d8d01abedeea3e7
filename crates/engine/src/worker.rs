//! One worker: its generation, idle connections, open sessions, log. Everything here belongs to one thread. Must never hold state
//! that workers share or that outlives a configuration: that belongs to the process.

pub(crate) mod agents;
pub(crate) mod arrivals;
pub(crate) mod attachments;
pub mod openings;
pub(crate) mod presence;
mod recycled;
mod stopping;
mod tasks;
pub(crate) mod tracing;
pub(crate) mod waiting;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::captures::Captures;
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
use crate::generation::{Generation, Generations, WorkerGeneration};
use crate::host::Host;
use crate::outgoing::{Outgoing, idle_limits};
use crate::resolve::{Resolving, Section};
use crate::rule_costs::RuleCosts;
use crate::service::activity::WorkerActivity;
use crate::service::log::{Logger, Targets};
use crate::service::mail::Outbox;
use crate::service::registry::Services;
use crate::session::task::StreamTask;
use crate::sockets::Sockets;
use crate::stream_state::StreamState;
use crate::vacancies::Vacancies;
use agents::{AgentCounters, AgentLinks};
use arrivals::Arrivals;
use attachments::Attachments;
use openings::{Frontends, Opening};

/// State that all workers share, independent of configurations.
pub struct Process {
    /// The configuration of new connections.
    pub(crate) newest: RwLock<Arc<Generation>>,
    /// Previous configurations, while sessions use them.
    pub(crate) past: Mutex<Vec<Weak<Generation>>>,
    /// Free slots of removed servers and backends.
    pub vacancies: Vacancies,
    /// Number of workers that have not adopted the newest configuration yet.
    pub(crate) adopting: AtomicUsize,
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
    /// External check programs.
    pub programs: crate::check::Programs,
    /// Check addresses that the runtime API has changed.
    pub probing: crate::check::Targets,
    /// State and counters of name resolution.
    pub resolving: Resolving,
    /// Queued mails.
    pub outbox: Outbox,
    /// State of the exchange with peers.
    pub exchange: crate::peering::Exchange,
    /// Counters shared with other processes.
    pub shared_counts: crate::shared_counts::Sharing,
    /// Queued telemetry.
    pub telemetry: crate::telemetry::Registry,
    /// Event callback for scripts.
    pub events: crate::service::events::Events,
    /// ACME certificates, and OCSP responses.
    pub upkeep: crate::certificates::Upkeep,
    /// Added and changed certificates.
    pub certificates: Certificates,
    /// Services inside the process, by the number that the program refers to.
    pub services: Services,
    /// Data of the program that runs the engine, for the runtime API.
    pub host: Host,
    /// Rejected message heads (`show errors`).
    pub captures: Captures,
    /// `set anon global-key`, or `anonkey`; 0: none.
    pub anonymous_key: AtomicU32,
    /// Requests processed by SPOE agents, by engine.
    pub(crate) agents: AppendOnlyVec<AgentCounters>,
    /// Reverse HTTP connections.
    pub(crate) attachments: Attachments,
    /// Set once: no new connections, sessions end when they can.
    stopping: AtomicBool,
    /// Set once, `grace` before `stopping`.
    leaving: AtomicBool,
    /// Time of the stop.
    stopped_at: OnceLock<Moment>,
    /// Accepting is paused.
    paused: AtomicBool,
    /// State of each frontend: open, paused or shut.
    pub frontends: Frontends,
    /// Number of workers that may still accept connections.
    accepting: AtomicUsize,
    /// The listening sockets, for pausing them and passing them on.
    sockets: OnceLock<Sockets>,
    /// Number of the next listener that is added at run time.
    next_listener: AtomicUsize,
    /// Next worker for round-robin distribution of connections.
    turn: AtomicUsize,
    /// Number of streams so far.
    streams: Streams,
    /// Number of sessions of each worker, those in its mailbox included.
    loads: Box<[Load]>,
}

/// First number of listeners added at run time; those of the start have smaller ones.
const FIRST_LATE_LISTENER: usize = 1 << 24;

/// Maximum number of queued jobs for helper threads: with more, a job would wait longer than a client does.
const WAITING_FOR_HELPERS: usize = 256;

/// A counter of streams on a cache line of its own. It wraps, as HAProxy's does.
#[derive(Default)]
#[repr(align(128))]
struct Streams(AtomicU32);

/// A worker's number of sessions, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Load(AtomicUsize);

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
        let program_caches = program.caches.len();
        let anonymous_key = program.global.anonymous_key;
        tracing::begin(program, &live, &log_targets);
        let frontends = Frontends::new(program.proxies.len());
        let certificates = Certificates::of(program);
        Self {
            outgoing: Outgoing::new(program),
            programs: crate::check::Programs::default(),
            probing: crate::check::Targets::default(),
            resolving: Resolving::new(program),
            agents: program.spoe_logs.iter().map(|_| AgentCounters::default()).collect(),
            outbox: Outbox::default(),
            exchange: crate::peering::Exchange::new(program, &live),
            newest: RwLock::new(Arc::new(generation.logging(log_targets.newest()))),
            past: Mutex::default(),
            vacancies: Vacancies::default(),
            adopting: AtomicUsize::new(0),
            counters,
            disks: crate::disk_cache::Disks::new(program_caches),
            live,
            helpers: rt::Helpers::new(workers.div_ceil(4), WAITING_FOR_HELPERS),
            log_targets,
            pool,
            shared_counts: crate::shared_counts::Sharing::default(),
            telemetry: crate::telemetry::Registry::default(),
            events: crate::service::events::Events::default(),
            upkeep: crate::certificates::Upkeep::default(),
            certificates,
            services: Services::default(),
            host: Host::default(),
            captures: Captures::default(),
            anonymous_key: AtomicU32::new(anonymous_key),
            attachments: Attachments::default(),
            stopping: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            stopped_at: OnceLock::new(),
            paused: AtomicBool::new(false),
            frontends,
            accepting: AtomicUsize::new(workers),
            sockets: OnceLock::new(),
            next_listener: AtomicUsize::new(FIRST_LATE_LISTENER),
            turn: AtomicUsize::new(0),
            streams: Streams::default(),
            loads: (0..workers).map(|_| Load::default()).collect(),
        }
    }

    /// Returns the newest configuration, used for new connections. It takes a lock: code that processes requests uses that of the
    /// session ([`Session::generation`]) or of the worker.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a soft stop was requested.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Requests a soft stop; the caller then calls [`Worker::wake_sessions`] on every worker. Returns true the first time.
    pub fn stop(&self) -> bool {
        let _ = self.stopped_at.set(rt::now());
        !self.stopping.swap(true, Ordering::Release)
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

    /// Marks the process as leaving, possibly still within `grace`. Returns true from the second call on.
    pub fn begin_to_leave(&self) -> bool {
        self.leaving.swap(true, Ordering::Relaxed)
    }

    /// Returns the time of the soft stop; `None` before it.
    pub fn stopped_at(&self) -> Option<Moment> {
        if self.is_stopping() { self.stopped_at.get().copied() } else { None }
    }

    /// Whether accepting is paused.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
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
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Records the listening sockets, without keeping them open. Only the first call has an effect.
    pub fn know_sockets(&self, sockets: Sockets) {
        let _ = self.sockets.set(sockets);
    }

    /// Returns the listening sockets; `None` before [`Process::know_sockets`].
    pub fn sockets(&self) -> Option<&Sockets> {
        self.sockets.get()
    }

    /// Whether accepting has ended, and no session is left. A worker that stops accepting has counted all connections it
    /// accepted.
    pub fn is_drained(&self) -> bool {
        self.accepting.load(Ordering::Acquire) == 0 && self.sessions() == 0
    }

    /// Returns a number that no listener had before.
    pub(crate) fn number_listener(&self) -> usize {
        self.next_listener.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of a new stream: the count of streams before it.
    pub fn number_stream(&self) -> u32 {
        self.streams.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of open sessions of all workers.
    pub fn sessions(&self) -> usize {
        self.loads.iter().map(|load| load.0.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.loads.len()
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
        let workers = among.map_or(self.workers(), <[usize]>::len);
        let named = |place: usize| among.map_or(place, |among| among[place]);
        let chosen = match choice {
            _ if workers <= 1 => this,
            MultiQueue::Off => this,
            MultiQueue::Fair => named(self.turn.fetch_add(1, Ordering::Relaxed) % workers),
            MultiQueue::On => {
                // Any worker but this one: the last one is its substitute.
                let last = named(workers - 1);
                let other = match named((random() % (workers as u64 - 1)) as usize) {
                    other if other == this => last,
                    other => other,
                };
                let load = |worker: usize| self.loads[worker].0.load(Ordering::Relaxed);
                if load(other) < load(this) { other } else { this }
            }
        };
        self.loads[chosen].0.fetch_add(1, Ordering::Relaxed);
        chosen
    }

    fn leave(&self, worker: usize) {
        self.loads[worker].0.fetch_sub(1, Ordering::Relaxed);
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
    /// Its handles to the states of proxies, by index.
    states: AppendOnlyVec<Local>,
    /// Its counters.
    counters: Arc<WorkerCounters>,
    /// The configurations of its sessions.
    generations: Generations,
    /// Its handles to stick tables, by index.
    tables: AppendOnlyVec<TableHandle>,
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
    state: RefCell<Vec<SharedStreamState>>,
    filters: RefCell<Vec<Filters>>,
    /// Tasks to wake at a stop.
    watchers: RefCell<Vec<Waker>>,
    /// Waker for the end of the last session of a stopping process.
    drained: RefCell<Option<Waker>>,
    requests: Cell<u64>,
    /// Memory for evaluations, and for rendered text.
    arena: Cell<Option<Box<Bump>>>,
    text: Cell<Vec<u8>>,
    /// A time in seconds, and its HTTP format.
    http_date: Cell<(i64, [u8; 29])>,
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

impl Worker {
    /// Creates worker number `id`.
    pub fn new(id: usize, shared: Arc<Process>, logger: Logger) -> Self {
        let known = &shared.live.proxies;
        let states = (0..known.places()).filter_map(|place| known.get(place));
        let states = states.map(|proxy_state| Local::new(Arc::clone(proxy_state))).collect();
        let counters = Arc::clone(&shared.counters.workers[id]);
        let first = WorkerGeneration::new(shared.generation(), None, &counters);
        let tables = shared.live.tables.iter().map(|table| Rc::new(Arc::clone(table))).collect();
        let rule_costs = RuleCosts::default();
        rule_costs.measure(first.program.global.measure_rules);
        Self {
            id,
            process: shared,
            states,
            counters,
            generations: Generations::new(first),
            tables,
            links: WorkerLinks::new(id),
            arrivals: Arrivals::default(),
            agents: AgentLinks::default(),
            logger,
            sections: RefCell::default(),
            tasks: RefCell::default(),
            state: RefCell::default(),
            filters: RefCell::default(),
            watchers: RefCell::default(),
            drained: RefCell::default(),
            requests: Cell::new(0),
            arena: Cell::default(),
            text: Cell::default(),
            http_date: Cell::new((i64::MIN, [0; 29])),
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
        self.process.adopting.fetch_sub(1, Ordering::AcqRel);
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
        match self.states.get(index) {
            Some(proxy_state) => proxy_state,
            None => self.first_state(index),
        }
    }

    /// The proxy was added since the last lookup.
    #[cold]
    fn first_state(&self, index: usize) -> &Local {
        while let Some(added) = self.process.live.proxies.get(self.states.places()) {
            if self.states.push(|_| Local::new(Arc::clone(added))).is_err() {
                break;
            }
        }
        &self.states[index]
    }

    /// Returns this worker's handle to a stick table.
    pub fn table(&self, index: usize) -> Option<&TableHandle> {
        self.tables.get(index).or_else(|| self.first_table(index))
    }

    #[cold]
    fn first_table(&self, index: usize) -> Option<&TableHandle> {
        while let Some(table) = self.process.live.tables.get(self.tables.places()) {
            self.tables.push(|_| Rc::new(Arc::clone(table))).ok()?;
        }
        self.tables.get(index)
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
        }
    }

    /// Returns the number of concluded streams.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }
}
