//! Removed servers, from the time at which nothing new is sent to them until others may have their places. Must never free a
//! place that a stream still names, nor one with counts of the server before.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::moment::Moment;
use live::{Removal, ServerPlace};
use policy::program::{Program, Proxy, Server, ServerAddress};

use crate::worker::{Process, Worker};

/// The first pause between two looks at a server that was removed; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How often is looked whether all workers have answered.
const TICK: Duration = Duration::from_millis(2);

/// Streams that a worker looks at before others get their turn.
const STREAMS_AT_ONCE: usize = 256;

/// A server that was removed: its serial number and its place.
pub type Removed = (usize, ServerPlace);

/// Waits until servers have nothing to do any more, and removes them.
pub(crate) async fn drain(process: Arc<Process>, mut removed: Vec<Removed>) {
    let mut pause = FIRST_PAUSE;
    while !removed.is_empty() && !process.is_stopping() {
        rt::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let mut drained = Vec::new();
        removed.retain(|one| {
            let (proxy, place) = one.1;
            match process.live.proxies[proxy].remove_server(place, rt::now()) {
                Removal::Possible => drained.push(*one),
                Removal::Unknown => {}
                Removal::InService | Removal::Busy => return true,
            }
            false
        });
        if !drained.is_empty() {
            rt::spawn(rt::Class::Background, rt::NO_TAG, vacate(Arc::clone(&process), drained));
        }
    }
}

/// Waits until no stream names servers that were removed, and frees their places.
async fn vacate(process: Arc<Process>, mut removed: Vec<Removed>) {
    removed.iter().for_each(|(_, place)| process.log_targets.forget_server(*place));
    let mut pause = FIRST_PAUSE;
    while !process.is_stopping() {
        let named = named(&process, &removed, None).await;
        removed.retain(|(serial, place)| {
            let is_named = named.servers.contains(place);
            if !is_named {
                process.events.forget(*serial);
                process.vacancies.add(*place);
            }
            is_named
        });
        if removed.is_empty() {
            return;
        }
        rt::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits until no stream names a backend that an order has removed, and until the places of its servers are free, and frees its place.
async fn vacate_backend(process: Arc<Process>, place: usize) {
    let mut pause = FIRST_PAUSE;
    while !process.is_stopping() {
        rt::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let generation = process.generation();
        let proxy = generation.program.proxies.get(place).filter(|_| !generation.program.proxies.is_present(place));
        let Some(backend) = proxy.and_then(|proxy| proxy.backend.as_ref()) else { return };
        let is_free = backend.servers.struck().all(|server| process.vacancies.has((place, server.index)));
        drop(generation);
        if is_free && !named(&process, &[], Some(place)).await.backends.contains(&place) {
            return process.vacancies.add_backend(place);
        }
    }
}

/// Servers and backends that streams name.
#[derive(Debug, Default)]
struct Named {
    servers: BTreeSet<ServerPlace>,
    backends: BTreeSet<usize>,
}

/// What the workers have found.
struct Found {
    /// Workers that have yet to answer.
    asked: AtomicUsize,
    named: Mutex<Named>,
}

/// Places that streams name. Every worker has cleared its counts of what is sought after its look.
async fn named(process: &Process, removed: &[Removed], backend: Option<usize>) -> Named {
    let found = Arc::new(Found { asked: AtomicUsize::new(process.workers()), named: Mutex::default() });
    let sought: Arc<[Removed]> = removed.into();
    for worker in 0..process.workers() {
        let (sought, found) = (Arc::clone(&sought), Arc::clone(&found));
        let job = move |worker: &Rc<Worker>| {
            rt::spawn(rt::Class::Background, rt::NO_TAG, look(Rc::clone(worker), (sought, backend), found));
        };
        rt::post(worker as rt::WorkerId, Box::new(move || crate::on_worker(job)));
    }
    while found.asked.load(Ordering::Acquire) > 0 && !process.is_stopping() {
        rt::sleep(TICK).await;
    }
    std::mem::take(&mut *found.named.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Looks at all streams of a worker, some at a time. Those that begin meanwhile get no server that was removed.
async fn look(worker: Rc<Worker>, (sought, backend): (Arc<[Removed]>, Option<usize>), found: Arc<Found>) {
    let mut named = Named::default();
    let mut from = None;
    loop {
        let tasks = worker.tasks_behind(from, STREAMS_AT_ONCE);
        let Some((last, _)) = tasks.last() else { break };
        from = Some(last.to_bits());
        for state in tasks.iter().filter_map(|(_, task)| task.current()) {
            match state.try_borrow() {
                Ok(state) => {
                    named.servers.extend(state.backend.zip(state.server));
                    named.backends.extend(state.backend);
                }
                // Unknown for now.
                Err(_) => {
                    named.servers.extend(sought.iter().map(|(_, place)| *place));
                    named.backends.extend(backend);
                }
            }
        }
        drop(tasks);
        rt::yield_now().await;
    }
    sought.iter().for_each(|(serial, _)| worker.counters().clear_server(*serial));
    backend.into_iter().for_each(|place| worker.counters().clear_backend(place));
    let mut all = found.named.lock().unwrap_or_else(PoisonError::into_inner);
    all.servers.extend(named.servers);
    all.backends.extend(named.backends);
    drop(all);
    found.asked.fetch_sub(1, Ordering::AcqRel);
}

impl Process {
    /// A server was removed by an order: frees its place once nothing refers to it.
    pub fn vacate(self: &Arc<Self>, server: Removed) {
        rt::spawn(rt::Class::Background, rt::NO_TAG, vacate(Arc::clone(self), vec![server]));
    }

    /// A backend was removed by an order: frees its place once nothing refers to it.
    pub fn vacate_backend(self: &Arc<Self>, place: usize) {
        rt::spawn(rt::Class::Background, rt::NO_TAG, vacate_backend(Arc::clone(self), place));
    }

    /// Gives the place of a backend that was removed, which was taken from the vacancies, to one that differs in its name alone. It has
    /// no servers and is not published. `None`: there is no room for its name.
    pub fn occupy_backend<'p>(&self, newest: &'p Program, place: usize, name: &str) -> Option<&'p Arc<Proxy>> {
        let older = self.before();
        let programs = older.iter().map(|generation| &*generation.program).chain([newest]);
        let is_renamed = |program: &Program| program.proxies.get(place).is_none_or(|one| one.name.change(name).is_ok());
        if !programs.clone().all(is_renamed) {
            return None;
        }
        for program in programs {
            program.proxies.restore(place);
        }
        let proxy = newest.proxies.get(place)?;
        self.live.restore_backend(&proxy.plan()).then_some(proxy)
    }

    /// Gives a free place to another server, which begins in maintenance: `server` is what the newest configuration has there, by
    /// the name and with all else that it is from now on. Its address is told apart. False: the place is not free.
    pub fn occupy(&self, proxy: usize, server: &Server, address: ServerAddress, now: Moment) -> bool {
        let place = (proxy, server.index);
        if !self.vacancies.has(place) {
            return false;
        }
        self.vacancies.take(place);
        self.outgoing.set_address(server, address);
        self.forget_links(server.serial);
        self.probing.forget(server.serial);
        self.live.proxies[proxy].replace_server(&server.plan(), now)
    }

    /// Has the newest configuration and those before it know a server that gets the place of one that was removed. False: one of
    /// them has had too many names for it.
    pub fn know_occupant(&self, newest: &Program, place: ServerPlace, name: &str) -> bool {
        let older = self.before();
        let programs = older.iter().map(|generation| &*generation.program).chain([newest]);
        know(programs, place, name)
    }
}

/// Has configurations know a server that gets the place of one that was removed. False: one of them has had too many names for it.
pub(crate) fn know<'p>(programs: impl Iterator<Item = &'p Program> + Clone, place: ServerPlace, name: &str) -> bool {
    let (proxy, server) = place;
    let is_renamed = |program: &Program| program.server_at(place).is_none_or(|known| known.name.change(name).is_ok());
    if !programs.clone().all(is_renamed) {
        return false;
    }
    let backends = programs.filter_map(|program| program.proxies.get(proxy)?.backend.as_ref());
    backends.for_each(|backend| {
        backend.servers.restore(server);
    });
    true
}
