//! Serving: starts the workers and waits until they end. Must never access a connection: the engine does.

use crate::files::reason;
use crate::machine::Machine;
use crate::messages::{Messages, ReportedError};
use crate::qlog::QlogFolder;
use crate::signals::Life;
use crate::standard_error;
use crate::worker::Master;
use config::document::Sources;
use config::spec::Spec;
use control::peers::{PeerSocket, worker_of};
use control::runtime::Opened;
use control::saved_state::SavedServer;
use engine::count_exchange;
use engine::datagram_sockets::{DatagramListening, DatagramSockets};
use engine::generation::Generation;
use engine::host::Host;
use engine::listener::Listening;
use engine::peering::Exchange;
use engine::qlog_files::QlogFiles;
use engine::service::log::{RelaySocket, SinkError, Targets};
use engine::service::registry::Services;
use engine::shared_counts::SharedCounts;
use engine::shared_counts::Sharing;
use engine::sockets::Sockets;
use engine::succession::{PassedChannel, Succession};
use engine::worker::Process;
use live::Live;
use live::counters::shared::SharedKind;
use live::counters::{CounterLine, Side};
use lua::Scripts;
use policy::program::Program;
use rt::process::StarterWaits;
use rt::{Folder, WorkerId};
use std::fs::File;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Default of `log-tag`: the value that log collectors were configured for.
const TAG: &str = "haproxy";

/// Runs on every worker in addition to the engine.
pub type Companion = Box<dyn Fn(WorkerId) + Send + Sync>;

/// Runs when everything that serving needs is open, before the workers start; it drops privileges.
pub type LastStep = Box<dyn FnOnce(Option<&StarterWaits>, &mut Messages) -> Result<(), ReportedError>>;

/// The parameters of serving.
pub struct Service {
    /// The compiled program.
    pub program: Program,
    /// Live state restored from another process, if any.
    pub live: Option<Live>,
    /// Saved states of servers that are still to be applied.
    pub saved: Vec<SavedServer>,
    /// Saved counters.
    pub counts: Vec<CounterLine>,
    /// Built-in services and those of scripts.
    pub services: Services,
    pub scripts: Scripts,
    /// The parsed configuration.
    pub written: Spec,
    /// Its text.
    pub sources: Sources,
    /// The sockets of proxies.
    pub sockets: Vec<Listening>,
    /// The sockets of the QUIC addresses of proxies.
    pub datagrams: Vec<DatagramListening>,
    /// Channels to older processes that have these as well.
    pub channels: Vec<PassedChannel>,
    /// The sockets of the runtime API.
    pub runtime: Vec<Opened>,
    /// The sockets of log-forward sections.
    pub relays: Vec<RelaySocket>,
    /// The sockets of peers sections.
    pub peers: Vec<PeerSocket>,
    /// Whether an older process of this instance leaves for this one.
    pub succeeds: bool,
    /// Information for the runtime API.
    pub host: Host,
    /// Machine settings of the workers.
    pub machine: Machine,
    /// The starting command, which waits until the process serves.
    pub starter: Option<StarterWaits>,
    /// The channel to the master.
    pub master: Option<Master>,
    /// Runs right before the workers start.
    pub last_step: Option<LastStep>,
    /// Runs on every worker in addition to the engine.
    pub companion: Option<Companion>,
    /// Whether SIGINT and SIGTERM end the service with status 0 instead of killing the process.
    pub ends_gently: bool,
    /// Files opened before privileges are dropped and written later.
    pub kept: KeptFiles,
}

/// Files and folders that outlive the process.
#[derive(Default)]
pub struct KeptFiles {
    /// Folder of obtained certificates.
    pub acme_folder: Option<Arc<Folder>>,
    /// Files of caches, by cache.
    pub caches: Vec<(usize, File)>,
    /// Counters shared with other processes.
    pub counts: Option<SharedCounts>,
    /// Folder of traces of QUIC connections.
    pub qlog: Option<QlogFolder>,
}

impl KeptFiles {
    /// Returns the folders.
    pub fn folders(&self) -> Vec<Arc<Folder>> {
        let traces = self.qlog.as_ref().map(|traces| &traces.folder);
        self.acme_folder.iter().chain(traces).map(Arc::clone).collect()
    }
}

/// Serves until a signal ends the process.
///
/// # Errors
/// The workers cannot be started; reported through `messages`.
pub fn serve(service: Service, messages: &mut Messages) -> Result<ExitCode, ReportedError> {
    let Service { program, written, sources, sockets, runtime, relays, peers, starter, master, .. } = service;
    let workers = usize::try_from(program.global.nbthread).unwrap_or(1).max(1);
    let config = runtime_config(&program, service.machine, workers);
    let program = Arc::new(program);
    let live = Arc::new(service.live.unwrap_or_else(|| program.live(rt::clock::seed())));
    let generation = Generation::new(program, rt::clock::seed());
    let targets = open_targets(&generation, &live, messages)?;
    let mut shared = Process::new(generation, live, Arc::new(targets), workers);
    shared.host = service.host;
    shared.services = service.services;
    let now = rt::clock::moment();
    shared.live.proxies.iter().for_each(|proxy| proxy.begin(now));
    shared.generation().know_specification(written);
    let files = sources.0.iter().map(|file| (file.name.clone(), file.bytes().to_vec()));
    shared.generation().know_text(files);
    service.saved.iter().for_each(|saved| control::saved_state::direct(&shared, saved));
    go_on(&mut shared, service.counts, service.kept);
    let shared = Arc::new(shared);
    know_sockets(&shared, &sockets, &runtime, &peers);
    shared.service::<DatagramSockets>().add(service.datagrams);
    shared.service::<Succession>().predecessors().set(service.channels);
    let scripts = initialize(service.scripts, &shared, messages)?;
    if service.succeeds {
        shared.service::<Exchange>().expect_predecessor();
    }
    if let Some(last_step) = service.last_step {
        last_step(starter.as_ref(), messages)?;
    }
    if !messages.quiet() {
        standard_error::install(&shared.host);
    }
    let first = Mutex::new((runtime, starter, master));
    let (relays, peers) = (Mutex::new(shares(relays, workers)), Mutex::new(by_worker(peers, workers)));
    let start = Start { sockets: Mutex::new(Some((workers, sockets.into()))), first, relays, peers };
    let life = Arc::new(Life::new(Arc::clone(&shared), messages.quiet(), service.ends_gently));
    let process = Arc::clone(&shared);
    let of_workers = Arc::clone(&life);
    let main: rt::Main = Arc::new(move |worker| {
        let sockets = start.sockets();
        let (runtime, starter, master) =
            if worker == 0 { std::mem::take(&mut *lock(&start.first)) } else { Default::default() };
        let relays = start.relays(worker);
        let peers = start.peers(worker);
        let (shared, life) = (Arc::clone(&shared), Arc::clone(&of_workers));
        let scripts = Arc::clone(&scripts);
        if let Some(companion) = &service.companion {
            companion(worker);
        }
        Box::pin(async move {
            engine::serve(shared, sockets).await;
            engine::service::log::start_relays(relays);
            control::peers::start(peers);
            control::bgp::start();
            scripts.start_tasks();
            control::runtime::process::start(runtime);
            if worker == 0 {
                life.live(starter, master).await;
            }
        })
    });
    let served = life.prepare().and_then(|()| rt::run(&config, main));
    count_exchange::finish(&process, life.was_ended());
    // Programs that check servers do not outlive the process.
    rt::program::end_all();
    served.map(|()| life.status()).map_err(|error| {
        messages.alert(&format!("Cannot start the workers : {}", reason(&error)));
        ReportedError
    })
}

/// Restores counters and installs the files that outlive the process.
fn go_on(shared: &mut Process, counts: Vec<CounterLine>, kept: KeptFiles) {
    let counts = fresh_counts(counts, kept.counts.as_ref());
    control::saved_state::preset(shared, &counts, rt::clock::moment());
    if let Some(counts) = kept.counts {
        counts.begin(&shared.counters);
        shared.service::<Sharing>().set(counts);
    }
    for (cache, file) in kept.caches {
        shared.disks.set(cache, Box::new(file));
    }
    if let Some(folder) = kept.acme_folder {
        shared.upkeep.acme.keep_in(folder);
    }
    if let Some(QlogFolder { folder, limits, names }) = kept.qlog {
        shared.service::<QlogFiles>().keep_in(folder, limits, names);
    }
}

/// Returns the counters of a `stats-file` for objects that do not continue shared counters of another process.
fn fresh_counts(mut counts: Vec<CounterLine>, shared: Option<&SharedCounts>) -> Vec<CounterLine> {
    let goes_on = |kept: &CounterLine| {
        let kinds = match kept.side {
            Side::Front => [SharedKind::Frontend, SharedKind::Listener],
            Side::Back => [SharedKind::Backend, SharedKind::Server],
        };
        kinds.into_iter().any(|kind| shared.is_some_and(|shared| shared.goes_on(kind, &kept.guid)))
    };
    counts.retain(|kept| !goes_on(kept));
    counts
}

/// Registers the sockets of the process, which a successor may request.
fn know_sockets(shared: &Process, sockets: &[Listening], runtime: &[Opened], peers: &[PeerSocket]) {
    shared.know_sockets(Sockets::of(
        sockets.iter(),
        runtime.iter().map(|one| &one.socket),
        peers.iter().map(|one| &one.socket),
    ));
}

/// Returns the configuration of the runtime.
fn runtime_config(program: &Program, machine: Machine, workers: usize) -> rt::Config {
    let mut config = rt::Config {
        workers,
        buffer_size: program.global.bufsize,
        max_events: program.global.maxpollevents,
        ..rt::Config::default()
    };
    machine.apply(&mut config);
    config
}

/// Runs the initialization of scripts before the process serves.
fn initialize(
    mut scripts: Scripts,
    process: &Arc<Process>,
    messages: &mut Messages,
) -> Result<Arc<Scripts>, ReportedError> {
    scripts.initialize(process).map_err(|why| {
        messages.alert(&why);
        ReportedError
    })?;
    Ok(Arc::new(scripts))
}

/// Opens the log targets.
fn open_targets(generation: &Generation, live: &Arc<Live>, messages: &mut Messages) -> Result<Targets, ReportedError> {
    let (targets, problems) = Targets::open(generation, live, TAG);
    for problem in problems {
        match problem {
            SinkError::Descriptor(descriptor, error) => {
                messages.warning(&format!("Cannot write logs to file descriptor {descriptor} : {}", reason(&error)));
            }
            SinkError::Ring(path, ring, error) => {
                messages.alert(&format!("cannot open backing-file '{path}' for ring '{ring}': {}.", reason(&error)));
                return Err(ReportedError);
            }
        }
    }
    Ok(targets)
}

/// Distributes the sockets of log-forward sections over the workers.
fn shares(relays: Vec<RelaySocket>, workers: usize) -> Vec<Vec<RelaySocket>> {
    let mut shares: Vec<Vec<RelaySocket>> = (0..workers).map(|_| Vec::new()).collect();
    for (number, socket) in relays.into_iter().enumerate() {
        shares[number % workers].push(socket);
    }
    shares
}

/// Groups the sockets of peers by the worker that serves their section.
fn by_worker(sockets: Vec<PeerSocket>, workers: usize) -> Vec<Vec<PeerSocket>> {
    let mut shares: Vec<Vec<PeerSocket>> = (0..workers).map(|_| Vec::new()).collect();
    for socket in sockets {
        shares[worker_of(socket.section, workers)].push(socket);
    }
    shares
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parameters for the workers.
struct Start {
    /// The listening sockets, and the number of workers that have yet to take them. No reference is kept here: a socket
    /// closes when the last worker drops it.
    sockets: Mutex<Option<(usize, Arc<[Listening]>)>>,
    /// For the first worker: it serves the runtime API, and communicates with the starting command and the master.
    first: Mutex<(Vec<Opened>, Option<StarterWaits>, Option<Master>)>,
    relays: Mutex<Vec<Vec<RelaySocket>>>,
    peers: Mutex<Vec<Vec<PeerSocket>>>,
}

impl Start {
    fn sockets(&self) -> Arc<[Listening]> {
        let mut held = lock(&self.sockets);
        match held.take() {
            Some((left, sockets)) if left > 1 => {
                *held = Some((left - 1, Arc::clone(&sockets)));
                sockets
            }
            Some((_, sockets)) => sockets,
            None => Arc::new([]),
        }
    }

    fn relays(&self, worker: WorkerId) -> Vec<RelaySocket> {
        lock(&self.relays).get_mut(usize::from(worker)).map(std::mem::take).unwrap_or_default()
    }

    fn peers(&self, worker: WorkerId) -> Vec<PeerSocket> {
        lock(&self.peers).get_mut(usize::from(worker)).map(std::mem::take).unwrap_or_default()
    }
}
