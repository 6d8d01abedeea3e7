//! The engine on the simulated network: a configuration is served by workers, a script plays all peers, and at the end
//! no resource may be left. Must never know the subject of a test.
//!
//! `SIMULATED_SEED` and `SIMULATED_WORKERS` run a single world of each test again, `SIMULATED_MORE` multiplies the
//! number of seeds, `SIMULATED_RECORDS` runs all of them with a transport that splits reads and writes arbitrarily.

mod refusals;
mod sockets;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use crate::addresses::*;
use config::environment::Environment;
use config::keyword::SpecOptions;
use config::spec::Spec;
use config::{InputFile, LoadOptions};
use control::peers::{PeerSocket, worker_of};
use control::saved_state::SavedServer;
use engine::datagram_sockets::DatagramSockets;
use engine::free_slots::Vacancies;
use engine::generation::Generation;
use engine::listener::Listening;
use engine::service::log::Targets;
use engine::service::registry::{Factory, Services};
use engine::session::Session;
use engine::sockets::Sockets;
use engine::worker::{Process, SharedStreamState};
use engine::{Addresses, Refusal};
use live::{Live, table::Cursor};
use policy::{compile::in_place_reload, program::Program};
use rt::sim::{Link, Options, Simulation};
use sockets::{open, open_datagrams, open_peers, open_runtime};
use testkit::{Journal, Scope, line_matches, sleep};

/// The system limits that configurations are compiled for.
const LIMITS: policy::SystemLimits =
    policy::SystemLimits { descriptors: 100_000, processors: 1, maxconn: None, memory: None };

/// The text before every configuration.
const PREFIX: &str = "
global
    log 10.0.0.9:514 local0
    maxconn 10000
defaults
    mode http
    log global
    option httplog
    timeout client 20s
    timeout server 20s
    timeout connect 20s
";

/// A test's worlds: the configuration, the numbers of workers, the seeds.
pub struct Worlds {
    text: String,
    workers: Vec<usize>,
    seeds: Range<u64>,
    link: fn(u64) -> Link,
    saved: String,
    panics_allowed: bool,
    change: Option<fn(&mut Program)>,
    tell: Option<fn(&[u8])>,
    services: Vec<(&'static str, bool, Factory)>,
    script: Option<fn(&mut Services)>,
    records: bool,
    steers: bool,
    file: String,
}

thread_local! {
    /// The contents of every file named by a configuration.
    static FILE: RefCell<String> = RefCell::default();
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// These seeds, and the additional ones requested.
fn more(seeds: Range<u64>) -> Range<u64> {
    match asked("SIMULATED_MORE") {
        Some(times) => seeds.start..seeds.start + (seeds.end - seeds.start) * times,
        None => seeds,
    }
}

/// Serves one `listen` section named `l` at [`WEIR`]; `body` is the rest of it.
pub fn listen(body: &str) -> Worlds {
    config(&format!("listen l\n    bind {WEIR}\n{body}\n"))
}

/// Serves these sections, after a `defaults` in HTTP mode with timeouts of 20 s.
pub fn config(sections: &str) -> Worlds {
    Worlds {
        text: format!("{PREFIX}{sections}\n"),
        workers: vec![1, 2, 4],
        seeds: 0..4,
        link: near,
        saved: String::new(),
        panics_allowed: false,
        change: None,
        tell: None,
        services: Vec::new(),
        script: None,
        records: false,
        steers: true,
        file: String::new(),
    }
}

/// The numbers of slots for proxies and servers in a program.
fn places(program: &Program) -> (usize, usize) {
    let servers = program.proxies.iter().filter_map(|proxy| proxy.backend.as_ref());
    (program.proxies.places(), servers.map(|backend| backend.servers.places()).sum())
}

impl Worlds {
    /// Adds lines to the section `global`.
    pub fn global(mut self, lines: &str) -> Worlds {
        self.text = self.text.replacen("global\n", &format!("global\n{lines}\n"), 1);
        self
    }

    /// Runs only with these numbers of workers.
    pub fn workers(mut self, workers: &[usize]) -> Worlds {
        self.workers = workers.to_vec();
        self
    }

    /// Runs with these seeds.
    pub fn seeds(mut self, seeds: Range<u64>) -> Worlds {
        self.seeds = seeds;
        self
    }

    /// Uses such links for all connections, by seed.
    pub fn links(mut self, link: fn(u64) -> Link) -> Worlds {
        self.link = link;
        self
    }

    /// Restores the states of servers from this state file.
    pub fn saved(mut self, states: &str) -> Worlds {
        self.saved = states.to_owned();
        self
    }

    /// With odd seeds, every connection of the proxy has a transport that splits reads and writes arbitrarily, and
    /// buffers received bytes, as TLS does.
    pub fn shuffled(mut self) -> Worlds {
        self.records = true;
        self
    }

    /// The kernel chooses the sockets of QUIC addresses by the client's port, not by connection ids.
    pub fn unsteered(mut self) -> Worlds {
        self.steers = false;
        self
    }

    /// Adds a service that rules can name. With `ruled`, rules on answers are applied to its own.
    pub fn service(
        mut self,
        name: &'static str,
        ruled: bool,
        factory: impl Fn(&Session) -> Box<dyn conn::service::Service> + Send + Sync + 'static,
    ) -> Worlds {
        self.services.push((name, ruled, Arc::new(move |session: &Session, _: &SharedStreamState| factory(session))));
        self
    }

    /// Sets the contents of the file that the configuration names (`filter spoe`).
    pub fn file(mut self, content: &str) -> Worlds {
        self.file = content.to_owned();
        self
    }

    /// Sets the registrations of a script.
    pub fn scripted(mut self, script: fn(&mut Services)) -> Worlds {
        self.script = Some(script);
        self
    }

    fn services(&self) -> Services {
        let mut services = control::services::built_in();
        if let Some(script) = self.script {
            script(&mut services);
        }
        for (name, ruled, factory) in &self.services {
            services.register(name, *ruled, Arc::clone(factory));
        }
        services
    }

    /// Sets the sink of filters' output.
    pub fn telling(mut self, tell: fn(&[u8])) -> Worlds {
        self.tell = Some(tell);
        self
    }

    /// Changes the program before it is served.
    pub fn changed_by(mut self, change: fn(&mut Program)) -> Worlds {
        self.change = Some(change);
        self
    }

    /// Permits tasks to panic, and changes the program into one that makes them.
    pub fn broken_by(mut self, change: fn(&mut Program)) -> Worlds {
        (self.panics_allowed, self.change) = (true, Some(change));
        self
    }

    /// Plays the script in every world. After it all its peers are disconnected, and everything that served them has to
    /// end.
    pub fn run<F: Future<Output = ()> + 'static>(self, script: impl Fn(World) -> F) {
        let seeds = asked("SIMULATED_SEED").map_or(more(self.seeds.clone()), |seed| seed..seed + 1);
        let workers = asked("SIMULATED_WORKERS").map_or(self.workers.clone(), |workers| vec![workers as usize]);
        let (program, mut written) = self.program();
        let mut program = Arc::new(program);
        let first = places(&program);
        for &workers in &workers {
            for seed in seeds.clone() {
                let _told = ReplayHint { seed, workers };
                // Additions of a previous world are in its program.
                if places(&program) != first {
                    let fresh = self.program();
                    (program, written) = (Arc::new(fresh.0), fresh.1);
                }
                self.run_one((&program, &written), seed, workers, &script);
            }
        }
    }

    fn program(&self) -> (Program, Spec) {
        let file = InputFile { name: "haproxy.cfg".to_owned(), bytes: self.text.clone().into_bytes() };
        FILE.set(self.file.clone());
        let read_file = |name: &str, _: u64| Ok(FILE.with_borrow(|file| crate::telemetry::part(file, name)));
        let spec = SpecOptions { read_file, ..SpecOptions::default() };
        let options = LoadOptions { spec, ..LoadOptions::default() };
        let loaded = config::load(&[file], Environment::new(), &options);
        let mut found = loaded.diagnostics.clone();
        let compiled = policy::compile(&loaded.spec, &mut NoNames(self.services()), &LIMITS, &mut found);
        let bad = refusals::alerts(&found, &loaded.sources);
        assert!(bad.is_empty(), "{}\n{}", bad.concat(), self.text);
        let mut program = compiled.unwrap();
        if let Some(change) = self.change {
            change(&mut program);
        }
        (program, loaded.spec)
    }

    fn run_one<F: Future<Output = ()> + 'static>(
        &self,
        (program, written): (&Arc<Program>, &Spec),
        seed: u64,
        workers: usize,
        script: impl Fn(World) -> F,
    ) {
        let limit = Duration::from_secs(24 * 3600);
        let buffer_size = program.global.bufsize;
        let options = Options { seed, workers, buffer_size, limit, panics_allowed: self.panics_allowed };
        let simulation = Simulation::new(options);
        let link = (self.link)(seed);
        let (shared, sockets) = simulation.enter(|| {
            rt::sim::network().set_default_link(link);
            if (self.records && seed % 2 == 1) || asked("SIMULATED_RECORDS").is_some() {
                rt::sim::network().shuffle_records();
            }
            let live = Arc::new(program.live(7));
            let generation = Generation::new(Arc::clone(program), 7);
            resume(program, &live, &self.saved);
            let (targets, problems) = Targets::open(&generation, &live, "haproxy");
            assert!(problems.is_empty());
            let mut shared = Process::new(generation, live, Arc::new(targets), workers);
            shared.host.tell = self.tell;
            shared.services = self.services();
            shared.generation().know_specification(written.clone());
            let shared = Arc::new(shared);
            let sockets: Arc<[Listening]> = open(program, None).into();
            shared.service::<DatagramSockets>().add(open_datagrams(program, workers, self.steers));
            shared.know_sockets(Sockets::of(sockets.iter(), [].iter(), [].iter()));
            (shared, (sockets, open_runtime(program), open_peers(program)))
        });
        let (sockets, runtime, peers) = sockets;
        let (runtime, peers) = (Mutex::new(runtime), Mutex::new(peers));
        let served = Arc::clone(&shared);
        // The sockets close with their last worker: none may be kept here.
        let start = Mutex::new(vec![Some(sockets); workers]);
        let main: rt::Main = Arc::new(move |worker| {
            let mut start = start.lock().unwrap_or_else(PoisonError::into_inner);
            let sockets = start[usize::from(worker)].take().unwrap();
            let runtime = if worker == 0 { std::mem::take(&mut *runtime.lock().unwrap()) } else { Vec::new() };
            let is_mine = |socket: &mut PeerSocket| worker_of(socket.section, workers) == usize::from(worker);
            let peers = peers.lock().unwrap().extract_if(.., is_mine).collect();
            let served = Arc::clone(&served);
            Box::pin(async move {
                engine::serve(served, sockets).await;
                control::runtime::process::start(runtime);
                control::peers::start(peers);
                control::bgp::start();
            })
        });
        let scope = Rc::new(Scope::new());
        let journal = Journal::of(LOG);
        let world = World { seed, shared, scope: Rc::clone(&scope), journal, strict: Rc::default() };
        let played = script(world.clone());
        simulation.run(main, async move {
            sleep(1).await;
            let before = world.inventory().await;
            played.await;
            scope.end();
            world.ends_as_it_began(&before).await;
        });
    }
}

/// Restores the states of servers, except for their addresses.
fn resume(program: &Program, live: &Live, states: &str) {
    if states.is_empty() {
        return;
    }
    for entry in live::saved_state::entries(states.as_bytes(), |_, _| true).unwrap() {
        let proxy = program.proxies.iter().find(|proxy| &*proxy.name == entry.backend()).unwrap();
        let server = proxy.servers().find(|server| &*server.name == entry.server()).unwrap();
        let saved = SavedServer::new(program, proxy.place_of(server), entry.state().unwrap()).unwrap();
        control::saved_state::resume(program, live, &saved, rt::now());
    }
}

/// Links whose latency is not visible in milliseconds. Odd seeds divide sends into pieces.
fn near(seed: u64) -> Link {
    let (latency, jitter) = (Duration::from_micros(20), Duration::from_micros(20));
    Link { latency, jitter, fragment: seed % 2 == 1, ..Link::default() }
}

/// A resolver without names.
struct NoNames(Services);

impl policy::Resolver for NoNames {
    fn resolve(&mut self, host: &str, _: config::spec::Family) -> Result<std::net::IpAddr, String> {
        Err(format!("{host} cannot be resolved in a simulation"))
    }

    fn registry(&self) -> &policy::registry::Registry {
        self.0.registry()
    }

    fn file_reader(&self) -> policy::ReadFile {
        crate::secure::read_file
    }
}

/// Prints how to repeat a world that has failed.
struct ReplayHint {
    seed: u64,
    workers: usize,
}

impl Drop for ReplayHint {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("again: SIMULATED_SEED={} SIMULATED_WORKERS={}", self.seed, self.workers);
        }
    }
}

/// The script's view of the process under test. Clones share it.
#[derive(Clone)]
pub struct World {
    /// The seed of this run.
    pub seed: u64,
    shared: Arc<Process>,
    /// Tasks of the script; they end with it.
    pub scope: Rc<Scope>,
    journal: Journal,
    /// Whether the script checks the log, so that every line has to be expected.
    strict: Rc<Cell<bool>>,
}

/// The resources held by one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holdings {
    pub tasks: usize,
    pub buffers: usize,
}

impl World {
    /// The state shared by the workers.
    pub fn shared(&self) -> &Arc<Process> {
        &self.shared
    }

    /// Serves new connections by the sections of `next`, from the next event-loop iteration of each worker on.
    pub fn adopt(&self, next: &Worlds) -> Result<(), Refusal> {
        let (next, addresses) = self.read(next)?;
        let opened = open(&next.program, Some(&addresses.came));
        self.shared.adopt(next)?;
        engine::listen(&self.shared, opened);
        engine::stop_listening(&self.shared, &addresses.went);
        Ok(())
    }

    /// Reads a new configuration, which is not adopted.
    pub fn read(&self, next: &Worlds) -> Result<(Generation, Addresses), Refusal> {
        let (program, written) = next.program();
        let before = self.shared.generation();
        let mut resolver = NoNames(next.services());
        let vacant = self.shared.service::<Vacancies>().all();
        let succeeded = in_place_reload::succeed(&before.program, &vacant, written, program, &mut resolver, &LIMITS);
        let succeeded = succeeded.map_err(Refusal::Differs)?;
        let addresses = Addresses::between(&before.program, &succeeded.program);
        let next = Generation::following(Arc::new(succeeded.program), &before);
        next.know_specification(succeeded.spec);
        Ok((next, addresses))
    }

    /// The number of the process's connections from clients.
    pub fn sessions(&self) -> usize {
        self.shared.sessions()
    }

    /// The number of idle links to all servers.
    pub fn idle_links(&self) -> usize {
        (0..self.shared.generation().program.servers).map(|server| self.shared.pool.idle(server)).sum()
    }

    /// The resources held by each worker now.
    pub async fn inventory(&self) -> Vec<Holdings> {
        let found: Arc<Mutex<Vec<Option<Holdings>>>> = Arc::new(Mutex::new(vec![None; self.shared.workers()]));
        for worker in 0..self.shared.workers() {
            let found = Arc::clone(&found);
            let look = move || {
                let holdings = Holdings { tasks: rt::tasks(), buffers: rt::buffers_in_use() };
                found.lock().unwrap()[worker] = Some(holdings);
            };
            rt::post(worker as rt::WorkerId, Box::new(look));
        }
        loop {
            if let Some(all) = found.lock().unwrap().iter().copied().collect() {
                return all;
            }
            rt::yield_now().await;
        }
    }

    /// Requests a soft stop; [`World::is_drained`] reports its end.
    pub fn stop(&self) {
        engine::stop(&self.shared);
    }

    /// Whether the stopping process has no session left.
    pub async fn is_drained(&self) -> bool {
        let drained = Arc::new(Mutex::new(None));
        let told = Arc::clone(&drained);
        let ask = move || {
            rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
                let answer = testkit::within(Duration::from_micros(1), engine::drained()).await;
                *told.lock().unwrap() = Some(answer.is_some());
            });
        };
        rt::post(0, Box::new(ask));
        loop {
            if let Some(answer) = *drained.lock().unwrap() {
                return answer;
            }
            rt::yield_now().await;
        }
    }

    /// Expects these lines in the log next, in this order. From then on every line has to be expected.
    #[track_caller]
    pub fn expect_log<'a>(&'a self, patterns: &'a [&'a str]) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let lines = self.lines(patterns.len()).await;
            let right = lines.len() == patterns.len() && lines.iter().zip(patterns).all(|(l, p)| line_matches(l, p));
            assert!(right, "{place}:\nexpected {patterns:#?}\ngot      {lines:#?}");
        }
    }

    /// Whether the proxy's connections have the transport of [`Worlds::shuffled`].
    pub fn is_shuffled(&self) -> bool {
        rt::sim::shuffles_records()
    }

    /// From here on the log is not checked.
    pub fn forget_log(&self) {
        self.strict.set(false);
    }

    /// Expects that there are no more log lines.
    #[track_caller]
    pub fn expect_no_log(&self) {
        self.strict.set(true);
        let lines = self.journal.take();
        assert!(lines.is_empty(), "not expected: {lines:#?}");
    }

    /// Waits for a line and takes all available ones.
    pub async fn take_log(&self) -> Vec<String> {
        self.lines(1).await
    }

    /// Waits for `count` lines and takes all available ones.
    pub async fn lines(&self, count: usize) -> Vec<String> {
        self.strict.set(true);
        let deadline = rt::now() + testkit::PATIENCE;
        while self.journal.len() < count && rt::now() < deadline {
            sleep(1).await;
        }
        self.journal.take()
    }

    /// Checks that all resources of the script's peers are released: sessions, links, buffers and tasks.
    async fn ends_as_it_began(&self, before: &[Holdings]) {
        let mut remains = String::new();
        // Tests close their connections: only events in progress have to be waited for, no timeouts.
        for _ in 0..200 {
            sleep(1).await;
            remains = self.remains(before).await;
            if remains.is_empty() {
                break;
            }
        }
        assert!(remains.is_empty(), "remains: {remains}");
        if self.strict.get() {
            self.expect_no_log();
        }
    }

    async fn remains(&self, before: &[Holdings]) -> String {
        let mut remains = Vec::new();
        let mut note = |what: &str, count: usize| {
            if count > 0 {
                remains.push(format!("{count} {what}"));
            }
        };
        let live = &self.shared.live;
        note("sessions", self.sessions());
        note("places in the process", live.process.actconn() as usize);
        note("idle links", self.idle_links());
        note("ends of connections", rt::sim::network().all_open_ends());
        for table in live.tables.iter() {
            let mut cursor = Some(Cursor::default());
            while let Some(from) = cursor {
                cursor = table.page(from, 1_000, rt::now(), |_, entry| note("trackers", entry.trackers as usize));
            }
        }
        for (proxy, state) in self.shared.generation().program.proxies.iter().zip(&live.proxies) {
            note("places in a frontend", state.feconn() as usize);
            note("requests in a backend", state.counts(None).beconn as usize);
            for server in proxy.backend.iter().flat_map(|backend| &backend.servers) {
                note("requests at a server", state.counts(Some(server.index)).srv_conn as usize);
            }
        }
        for (now, before) in self.inventory().await.iter().zip(before) {
            note("buffers", now.buffers.saturating_sub(before.buffers));
            note("tasks", now.tasks.saturating_sub(before.tasks));
        }
        remains.join(", ")
    }
}
