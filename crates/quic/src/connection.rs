//! A connection: datagrams in, events out, datagrams out, and deadlines. Its streams are in `streams`. Must never own what
//! its streams carry.

mod messages;
mod streams;

use std::net::{IpAddr, SocketAddr};

use base::moment::Moment;
use quinn_proto::{EndpointEvent, StreamEvent, VarInt};
use tls::HandshakeInfo;

use crate::cid::HandshakeIds;
use crate::closed::Closed;
use crate::half_open::HalfOpenGuard;
use crate::handle::{Handle, Input};
use crate::statistics::Statistics;
use crate::stream::{Direction, StreamId, code};
use crate::time::Clock;
use crate::transmit::Transmit;

/// The bytes of datagrams that the kernel takes at once: the largest datagram of IPv6. Batches of that size cost a quarter
/// less than those of ten datagrams for answers of 1 MB.
const LARGEST_BATCH: usize = 65_487;

/// An event of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The protocol is known: on the server's side, the ClientHello was read and a certificate selected.
    Hello,
    /// The handshake is complete.
    Connected,
    /// The peer has opened streams.
    StreamsOpened(Direction),
    /// A stream has bytes, its end or a reset to read.
    Readable(StreamId),
    /// A stream accepts bytes again.
    Writable(StreamId),
    /// The peer has all of a finished stream.
    Finished(StreamId),
    /// The peer does not read a stream any further, with a code of the application.
    Stopped(StreamId, u64),
    /// The peer has sent messages that belong to no stream.
    Messages,
    /// More streams may be opened.
    StreamsAvailable(Direction),
    /// The connection has ended. Only datagrams that say so remain to be sent.
    Closed(Closed),
}

/// The state of a client's connection whose handshake is in progress.
pub(crate) struct Handshake {
    pub(crate) ids: Option<HandshakeIds>,
    /// Counts it.
    pub(crate) _guard: HalfOpenGuard,
}

/// A connection of an endpoint.
pub struct Connection {
    inner: Box<quinn_proto::Connection>,
    handle: Handle,
    clock: Clock,
    /// Of a client's connection, until its handshake is complete.
    handshake: Option<Box<Handshake>>,
    /// The endpoint has forgotten it.
    is_forgotten: bool,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("handle", &self.handle).field("peer", &self.peer()).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(
        inner: quinn_proto::Connection,
        handle: Handle,
        clock: Clock,
        handshake: Option<Box<Handshake>>,
    ) -> Self {
        Self { inner: Box::new(inner), handle, clock, handshake, is_forgotten: false }
    }

    /// Returns its number at its endpoint.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the ids that packets of its handshake are sent to, while that is in progress; `None` for a connection to a server.
    pub fn handshake_ids(&self) -> Option<HandshakeIds> {
        self.handshake.as_ref()?.ids
    }

    /// Processes a datagram.
    pub fn receive(&mut self, input: Input) {
        self.inner.handle_event(input.0);
    }

    /// Processes the deadlines that have passed.
    pub fn expire(&mut self, now: Moment) {
        let now = self.clock.instant(now);
        if self.inner.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.inner.handle_timeout(now);
        }
    }

    /// Returns the next deadline. Every other call may change it.
    pub fn deadline(&mut self) -> Option<Moment> {
        let deadline = self.inner.poll_timeout()?;
        Some(self.clock.moment(deadline))
    }

    /// Returns what its endpoint has to know. Nothing follows the end of the connection.
    pub(crate) fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        if self.handshake.is_some() && (!self.inner.is_handshaking() || self.inner.is_closed()) {
            self.handshake = None;
        }
        let event = self.inner.poll_endpoint_events().filter(|_| !self.is_forgotten)?;
        self.is_forgotten = event.is_drained();
        Some(event)
    }

    /// Whether its endpoint knows that it is over.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.is_forgotten
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            let event = match self.inner.poll()? {
                quinn_proto::Event::HandshakeDataReady => Event::Hello,
                quinn_proto::Event::Connected => Event::Connected,
                quinn_proto::Event::ConnectionLost { reason } => Event::Closed(Closed::of(&reason)),
                quinn_proto::Event::Stream(event) => of_stream(event),
                quinn_proto::Event::DatagramReceived => Event::Messages,
                // A message that has no room replaces older ones.
                quinn_proto::Event::DatagramsUnblocked => continue,
            };
            return Some(event);
        }
    }

    /// Writes what is to be sent next into `out`, which is cleared: at most `most` datagrams. `None`: nothing is to be sent
    /// now. `out` grows to the size of as many datagrams, 64 kB at most, once.
    pub fn transmit(&mut self, now: Moment, most: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        let most = most.min(LARGEST_BATCH / usize::from(self.inner.current_mtu()).max(1)).max(1);
        let transmit = self.inner.poll_transmit(self.clock.instant(now), most, out)?;
        Some(Transmit::of(&transmit))
    }

    /// Closes the connection with a code of the application. Nothing more is read or written.
    pub fn close(&mut self, now: Moment, number: u64, reason: &[u8]) {
        let now = self.clock.instant(now);
        self.inner.close(now, code(number), reason.to_vec().into());
    }

    /// Whether the handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    /// Whether it is closing or has ended.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Whether it has ended, and nothing is to be sent.
    pub fn is_drained(&self) -> bool {
        self.inner.is_drained()
    }

    /// Returns the address of the peer, which changes when it migrates.
    pub fn peer(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Returns the address that the first datagram was sent to.
    pub fn local(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// Returns the information from the handshake: a copy of what is known while it is in progress or has failed, and all of
    /// it once after its end.
    pub fn handshake_info(&self) -> Option<HandshakeInfo> {
        self.inner.crypto_session().handshake_data()?.downcast::<HandshakeInfo>().ok().map(|info| *info)
    }

    /// Whether the server has accepted the early data of this side.
    pub fn is_early_accepted(&self) -> bool {
        self.inner.accepted_0rtt()
    }

    /// Whether data may be sent to the server before the handshake is complete.
    pub fn may_send_early(&self) -> bool {
        self.inner.has_0rtt()
    }

    /// Returns what was measured and counted.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.inner.stats())
    }

    /// Begins to use other keys (RFC 9001, section 6).
    pub fn update_keys(&mut self) {
        self.inner.force_key_update();
    }

    /// Sends a packet that the peer acknowledges.
    pub fn ping(&mut self) {
        self.inner.ping();
    }

    /// Sets how many streams the peer may have open at a time. Those that it was allowed before remain allowed.
    pub fn set_max_streams(&mut self, direction: Direction, count: u32) {
        self.inner.set_max_concurrent_streams(direction.inner(), VarInt::from_u32(count));
    }
}

fn of_stream(event: StreamEvent) -> Event {
    match event {
        StreamEvent::Opened { dir } => Event::StreamsOpened(Direction::of(dir)),
        StreamEvent::Readable { id } => Event::Readable(StreamId(id)),
        StreamEvent::Writable { id } => Event::Writable(StreamId(id)),
        StreamEvent::Finished { id } => Event::Finished(StreamId(id)),
        StreamEvent::Stopped { id, error_code } => Event::Stopped(StreamId(id), error_code.into()),
        StreamEvent::Available { dir } => Event::StreamsAvailable(Direction::of(dir)),
    }
}
