//! Links to servers and the pool of idle ones. An idle link is plain `Send` data: no task, no future. It lies in a
//! locked list per server and worker; a worker takes from its own list first, then steals. An event on an idle link removes
//! it, unless its transport says that it means nothing: unsolicited bytes never reach a request. Must never choose a server.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::AppendOnlyVec;
use rt::net::ParkedId;

use crate::carrier::Carrier;
use crate::pool_key::{OwnedPoolKey, PoolKey};
use crate::quota::{Quota, Reservation};
use crate::transport::{Parked, Transport, Verdict};

/// A server's number in the pool: servers of all backends counted through.
pub type ServerId = usize;

/// A connection to a server, or a share of one, that serves one request at a time.
pub struct Link {
    /// What carries the request.
    pub carrier: Carrier,
    /// Answers that were received whole over it; above zero it has proved that it can be reused.
    pub answers: u32,
    /// Glitches of the server so far, where the connection is the request's own.
    pub glitches: u32,
    /// It belongs to one client's session, and never lies in the pool.
    pub private: bool,
    /// It was opened for the first request of a session, which may not use every idle one (`http-reuse safe`).
    pub first: bool,
    /// The generation of its server that it leads to, see [`Pool::generation`].
    pub generation: u32,
    /// Its place in the count of its server, where connections are counted.
    pub place: Option<Reservation>,
    /// What is particular about it; `None` where nothing is.
    pub pool_key: Option<Box<OwnedPoolKey>>,
}

impl Link {
    /// A fresh connection like all others to its server.
    pub fn new(stream: Transport) -> Self {
        Self {
            carrier: Carrier::Own(stream),
            answers: 0,
            glitches: 0,
            private: false,
            first: false,
            generation: 0,
            place: None,
            pool_key: None,
        }
    }

    /// An answer was received whole; the server has so many glitches on its connection by now.
    pub fn note_answer(&mut self, glitches: u32) {
        (self.answers, self.glitches) = (self.answers.saturating_add(1), glitches);
    }

    /// Whether a request that needs such a connection may use this one.
    pub fn is(&self, wanted_key: PoolKey<'_>) -> bool {
        wanted_key.fits(self.pool_key.as_deref())
    }
}

/// What a server's idle links are allowed.
#[derive(Debug, Clone, Copy)]
pub struct IdleLimits {
    /// Idle links kept at most over all workers (`pool-max-conn`).
    pub most: usize,
    /// Idle links over all workers up to which workers leave each other's alone (`pool-low-conn`).
    pub unshared: usize,
}

impl Default for IdleLimits {
    fn default() -> Self {
        Self { most: usize::MAX, unshared: 0 }
    }
}

struct Idle {
    parked: Parked,
    answers: u32,
    glitches: u32,
    place: Option<Reservation>,
    pool_key: Option<Box<OwnedPoolKey>>,
}

/// One worker's idle links to one server. Aligned so that two workers never share a cache line.
#[repr(align(128))]
struct List {
    /// Number of links, readable without the lock.
    length: AtomicUsize,
    /// Connections of several requests at a time on which none is under way: they lie with their worker.
    shared: AtomicUsize,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    queue: VecDeque<Idle>,
    /// The fewest links that lay here since the last purge: these were never needed.
    spare: usize,
}

impl List {
    fn new() -> Self {
        Self { length: AtomicUsize::new(0), shared: AtomicUsize::new(0), links: Mutex::new(Links::default()) }
    }

    /// A poisoned lock holds a list that is whole: every change to it is a single push or removal.
    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes everything out.
    fn empty(&self) -> VecDeque<Idle> {
        let mut links = self.lock();
        self.length.store(0, Ordering::Relaxed);
        links.spare = 0;
        std::mem::take(&mut links.queue)
    }

    fn take(&self, wanted: Wanted<'_>, newest: bool) -> Option<Idle> {
        if self.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut links = self.lock();
        let idle = if newest && links.queue.back().is_some_and(|idle| wanted.admits(idle)) {
            // The usual case, at no search.
            links.queue.pop_back()?
        } else {
            let mut order = links.queue.iter();
            let position = if newest {
                order.rposition(|idle| wanted.admits(idle))
            } else {
                order.position(|idle| wanted.admits(idle))
            };
            links.queue.remove(position?)?
        };
        let left = links.queue.len();
        links.spare = links.spare.min(left);
        self.length.store(left, Ordering::Relaxed);
        Some(idle)
    }
}

/// Which idle links will do.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Only those that were reused before.
    pub(crate) proven: bool,
    /// Only those of this kind; `None`: any.
    pub(crate) wanted_key: Option<PoolKey<'a>>,
}

impl Wanted<'_> {
    fn admits(&self, idle: &Idle) -> bool {
        (!self.proven || idle.answers > 1)
            && self.wanted_key.is_none_or(|wanted_key| wanted_key.fits(idle.pool_key.as_deref()))
    }
}

struct Server {
    limits: IdleLimits,
    /// How often the server has moved.
    generation: AtomicU32,
    /// Idle links over all workers. Kept only where there is a limit: it is a cache line that all workers share.
    idle: AtomicUsize,
    /// All connections, where that is asked for.
    quota: Quota,
    lists: Box<[List]>,
}

/// The idle links of the process, shared by all workers.
pub struct Pool {
    servers: AppendOnlyVec<Server>,
    workers: usize,
    /// False: a worker never takes another's links (`tune.idle-pool.shared off`).
    shared: bool,
}

impl Pool {
    /// A pool for servers with these limits, and so many workers.
    pub fn new(limits: &[IdleLimits], workers: usize, shared: bool) -> Self {
        let servers = limits.iter().map(|&limits| Server::new(limits, workers)).collect();
        Self { servers, workers, shared }
    }

    /// One more server; its number, or `None` where there are too many.
    pub fn add(&self, limits: IdleLimits) -> Option<ServerId> {
        self.servers.push(|_| Server::new(limits, self.workers)).ok()
    }

    /// An idle link to `server` of that kind which is open and silent, the most recently used of this worker first.
    /// With `proven` only links that were reused before (`http-reuse aggressive`).
    pub fn take(&self, server: ServerId, worker: usize, proven: bool, wanted_key: PoolKey<'_>) -> Option<Link> {
        self.find(server, worker, Wanted { proven, wanted_key: Some(wanted_key) }).map(|(link, _)| link)
    }

    /// Closes an idle link to `server`, whatever its kind. False: there is none that this worker may touch.
    pub fn evict(&self, server: ServerId, worker: usize) -> bool {
        self.find(server, worker, Wanted { proven: false, wanted_key: None }).is_some()
    }

    /// A place for one more connection to `server`, of which there are at most `most`; an idle one is closed for it,
    /// whichever worker has it. `None`: all are in use.
    pub fn reserve(&self, server: ServerId, most: usize) -> Option<Reservation> {
        let server = self.servers.get(server)?;
        loop {
            let place = server.quota.reserve(most);
            if place.is_some() {
                return place;
            }
            let wanted = Wanted { proven: false, wanted_key: None };
            // Closed by now, so that its place is free.
            drop(server.lists.iter().find_map(|list| list.take(wanted, false))?);
            server.leave(1);
        }
    }

    /// Closes an idle link of `worker` to any server. False: it has none.
    pub fn evict_any(&self, worker: usize) -> bool {
        let wanted = Wanted { proven: false, wanted_key: None };
        self.servers.iter().any(|server| {
            let idle = server.lists.get(worker).and_then(|list| list.take(wanted, false));
            if idle.is_some() {
                server.leave(1);
            }
            idle.is_some()
        })
    }

    /// Counts an idle connection that lies with its worker alone. False: there are enough.
    pub(crate) fn enter(&self, server: ServerId, worker: usize) -> bool {
        let Some(server) = self.servers.get(server).filter(|server| server.enter()) else { return false };
        if let Some(list) = server.lists.get(worker) {
            list.shared.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// The opposite of [`Pool::enter`].
    pub(crate) fn leave(&self, server: ServerId, worker: usize) {
        let Some(server) = self.servers.get(server) else { return };
        server.leave(1);
        if let Some(list) = server.lists.get(worker) {
            list.shared.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A link, and whether another worker had it.
    pub(crate) fn find(&self, id: ServerId, worker: usize, wanted: Wanted<'_>) -> Option<(Link, bool)> {
        let server = self.servers.get(id)?;
        while let Some(idle) = server.lists.get(worker)?.take(wanted, true) {
            if let Some(link) = server.revive(idle) {
                return Some((link, false));
            }
        }
        if !self.shared || (server.limits.unshared > 0 && self.idle(id) < server.limits.unshared) {
            return None;
        }
        let others = server.lists.len();
        for step in 1..others {
            let list = &server.lists[(worker + step) % others];
            while let Some(idle) = list.take(wanted, false) {
                if let Some(link) = server.revive(idle) {
                    return Some((link, true));
                }
            }
        }
        None
    }

    /// Whether a link that becomes idle now would be kept.
    pub fn has_room(&self, server: ServerId) -> bool {
        self.servers
            .get(server)
            .is_some_and(|server| !server.limited() || server.idle.load(Ordering::Relaxed) < server.limits.most)
    }

    /// Lays an idle link down; closes it where the server's limit is reached.
    pub(crate) fn put(&self, server: ServerId, worker: usize, link: Link) -> Option<ParkedId> {
        let server = self.servers.get(server)?;
        // A share of a connection is given back by letting go of it.
        let Link { carrier, answers, glitches, generation, place, pool_key, .. } = link;
        let transport = carrier.into_transport()?;
        if !server.enter() {
            return None;
        }
        let parked = transport.park();
        let id = parked.id();
        let list = server.lists.get(worker)?;
        let mut links = list.lock();
        // Under the lock: who moves the server empties the list under it, too, and later.
        if generation != server.generation.load(Ordering::Relaxed) {
            drop(links);
            server.leave(1);
            return None;
        }
        links.queue.push_back(Idle { parked, answers, glitches, place, pool_key });
        list.length.store(links.queue.len(), Ordering::Relaxed);
        Some(id)
    }

    /// Does what an event on an idle link means, if it still lies here: mostly the link is closed. A link that its
    /// transport has read from, and that may be idle again, is given back.
    pub(crate) fn heed(&self, server: ServerId, worker: usize, id: ParkedId) -> Option<Link> {
        let server = self.servers.get(server)?;
        let list = server.lists.get(worker)?;
        let (idle, verdict) = {
            let mut links = list.lock();
            let position = links.queue.iter().position(|idle| idle.parked.id() == id)?;
            let verdict = links.queue.get(position).map_or(Verdict::Close, |idle| idle.parked.verdict());
            if verdict == Verdict::Keep {
                return None;
            }
            let idle = links.queue.remove(position)?;
            let left = links.queue.len();
            links.spare = links.spare.min(left);
            list.length.store(left, Ordering::Relaxed);
            (idle, verdict)
        };
        server.leave(1);
        if verdict != Verdict::NeedsIo {
            return None;
        }
        let generation = server.generation.load(Ordering::Relaxed);
        let Idle { parked, answers, glitches, place, pool_key } = idle;
        let mut stream = parked.resume()?;
        stream.settle().then(|| Link { answers, glitches, generation, place, pool_key, ..Link::new(stream) })
    }

    /// Closes half of those links of `worker` to `server` that nobody needed since the last call, oldest first
    /// (`pool-purge-delay`). Returns how many were closed.
    pub fn purge(&self, server: ServerId, worker: usize) -> usize {
        let Some(server) = self.servers.get(server) else { return 0 };
        let Some(list) = server.lists.get(worker) else { return 0 };
        if list.length.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let closed: Vec<Idle> = {
            let mut links = list.lock();
            let excess = links.spare.min(links.queue.len()).div_ceil(2);
            let closed = links.queue.drain(..excess).collect();
            links.spare = links.queue.len();
            list.length.store(links.queue.len(), Ordering::Relaxed);
            closed
        };
        server.leave(closed.len());
        closed.len()
    }

    /// Closes every idle link of `worker` (a stop).
    pub fn clear(&self, worker: usize) {
        for server in &self.servers {
            let Some(list) = server.lists.get(worker) else { continue };
            server.leave(list.empty().len());
        }
    }

    /// How often a server has moved. To be read before its address is; what is connected then is of this generation.
    pub fn generation(&self, server: ServerId) -> u32 {
        self.servers.get(server).map_or(0, |server| server.generation.load(Ordering::Acquire))
    }

    /// A server has moved: every idle link to it is closed, and those that are in use now will not be kept. To be called
    /// after the new address can be seen.
    pub fn forget(&self, server: ServerId) {
        let Some(server) = self.servers.get(server) else { return };
        server.generation.fetch_add(1, Ordering::Release);
        for list in &server.lists {
            let closed = list.empty();
            server.leave(closed.len());
        }
    }

    /// Number of idle links to `server` that a worker holds.
    pub fn idle_of(&self, server: ServerId, worker: usize) -> usize {
        let list = self.servers.get(server).and_then(|server| server.lists.get(worker));
        list.map_or(0, |list| list.length.load(Ordering::Relaxed))
    }

    /// Number of idle connections to `server` that a worker holds: links, and connections of several requests at a time without
    /// one.
    pub fn idle_connections_of(&self, server: ServerId, worker: usize) -> usize {
        let list = self.servers.get(server).and_then(|server| server.lists.get(worker));
        list.map_or(0, |list| list.length.load(Ordering::Relaxed) + list.shared.load(Ordering::Relaxed))
    }

    /// The descriptors of the idle links to `server` that a worker holds, and whether each is secured.
    pub fn idle_descriptors(&self, server: ServerId, worker: usize) -> Vec<(i32, bool)> {
        let list = self.servers.get(server).and_then(|server| server.lists.get(worker));
        let Some(list) = list.filter(|list| list.length.load(Ordering::Relaxed) > 0) else { return Vec::new() };
        list.lock().queue.iter().map(|idle| (idle.parked.number(), idle.parked.is_secure())).collect()
    }

    /// The same over all workers.
    pub fn idle_connections(&self, server: ServerId) -> usize {
        (0..self.workers).map(|worker| self.idle_connections_of(server, worker)).sum()
    }

    /// Number of idle links to `server` over all workers.
    pub fn idle(&self, server: ServerId) -> usize {
        let lists = self.servers.get(server).map(|server| server.lists.iter());
        lists.into_iter().flatten().map(|list| list.length.load(Ordering::Relaxed)).sum()
    }
}

impl Server {
    fn new(limits: IdleLimits, workers: usize) -> Self {
        Self {
            limits,
            generation: AtomicU32::new(0),
            idle: AtomicUsize::new(0),
            quota: Quota::default(),
            lists: (0..workers).map(|_| List::new()).collect(),
        }
    }

    fn limited(&self) -> bool {
        self.limits.most != usize::MAX
    }

    /// Counts one link more, unless the limit is reached.
    fn enter(&self) -> bool {
        if self.limited() && self.idle.fetch_add(1, Ordering::Relaxed) >= self.limits.most {
            self.idle.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        true
    }

    fn leave(&self, links: usize) {
        if self.limited() {
            self.idle.fetch_sub(links, Ordering::Relaxed);
        }
    }

    fn revive(&self, idle: Idle) -> Option<Link> {
        self.leave(1);
        let stream = idle.parked.adopt()?;
        Some(Link {
            carrier: Carrier::Own(stream),
            answers: idle.answers,
            glitches: idle.glitches,
            private: false,
            first: false,
            generation: self.generation.load(Ordering::Relaxed),
            place: idle.place,
            pool_key: idle.pool_key,
        })
    }
}
