//! The engine: connects mechanism (`conn`) and policy. Listeners accept, sessions serve clients, streams carry requests, states
//! become log lines. Must never parse bytes or configuration text.

pub mod acme;
pub mod acme_state;
pub mod captures;
pub mod certificate_parts;
pub mod certificates;
pub mod check;
mod configuration_swap;
mod connection_preamble;
pub mod count_exchange;
mod datagram_entry;
mod datagram_queue;
pub mod datagram_sockets;
pub mod decision_caches;
pub mod decoding;
pub mod disk_cache;
mod end_notice;
mod export;
mod fcgi_request;
pub mod filter;
pub mod free_slots;
pub mod frontends;
pub mod generation;
pub mod handshake;
pub mod health_watch;
mod history;
pub mod host;
pub mod http_client;
mod link_tally;
pub mod listener;
mod memory_pressure;
pub mod ocsp;
pub mod ocsp_state;
pub mod orders;
pub mod outgoing;
mod outgoing_quic;
pub mod peering;
pub mod probes;
pub mod protocol;
pub mod qlog_files;
pub mod quic_connections;
mod quic_counts;
mod quic_listener;
mod quic_settings;
mod registry;
pub mod resolve;
mod reverse_connect;
pub mod routes;
pub mod rule_costs;
pub mod script;
pub mod service;
pub mod session;
pub mod shared_counts;
mod short_text;
mod slot_release;
pub mod sockets;
pub mod store;
pub mod stream;
pub mod stream_state;
pub mod succession;
pub mod telemetry;
pub mod timeline;
pub mod worker;

pub use configuration_swap::{Addresses, Refusal};

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use datagram_sockets::{DatagramListening, DatagramSockets, Relocation};
use frontends::Opening;
use listener::Listening;
use policy::program::Program;
use sockets::Sockets;
use succession::Succession;
use worker::{Process, Worker};

/// Runs `job` on the worker of this thread. Jobs can arrive before the worker has started, since the workers start one after the
/// other: such a job is posted again for the next event-loop iteration, so that a connection handed over is not lost.
pub fn on_worker(job: impl FnOnce(&Rc<Worker>) + Send + 'static) {
    match rt::local::<Worker>() {
        Some(worker) => job(&worker),
        None => rt::post(rt::worker(), Box::new(|| on_worker(job))),
    }
}

/// Describes the session of a task's tag by its frontend and its client. Call it on the worker that runs it; `None`: the session
/// has ended.
#[must_use]
pub fn describe_session(tag: u64) -> Option<String> {
    let session = rt::local::<Worker>()?.task(base::Key::from_bits(tag))?;
    let client = session.client().map_or("unix".to_owned(), |client| client.to_string());
    Some(format!("frontend {}, client {client}", session.proxy().name))
}

/// Closes the connection of a session of the current worker, named by the tag of its task, regardless of its stream, which ends
/// with an internal error. Returns the description by [`describe_session`].
pub fn end_session(tag: u64) -> Option<String> {
    let description = describe_session(tag)?;
    if let Some(task) = rt::local::<Worker>()?.task(base::Key::from_bits(tag)) {
        task.cut_off();
    }
    Some(description)
}

/// Pending results of workers.
struct Gathering<T> {
    left: usize,
    found: Vec<(usize, T)>,
    waker: Option<std::task::Waker>,
}

/// One worker's result. A part dropped without a result counts as done, for instance if the worker has ended.
struct Part<T>(Arc<Mutex<Gathering<T>>>);

impl<T> Part<T> {
    fn lock(&self) -> MutexGuard<'_, Gathering<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Part<T> {
    fn drop(&mut self) {
        let mut gathering = self.lock();
        gathering.left -= 1;
        let waker = gathering.waker.take();
        drop(gathering);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Runs `job` on one worker and returns its result; `None` if the worker has ended.
pub async fn on_one_worker<T: Send + 'static>(
    number: usize,
    job: impl FnOnce(&Rc<Worker>) -> T + Send + 'static,
) -> Option<T> {
    gather(vec![(number, job)]).await.pop()
}

/// Runs `job` on every worker and returns the results, in the workers' order.
pub async fn on_every_worker<T: Send + 'static>(
    shared: &Process,
    job: impl Fn(&Rc<Worker>) -> T + Clone + Send + 'static,
) -> Vec<T> {
    gather((0..shared.workers()).map(|number| (number, job.clone())).collect()).await
}

async fn gather<T: Send + 'static, J>(jobs: Vec<(usize, J)>) -> Vec<T>
where
    J: FnOnce(&Rc<Worker>) -> T + Send + 'static,
{
    let gathering = Arc::new(Mutex::new(Gathering { left: jobs.len(), found: Vec::new(), waker: None }));
    for (number, job) in jobs {
        let part = Part(Arc::clone(&gathering));
        let answer = move |worker: &Rc<Worker>| {
            let answer = job(worker);
            part.lock().found.push((number, answer));
        };
        rt::post(number as rt::WorkerId, Box::new(move || on_worker(answer)));
    }
    let all = Part(gathering);
    all.lock().left += 1;
    let mut found = std::future::poll_fn(|cx| {
        let mut gathering = all.lock();
        if gathering.left > 1 {
            gathering.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(&mut gathering.found))
    })
    .await;
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, answer)| answer).collect()
}

/// Runs a job that needs a worker in [`rt::local`], before there are workers. The job may only read.
pub fn aside<T>(shared: &Arc<Process>, job: impl FnOnce() -> T) -> T {
    let logger = service::log::Logger::new(Arc::clone(&shared.log_targets));
    rt::set_local(Rc::new(Worker::new(0, Arc::clone(shared), logger)));
    job()
}

/// Runs this worker until the process stops and every session has ended. `rt` calls it once on each worker.
pub async fn serve(shared: Arc<Process>, listening: Arc<[Listening]>) {
    let id = rt::worker() as usize;
    let generation = shared.generation();
    rt::net::limit_pipes(generation.program.global.maxpipes);
    if let Some(bytes) = generation.program.global.pipesize {
        rt::net::set_pipe_capacity(bytes as usize);
    }
    if generation.program.global.measure_tasks {
        rt::measure_tasks(true);
    }
    drop(generation);
    let logger = service::log::Logger::new(Arc::clone(&shared.log_targets));
    let worker = Rc::new(Worker::new(id, shared, logger));
    rt::set_local(Rc::<Worker>::clone(&worker));
    let witness = Rc::clone(&worker);
    rt::set_panic_hook(Rc::new(move |tag| stream::client::conclude_panicked(&witness, tag)));
    memory_pressure::start(&worker);
    let accepting = Rc::new(Accepting(Rc::clone(&worker)));
    for (number, place) in listening.iter().enumerate().filter(|(_, place)| place.is_served_by(id)) {
        start_accepting(&accepting, place.clone(), number);
    }
    for place in worker.process.service::<DatagramSockets>().take(id) {
        start_receiving(&accepting, place);
    }
    drop(accepting);
    if id == 0 && worker.process.service::<Succession>().predecessors().are_any() {
        let process = Arc::clone(&worker.process);
        rt::spawn(rt::Class::Normal, u64::MAX, async move { succession::take_over(&process).await });
    }
    check::start(&worker);
    reverse_connect::start(&worker);
    resolve::start(&worker);
    store::start(&worker);
    acme::start(&worker);
    ocsp::start(&worker);
    export::start(&worker);
    history::start(&worker);
    timeline::follow(&worker, false);
    count_exchange::start(&worker);
    rt::spawn(rt::Class::Normal, u64::MAX, reap(Rc::clone(&worker)));
    rt::spawn(rt::Class::Normal, u64::MAX, purge(Rc::clone(&worker)));
}

fn start_accepting(accepting: &Rc<Accepting>, place: Listening, number: usize) {
    let accepting = Rc::clone(accepting);
    rt::spawn(rt::Class::Normal, u64::MAX, async move {
        listener::accept(Rc::clone(&accepting.0), place, number).await;
        drop(accepting);
    });
}

/// Starts receiving at the UDP address of a socket. `tune.quic.listen` may forbid it for QUIC.
fn start_receiving(accepting: &Rc<Accepting>, place: DatagramListening) {
    let worker = Rc::clone(&accepting.0);
    let generation = worker.generation();
    if generation.proxy(place.group.owner().frontend).flows.is_some() {
        let number = worker.process.number_listener();
        let serving = stream::client::flows::serve(Rc::clone(&worker), place, number, Rc::clone(accepting));
        rt::spawn(rt::Class::Normal, u64::MAX, serving);
        return;
    }
    if !generation.program.global.quic.listens {
        // Its queue is closed with its place.
        drop(place.split());
        return;
    }
    let number = worker.process.number_listener();
    let receiving = quic_listener::accept(worker, place, number, Rc::clone(accepting));
    rt::spawn(rt::Class::Normal, u64::MAX, receiving);
}

/// Starts accepting at further addresses of the newest configuration. Call it once every worker has adopted that.
pub fn listen(shared: &Arc<Process>, sockets: Vec<Listening>) {
    let Some(known) = shared.sockets() else { return };
    known.add(&sockets);
    let sockets: Arc<[Listening]> = sockets.into();
    for worker in 0..shared.workers() {
        let sockets = Arc::clone(&sockets);
        let job = move |worker: &Rc<Worker>| {
            worker.begin_accepting();
            let accepting = Rc::new(Accepting(Rc::clone(worker)));
            for place in sockets.iter().filter(|place| place.is_served_by(worker.id)) {
                start_accepting(&accepting, place.clone(), worker.process.number_listener());
            }
        };
        rt::post(worker as rt::WorkerId, Box::new(move || on_worker(job)));
    }
}

/// Receives at further QUIC addresses of the newest configuration. Call it once every worker has adopted that.
pub fn receive(shared: &Arc<Process>, sockets: Vec<DatagramListening>) {
    shared.service::<DatagramSockets>().add(sockets);
    for worker in 0..shared.workers() {
        let job = |worker: &Rc<Worker>| {
            let places = worker.process.service::<DatagramSockets>().take(worker.id);
            if !places.is_empty() {
                worker.begin_accepting();
                let accepting = Rc::new(Accepting(Rc::clone(worker)));
                places.into_iter().for_each(|place| start_receiving(&accepting, place));
            }
        };
        rt::post(worker as rt::WorkerId, Box::new(move || on_worker(job)));
    }
}

/// Assigns QUIC addresses to other frontends of the newest configuration. Call it once every worker has adopted that.
pub fn relocate(shared: &Arc<Process>, moves: &[Relocation]) {
    if moves.is_empty() {
        return;
    }
    shared.service::<DatagramSockets>().relocate(moves);
    wake_watchers(shared);
    rt::spawn(rt::Class::Background, rt::NO_TAG, let_frontends_go(Arc::clone(shared)));
}

/// Closes addresses, each named by its frontend and its `bind` index. Clients that have connected by then are served.
pub fn stop_listening(shared: &Arc<Process>, binds: &[(usize, usize)]) {
    if let Some(known) = shared.sockets() {
        let datagrams = shared.service::<DatagramSockets>();
        binds.iter().for_each(|(frontend, bind)| {
            known.close(*frontend, *bind);
            datagrams.close(*frontend, *bind);
        });
        wake_watchers(shared);
    }
    if !binds.is_empty() {
        rt::spawn(rt::Class::Background, rt::NO_TAG, let_frontends_go(Arc::clone(shared)));
    }
}

/// Time for workers to accept the connections that wait at a closed address.
const CLOSING: Duration = Duration::from_secs(1);

/// Drops the handles of frontends once their addresses are closed.
async fn let_frontends_go(shared: Arc<Process>) {
    rt::sleep(CLOSING).await;
    for worker in 0..shared.workers() {
        rt::post(worker as rt::WorkerId, Box::new(|| on_worker(|worker| worker.let_frontends_go())));
    }
}

/// Guard of a worker that may still accept connections: a soft stop lasts until it is dropped.
struct Accepting(Rc<Worker>);

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.end_accepting();
    }
}

/// Marks the process as leaving, and wakes the tasks that watch for a stop: what other machines know of the process ends before
/// `grace`, connections are accepted until [`stop`]. Returns true from the second call on.
pub fn begin_to_leave(shared: &Arc<Process>) -> bool {
    let has_begun = shared.begin_to_leave();
    if !has_begun {
        wake_watchers(shared);
    }
    has_begun
}

/// Requests a soft stop: no new connections; sessions end when they can.
pub fn stop(shared: &Arc<Process>) {
    if shared.stop() {
        for worker in 0..shared.workers() {
            rt::post(worker as rt::WorkerId, Box::new(|| on_worker(begin_stop)));
        }
    }
}

fn begin_stop(worker: &Rc<Worker>) {
    timeline::stopping(worker);
    worker.wake_sessions();
}

/// Stops accepting until [`resume`], and stops listening where that frees the address, so that another process can bind it. Open
/// connections continue. Returns the indices of the frontends whose sockets could not be paused.
pub fn pause(shared: &Arc<Process>) -> Vec<usize> {
    if shared.is_stopping() || shared.is_paused() {
        return Vec::new();
    }
    shared.set_paused(true);
    wake_watchers(shared);
    let sockets = shared.sockets().into_iter().flat_map(Sockets::open);
    let mut failed = Vec::new();
    for (frontend, socket) in sockets {
        if is_paused_alone(shared, frontend) {
            continue;
        }
        if socket.pause().is_err() {
            failed.extend(frontend);
        }
    }
    failed
}

/// Listens and accepts again after [`pause`]. Returns the indices of the frontends whose addresses another process uses now.
pub fn resume(shared: &Arc<Process>) -> Vec<usize> {
    if shared.is_stopping() || !shared.is_paused() {
        return Vec::new();
    }
    let sockets = shared.sockets().into_iter().flat_map(Sockets::open);
    let mut lost = Vec::new();
    for (frontend, socket) in sockets {
        if is_paused_alone(shared, frontend) {
            continue;
        }
        if socket.resume().is_err() {
            lost.extend(frontend);
        }
    }
    shared.set_paused(false);
    wake_watchers(shared);
    lost
}

/// Whether a frontend is paused or shut by itself, independently of the process.
fn is_paused_alone(shared: &Process, frontend: Option<usize>) -> bool {
    frontend.is_some_and(|frontend| shared.frontends.opening(frontend) != Opening::Open)
}

fn wake_watchers(shared: &Arc<Process>) {
    for worker in 0..shared.workers() {
        rt::post(worker as rt::WorkerId, Box::new(|| on_worker(|worker| worker.wake_watchers())));
    }
}

/// Maximum time that the end of the process waits for the servers of rings to take the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Maximum time that the end of the process waits for stores to know that its slots of servers are free.
const LAST_SLOTS: Duration = Duration::from_millis(500);

/// Waits until no session is left, the log has been sent, and leased slots have been given back. For worker 0.
pub async fn drained() {
    let Some(worker) = rt::local::<Worker>() else { return };
    std::future::poll_fn(|cx| worker.poll_drained(cx)).await;
    export::flush(&worker).await;
    let deadline = rt::now() + LAST_SLOTS;
    while !worker.process.live.slots.have_left() && rt::now() < deadline {
        rt::sleep(Duration::from_millis(10)).await;
    }
    let deadline = rt::now() + LAST_LINES;
    // Other workers send their last lines at the end of the iteration in which their last session ended.
    while worker.process.log_targets.is_behind() && rt::now() < deadline {
        rt::sleep(Duration::from_millis(10)).await;
    }
}

/// Handles events of idle connections; usually they were closed.
async fn reap(worker: Rc<Worker>) {
    let mut events = Vec::new();
    loop {
        std::future::poll_fn(|cx| rt::net::poll_parked_events(cx, &mut events)).await;
        for id in events.drain(..) {
            worker.links.heed(&worker.process.pool, id);
        }
    }
}

/// Interval of looking for the first server, while there is none.
const PURGE_LOOK: Duration = Duration::from_secs(5);

/// Closes idle connections that were not needed (`pool-purge-delay`).
async fn purge(worker: Rc<Worker>) {
    // By serial number, since servers can be added.
    let mut due: Vec<base::Moment> = Vec::new();
    loop {
        let shortest = note_new(&worker.generation().program, &mut due);
        rt::sleep(shortest.max(Duration::from_millis(100))).await;
        let (now, generation) = (rt::now(), worker.generation());
        for server in generation.program.proxies.iter().flat_map(|proxy| proxy.servers()) {
            let Some(due) = due.get_mut(server.serial).filter(|due| now >= **due) else { continue };
            worker.links.purge(&worker.process.pool, server.serial);
            *due = now + server.pool_purge_delay;
        }
    }
}

/// Sets the time of the first purge of added servers. Returns the shortest delay of any server.
fn note_new(program: &Program, due: &mut Vec<base::Moment>) -> Duration {
    let servers = || program.proxies.iter().flat_map(|proxy| proxy.servers());
    for server in servers() {
        if server.serial >= due.len() {
            due.resize(server.serial + 1, rt::now() + server.pool_purge_delay);
        }
    }
    servers().map(|server| server.pool_purge_delay).min().unwrap_or(PURGE_LOOK)
}
