//! The record of a QUIC connection, from its accept to its end: its counts, its place among those that are shown, and its traces.
//! Must never decide on the connection.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use base::moment::Moment;
use conn::quic::Observer;
use live::counters::{QuicCount, QuicCounters};
use live::trace::events;

use crate::quic_connections::QuicConnection;
use crate::quic_counts;
use crate::session::task::StreamTask;
use crate::stream::record::tracing;

/// Interval at which the counts of an open connection are added.
const INTERVAL: Duration = Duration::from_secs(1);

/// Counts what a connection does from its accept to its end, however it ends.
pub struct QuicTally<'a> {
    session: &'a StreamTask,
    counters: &'a QuicCounters,
    connection: Observer,
    /// Whether its handshake is in progress.
    is_half_open: Cell<bool>,
    /// When its counts were last added.
    added: Cell<Moment>,
}

impl<'a> QuicTally<'a> {
    /// Begins with the connection of a session whose handshake is in progress.
    pub fn new(session: &'a StreamTask, connection: Observer) -> Self {
        let counters = session.counters().front_quic.used();
        let frontend = Rc::clone(session.frontend_handle());
        let shown = QuicConnection::new(frontend, session.bind_index(), connection.clone());
        session.worker.quic.enter(session.tag(), shown);
        tracing::session(session, &events::QUIC_NEW, "new QUIC connection");
        counters.of(QuicCount::HalfOpenConnection).increment();
        Self { session, counters, connection, is_half_open: Cell::new(true), added: Cell::new(rt::now()) }
    }

    /// Counts the end of the handshake.
    pub fn end_handshake(&self, is_complete: bool) {
        if self.is_half_open.replace(false) {
            self.counters.of(QuicCount::HalfOpenConnection).subtract(1);
            if !is_complete {
                self.counters.of(QuicCount::HandshakeFail).increment();
            }
        }
    }

    /// Runs a part of the connection's task, and adds the counts at intervals. It is stored once.
    pub fn during<'s, T>(&'s self, part: impl Future<Output = T> + 's) -> impl Future<Output = T> + 's {
        let mut part = Box::pin(part);
        std::future::poll_fn(move |cx| {
            let polled = part.as_mut().poll(cx);
            let now = rt::now();
            if now.saturating_since(self.added.get()) >= INTERVAL {
                self.added.set(now);
                self.add();
            }
            polled
        })
    }

    /// Adds the counts since the last call.
    fn add(&self) {
        quic_counts::add_link(self.counters, &self.connection.take_counts());
    }
}

impl Drop for QuicTally<'_> {
    fn drop(&mut self) {
        self.session.worker.quic.leave(self.session.tag());
        tracing::session(self.session, &events::QUIC_FREE, "QUIC connection released");
        self.end_handshake(false);
        self.add();
        if let Some(code) = self.connection.close_code() {
            quic_counts::add_close(self.counters, code);
            tracing::closed(self.session, code);
        }
    }
}
