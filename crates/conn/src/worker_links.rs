//! One worker's side of the pool of links: its idle links, and its multiplexed connections. Must never choose a server.

use std::cell::{Cell, RefCell};

use rt::net::ParkedId;

use crate::link::{Link, LinkFilter, Pool, ServerId};
use crate::multiplexed::Requests;
use crate::pool_key::{OwnedPoolKey, PoolKey};
pub use crate::shared_connections::ShareTerms;
use crate::shared_connections::Shared;

/// One worker's side of the pool: records the server of each of its parked links, so that an event on one finds its
/// list at once.
pub struct WorkerLinks {
    worker: usize,
    owners: RefCell<Vec<ServerId>>,
    takeovers: Cell<u64>,
    shared: Shared,
}

impl WorkerLinks {
    /// For the worker with this number.
    pub fn new(worker: usize) -> Self {
        Self { worker, owners: RefCell::default(), takeovers: Cell::new(0), shared: Shared::new(worker) }
    }

    /// Takes an idle link, see [`Pool::take`], or a stream of a multiplexed connection.
    pub fn take(&self, pool: &Pool, server: ServerId, terms: ShareTerms<'_>, wanted_key: PoolKey<'_>) -> Option<Link> {
        if let Some(share) = self.shared.take(pool, server, terms, wanted_key) {
            return Some(share);
        }
        self.take_own(pool, server, terms.proven, wanted_key)
    }

    /// Takes an idle link that owns its connection, see [`Pool::take`].
    pub fn take_own(&self, pool: &Pool, server: ServerId, proven: bool, wanted_key: PoolKey<'_>) -> Option<Link> {
        let (link, foreign) = pool.find(server, self.worker, LinkFilter { proven, wanted_key: Some(wanted_key) })?;
        if foreign {
            self.takeovers.set(self.takeovers.get() + 1);
        }
        Some(link)
    }

    /// The number of links taken from the lists of other workers.
    pub fn takeovers(&self) -> u64 {
        self.takeovers.get()
    }

    /// Returns every multiplexed connection, with its server.
    pub fn shared_connections(&self) -> Vec<(ServerId, Requests)> {
        self.shared.connections()
    }

    /// Stores a connection that `link` has opened, and that may carry other requests as well.
    pub fn share(&self, server: ServerId, link: &mut Link, requests: &Requests) {
        self.shared.add(server, link, requests);
    }

    /// Stores a connection that the server has opened, with its key. `generation`: the server's when it was assigned.
    pub fn attach(&self, server: ServerId, generation: u32, pool_key: Option<Box<OwnedPoolKey>>, requests: &Requests) {
        self.shared.attach(server, generation, pool_key, requests);
    }

    /// Wakes the tasks of connections that the server has opened and that carry no request.
    pub fn rouse(&self, server: ServerId, wanted_key: PoolKey<'_>) {
        self.shared.rouse(server, wanted_key);
    }

    /// Lets multiplexed connections opened before [`Pool::forget`] end with their last request.
    pub fn close_stale(&self, pool: &Pool, server: ServerId) {
        self.shared.close_stale(pool, server);
    }

    /// Lets no more requests begin on connections that servers have opened, so that they can be opened elsewhere (on a
    /// stop).
    pub fn release(&self) {
        self.shared.release();
    }

    /// Handles the end of a multiplexed connection's last request.
    pub fn note_idle(&self, pool: &Pool, requests: &Requests) {
        self.shared.note_idle(pool, requests);
    }

    /// Removes a multiplexed connection that has ended.
    pub fn note_ended(&self, pool: &Pool, requests: &Requests) {
        self.shared.remove(pool, requests);
    }

    /// Closes links that were not needed since the last call, see [`Pool::purge`].
    pub fn purge(&self, pool: &Pool, server: ServerId) {
        pool.purge(server, self.worker);
        self.shared.purge(pool, server);
    }

    /// Closes an idle link, see [`Pool::evict`].
    pub fn evict(&self, pool: &Pool, server: ServerId) -> bool {
        pool.evict(server, self.worker) || self.shared.evict(Some(server))
    }

    /// Closes an idle link to any server, see [`Pool::evict_any`].
    pub fn evict_any(&self, pool: &Pool) -> bool {
        pool.evict_any(self.worker) || self.shared.evict(None)
    }

    /// Stores an idle link, or closes it if the limit is reached.
    pub fn put(&self, pool: &Pool, server: ServerId, link: Link) {
        if let Some(id) = pool.put(server, self.worker, link) {
            let mut owners = self.owners.borrow_mut();
            let slot = id.slot();
            if owners.len() <= slot {
                owners.resize(slot + 1, usize::MAX);
            }
            owners[slot] = server;
        }
    }

    /// Handles an event on an idle link, as its transport decides ([`Verdict`]).
    pub fn heed(&self, pool: &Pool, id: ParkedId) {
        let owner = self.owners.borrow().get(id.slot()).copied();
        if let Some(server) = owner
            && let Some(link) = pool.heed(server, self.worker, id)
        {
            self.put(pool, server, link);
        }
    }
}
