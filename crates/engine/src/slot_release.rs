//! Removed servers, from the end of their service until their slots can be reused. Must never free a slot that a stream still
//! refers to, nor one with counters of the previous server.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::moment::Moment;
use live::{Removal, ServerPlace};
use policy::program::{Program, Proxy, Server, ServerAddress};

use crate::free_slots::Vacancies;
use crate::worker::{Process, Worker};

/// First interval between two checks of a removed server; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// Upper bound on that interval.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Interval of checking whether all workers have answered.
const TICK: Duration = Duration::from_millis(2);

/// Streams that are examined before the worker yields.
const STREAMS_AT_ONCE: usize = 256;

/// A removed server: its serial number and its slot.
pub type Removed = (usize, ServerPlace);

/// Waits until servers have no more requests, and removes them.
pub(crate) async fn drain(process: Arc<Process>, mut removed: Vec<Removed>) {
    let mut pause = FIRST_PAUSE;
    while !removed.is_empty() && !process.is_stopping() {
        rt::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let mut drained = Vec::new();
        removed.retain(|one| {
            let place = one.1;
            match process.live.proxies[place.proxy].remove_server(place.server, rt::now()) {
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

/// Waits until no stream refers to removed servers, and frees their slots.
async fn vacate(process: Arc<Process>, mut removed: Vec<Removed>) {
    removed.iter().for_each(|(_, place)| process.log_targets.forget_server(*place));
    let mut pause = FIRST_PAUSE;
    while !process.is_stopping() {
        let named = collect_references(&process, &removed, None).await;
        removed.retain(|(serial, place)| {
            let is_named = named.servers.contains(place);
            if !is_named {
                process.events.forget(*serial);
                process.service::<Vacancies>().add(*place);
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

/// Waits until no stream refers to a removed backend and the slots of its servers are free, then frees its slot.
async fn vacate_backend(process: Arc<Process>, place: usize) {
    let mut pause = FIRST_PAUSE;
    while !process.is_stopping() {
        rt::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        let generation = process.generation();
        let proxy = generation.program.proxies.get(place).filter(|_| !generation.program.proxies.is_present(place));
        let Some(backend) = proxy.and_then(|proxy| proxy.backend.as_ref()) else { return };
        let at = |server: &Server| ServerPlace { proxy: place, server: server.index };
        let is_free = backend.servers.struck().all(|server| process.service::<Vacancies>().has(at(server)));
        drop(generation);
        if is_free && !collect_references(&process, &[], Some(place)).await.backends.contains(&place) {
            return process.service::<Vacancies>().add_backend(place);
        }
    }
}

/// Servers and backends that streams refer to.
#[derive(Debug, Default)]
struct References {
    servers: BTreeSet<ServerPlace>,
    backends: BTreeSet<usize>,
}

/// Collected answers of the workers.
struct ReferenceReport {
    /// Number of workers that have not answered.
    asked: AtomicUsize,
    named: Mutex<References>,
}

/// Returns the slots that streams refer to. Afterwards every worker has cleared its counters of the given servers and backend.
async fn collect_references(process: &Process, removed: &[Removed], backend: Option<usize>) -> References {
    let found = Arc::new(ReferenceReport { asked: AtomicUsize::new(process.workers()), named: Mutex::default() });
    let sought: Arc<[Removed]> = removed.into();
    for worker in 0..process.workers() {
        let (sought, found) = (Arc::clone(&sought), Arc::clone(&found));
        let job = move |worker: &Rc<Worker>| {
            rt::spawn(rt::Class::Background, rt::NO_TAG, look(Rc::clone(worker), sought, backend, found));
        };
        rt::post(worker as rt::WorkerId, Box::new(move || crate::on_worker(job)));
    }
    while found.asked.load(Ordering::Acquire) > 0 && !process.is_stopping() {
        rt::sleep(TICK).await;
    }
    std::mem::take(&mut *found.named.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Examines all streams of a worker in batches. Streams that begin in between get no removed server.
async fn look(worker: Rc<Worker>, sought: Arc<[Removed]>, backend: Option<usize>, found: Arc<ReferenceReport>) {
    let mut named = References::default();
    let mut from = None;
    loop {
        let tasks = worker.tasks_behind(from, STREAMS_AT_ONCE);
        let Some((last, _)) = tasks.last() else { break };
        from = Some(last.to_bits());
        for state in tasks.iter().filter_map(|(_, task)| task.current()) {
            match state.try_borrow() {
                Ok(state) => {
                    let place = state.route.backend.zip(state.route.server);
                    named.servers.extend(place.map(|(proxy, server)| ServerPlace { proxy, server }));
                    named.backends.extend(state.route.backend);
                }
                // Borrowed elsewhere: assume that it refers to all of them.
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
    /// Frees the slot of a server that a command has removed, once nothing refers to it.
    pub fn vacate(self: &Arc<Self>, server: Removed) {
        rt::spawn(rt::Class::Background, rt::NO_TAG, vacate(Arc::clone(self), vec![server]));
    }

    /// Frees the slot of a backend that a command has removed, once nothing refers to it.
    pub fn vacate_backend(self: &Arc<Self>, place: usize) {
        rt::spawn(rt::Class::Background, rt::NO_TAG, vacate_backend(Arc::clone(self), place));
    }

    /// Reuses the slot of a removed backend, taken from the vacancies, for one that differs in its name alone. It has no servers
    /// and is not published yet. `None`: the name cannot be changed once more.
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

    /// Reuses a free slot for another server, which starts in maintenance: `server` is its description in the newest
    /// configuration, already with its new name. `address` is its address. Returns false if the slot is not free.
    pub fn occupy(&self, proxy: usize, server: &Server, address: ServerAddress, now: Moment) -> bool {
        let place = ServerPlace { proxy, server: server.index };
        let vacancies = self.service::<Vacancies>();
        if !vacancies.has(place) {
            return false;
        }
        vacancies.take(place);
        self.outgoing.set_address(server, address);
        self.forget_links(server.serial);
        self.checks.targets.forget(server.serial);
        self.live.proxies[proxy].replace_server(&server.plan(), now)
    }

    /// Renames the server of a reused slot in the newest configuration and the previous ones. Returns false if its name cannot be
    /// changed once more in one of them.
    pub fn know_occupant(&self, newest: &Program, place: ServerPlace, name: &str) -> bool {
        let older = self.before();
        let programs = older.iter().map(|generation| &*generation.program).chain([newest]);
        know(programs, place, name)
    }
}

/// Renames the server of a reused slot in configurations. Returns false if its name cannot be changed once more in one of them.
pub(crate) fn know<'p>(programs: impl Iterator<Item = &'p Program> + Clone, place: ServerPlace, name: &str) -> bool {
    let is_renamed = |program: &Program| program.server_at(place).is_none_or(|known| known.name.change(name).is_ok());
    if !programs.clone().all(is_renamed) {
        return false;
    }
    let backends = programs.filter_map(|program| program.proxies.get(place.proxy)?.backend.as_ref());
    backends.for_each(|backend| {
        backend.servers.restore(place.server);
    });
    true
}
