//! The record of a client's QUIC connection, from its accept to its end: its counts, its place among those that are shown, and its
//! traces. Must never decide on the connection.

use std::rc::Rc;

use conn::quic::Observer;
use live::counters::QuicCounters;
use live::trace::events;

use crate::link_tally::LinkTally;
use crate::quic_connections::{QuicConnection, QuicKey};
use crate::session::task::StreamTask;
use crate::stream::record::tracing;

/// Counts what a connection does from its accept to its end, however it ends.
pub struct QuicTally<'a> {
    session: &'a StreamTask,
    counters: &'a QuicCounters,
    counts: LinkTally,
}

impl<'a> QuicTally<'a> {
    /// Begins with the connection of a session whose handshake is in progress.
    pub fn new(session: &'a StreamTask, connection: Observer) -> Self {
        let counters = session.counters().front_quic.used();
        let shown = QuicConnection::of_client(Rc::clone(session.frontend_handle()), connection.clone());
        session.worker.quic.enter(QuicKey::Client(session.tag()), shown);
        tracing::session(session, &events::QUIC_NEW, "new QUIC connection");
        Self { session, counters, counts: LinkTally::new(counters, connection) }
    }

    /// Counts the end of the handshake.
    pub fn end_handshake(&self, is_complete: bool) {
        self.counts.end_handshake(self.counters, !is_complete);
    }

    /// Runs a part of the connection's task, and adds the counts at intervals. It is stored once.
    pub fn during<'s, T>(&'s self, part: impl Future<Output = T> + 's) -> impl Future<Output = T> + 's {
        self.counts.during(self.counters, part)
    }
}

impl Drop for QuicTally<'_> {
    fn drop(&mut self) {
        self.session.worker.quic.leave(QuicKey::Client(self.session.tag()));
        tracing::session(self.session, &events::QUIC_FREE, "QUIC connection released");
        if let Some(code) = self.counts.end(self.counters) {
            tracing::closed(self.session, code);
        }
    }
}
