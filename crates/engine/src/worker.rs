//! One worker: the generation it serves, its idle links, its open sessions, its log. Everything here belongs to one
//! thread; what workers share, and what outlives a configuration, is the process.

pub(crate) mod arrivals;
pub(crate) mod attachments;
mod stopping;

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
use base::slab::{Key, Slab};
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
use crate::frontends::{Frontends, Opening};
use crate::generation::{Generation, Generations, WorkerGeneration};
use crate::host::Host;
use crate::outgoing::{Outgoing, idle_limits};
use crate::resolve::{Resolving, Section};
use crate::rule_costs::RuleCosts;
use crate::service::activity::WorkerActivity;
use crate::service::log::{Logger, Targets};
use crate::service::mail::Outbox;
use crate::service::registry::Services;
use crate::sockets::Sockets;
use crate::stream::filter::Filters;
use crate::stream::spoe::{AgentCounters, AgentLinks};
use crate::stream::task::StreamTask;
use crate::stream_state::StreamState;
use crate::vacancies::Vacancies;
use crate::worker::arrivals::Arrivals;
use crate::worker::attachments::Attachments;

mod recycled;
pub(crate) mod tracing;

/// What all workers share, whatever configuration they serve.
pub struct Process {
    /// The configuration that new connections are served by.
    pub(crate) newest: RwLock<Arc<Generation>>,
    /// Those before it, as long as a session has them.
    pub(crate) past: Mutex<Vec<Weak<Generation>>>,
    /// Places that servers which come may have.
    pub vacancies: Vacancies,
    /// Workers that do not accept with it yet.
    pub(crate) adopting: AtomicUsize,
    /// Counts, queues, balancing.
    pub live: Arc<Live>,
    /// Threads for what takes time.
    pub helpers: rt::Helpers,
    /// The files of caches.
    pub disks: crate::disk_cache::Disks,
    /// Where log lines go.
    pub log_targets: Arc<Targets>,
    /// Idle links to servers.
    pub pool: Pool,
    /// What is counted, for statistics.
    pub counters: Counters,
    /// What connections to servers are made with.
    pub outgoing: Outgoing,
    /// Programs that check servers.
    pub programs: crate::check::Programs,
    /// Where checks go since the runtime API changed it.
    pub probing: crate::check::Targets,
    /// Names that are followed, and what is counted of those who are asked.
    pub resolving: Resolving,
    /// Mails that wait.
    pub outbox: Outbox,
    /// What is shared with other instances.
    pub exchange: crate::peering::Exchange,
    /// Counts that other processes share.
    pub shared_counts: crate::shared_counts::Sharing,
    /// Telemetry that waits for collectors.
    pub telemetry: crate::telemetry::Registry,
    /// Who is told of what happens to servers.
    pub events: crate::service::events::Events,
    /// Certificates that are obtained, and their OCSP answers.
    pub upkeep: crate::certificates::Upkeep,
    /// Certificates that were added or are being changed.
    pub certificates: Certificates,
    /// What answers inside the process, by the number that the program refers to.
    pub services: Services,
    /// What the program that runs the engine knows of itself, for the runtime API.
    pub host: Host,
    /// Heads that were refused.
    pub captures: Captures,
    /// `set anon global-key`, or `anonkey`; 0: none.
    pub anonymous_key: AtomicU32,
    /// Set once: no new connections, sessions end when they can.
    /// What agents have processed, by engine.
    pub(crate) agents: AppendOnlyVec<AgentCounters>,
    /// Connections of reverse HTTP that servers have opened.
    pub(crate) attachments: Attachments,
    stopping: AtomicBool,
    /// Set once, `grace` before that.
    leaving: AtomicBool,
    /// When the stop was.
    stopped_at: OnceLock<Moment>,
    /// Accepting is paused.
    paused: AtomicBool,
    /// Which frontends accept.
    pub frontends: Frontends,
    /// Workers that may accept connections still.
    accepting: AtomicUsize,
    /// The listening sockets, for those who pause them or pass them on.
    sockets: OnceLock<Sockets>,
    /// The number of the next listener that begins while the process serves.
    next_listener: AtomicUsize,
    /// Whose turn it is where connections go to one worker after the other.
    turn: AtomicUsize,
    /// Streams that the process has had.
    streams: Streams,
    /// Sessions that each worker has, or will have once it has read its mailbox.
    loads: Box<[Load]>,
}

/// Listeners of the start have smaller numbers.
const FIRST_LATE_LISTENER: usize = 1 << 24;

/// Jobs that may wait for helpers: more than that would wait for longer than a client does.
const WAITING_FOR_HELPERS: usize = 256;

/// A count of streams on a cache line of its own: it wraps, as HAProxy's does.
#[derive(Default)]
#[repr(align(128))]
struct Streams(AtomicU32);

/// A worker's number of sessions, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Load(AtomicUsize);

impl Process {
    /// With fresh counts, for a first configuration.
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

    /// The newest configuration, which new connections are served by. Locks: what a request passes asks its session
    /// ([`Session::generation`]), or its worker.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a soft stop was asked for.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Asks for a soft stop; every worker must then be told with [`Worker::wake_sessions`]. True the first time.
    pub fn stop(&self) -> bool {
        let _ = self.stopped_at.set(rt::now());
        !self.stopping.swap(true, Ordering::Release)
    }

    /// Nothing that was connected to a server is used for another request: it has moved, or is out of service. Idle connections
    /// are closed, those in use end with what is under way.
    pub fn forget_links(&self, server: usize) {
        self.pool.forget(server);
        for worker in 0..self.workers() {
            let close = move |worker: &Rc<Worker>| worker.links.close_stale(&worker.process.pool, server);
            rt::post(worker as rt::WorkerId, Box::new(move || crate::on_worker(close)));
        }
    }

    /// Whether the process has been told to leave, be it that it still waits for `grace`. True from the second call on.
    pub fn begin_to_leave(&self) -> bool {
        self.leaving.swap(true, Ordering::Relaxed)
    }

    /// When the soft stop was asked for; `None` while it was not.
    pub fn stopped_at(&self) -> Option<Moment> {
        if self.is_stopping() { self.stopped_at.get().copied() } else { None }
    }

    /// Whether accepting is paused.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Whether a frontend accepts: the process may be paused or stopping, or the frontend alone.
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

    /// Remembers which sockets the process listens on, without keeping them open. Only the first call has an effect.
    pub fn know_sockets(&self, sockets: Sockets) {
        let _ = self.sockets.set(sockets);
    }

    /// The sockets that the process listens on; none before [`Process::know_sockets`].
    pub fn sockets(&self) -> Option<&Sockets> {
        self.sockets.get()
    }

    /// Whether accepting has ended, and no session is left. A worker that stops accepting has counted all that it accepted.
    pub fn is_drained(&self) -> bool {
        self.accepting.load(Ordering::Acquire) == 0 && self.sessions() == 0
    }

    /// A number that no listener has had.
    pub(crate) fn number_listener(&self) -> usize {
        self.next_listener.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of a stream that begins: how many the process had before it.
    pub fn number_stream(&self) -> u32 {
        self.streams.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Sessions that are open, over all workers.
    pub fn sessions(&self) -> usize {
        self.loads.iter().map(|load| load.0.load(Ordering::Relaxed)).sum()
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.loads.len()
    }

    /// The worker that gets a connection which `this` accepted: itself, or another one of `among` (`None`: of all). It is
    /// counted at once, so that a batch does not all go the same way. `choice`, which is
    /// `tune.listener.multi-queue`, tells how to choose:
    /// the less loaded of this one and one that `random` names, one after the other, or always this one.
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
                // Any but this one: the last one stands in for it.
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

/// The state of one stream, reachable from its session and from the future that serves it.
pub type SharedStreamState = Rc<RefCell<StreamState>>;

/// A request's place at a server, held by a worker's own handle.
pub type Slot = ServerSlot<Local>;

/// One worker.
pub struct Worker {
    /// Its number.
    pub id: usize,
    /// What all workers share.
    pub process: Arc<Process>,
    /// Its own handles to the proxies' proxy_state, by index.
    states: AppendOnlyVec<Local>,
    /// What it counts.
    counters: Arc<WorkerCounters>,
    /// What it has at hand of the configurations that it begins sessions of.
    generations: Generations,
    /// Its own handles to stick tables, by index.
    tables: AppendOnlyVec<TableHandle>,
    /// Its side of the pool of idle links.
    pub links: WorkerLinks,
    /// Requests that wait for a connection of their server.
    pub(crate) arrivals: Arrivals,
    /// Its connections to agents.
    pub(crate) agents: AgentLinks,
    /// Where lines go.
    pub logger: Logger,
    /// The sections of name servers that it serves, by index.
    pub(crate) sections: RefCell<BTreeMap<usize, Rc<Section>>>,
    tasks: RefCell<Slab<LocalRc<StreamTask>>>,
    state: RefCell<Vec<SharedStreamState>>,
    filters: RefCell<Vec<Filters>>,
    /// Tasks that want to know of a stop.
    watchers: RefCell<Vec<Waker>>,
    /// Woken when the last session of a stopping process has ended.
    drained: RefCell<Option<Waker>>,
    requests: Cell<u64>,
    /// Scratch memory of evaluations, and of what they render.
    arena: Cell<Option<Box<Bump>>>,
    text: Cell<Vec<u8>>,
    /// A second, and how HTTP writes it.
    http_date: Cell<(i64, [u8; 29])>,
    /// Copies of requests that are under way (`http-request mirror`).
    pub(crate) copies: Cell<u32>,
    /// Counts what evaluations cost.
    pub meter: Meter,
    /// What rules cost, while that is measured.
    pub rule_costs: RuleCosts,
    /// What `show activity` tells of it.
    pub activity: WorkerActivity,
    /// The call of a task that read its processor time last ([`rt::calls`]), and what that was.
    pub processor_time: Cell<Option<(u32, Duration)>>,
}

impl Worker {
    /// Worker number `id`.
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

    /// Says in a proxy's log, and on standard error, what became of the proxy or of one of its servers.
    pub fn announce(&self, proxy: usize, level: LogLevel, text: &str) {
        self.logger.message(Some(proxy), level, text);
        self.process.host.say(Severity::Warning, text);
    }

    /// Says that a proxy has stopped, and how many connections it has had on either side.
    pub fn stopped(&self, proxy: &Proxy, front: u64, back: u64) {
        let name = &proxy.name;
        let text = format!("Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back}).");
        self.announce(proxy.index, LogLevel::Warning, &text);
    }

    /// The newest configuration: what accepts, and whatever begins by itself, begins with it. What serves a session asks
    /// that for its own ([`Session::generation`]).
    pub fn generation(&self) -> Rc<WorkerGeneration> {
        self.generations.newest()
    }

    /// The configuration with that number, for a connection that another worker accepted with it.
    pub(crate) fn generation_numbered(&self, number: u32) -> Rc<WorkerGeneration> {
        self.generations.numbered(number).unwrap_or_else(|| {
            // The other one has heard of it first.
            self.take_up();
            self.generation()
        })
    }

    /// Accepts with the newest configuration of the process from now on, and tells the others when that is another one.
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
            // Behind every connection that was handed over before.
            let pass = move |worker: &Rc<Worker>| worker.generations.pass(before, workers);
            rt::post(worker as rt::WorkerId, Box::new(move || crate::on_worker(pass)));
        }
    }

    /// Addresses of frontends that have gone are closed.
    pub(crate) fn let_frontends_go(&self) {
        self.generations.let_go();
    }

    /// The proxy_state of the proxy with that index, by this worker's own handle.
    pub fn proxy_state(&self, index: usize) -> &Local {
        match self.states.get(index) {
            Some(proxy_state) => proxy_state,
            None => self.first_state(index),
        }
    }

    /// The proxy was added since this worker was asked for one last.
    #[cold]
    fn first_state(&self, index: usize) -> &Local {
        while let Some(added) = self.process.live.proxies.get(self.states.places()) {
            if self.states.push(|_| Local::new(Arc::clone(added))).is_err() {
                break;
            }
        }
        &self.states[index]
    }

    /// The stick table with that index, by this worker's own handle.
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

    /// What this worker counts.
    pub fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// What expressions are told of the process.
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

    /// Streams that were concluded.
    pub fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Enters a task that serves streams and for which a place was reserved; the key tags it.
    pub fn enter(&self, task: LocalRc<StreamTask>) -> Key {
        self.tasks.borrow_mut().insert(task)
    }

    /// Reserves a place for the task of one stream, beside that of its session.
    pub fn enter_stream(&self) {
        self.process.loads[self.id].0.fetch_add(1, Ordering::Relaxed);
    }

    /// Tasks that serve streams: those of sessions, and those of streams beside others.
    pub fn tasks_here(&self) -> usize {
        self.tasks.borrow().len()
    }

    /// The task with that key.
    #[inline]
    pub fn task(&self, key: Key) -> Option<LocalRc<StreamTask>> {
        self.tasks.borrow().get(key).cloned()
    }

    /// Some of the tasks, those behind a key, at most `most`: for a look at all of them in steps.
    pub fn tasks_behind(&self, from: Option<u64>, most: usize) -> Vec<(Key, LocalRc<StreamTask>)> {
        let tasks = self.tasks.borrow();
        // Keys of one place differ by its generation; places are in order.
        let place = |key: u64| key & 0xffff_ffff;
        let behind = tasks.iter().skip_while(|(key, _)| from.is_some_and(|from| place(key.to_bits()) <= place(from)));
        behind.take(most).map(|(key, task)| (key, task.clone())).collect()
    }

    /// A task that serves streams has ended.
    pub fn leave(&self, key: Key) -> Option<LocalRc<StreamTask>> {
        let task = self.tasks.borrow_mut().remove(key)?;
        self.process.leave(self.id);
        self.tell_if_drained();
        Some(task)
    }

    /// A connection is there that is no session's, to a receiver of log lines or from a server (reverse HTTP): the end of the process
    /// waits for it as for a session.
    pub(crate) fn enter_relay(&self) {
        self.process.loads[self.id].0.fetch_add(1, Ordering::Relaxed);
    }

    /// It is not any more.
    pub(crate) fn leave_relay(&self) {
        self.process.leave(self.id);
        self.tell_if_drained();
    }

    /// Another task on this worker may have to do with connections: a soft stop has not ended before that is over.
    pub fn begin_accepting(&self) {
        self.process.accepting.fetch_add(1, Ordering::AcqRel);
    }

    /// This worker accepts no more connections.
    pub fn end_accepting(&self) {
        self.process.accepting.fetch_sub(1, Ordering::AcqRel);
        self.tell_if_drained();
    }
}
