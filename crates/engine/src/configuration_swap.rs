//! Replaces the configuration while connections are served (reload in place). Must never end a session, nor change the
//! configuration of an existing session.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use live::{Admin, Checker, CookieChange, ServerPlace};
use policy::program::{Program, Proxy, Server};

use crate::certificates::Certificates;
use crate::export;
use crate::free_slots::Vacancies;
use crate::generation::Generation;
use crate::outgoing::idle_limits;
use crate::resolve::Resolving;
use crate::service::cookies::change_cookies;
use crate::slot_release::{self, Removed};
use crate::worker::agents::AgentCounters;
use crate::worker::{Process, Worker, tracing};

/// Interval of checking whether a configuration still has sessions.
const FORGETTING: Duration = Duration::from_secs(1);

/// Reason for not adopting a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It differs in something that the running process depends on; the text names that.
    Differs(String),
    /// Not every worker has adopted the previous one yet.
    Underway,
    /// It was compiled to follow another configuration than the current one.
    Outdated,
    /// The process has no capacity for more servers or addresses.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs(what) => write!(f, "the new configuration differs in {what}, which needs a new process"),
            Self::Underway => f.write_str("the configuration before is still being taken up"),
            Self::Outdated => f.write_str("the configuration was changed meanwhile"),
            Self::Full => f.write_str("too many servers or addresses were added to the process"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Added and removed addresses, each named by its frontend and its `bind` index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses {
    /// Addresses to listen on.
    pub came: Vec<(usize, usize)>,
    /// Addresses to close.
    pub went: Vec<(usize, usize)>,
}

impl Addresses {
    /// Returns the differences between two programs.
    pub fn between(former: &Program, next: &Program) -> Self {
        let mut found = Self::default();
        for (index, proxy) in next.proxies.enumerate() {
            let Some(frontend) = &proxy.frontend else { continue };
            let known = former.proxies.get(index).and_then(|proxy| proxy.frontend.as_ref());
            let known = known.map_or(&[][..], |known| &known.binds);
            for (place, bind) in frontend.binds.iter().enumerate() {
                match known.get(place) {
                    None => found.came.push((index, place)),
                    Some(before) if bind.is_removed && !before.is_removed => found.went.push((index, place)),
                    Some(_) => {}
                }
            }
        }
        for (index, proxy) in former.proxies.enumerate().filter(|(index, _)| !next.proxies.is_present(*index)) {
            let binds = proxy.frontend.iter().flat_map(|frontend| frontend.binds.iter().enumerate());
            found.went.extend(binds.filter(|(_, bind)| !bind.is_removed).map(|(place, _)| (index, place)));
        }
        found
    }
}

/// Added and removed servers and proxies.
#[derive(Default)]
struct Moves {
    added: Vec<ServerPlace>,
    /// Servers that reuse slots of removed ones; not contained in `added`.
    seated: Vec<ServerPlace>,
    removed: Vec<ServerPlace>,
    /// Indices of proxies.
    added_proxies: Vec<usize>,
    /// Indices of proxies; their servers are not contained in `removed`.
    removed_proxies: Vec<usize>,
}

impl Process {
    /// Whether not every worker has adopted the newest configuration yet.
    pub fn is_adopting(&self) -> bool {
        self.generations.adopting.load(Ordering::Acquire) > 0
    }

    /// Returns the number of configurations in use, the newest included.
    pub fn generations(&self) -> usize {
        let past = self.generations.past.lock().unwrap_or_else(PoisonError::into_inner);
        1 + past.iter().filter(|generation| generation.strong_count() > 0).count()
    }

    /// Makes `next`, created by [`Generation::following`], the configuration of new connections. Each worker adopts it in its
    /// next event-loop iteration. Connections accepted before keep theirs to their last request; checks, agent checks and
    /// commands use the new one from their next start. Counters, queues, stick tables, idle connections, the state of servers and
    /// runtime settings continue. Added servers serve the older configurations as well; removed ones get no more requests of any.
    /// Variables of scope `proc` are not set again.
    ///
    /// Call it on a thread that runs a worker.
    ///
    /// # Errors
    /// Nothing was changed. [`Refusal::Differs`]: see [`policy::program::Program::obstacle`].
    pub fn adopt(self: &Arc<Self>, mut next: Generation) -> Result<(), Refusal> {
        let mut newest = self.generations.newest.write().unwrap_or_else(PoisonError::into_inner);
        if self.is_adopting() {
            return Err(Refusal::Underway);
        }
        if next.number() != newest.number().wrapping_add(1) {
            return Err(Refusal::Outdated);
        }
        if let Some(what) = newest.program.obstacle(&next.program) {
            return Err(Refusal::Differs(what));
        }
        // A server that was removed has ended its lease.
        let is_gone = |slot: &live::lease::slots::SlotPlan| {
            let proxy = self.live.proxies.get(slot.proxy);
            proxy.is_some_and(|proxy| proxy.removed(slot.server).is_some() || proxy.occupant(slot.server) != 0)
        };
        if next.program.stores.slots.iter().any(is_gone) {
            return Err(Refusal::Differs("servers with 'maxconn-store' that were removed".to_owned()));
        }
        let moves = moves(&newest.program, &next.program);
        let mut served = self.generations.past.lock().unwrap_or_else(PoisonError::into_inner);
        served.retain(|generation| generation.strong_count() > 0);
        served.push(Arc::downgrade(&newest));
        let older: Vec<Arc<Generation>> = served.iter().filter_map(Weak::upgrade).collect();
        drop(served);
        next.logs = self.log_targets.prepare(&next.program).map_err(Refusal::Differs)?;
        self.enter(&newest.program, &mut next, &moves, &older)?;
        self.log_targets.follow(Arc::clone(&next.logs));
        tracing::begin_anew(&newest.program, &next.program, &self.live, &self.log_targets);
        for proxy in moves.added_proxies.iter().filter_map(|index| next.program.proxies.get(*index)) {
            self.log_targets.begin(&next, &self.live, proxy);
        }
        self.live.names.write().unwrap_or_else(PoisonError::into_inner).extend(next.program.names.clone());
        if next.program.has_dashboard() {
            self.counters.measure_latency();
        }
        // Before any session uses the new configuration: none of an older one may be assigned a server that it does not have.
        self.begin(&next.program, &moves);
        self.retire_proxies(&newest.program, moves.removed_proxies, &older);
        self.retire_tables(&newest.program, &next.program, &older);
        drop(older);
        self.retire(&newest.program, &next.program, moves.removed);
        self.generations.adopting.store(self.workers(), Ordering::Release);
        let stored = next.program.tls.stored.iter().map(|one| (one.name.to_string(), Some(one.clone())));
        self.service::<Certificates>().lock().kept.extend(stored);
        let before = std::mem::replace(&mut *newest, next.into());
        drop(newest);
        drop(before);
        for worker in 0..self.workers() {
            rt::post(worker as rt::WorkerId, Box::new(|| crate::on_worker(take_up)));
        }
        Ok(())
    }

    /// Assigns serial numbers to the servers of a program: existing ones keep theirs.
    fn number_servers(&self, former: &Program, program: &mut Program) -> Result<(), Refusal> {
        program.servers = former.servers;
        for index in 0..program.proxies.places() {
            let proxy = program.proxies.get_mut(index).and_then(Arc::get_mut).ok_or(Refusal::Outdated)?;
            let known = former.proxies.get(index).and_then(|proxy| proxy.backend.as_ref());
            let Some(backend) = &mut proxy.backend else { continue };
            for place in 0..backend.servers.places() {
                let is_present = backend.servers.is_present(place);
                let before = known.and_then(|known| known.servers.get(place));
                let Some(server) = backend.servers.get_mut(place) else { continue };
                match before {
                    Some(before) if is_present => server.serial = before.serial,
                    // Holders of a removed server's index find its old description.
                    Some(before) => *server = before.clone(),
                    None => server.serial = self.pool.add(idle_limits(server)).ok_or(Refusal::Full)?,
                }
            }
        }
        Ok(())
    }

    /// Assigns serial numbers to the servers of a program. Added ones get entries in all per-server state, and in the older
    /// configurations that sessions use, so that each contains every server that load balancing can choose.
    fn enter(
        &self,
        former: &Program,
        next: &mut Generation,
        moves: &Moves,
        older: &[Arc<Generation>],
    ) -> Result<(), Refusal> {
        let program = Arc::get_mut(&mut next.program).ok_or(Refusal::Outdated)?;
        self.number_servers(former, program)?;
        for index in &moves.added_proxies {
            let is_frontend = program.proxies.get(*index).is_some_and(|proxy| proxy.frontend.is_some());
            if !self.log_targets.add_backend(*index) || !self.counters.add_proxy(*index, is_frontend) {
                return Err(Refusal::Full);
            }
        }
        for _ in former.spoe_logs.len()..program.spoe_logs.len() {
            if self.agents.push(|_| AgentCounters::default()).is_err() {
                return Err(Refusal::Full);
            }
        }
        let tables = program.tables.iter().enumerate().skip(former.tables.len());
        if !tables.into_iter().all(|(place, table)| self.live.tables.add(place, table.clone())) {
            return Err(Refusal::Full);
        }
        let came = Addresses::between(former, program).came;
        if !came.into_iter().all(|(proxy, place)| self.counters.add_bind(proxy, place)) {
            return Err(Refusal::Full);
        }
        for place in &moves.added {
            let proxy = &program.proxies[place.proxy];
            let server = proxy.server(place.server).ok_or(Refusal::Outdated)?;
            let has_place = self.counters.add_server(server.serial)
                && self.outgoing.add(proxy, server, &program.global)
                && self.service::<Resolving>().add(server)
                && self.log_targets.add_server(proxy, server)
                && older.iter().all(|generation| push(&generation.program, proxy, server));
            if !has_place {
                return Err(Refusal::Full);
            }
        }
        for place in &moves.seated {
            let server = program.server_at(*place).filter(|_| self.is_vacant(*place)).ok_or(Refusal::Outdated)?;
            if !slot_release::know(older.iter().map(|generation| &*generation.program), *place, &server.name)
                || !self.log_targets.add_server(&program.proxies[place.proxy], server)
            {
                return Err(Refusal::Full);
            }
        }
        for index in &moves.added_proxies {
            let proxy = &program.proxies[*index];
            let is_known =
                |generation: &Arc<Generation>| generation.program.proxies.push(|_| Arc::clone(proxy)) == Ok(*index);
            if !older.iter().all(is_known) || !self.live.add_proxy(&proxy.plan()) {
                return Err(Refusal::Full);
            }
            self.live.proxies[*index].begin(rt::now());
        }
        Ok(())
    }

    /// Puts added servers into service.
    fn begin(&self, program: &Program, moves: &Moves) {
        let added_proxies: HashSet<usize> = moves.added_proxies.iter().copied().collect();
        let mut changed = BTreeSet::new();
        let added = moves.added.iter().map(|place| (place, false));
        for (place, is_seated) in added.chain(moves.seated.iter().map(|place| (place, true))) {
            let proxy = &program.proxies[place.proxy];
            let Some(server) = proxy.server(place.server) else { continue };
            let (state, now) = (&self.live.proxies[proxy.index], rt::now());
            if added_proxies.contains(&proxy.index) {
                // The state of an added proxy was created with all its servers.
                crate::check::add(self, proxy.index, server);
                crate::resolve::add(self, proxy.index, server);
                continue;
            }
            let is_there = match is_seated {
                true => self.occupy(proxy.index, server, server.address.clone(), now),
                false => state.add_server(&server.plan(), now),
            };
            if !is_there {
                continue;
            }
            state.enable_check(place.server, Checker::Health, true);
            state.enable_check(place.server, Checker::Agent, true);
            changed.insert(proxy.index);
            if !server.disabled {
                let _ = state.set_admin(place.server, Admin::Ready, now);
            }
            crate::check::add(self, proxy.index, server);
            crate::resolve::add(self, proxy.index, server);
        }
        self.change_cookies(program, changed);
    }

    /// Updates the cookie values of these proxies' servers.
    fn change_cookies(&self, program: &Program, proxies: BTreeSet<usize>) {
        for proxy in proxies.into_iter().filter_map(|index| program.proxies.get(index)) {
            change_cookies(self, proxy, CookieChange::Servers);
        }
    }

    /// Removes proxies: only existing sessions still use them, and their servers are no longer checked. After the last of those
    /// sessions, the servers are removed.
    fn retire_proxies(self: &Arc<Self>, former: &Program, removed: Vec<usize>, older: &[Arc<Generation>]) {
        if removed.is_empty() {
            return;
        }
        let servers = removed.iter().flat_map(|index| {
            let proxy = &former.proxies[*index];
            proxy.servers().map(|server| (server.serial, ServerPlace { proxy: *index, server: server.index }))
        });
        let servers = servers.collect();
        self.service::<Vacancies>().forget(&removed);
        for index in &removed {
            self.live.remove_backend(&former.proxies[*index].name, *index);
        }
        let users = older.iter().map(Arc::downgrade).collect();
        rt::spawn(rt::Class::Background, rt::NO_TAG, forget(Arc::clone(self), users, servers));
    }

    /// Removes stick tables: only existing sessions still use them. After the last of those sessions, their entries are freed.
    fn retire_tables(self: &Arc<Self>, before: &Program, program: &Program, older: &[Arc<Generation>]) {
        let was_there = |place: &usize| before.tables.get(*place).is_some_and(|table| !table.is_removed());
        let is_removed = |place: &usize| program.tables.get(*place).is_some_and(|table| table.is_removed());
        let removed: Vec<usize> = (0..before.tables.len()).filter(was_there).filter(is_removed).collect();
        if removed.is_empty() {
            return;
        }
        removed.iter().for_each(|place| self.live.tables.remove(*place));
        let (process, users) = (Arc::clone(self), older.iter().map(Arc::downgrade).collect());
        rt::spawn(rt::Class::Background, rt::NO_TAG, async move {
            if unused(&process, users).await {
                removed.iter().filter_map(|place| process.live.tables.get(*place)).for_each(|table| table.free());
            }
        });
    }

    /// Removes servers from load balancing. Their current requests continue; then they are removed.
    fn retire(self: &Arc<Self>, before: &Program, program: &Program, removed: Vec<ServerPlace>) {
        let mut draining = Vec::with_capacity(removed.len());
        let mut changed = BTreeSet::new();
        for place in &removed {
            let Some(server) = before.server_at(*place) else { continue };
            draining.push((server.serial, *place));
            // Requests that wait for it are redispatched.
            let _ = self.live.proxies[place.proxy].set_admin(place.server, Admin::Maintenance, rt::now());
            self.forget_links(server.serial);
            changed.insert(place.proxy);
        }
        self.change_cookies(program, changed);
        if !draining.is_empty() {
            rt::spawn(rt::Class::Background, rt::NO_TAG, slot_release::drain(Arc::clone(self), draining));
        }
    }
}

impl Process {
    /// Whether the slot of a removed server is free.
    fn is_vacant(&self, place: ServerPlace) -> bool {
        self.service::<Vacancies>().has(place)
    }

    /// Returns the previous configurations that sessions still use.
    pub(crate) fn before(&self) -> Vec<Arc<Generation>> {
        self.generations.past.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }

    /// Removes the permissions that rules reuse (`auth-request`), those of one proxy or all, in previous configurations as well.
    /// Returns their number.
    pub fn clear_decisions(&self, proxy: Option<usize>) -> usize {
        let generations = self.before().into_iter().chain([self.generation()]);
        generations.map(|generation| generation.decisions.clear(&generation.program, proxy)).sum()
    }

    /// Adds a server that the runtime API adds to the previous configurations as well. Returns false if there is no capacity.
    pub fn know_server(&self, proxy: &Proxy, server: &Server) -> bool {
        self.before().iter().all(|generation| push(&generation.program, proxy, server))
    }

    /// Adds a backend that the runtime API adds to the previous configurations. Returns false if there is no capacity.
    pub fn know_backend(&self, proxy: &Arc<Proxy>) -> bool {
        self.before().iter().all(|generation| generation.program.proxies.push(|_| Arc::clone(proxy)) == Ok(proxy.index))
    }
}

/// Makes a worker adopt the newest configuration.
fn take_up(worker: &Rc<Worker>) {
    worker.take_up();
    export::start(worker);
    crate::history::start(worker);
    crate::timeline::follow(worker, true);
    if worker.id == 0 {
        crate::ocsp::look_again(&worker.process);
    }
}

/// Waits until configurations have no sessions. Returns false if the process stops before that.
async fn unused(process: &Process, users: Vec<Weak<Generation>>) -> bool {
    while users.iter().any(|user| user.strong_count() > 0) {
        if process.is_stopping() {
            return false;
        }
        rt::sleep(FORGETTING).await;
    }
    true
}

/// Waits until configurations have no sessions, and then removes servers that only they had.
async fn forget(process: Arc<Process>, users: Vec<Weak<Generation>>, servers: Vec<Removed>) {
    if !unused(&process, users).await {
        return;
    }
    for (serial, place) in &servers {
        let _ = process.live.proxies[place.proxy].set_admin(place.server, Admin::Maintenance, rt::now());
        process.forget_links(*serial);
    }
    slot_release::drain(process, servers).await;
}

/// Determines the added and removed servers and proxies.
fn moves(former: &Program, next: &Program) -> Moves {
    let mut moves = Moves::default();
    let is_removed = |index: &usize| former.proxies.is_present(*index) && !next.proxies.is_present(*index);
    moves.removed_proxies.extend((0..former.proxies.places()).filter(is_removed));
    moves.added_proxies.extend(former.proxies.places()..next.proxies.places());
    for (index, proxy) in next.proxies.enumerate() {
        let Some(backend) = &proxy.backend else { continue };
        let known = former.proxies.get(index).and_then(|proxy| proxy.backend.as_ref());
        let places = known.map_or(0, |known| known.servers.places());
        let is_gone = |place: &usize| {
            known.is_some_and(|known| known.servers.is_present(*place)) && !backend.servers.is_present(*place)
        };
        let is_seated = |place: &usize| {
            known.is_some_and(|known| !known.servers.is_present(*place)) && backend.servers.is_present(*place)
        };
        let at = |server: usize| ServerPlace { proxy: index, server };
        moves.seated.extend((0..places).filter(is_seated).map(at));
        moves.added.extend((places..backend.servers.places()).map(at));
        moves.removed.extend((0..places).filter(is_gone).map(at));
    }
    moves
}

/// Adds a server to an older configuration. Returns false if there is no capacity.
fn push(older: &Program, proxy: &Proxy, server: &Server) -> bool {
    let backend = older.proxies.get(proxy.index).and_then(|proxy| proxy.backend.as_ref());
    // A backend that the runtime API has added is shared by all configurations.
    backend.is_none_or(|backend| match backend.servers.get(server.index) {
        Some(known) => known.serial == server.serial,
        None => backend.servers.push(|_| server.clone()) == Ok(server.index),
    })
}
