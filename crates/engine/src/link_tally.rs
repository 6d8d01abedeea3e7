//! The counts of one QUIC connection, in the counters of its frontend or backend, from its beginning to its end. Must never decide
//! on the connection.

use std::cell::Cell;
use std::time::Duration;

use base::moment::Moment;
use conn::quic::{CloseCode, Observer, SocketCounts};
use live::counters::{QuicCount, QuicCounters};

use crate::quic_counts;

/// Interval at which the counts of an open connection are added.
const INTERVAL: Duration = Duration::from_secs(1);

/// Counts what a connection does. The counters are an argument, always the same.
pub struct LinkTally {
    connection: Observer,
    /// Whether its handshake is in progress.
    is_half_open: Cell<bool>,
    /// When its counts were last added.
    added: Cell<Moment>,
}

impl LinkTally {
    /// Begins with a connection whose handshake is in progress.
    pub fn new(counters: &QuicCounters, connection: Observer) -> Self {
        counters.of(QuicCount::HalfOpenConnection).increment();
        Self { connection, is_half_open: Cell::new(true), added: Cell::new(rt::now()) }
    }

    /// Counts the end of the handshake, unless that was done.
    pub fn end_handshake(&self, counters: &QuicCounters, has_failed: bool) {
        if self.is_half_open.replace(false) {
            counters.of(QuicCount::HalfOpenConnection).subtract(1);
            if has_failed {
                counters.of(QuicCount::HandshakeFail).increment();
            }
        }
    }

    /// Runs a part of the connection's task, and adds the counts at intervals. It is stored once.
    pub fn during<'s, T>(
        &'s self,
        counters: &'s QuicCounters,
        part: impl Future<Output = T> + 's,
    ) -> impl Future<Output = T> + 's {
        let mut part = Box::pin(part);
        std::future::poll_fn(move |cx| {
            let polled = part.as_mut().poll(cx);
            if self.is_half_open.get() && !self.connection.is_handshaking() {
                self.end_handshake(counters, self.connection.is_closed());
            }
            let now = rt::now();
            if now.saturating_since(self.added.get()) >= INTERVAL {
                self.added.set(now);
                self.add(counters);
            }
            polled
        })
    }

    /// Adds the counts since the last call.
    fn add(&self, counters: &QuicCounters) {
        quic_counts::add_link(counters, &self.connection.take_counts());
        if let Some(counts) = self.connection.take_socket_counts().filter(|counts| *counts != SocketCounts::default()) {
            quic_counts::add_socket(counters, &counts);
        }
    }

    /// Counts the end of the connection. Returns the code with which the peer has closed it.
    pub fn end(&self, counters: &QuicCounters) -> Option<CloseCode> {
        self.end_handshake(counters, true);
        self.add(counters);
        let code = self.connection.close_code()?;
        quic_counts::add_close(counters, code);
        Some(code)
    }
}
