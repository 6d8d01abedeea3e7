//! The carrier of a connection's streams: QUIC, or QMux over a transport. The operations are the same; a stream's task does not
//! know which it is. Must never know a frame of HTTP/3.

use std::cell::RefMut;
use std::rc::Weak;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use quic::stream::{Part, ReadError, WriteError};
use quic::{Direction, Event, StreamId};
use tls::HandshakeInfo;

use crate::qmux::{self, Wire};
use crate::quic::{self as over_udp, Carried};

/// The time that [`Link::grace`] assumes of TCP, whose round trips are not measured.
const TCP_GRACE: Duration = Duration::from_millis(200);

/// A connection of QUIC or QMux.
pub(super) enum Link {
    Quic(over_udp::Link),
    Qmux(Box<qmux::Link>),
}

/// The streams of a connection, borrowed for one operation.
pub(super) enum Streams<'a> {
    Quic(RefMut<'a, over_udp::TimedConnection>),
    Qmux(RefMut<'a, quic::qmux::Connection>),
}

/// Calls the carrier.
macro_rules! on {
    ($link:expr, $carrier:ident => $call:expr) => {
        match $link {
            Self::Quic($carrier) => $call,
            Self::Qmux($carrier) => $call,
        }
    };
}

impl Streams<'_> {
    pub(super) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        on!(self, streams => streams.accept(direction))
    }

    pub(super) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        on!(self, streams => streams.open(direction))
    }

    #[inline]
    pub(super) fn read(&mut self, id: StreamId, most: usize) -> Result<Part, ReadError> {
        on!(self, streams => streams.read(id, most))
    }

    #[inline]
    pub(super) fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, WriteError> {
        on!(self, streams => streams.write(id, bytes))
    }

    /// Writes the first bytes, and takes them from `bytes`. QUIC keeps their memory until the peer has acknowledged them, QMux copies them.
    pub(super) fn write_shared(&mut self, id: StreamId, bytes: &mut Bytes) -> Result<usize, WriteError> {
        match self {
            Self::Quic(streams) => streams.write_pieces(id, std::slice::from_mut(bytes)),
            Self::Qmux(streams) => {
                let written = streams.write(id, bytes)?;
                bytes.advance(written);
                Ok(written)
            }
        }
    }

    pub(super) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        on!(self, streams => streams.finish(id))
    }

    pub(super) fn reset(&mut self, id: StreamId, code: u64) {
        on!(self, streams => streams.reset(id, code));
    }

    pub(super) fn stop(&mut self, id: StreamId, code: u64) {
        on!(self, streams => streams.stop(id, code));
    }

    /// Returns the next message that was received outside of streams. QMux has none.
    pub(super) fn receive_message(&mut self) -> Option<Bytes> {
        match self {
            Self::Quic(streams) => streams.receive_message(),
            Self::Qmux(_) => None,
        }
    }

    pub(super) fn set_priority(&mut self, id: StreamId, priority: i32) {
        on!(self, streams => streams.set_priority(id, priority));
    }

    pub(super) fn set_max_streams(&mut self, direction: Direction, count: u32) {
        on!(self, streams => streams.set_max_streams(direction, count));
    }
}

impl Link {
    /// Borrows the streams, to read and write them.
    #[inline]
    pub(super) fn connection(&self) -> Streams<'_> {
        match self {
            Self::Quic(link) => Streams::Quic(link.connection()),
            Self::Qmux(link) => Streams::Qmux(link.machine()),
        }
    }

    /// Borrows the connection of QUIC; `None`: it is QMux.
    pub(super) fn quic(&self) -> Option<RefMut<'_, over_udp::TimedConnection>> {
        match self {
            Self::Quic(link) => Some(link.connection()),
            Self::Qmux(_) => None,
        }
    }

    /// Wakes the connection's task: something has to be sent.
    #[inline]
    pub(super) fn wake(&self) {
        on!(self, link => link.wake());
    }

    /// Begins a step of the connection's task.
    pub(super) fn begin(&self, cx: &Context<'_>) {
        on!(self, link => link.begin(cx));
    }

    /// Returns the next event.
    pub(super) fn poll_event(&self) -> Option<Event> {
        on!(self, link => link.poll_event())
    }

    /// The number of times that something was received.
    pub(super) fn heard(&self) -> u64 {
        on!(self, link => link.heard())
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Quic(link) => link.is_closed(),
            Self::Qmux(link) => link.machine().is_closed(),
        }
    }

    /// Whether a connection that has ended has nothing to send.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Quic(_) => true,
            Self::Qmux(link) => link.is_broken(),
        }
    }

    /// Whether the streams can be used: the peer's parameters are known.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Quic(_) => true,
            Self::Qmux(link) => link.machine().is_ready(),
        }
    }

    /// Returns the result of the handshake, once.
    pub(super) fn handshake_info(&self) -> Option<Arc<HandshakeInfo>> {
        match self {
            Self::Quic(link) => link.handshake_info(),
            Self::Qmux(_) => None,
        }
    }

    /// Returns the time in which the peer has received what is sent now, and what it had sent before has arrived: two round trips.
    pub(super) fn grace(&self) -> Duration {
        match self {
            Self::Quic(link) => link.round_trip() * 2,
            Self::Qmux(_) => TCP_GRACE,
        }
    }

    /// Whether the server has accepted the early data of this side.
    pub(super) fn is_early_accepted(&self) -> bool {
        match self {
            Self::Quic(link) => link.connection().is_early_accepted(),
            Self::Qmux(_) => false,
        }
    }

    /// Returns the number of useless frames received since this was called before, as far as HTTP/3 does not see them.
    pub(super) fn take_glitches(&self) -> u32 {
        match self {
            Self::Quic(_) => 0,
            Self::Qmux(link) => link.machine().take_glitches(),
        }
    }

    /// Sends what there is, receives, and waits for the next deadline. Ready when an event may have happened. `wire` is the
    /// transport of QMux.
    pub(super) fn poll_wait(&self, cx: &mut Context<'_>, wire: Option<&mut Wire<'_>>) -> Poll<()> {
        match (self, wire) {
            (Self::Quic(link), _) => link.poll_wait(cx),
            (Self::Qmux(link), Some(wire)) => link.poll_wait(cx, wire),
            (Self::Qmux(_), None) => Poll::Pending,
        }
    }

    /// Sends what can be sent without waiting.
    pub(super) fn send(&self, wire: Option<&mut Wire<'_>>) {
        match (self, wire) {
            (Self::Quic(link), _) => link.send(),
            (Self::Qmux(link), Some(wire)) => link.send(&mut Context::from_waker(Waker::noop()), wire),
            (Self::Qmux(_), None) => {}
        }
    }

    /// Sends the rest of a connection whose streams have ended, and its close with this code. Ready with a number above 0
    /// after progress; 0: nothing is left.
    pub(super) fn poll_rest(&self, cx: &mut Context<'_>, wire: Option<&mut Wire<'_>>, code: u64) -> Poll<usize> {
        let (Self::Qmux(link), Some(wire)) = (self, wire) else { return Poll::Ready(0) };
        link.machine().close(code, &[]);
        let before = link.sent();
        match link.poll_rest(cx, wire) {
            Poll::Ready(()) => Poll::Ready(0),
            Poll::Pending if link.sent() != before => Poll::Ready(1),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The number of bytes passed to the transport of QMux.
    pub(super) fn sent(&self) -> u64 {
        match self {
            Self::Quic(_) => 0,
            Self::Qmux(link) => link.sent(),
        }
    }

    /// Closes the connection with a code of the application's protocol.
    pub(super) fn close(&self, code: u64, reason: &[u8]) {
        match self {
            Self::Quic(link) => link.close(code, reason),
            Self::Qmux(link) => link.machine().close(code, reason),
        }
    }

    /// Ends the connection without notice to the client. `hops`: by a reset with that time to live.
    pub(super) fn forget(&self, hops: Option<u8>, wire: Option<&mut Wire<'_>>) {
        match (self, wire) {
            (Self::Quic(link), _) => link.forget(),
            (Self::Qmux(_), Some(wire)) => {
                // If the socket cannot be dropped silently, it is closed nevertheless.
                let _ = wire.transport.forget(hops);
            }
            (Self::Qmux(_), None) => {}
        }
    }

    /// Returns the counts of a connection of QMux that has ended. Those of QUIC are taken from its observer.
    pub(super) fn end_counts(&self) -> Option<qmux::EndCounts> {
        match self {
            Self::Quic(_) => None,
            Self::Qmux(link) => Some(link.end_counts()),
        }
    }

    /// Sets what the connection carries, for those that show QUIC connections.
    pub(super) fn carry(&self, carried: Weak<dyn Carried>) {
        if let Self::Quic(link) = self {
            link.carry(carried);
        }
    }
}
