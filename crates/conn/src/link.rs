//! Links to servers and the pool of idle ones. An idle link is plain `Send` data without a task or a future. It is
//! stored in a locked list per server and worker; a worker takes from its own list first, then steals. An event on an
//! idle link removes it, unless its transport ignores the event: unsolicited bytes never reach a request. Must never
//! choose a server.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::AppendOnlyVec;
use rt::net::ParkedId;

use crate::carrier::Carrier;
use crate::pool_key::{OwnedPoolKey, PoolKey};
use crate::quota::{Quota, Reservation};
use crate::transport::{Parked, Transport, Verdict};

/// Index of a server in the pool, over the servers of all backends.
pub type ServerId = usize;

/// A connection to a server, or a share of one, that serves one request at a time.
pub struct Link {
    /// The connection or stream that carries the request.
    pub carrier: Carrier,
    /// Complete answers received over it; a number above zero proves that the server allows reuse.
    pub answers: u32,
    /// Glitches of the server so far, if the request owns the connection.
    pub glitches: u32,
    /// Whether it belongs to one client's session, so that it is never put into the pool.
    pub private: bool,
    /// Whether it was opened for the first request of a session, which may not use every idle link (`http-reuse safe`).
    pub first: bool,
    /// The generation of the server's address that it was connected to, see [`Pool::generation`].
    pub generation: u32,
    /// Its slot in the server's count of connections, if they are counted.
    pub place: Option<Reservation>,
    /// The key of a connection that not every request may use; `None`: a common one.
    pub pool_key: Option<Box<OwnedPoolKey>>,
}

impl Link {
    /// Creates a link over a new connection with the common key.
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

    /// Records a complete answer, and the total of the server's glitches on the connection.
    pub fn note_answer(&mut self, glitches: u32) {
        (self.answers, self.glitches) = (self.answers.saturating_add(1), glitches);
    }

    /// Whether a request that needs a connection with this key may use this one.
    pub fn is(&self, wanted_key: PoolKey<'_>) -> bool {
        wanted_key.fits(self.pool_key.as_deref())
    }
}

/// Limits of a server's idle links.
#[derive(Debug, Clone, Copy)]
pub struct IdleLimits {
    /// The maximum number of idle links over all workers (`pool-max-conn`).
    pub most: usize,
    /// The number of idle links over all workers up to which a worker does not take those of others (`pool-low-conn`).
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

/// One worker's idle links to one server. Aligned so that lists of two workers never share a cache line.
#[repr(align(128))]
struct List {
    /// The number of links, readable without the lock.
    length: AtomicUsize,
    /// The number of idle multiplexed connections, which stay with their worker.
    shared: AtomicUsize,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    queue: VecDeque<Idle>,
    /// The least number of links in the list since the last purge: that number of links was never needed.
    spare: usize,
}

impl List {
    fn new() -> Self {
        Self { length: AtomicUsize::new(0), shared: AtomicUsize::new(0), links: Mutex::new(Links::default()) }
    }

    /// Locks the list. A list is consistent even if the lock is poisoned: every change is a single push or removal.
    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns all links.
    fn empty(&self) -> VecDeque<Idle> {
        let mut links = self.lock();
        self.length.store(0, Ordering::Relaxed);
        links.spare = 0;
        std::mem::take(&mut links.queue)
    }

    fn take(&self, wanted: LinkFilter<'_>, newest: bool) -> Option<Idle> {
        if self.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut links = self.lock();
        let idle = if newest && links.queue.back().is_some_and(|idle| wanted.admits(idle)) {
            // The usual case, without a search.
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

/// Which idle links are acceptable.
#[derive(Clone, Copy)]
pub(crate) struct LinkFilter<'a> {
    /// Only links that were reused before.
    pub(crate) proven: bool,
    /// Only links with this key; `None`: any.
    pub(crate) wanted_key: Option<PoolKey<'a>>,
}

impl LinkFilter<'_> {
    fn admits(&self, idle: &Idle) -> bool {
        (!self.proven || idle.answers > 1)
            && self.wanted_key.is_none_or(|wanted_key| wanted_key.fits(idle.pool_key.as_deref()))
    }
}

struct Server {
    limits: IdleLimits,
    /// How often the server's address has changed.
    generation: AtomicU32,
    /// Idle links over all workers. Counted only if there is a limit, because all workers share this cache line.
    idle: AtomicUsize,
    /// All connections, if the server's connections are counted.
    quota: Quota,
    lists: Box<[List]>,
}

/// The idle links of the process, shared by all workers.
pub struct Pool {
    servers: AppendOnlyVec<Server>,
    workers: usize,
    /// Whether a worker may take another worker's links (`tune.idle-pool.shared`).
    shared: bool,
}

impl Pool {
    /// Creates a pool for servers with these limits, and for that number of workers.
    pub fn new(limits: &[IdleLimits], workers: usize, shared: bool) -> Self {
        let servers = limits.iter().map(|&limits| Server::new(limits, workers)).collect();
        Self { servers, workers, shared }
    }

    /// Adds a server. Returns its number, or `None` if there are too many.
    pub fn add(&self, limits: IdleLimits) -> Option<ServerId> {
        self.servers.push(|_| Server::new(limits, self.workers)).ok()
    }

    /// Takes an open and silent idle link to `server` with that key; of this worker's, the most recently used first.
    /// With `proven` only a link that was reused before (`http-reuse aggressive`).
    pub fn take(&self, server: ServerId, worker: usize, proven: bool, wanted_key: PoolKey<'_>) -> Option<Link> {
        self.find(server, worker, LinkFilter { proven, wanted_key: Some(wanted_key) }).map(|(link, _)| link)
    }

    /// Closes an idle link to `server` with any key. Returns false if there is none that this worker may take.
    pub fn evict(&self, server: ServerId, worker: usize) -> bool {
        self.find(server, worker, LinkFilter { proven: false, wanted_key: None }).is_some()
    }

    /// Reserves a slot for one more connection to `server`, of at most `most`; if necessary an idle connection of any
    /// worker is closed for it. `None`: all are in use.
    pub fn reserve(&self, server: ServerId, most: usize) -> Option<Reservation> {
        let server = self.servers.get(server)?;
        loop {
            let place = server.quota.reserve(most);
            if place.is_some() {
                return place;
            }
            let wanted = LinkFilter { proven: false, wanted_key: None };
            // It is closed here, which frees its slot.
            drop(server.lists.iter().find_map(|list| list.take(wanted, false))?);
            server.leave(1);
        }
    }

    /// Closes an idle link of `worker` to any server. Returns false if there is none.
    pub fn evict_any(&self, worker: usize) -> bool {
        let wanted = LinkFilter { proven: false, wanted_key: None };
        self.servers.iter().any(|server| {
            let idle = server.lists.get(worker).and_then(|list| list.take(wanted, false));
            if idle.is_some() {
                server.leave(1);
            }
            idle.is_some()
        })
    }

    /// Counts an idle connection that only its worker can use. Returns false if the limit of idle connections is
    /// reached.
    pub(crate) fn enter(&self, server: ServerId, worker: usize) -> bool {
        let Some(server) = self.servers.get(server).filter(|server| server.enter()) else { return false };
        if let Some(list) = server.lists.get(worker) {
            list.shared.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Undoes [`Pool::enter`].
    pub(crate) fn leave(&self, server: ServerId, worker: usize) {
        let Some(server) = self.servers.get(server) else { return };
        server.leave(1);
        if let Some(list) = server.lists.get(worker) {
            list.shared.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes an idle link. Returns it, and whether another worker had it.
    pub(crate) fn find(&self, id: ServerId, worker: usize, wanted: LinkFilter<'_>) -> Option<(Link, bool)> {
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

    /// Stores an idle link, or closes it if the server's limit is reached.
    pub(crate) fn put(&self, server: ServerId, worker: usize, link: Link) -> Option<ParkedId> {
        let server = self.servers.get(server)?;
        // A stream of a multiplexed connection is returned by dropping it.
        let Link { carrier, answers, glitches, generation, place, pool_key, .. } = link;
        let transport = carrier.into_transport()?;
        if !server.enter() {
            return None;
        }
        let parked = transport.park();
        let id = parked.id();
        let list = server.lists.get(worker)?;
        let mut links = list.lock();
        // Compared under the lock: `forget` increments the generation first, and then empties the list under the lock.
        if generation != server.generation.load(Ordering::Relaxed) {
            drop(links);
            server.leave(1);
            return None;
        }
        links.queue.push_back(Idle { parked, answers, glitches, place, pool_key });
        list.length.store(links.queue.len(), Ordering::Relaxed);
        Some(id)
    }

    /// Handles an event on an idle link, if it is still in the list: mostly the link is closed. Returns a link whose
    /// transport has consumed the event and that may be idle again.
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

    /// Closes half of the links of `worker` to `server` that were not needed since the last call, oldest first
    /// (`pool-purge-delay`). Returns the number closed.
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

    /// Closes every idle link of `worker` (on a stop).
    pub fn clear(&self, worker: usize) {
        for server in &self.servers {
            let Some(list) = server.lists.get(worker) else { continue };
            server.leave(list.empty().len());
        }
    }

    /// How often a server's address has changed. To be read before the address is: a link connected after that is of
    /// this generation.
    pub fn generation(&self, server: ServerId) -> u32 {
        self.servers.get(server).map_or(0, |server| server.generation.load(Ordering::Acquire))
    }

    /// Closes every idle link to a server whose address has changed; links that are in use will not be kept. To be
    /// called after the new address is visible.
    pub fn forget(&self, server: ServerId) {
        let Some(server) = self.servers.get(server) else { return };
        server.generation.fetch_add(1, Ordering::Release);
        for list in &server.lists {
            let closed = list.empty();
            server.leave(closed.len());
        }
    }

    /// The number of idle links to `server` that a worker holds.
    pub fn idle_of(&self, server: ServerId, worker: usize) -> usize {
        let list = self.servers.get(server).and_then(|server| server.lists.get(worker));
        list.map_or(0, |list| list.length.load(Ordering::Relaxed))
    }

    /// The number of idle connections to `server` that a worker holds: links, and idle multiplexed connections.
    pub fn idle_connections_of(&self, server: ServerId, worker: usize) -> usize {
        let list = self.servers.get(server).and_then(|server| server.lists.get(worker));
        list.map_or(0, |list| list.length.load(Ordering::Relaxed) + list.shared.load(Ordering::Relaxed))
    }

    /// File descriptors of the idle links to `server` that a worker holds, and whether each uses TLS.
    pub fn idle_descriptors(&self, server: ServerId, worker: usize) -> Vec<(i32, bool)> {
        let list = self.servers.get(server).and_then(|server| server.lists.get(worker));
        let Some(list) = list.filter(|list| list.length.load(Ordering::Relaxed) > 0) else { return Vec::new() };
        list.lock().queue.iter().map(|idle| (idle.parked.number(), idle.parked.is_secure())).collect()
    }

    /// The number of idle connections to `server` over all workers, as counted by [`Pool::idle_connections_of`].
    pub fn idle_connections(&self, server: ServerId) -> usize {
        (0..self.workers).map(|worker| self.idle_connections_of(server, worker)).sum()
    }

    /// The number of idle links to `server` over all workers.
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

    /// Counts one more idle link, unless the limit is reached.
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
