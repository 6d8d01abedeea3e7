//! One worker's side of the pool of links: its idle ones, and its connections that carry several requests at a time. Must never
//! choose a server.

use std::cell::{Cell, RefCell};

use rt::net::ParkedId;

use crate::link::{Link, Pool, ServerId, Wanted};
use crate::pool_key::{OwnedPoolKey, PoolKey};
use crate::several::Requests;
use crate::sharing::Shared;

/// One worker's side of the pool: remembers which server each of its parked links belongs to, so that an event on one
/// finds its list at once.
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

    /// Takes an idle link, see [`Pool::take`], or a share of a connection that carries several requests, where the request
    /// `may_share` one, given whether the handshake of that one is not over.
    pub fn take(
        &self,
        pool: &Pool,
        server: ServerId,
        (proven, may_share): (bool, &dyn Fn(bool) -> bool),
        wanted_key: PoolKey<'_>,
    ) -> Option<Link> {
        if let Some(share) = self.shared.take(pool, server, (proven, may_share), wanted_key) {
            return Some(share);
        }
        self.take_own(pool, server, proven, wanted_key)
    }

    /// Takes an idle link that has its connection for itself, see [`Pool::take`].
    pub fn take_own(&self, pool: &Pool, server: ServerId, proven: bool, wanted_key: PoolKey<'_>) -> Option<Link> {
        let (link, foreign) = pool.find(server, self.worker, Wanted { proven, wanted_key: Some(wanted_key) })?;
        if foreign {
            self.takeovers.set(self.takeovers.get() + 1);
        }
        Some(link)
    }

    /// Links that were taken from the lists of other workers.
    pub fn takeovers(&self) -> u64 {
        self.takeovers.get()
    }

    /// Every connection that carries several requests: its server, and what it carries.
    pub fn shared_connections(&self) -> Vec<(ServerId, Requests)> {
        self.shared.connections()
    }

    /// Remembers a connection that `link` has opened, and that carries other requests beside its own.
    pub fn share(&self, server: ServerId, link: &mut Link, requests: &Requests) {
        self.shared.add(server, link, requests);
    }

    /// Remembers a connection that the server has opened; `pool_key` is what is particular about it.
    /// `generation`: that of the server when it was given to it.
    pub fn attach(
        &self,
        (server, generation): (ServerId, u32),
        pool_key: Option<Box<OwnedPoolKey>>,
        requests: &Requests,
    ) {
        self.shared.attach(server, generation, pool_key, requests);
    }

    /// Has the tasks look what is to be done whose connections the server has opened, and carry no request.
    pub fn rouse(&self, server: ServerId, wanted_key: PoolKey<'_>) {
        self.shared.rouse(server, wanted_key);
    }

    /// Connections of several requests at a time that were begun before [`Pool::forget`] end with their last one.
    pub fn close_stale(&self, pool: &Pool, server: ServerId) {
        self.shared.close_stale(pool, server);
    }

    /// Connections that their servers have opened take no more requests, so that they can be opened elsewhere (a stop).
    pub fn release(&self) {
        self.shared.release();
    }

    /// The last request on such a connection has ended.
    pub fn note_idle(&self, pool: &Pool, requests: &Requests) {
        self.shared.note_idle(pool, requests);
    }

    /// Such a connection has ended.
    pub fn note_ended(&self, pool: &Pool, requests: &Requests) {
        self.shared.remove(pool, requests);
    }

    /// Closes what nobody needed since the last call, see [`Pool::purge`].
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

    /// Lays an idle link down, or closes it where there is no room.
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

    /// Something happened on an idle link: its transport says what that means ([`Verdict`]).
    pub fn heed(&self, pool: &Pool, id: ParkedId) {
        let owner = self.owners.borrow().get(id.slot()).copied();
        if let Some(server) = owner
            && let Some(link) = pool.heed(server, self.worker, id)
        {
            self.put(pool, server, link);
        }
    }
}
