//! The record of a QUIC connection to a server, from its beginning to its end: its counts, and its place among those that are shown.
//! Must never decide on the connection.

use std::rc::Rc;

use conn::quic::Observer;
use live::counters::QuicCounters;
use policy::program::{Proxy, Server};

use crate::link_tally::LinkTally;
use crate::quic_connections::{QuicConnection, QuicKey};
use crate::worker::Worker;

/// Counts what a connection does, however it ends.
pub struct ServerTally {
    worker: Rc<Worker>,
    /// Index of the backend.
    proxy: usize,
    /// Its place among the connections that are shown.
    place: QuicKey,
    counts: LinkTally,
}

impl ServerTally {
    /// Begins with a connection whose handshake is in progress.
    pub fn new(worker: &Rc<Worker>, proxy: &Proxy, server: &Server, connection: Observer) -> Self {
        let limits = worker.generation().program.global.quic.servers;
        let shown = QuicConnection::of_server(&proxy.name, &server.name, limits, connection.clone());
        let place = worker.quic.enter_server(shown);
        let counts = LinkTally::new(worker.counters().proxies[proxy.index].serving().quic.used(), connection);
        Self { worker: Rc::clone(worker), proxy: proxy.index, place, counts }
    }

    fn counters(&self) -> &QuicCounters {
        self.worker.counters().proxies[self.proxy].serving().quic.used()
    }

    /// Counts the end of the handshake.
    pub fn end_handshake(&self, has_failed: bool) {
        self.counts.end_handshake(self.counters(), has_failed);
    }

    /// Runs the connection's task, and adds the counts at intervals.
    pub fn during<'s>(&'s self, task: impl Future<Output = ()> + 's) -> impl Future<Output = ()> + 's {
        self.counts.during(self.counters(), task)
    }
}

impl Drop for ServerTally {
    fn drop(&mut self) {
        self.worker.quic.leave(self.place);
        self.counts.end(self.counters());
    }
}
