//! The end of a TLS connection: `close_notify` and the records that precede it. Must never read.

use std::io;
use std::task::{Context, Poll, ready};

use super::Tls;

impl Tls {
    /// Sends `close_notify`, then shuts down the stream's direction; if the socket is full, with a later read. During a
    /// handshake, at the end of the handshake.
    pub(in crate::transport) fn shutdown_write(&mut self) -> io::Result<()> {
        if !self.is_whole() && !self.ended {
            self.closing = true;
            return Ok(());
        }
        self.closing = !self.say_goodbye()?;
        if self.closing { Ok(()) } else { self.stream.shutdown_write() }
    }

    /// Sends `close_notify`. Returns false if some bytes were not sent.
    pub(super) fn say_goodbye(&mut self) -> io::Result<bool> {
        if self.failed || self.silent || self.covered > 0 {
            return Ok(true);
        }
        let Some(connection) = &mut self.connection else { return Ok(true) };
        if connection.is_open() {
            connection.close(self.output.vec());
        } else {
            connection.close_early(&mut self.input, self.output.vec());
        }
        self.output.advance(0);
        self.output.try_flush(&mut self.stream, false)
    }

    /// Sends records of TLS itself (alerts, tickets), and shuts down the direction after them if it is to end. A
    /// pending write sends these records itself.
    pub(in crate::transport) fn poll_say(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.covered > 0 || (self.output.is_empty() && !self.closing) {
            return Poll::Ready(Ok(()));
        }
        if self.closing
            && let Some(connection) = self.connection.as_mut().filter(|own| own.is_open())
        {
            // `close_notify` could not be sent before the end of the handshake.
            connection.close(self.output.vec());
            self.output.advance(0);
        }
        ready!(self.output.poll_flush(cx, &mut self.stream, false))?;
        if !self.closing || !self.is_whole() {
            return Poll::Ready(Ok(()));
        }
        self.closing = false;
        Poll::Ready(self.stream.shutdown_write())
    }

    /// Makes the close send no alert.
    pub(in crate::transport) fn be_silent(&mut self) {
        self.failed = true;
    }

    /// Ends the direction in order. A pending write is not repeated: its sealed bytes are sent before.
    pub(in crate::transport) fn end(&mut self) -> io::Result<()> {
        if self.covered == 0 || !self.is_whole() {
            return self.shutdown_write();
        }
        (self.covered, self.closing) = (0, true);
        if self.output.try_flush(&mut self.stream, false)? { self.shutdown_write() } else { Ok(()) }
    }

    /// Sets whether dropping it sends no alert.
    pub(in crate::transport) fn set_silent(&mut self, silent: bool) {
        self.silent = silent;
    }

    /// Gives up a pending write: its sealed bytes are sent nevertheless.
    pub(in crate::transport) fn give_up_write(&mut self) {
        self.covered = 0;
    }

    /// The number of sealed bytes that the kernel has not accepted yet.
    pub(in crate::transport) fn unsealed(&self) -> usize {
        self.output.len()
    }
}
