//! Connections of one worker to servers that carry several requests at a time: which of them has room for one more, and which
//! nobody needs. They stay with their worker, and each has a task that moves its frames. Must never choose a server.

use std::cell::RefCell;

use crate::link::{Link, Pool, ServerId};
use crate::pool_key::{OwnedPoolKey, PoolKey};
use crate::quota::Reservation;
use crate::several::Requests;

/// The connections of one worker.
pub(crate) struct Shared {
    worker: usize,
    connections: RefCell<Vec<Connection>>,
}

struct Connection {
    server: ServerId,
    generation: u32,
    pool_key: Option<Box<OwnedPoolKey>>,
    /// Its place in the count of its server; given back with the connection.
    _place: Option<Reservation>,
    requests: Requests,
    /// The server has opened it: nobody here could open another one in its place.
    reversed: bool,
    /// No request is under way, and the server's count of idle connections has it.
    idle: bool,
    /// It was idle since the last purge.
    spare: bool,
}

impl Shared {
    /// Of the worker with this number.
    pub(crate) fn new(worker: usize) -> Self {
        Self { worker, connections: RefCell::default() }
    }

    /// Remembers a connection that a link has opened, for later requests.
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

    /// Remembers a connection that the server has opened.
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

    /// A request's share of a connection that fits and has room. With `proven` only of one that was used before.
    /// `may_share`: whether the request goes over a connection of others, given whether the handshake of that one is not over.
    pub(crate) fn take(
        &self,
        pool: &Pool,
        server: ServerId,
        (proven, may_share): (bool, &dyn Fn(bool) -> bool),
        wanted: PoolKey<'_>,
    ) -> Option<Link> {
        let mut connections = self.connections.borrow_mut();
        if connections.is_empty() {
            return None;
        }
        let generation = pool.generation(server);
        let mut fitting = connections.iter_mut().filter(|own| {
            let proves = !proven || own.requests.answers() > 1;
            let fits = wanted.fits(own.pool_key.as_deref());
            let fits = own.server == server && own.generation == generation && proves && fits;
            fits && may_share(own.requests.is_early())
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

    /// The last request of a connection has ended: it lies idle, or is closed where there are enough of those.
    pub(crate) fn note_idle(&self, pool: &Pool, requests: &Requests) {
        let mut connections = self.connections.borrow_mut();
        let Some(own) = connections.iter_mut().find(|own| own.requests.is(requests)) else {
            // Nobody else knows it.
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

    /// Has the tasks look what is to be done whose connections the server has opened, and carry no request.
    pub(crate) fn rouse(&self, server: ServerId, wanted: PoolKey<'_>) {
        let connections = self.connections.borrow();
        let fitting = connections.iter().filter(|own| {
            own.reversed && own.server == server && own.requests.open() == 0 && wanted.fits(own.pool_key.as_deref())
        });
        fitting.for_each(|own| own.requests.wake());
    }

    /// Connections to where a server was before it moved, or went out of service, take no more requests.
    pub(crate) fn close_stale(&self, pool: &Pool, server: ServerId) {
        let generation = pool.generation(server);
        let connections = self.connections.borrow();
        let stale = connections.iter().filter(|own| own.server == server && own.generation != generation);
        stale.for_each(|own| own.requests.close());
    }

    /// Those that their servers have opened take no more requests.
    pub(crate) fn release(&self) {
        for own in self.connections.borrow().iter().filter(|own| own.reversed) {
            own.requests.close();
        }
    }

    /// Every connection: its server, and what it carries.
    pub(crate) fn connections(&self) -> Vec<(ServerId, Requests)> {
        self.connections.borrow().iter().map(|own| (own.server, own.requests.clone())).collect()
    }

    /// A connection has ended.
    pub(crate) fn remove(&self, pool: &Pool, requests: &Requests) {
        let mut connections = self.connections.borrow_mut();
        let Some(place) = connections.iter().position(|own| own.requests.is(requests)) else { return };
        let gone = connections.swap_remove(place);
        drop(connections);
        if gone.idle {
            pool.leave(gone.server, self.worker);
        }
    }

    /// Closes idle connections to a server that nobody needed since the last call, and those to where it was before it moved.
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

    /// Closes an idle connection, to that server or to any. False: there is none.
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
