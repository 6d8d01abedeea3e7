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

/// A client's connection, from its preface on.
pub struct Connection<'a> {
    transport: &'a mut Transport,
    /// Bytes that were read and not used yet.
    input: &'a mut Buffer,
    mover: Mover,
    opened: u32,
    /// Total number of streams after which no other one begins; 0: no limit.
    most: u32,
}

impl<'a> Connection<'a> {
    /// Serves a connection whose input begins with the preface.
    pub fn new(transport: &'a mut Transport, input: &'a mut Buffer, terms: Terms) -> Self {
        input.consume(PREFACE.len());
        Self { transport, input, mover: Mover::new(Role::Server, terms), opened: 0, most: terms.max_total }
    }

    /// Goes on with a connection that we have opened, and on which the peer asks: the preface is ours (reverse HTTP).
    pub fn reversed(transport: &'a mut Transport, input: &'a mut Buffer, terms: Terms) -> Self {
        Self { transport, input, mover: Mover::reversed(terms), opened: 0, most: terms.max_total }
    }

    /// Whether a stream is being served.
    pub fn has_streams(&self) -> bool {
        self.mover.state.borrow().open() > 0
    }

    /// Whether all bytes that were read have been processed.
    pub fn is_drained(&self) -> bool {
        self.input.is_empty()
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
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Stream>> {
        let opened = std::task::ready!(self.mover.poll(cx, self.transport, self.input));
        let Some(stream) = opened else { return Poll::Ready(None) };
        self.opened = self.opened.saturating_add(1);
        if self.most > 0 && self.opened >= self.most {
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
    pub fn close(&mut self) {
        self.mover.close(self.transport);
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
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        self.mover.poll_flush(cx, self.transport)
    }

    /// Ready when the last stream was released.
    pub fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.mover.state.borrow_mut();
        state.wait(cx);
        if state.open() == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}
