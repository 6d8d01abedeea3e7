//! The handshake of a TLS connection, and early data exchanged before its end. Must never wait for a peer that has
//! nothing more to send.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::BufferPool;
use base::buffer::Buffer;
use tls::connection::LARGEST_FLIGHT;
use tls::{Connection, Failure, HandshakeProgress};

use super::{INPUTS, Insecure, SEAL_SIZE, Tls, broken};

impl Tls {
    /// Whether the handshake is complete, or has not begun.
    pub(in crate::transport) fn is_whole(&self) -> bool {
        self.connection.as_ref().is_none_or(Connection::is_open)
    }

    /// Ready when the handshake is complete, or when early data can be exchanged.
    pub(in crate::transport) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Insecure>> {
        self.poll_shaken(cx, true)
    }

    /// Ready when the handshake is complete, even if early data was exchanged before. Early data that was not read
    /// stays.
    pub(in crate::transport) fn poll_whole_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Insecure>> {
        self.poll_shaken(cx, false)
    }

    /// Continues the handshake with the bytes received. If it fails, an alert is sent to the peer.
    pub(super) fn shake(&mut self) -> Result<HandshakeProgress, Failure> {
        let Some(connection) = &mut self.connection else { return Ok(HandshakeProgress::Open { plain: 0 }) };
        let was_early = connection.is_early();
        let shaken = connection.shake(&mut self.input, self.output.vec());
        match &shaken {
            Ok(HandshakeProgress::Part) => {}
            Ok(HandshakeProgress::Early) => {
                // For a connection to a server, it is known once the server has answered.
                if self.info.is_none() && connection.early_data().is_some() {
                    self.info = connection.take_handshake_info().map(Arc::new);
                }
            }
            Ok(HandshakeProgress::Open { plain }) => {
                self.plain = *plain;
                match self.info.as_ref().and_then(|info| info.early.as_ref()) {
                    Some(early) => early.conclude(true),
                    None => self.info = connection.take_handshake_info().map(Arc::new),
                }
                self.release();
                // The peer waits for the end of the handshake, although this side may have nothing more to write or to
                // wait for.
                if was_early {
                    let _ = self.output.try_flush(&mut self.stream, false);
                }
            }
            Err(failure) => {
                self.failed = true;
                self.early_refused = was_early && failure.refuses_protocol();
                if self.info.is_none() {
                    self.info = connection.take_handshake_info().map(Arc::new);
                }
                // The alert is lost if the socket is full.
                let _ = self.output.try_flush(&mut self.stream, false);
            }
        }
        self.output.advance(0);
        shaken
    }

    fn poll_shaken(&mut self, cx: &mut Context<'_>, may_be_early: bool) -> Poll<Result<(), Insecure>> {
        if self.connection.is_none() {
            return Poll::Ready(Ok(()));
        }
        loop {
            match self.shake() {
                // Remaining records are sent with the first bytes, or before the first wait. The end of TLS 1.2 is
                // waited for by the peer.
                Ok(HandshakeProgress::Open { .. }) => return Poll::Ready(Ok(())),
                Ok(HandshakeProgress::Early) if may_be_early => {
                    // A client that waits for its answer may send nothing more to be read, so this may be the last
                    // occasion. The ClientHello to a server is sent with the request.
                    let is_client = self.connection.as_mut().is_some_and(|own| own.early_data().is_some());
                    if is_client && let Err(error) = self.output.try_flush(&mut self.stream, false) {
                        return Poll::Ready(Err(Insecure::Connection(error)));
                    }
                    return Poll::Ready(Ok(()));
                }
                Ok(HandshakeProgress::Part | HandshakeProgress::Early) => {}
                Err(failure) => return Poll::Ready(Err(Insecure::Handshake(failure))),
            }
            if let Err(error) = ready!(self.output.poll_flush(cx, &mut self.stream, false)) {
                return Poll::Ready(Err(Insecure::Connection(error)));
            }
            if self.input.capacity() == 0 {
                ready!(self.stream.poll_readable(cx));
                self.input = INPUTS.with(BufferPool::get);
            }
            self.input.compact();
            if self.input.room() == 0 {
                if self.input.capacity() >= LARGEST_FLIGHT {
                    self.failed = true;
                    return Poll::Ready(Err(Insecure::Handshake(Failure::Message)));
                }
                let mut larger = Buffer::with_capacity(LARGEST_FLIGHT);
                let fits = larger.push(self.input.data());
                debug_assert!(fits, "it is larger");
                self.input = larger;
            }
            match self.stream.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(0)) => {
                    self.ended = true;
                    return Poll::Ready(Err(Insecure::Closed { received: self.received }));
                }
                Poll::Ready(Ok(_)) => self.received = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Insecure::Connection(error))),
                Poll::Pending => {
                    self.release();
                    return Poll::Pending;
                }
            }
        }
    }

    /// The protocol of early data sent to a server, if it depends on the result of the handshake.
    pub(in crate::transport) fn early_protocol(&self) -> Option<&[u8]> {
        self.connection.as_ref().and_then(Connection::early_protocol)
    }

    /// Whether the server has refused early data, and thereby the connection.
    pub(in crate::transport) fn has_refused_early(&self) -> bool {
        self.early_refused
    }

    /// Early data of a client that was not read.
    pub(super) fn early_data(&mut self) -> Option<&mut Vec<u8>> {
        self.connection.as_mut().and_then(Connection::early_data)
    }

    /// Seals the first bytes of a write before the end of the handshake. Returns false if the handshake has to be
    /// complete first.
    pub(super) fn seal_early(&mut self, [head, body]: [&[u8]; 2]) -> io::Result<bool> {
        // A client may have completed the handshake by now.
        if self.early_data().is_some() && !self.ended {
            self.try_shake()?;
        }
        let Some(connection) = self.connection.as_mut().filter(|own| !own.is_open()) else { return Ok(false) };
        let whole = (head.len() + body.len()).min(SEAL_SIZE);
        while self.covered < whole {
            let rest = [head.get(self.covered..).unwrap_or_default(), &body[self.covered.saturating_sub(head.len())..]];
            let most = whole - self.covered;
            let sent = connection.send_early(&mut self.input, rest, most, self.output.vec()).map_err(broken)?;
            if sent == 0 {
                break;
            }
            self.covered += sent;
        }
        self.output.advance(0);
        Ok(self.covered > 0)
    }

    /// Continues the handshake of a client with the bytes received, without waiting.
    fn try_shake(&mut self) -> io::Result<()> {
        if self.input.capacity() == 0 {
            self.input = INPUTS.with(BufferPool::get);
        }
        self.input.compact();
        match self.stream.try_read(&mut self.input)? {
            Some(0) => self.ended = true,
            Some(_) => drop(self.shake().map_err(broken)?),
            None => self.release(),
        }
        Ok(())
    }
}
