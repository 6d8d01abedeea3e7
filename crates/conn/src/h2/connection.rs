//! A client's connection: streams begin, and the bytes that they queue are written. Must never know what a request
//! contains.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use wire::h2::PREFACE;

use super::mover::{Mover, Newest};
use super::{Counts, Ping, Role, Stream, Terms};
use crate::transport::Transport;

/// A client's connection, from its preface on. Its transport, and the bytes that were read and not used yet, are its caller's.
pub struct Connection {
    mover: Mover,
    opened: u32,
}

// Most connections are idle.
const _: () = assert!(size_of::<Connection>() <= 136);

impl Connection {
    /// Serves a connection whose input begins with the preface.
    pub fn new(input: &mut Buffer, terms: Terms) -> Self {
        input.consume(PREFACE.len());
        Self { mover: Mover::new(Role::Server, terms), opened: 0 }
    }

    /// Goes on with a connection that we have opened, and on which the peer asks: the preface is ours (reverse HTTP).
    pub fn reversed(terms: Terms) -> Self {
        Self { mover: Mover::reversed(terms), opened: 0 }
    }

    /// Whether a stream is being served.
    pub fn has_streams(&self) -> bool {
        self.mover.state.borrow().open() > 0
    }

    /// The number of streams opened so far.
    pub fn opened(&self) -> u32 {
        self.opened
    }

    /// Sends GOAWAY, so that the client begins no more streams. The connection ends with the last stream once the
    /// client has acknowledged that; with `lasts` the client closes it (`option idle-close-on-response`).
    pub fn leave(&mut self, lasts: bool) {
        self.mover.leave(Newest::Any, lasts);
    }

    /// Updates the time. Returns when this has to be called again at the latest.
    pub fn advance(&mut self, now: Moment) -> Option<Moment> {
        self.mover.advance(now)
    }

    /// Takes the counters since the last call.
    pub fn take_counts(&self) -> Counts {
        self.mover.take_counts()
    }

    /// The number of streams being served, and the maximum.
    pub fn streams(&self) -> (usize, usize) {
        let state = self.mover.state.borrow();
        (state.open(), state.terms.max_streams)
    }

    /// Moves frames in both directions. Ready with a stream that has begun, or with `None`: the connection has ended.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        input: &mut Buffer,
    ) -> Poll<Option<Stream>> {
        let opened = std::task::ready!(self.mover.poll(cx, transport, input));
        let Some(stream) = opened else { return Poll::Ready(None) };
        self.opened = self.opened.saturating_add(1);
        let most = self.mover.state.borrow().terms.max_total;
        if most > 0 && self.opened >= most {
            self.mover.leave(Newest::AfterThose, false);
        }
        Poll::Ready(Some(Stream::new(Rc::clone(&self.mover.state), stream)))
    }

    /// Sends a PING every `interval` to the client of an idle connection.
    pub fn ping(&mut self, now: Moment, interval: Duration) -> Ping {
        self.mover.ping(now, interval)
    }

    /// The number of PINGs that the client has acknowledged.
    pub fn pongs(&self) -> u32 {
        self.mover.state.borrow().life.pongs
    }

    /// Ends all streams, and sends GOAWAY to the client as far as that is possible at once.
    pub fn close(&mut self, transport: &mut Transport) {
        self.mover.close(transport);
    }

    /// Whether the client has closed its direction, or nothing can or may be sent to it.
    pub fn is_gone(&self) -> bool {
        self.mover.is_gone()
    }

    /// Whether the connection has ended through the client's fault.
    pub fn has_faulted(&self) -> bool {
        self.mover.has_faulted()
    }

    /// Sends remaining bytes after the connection was closed. Ready with the number of bytes sent; 0: nothing is left.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>, transport: &mut Transport) -> Poll<usize> {
        self.mover.poll_flush(cx, transport)
    }

    /// Ready when the last stream was released.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.mover.state.borrow_mut();
        state.wait(cx);
        if state.open() == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}
