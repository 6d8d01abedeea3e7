//! Multiplexed server connections of one worker: which of them have free capacity, and which are unused. They stay with
//! their worker, and each has a task that moves its frames. Must never choose a server.

use std::cell::RefCell;

use crate::link::{Link, Pool, ServerId};
use crate::multiplexed::Requests;
use crate::pool_key::{OwnedPoolKey, PoolKey};
use crate::quota::Reservation;

/// The multiplexed connections of one worker.
pub(crate) struct Shared {
    worker: usize,
    connections: RefCell<Vec<Connection>>,
}

struct Connection {
    server: ServerId,
    generation: u32,
    pool_key: Option<Box<OwnedPoolKey>>,
    /// Its slot in the server's count of connections; released with the connection.
    _place: Option<Reservation>,
    requests: Requests,
    /// Whether the server opened it (reverse HTTP), so that Weir could not open another one in its place.
    reversed: bool,
    /// Whether no request is in progress, and it is in the server's count of idle connections.
    idle: bool,
    /// Whether it was idle since the last purge.
    spare: bool,
}

/// Conditions for the use of an idle or multiplexed connection.
#[derive(Clone, Copy)]
pub struct ShareTerms<'t> {
    /// Only a connection that was used before.
    pub proven: bool,
    /// Decides whether a request may share a connection, given whether its handshake is incomplete.
    pub may_share: &'t dyn Fn(bool) -> bool,
}

impl Shared {
    /// For the worker with this number.
    pub(crate) fn new(worker: usize) -> Self {
        Self { worker, connections: RefCell::default() }
    }

    /// Stores a connection that a link has opened, for later requests.
    pub(crate) fn add(&self, server: ServerId, link: &mut Link, requests: &Requests) {
        self.connections.borrow_mut().push(Connection {
            server,
            generation: link.generation,
            pool_key: link.pool_key.take(),
            _place: link.place.take(),
            requests: requests.clone(),
            reversed: false,
            idle: false,
            spare: false,
        });
    }

    /// Stores a connection that the server has opened.
    pub(crate) fn attach(
        &self,
        server: ServerId,
        generation: u32,
        pool_key: Option<Box<OwnedPoolKey>>,
        requests: &Requests,
    ) {
        let (requests, place) = (requests.clone(), None);
        let own = Connection {
            server,
            generation,
            pool_key,
            _place: place,
            requests,
            reversed: true,
            idle: false,
            spare: false,
        };
        self.connections.borrow_mut().push(own);
    }

    /// Begins a request on a connection with that key and free capacity.
    pub(crate) fn take(
        &self,
        pool: &Pool,
        server: ServerId,
        terms: ShareTerms<'_>,
        wanted: PoolKey<'_>,
    ) -> Option<Link> {
        let mut connections = self.connections.borrow_mut();
        if connections.is_empty() {
            return None;
        }
        let generation = pool.generation(server);
        let mut fitting = connections.iter_mut().filter(|own| {
            let proves = !terms.proven || own.requests.answers() > 1;
            let fits = wanted.fits(own.pool_key.as_deref());
            let fits = own.server == server && own.generation == generation && proves && fits;
            fits && (terms.may_share)(own.requests.is_early())
        });
        let (own, carrier) =
            fitting.find_map(|own| Some((own.requests.begin()?, own)).map(|(carrier, own)| (own, carrier)))?;
        if std::mem::take(&mut own.idle) {
            pool.leave(server, self.worker);
        }
        own.spare = false;
        Some(Link {
            carrier,
            answers: own.requests.answers().max(1),
            glitches: 0,
            private: false,
            first: false,
            generation,
            place: None,
            pool_key: None,
        })
    }

    /// Handles the end of a connection's last request: it becomes idle, or is closed if the limit of idle connections
    /// is reached.
    pub(crate) fn note_idle(&self, pool: &Pool, requests: &Requests) {
        let mut connections = self.connections.borrow_mut();
        let Some(own) = connections.iter_mut().find(|own| own.requests.is(requests)) else {
            // The connection is not stored here.
            return requests.close();
        };
        if own.idle {
            return;
        }
        if own.generation == pool.generation(own.server) && pool.enter(own.server, self.worker) {
            own.idle = true;
        } else {
            own.requests.close();
        }
    }

    /// Wakes the tasks of connections that the server has opened and that carry no request.
    pub(crate) fn rouse(&self, server: ServerId, wanted: PoolKey<'_>) {
        let connections = self.connections.borrow();
        let fitting = connections.iter().filter(|own| {
            own.reversed && own.server == server && own.requests.open() == 0 && wanted.fits(own.pool_key.as_deref())
        });
        fitting.for_each(|own| own.requests.wake());
    }

    /// Lets no more requests begin on connections to a server's former address, or to one that went out of service.
    pub(crate) fn close_stale(&self, pool: &Pool, server: ServerId) {
        let generation = pool.generation(server);
        let connections = self.connections.borrow();
        let stale = connections.iter().filter(|own| own.server == server && own.generation != generation);
        stale.for_each(|own| own.requests.close());
    }

    /// Lets no more requests begin on connections that servers have opened.
    pub(crate) fn release(&self) {
        for own in self.connections.borrow().iter().filter(|own| own.reversed) {
            own.requests.close();
        }
    }

    /// Returns every connection, with its server.
    pub(crate) fn connections(&self) -> Vec<(ServerId, Requests)> {
        self.connections.borrow().iter().map(|own| (own.server, own.requests.clone())).collect()
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, pool: &Pool, requests: &Requests) {
        let mut connections = self.connections.borrow_mut();
        let Some(place) = connections.iter().position(|own| own.requests.is(requests)) else { return };
        let gone = connections.swap_remove(place);
        drop(connections);
        if gone.idle {
            pool.leave(gone.server, self.worker);
        }
    }

    /// Closes idle connections to a server that were not needed since the last call, and those to its former address.
    pub(crate) fn purge(&self, pool: &Pool, server: ServerId) -> usize {
        let mut closed = 0;
        let generation = pool.generation(server);
        for own in self.connections.borrow_mut().iter_mut().filter(|own| own.server == server) {
            let stale = own.generation != generation;
            if stale || own.idle && !own.reversed && std::mem::replace(&mut own.spare, true) {
                own.requests.close();
                closed += 1;
            }
        }
        closed
    }

    /// Closes an idle connection, to that server or to any. Returns false if there is none.
    pub(crate) fn evict(&self, server: Option<ServerId>) -> bool {
        let connections = self.connections.borrow();
        let mut idle = connections.iter().filter(|own| {
            own.idle && !own.reversed && !own.requests.is_closing() && server.is_none_or(|server| own.server == server)
        });
        let Some(own) = idle.next() else { return false };
        own.requests.close();
        true
    }
}
