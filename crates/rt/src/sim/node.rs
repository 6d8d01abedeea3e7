//! The state of simulated sockets: ends of connections, listeners, receivers of datagrams. Must never schedule an event.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::{Key, Moment};

use super::faults::Link;
use crate::net::{Address, Ecn};
use crate::sys::steer;

pub(super) enum Kind {
    Stream(Endpoint),
    Listener(Backlog),
    Datagram(Mailslot),
    Signals,
    /// Expires at that time.
    Alarm(Moment),
}

/// One end of a connection.
pub(super) struct Endpoint {
    pub(super) local: Address,
    pub(super) remote: Address,
    /// The listener's address, which selects the link.
    pub(super) service: Address,
    /// The address that the client connected to, if the packet filter redirected it.
    pub(super) redirected: Option<Address>,
    /// The other end; `None` until the connection is established.
    pub(super) peer: Option<Key>,
    pub(super) link: Link,
    pub(super) arrived: VecDeque<u8>,
    /// Bytes in transit to this end.
    pub(super) coming: usize,
    /// Bytes that still arrive before the reset, once the sender has dropped its send buffer.
    pub(super) cut: Option<usize>,
    /// Arrival time of the last item in transit to this end: nothing overtakes it.
    pub(super) last_arrival: Moment,
    /// The peer's end of stream has arrived.
    pub(super) read_closed: bool,
    /// This end was shut down for writing.
    pub(super) write_closed: bool,
    /// The connection failed, or was never established.
    pub(super) failed: bool,
    /// The pending error.
    pub(super) error: Option<i32>,
    /// A write found no free space.
    pub(super) wants_room: bool,
    pub(super) reset_on_close: bool,
}

impl Endpoint {
    pub(super) fn new(local: Address, remote: Address, service: Address, link: Link) -> Endpoint {
        Endpoint {
            local,
            remote,
            service,
            redirected: None,
            peer: None,
            link,
            arrived: VecDeque::new(),
            coming: 0,
            cut: None,
            last_arrival: Moment::ZERO,
            read_closed: false,
            write_closed: false,
            failed: false,
            error: None,
            wants_room: false,
            reset_on_close: false,
        }
    }

    /// Returns the round-trip time.
    pub(super) fn round_trip(&self) -> Duration {
        2 * self.link.latency
    }

    pub(super) fn room_for_peer(&self) -> usize {
        self.link.buffer.saturating_sub(self.arrived.len() + self.coming)
    }

    /// Bytes in the sender's buffer, because the window here is full.
    pub(super) fn unsent(&self) -> usize {
        (self.arrived.len() + self.coming).saturating_sub(self.link.buffer / 2)
    }

    /// Bytes that have not entered the window here.
    pub(super) fn unacknowledged(&self) -> usize {
        self.coming + self.arrived.len().saturating_sub(self.link.buffer / 2)
    }

    /// Drops the sender's buffer: the last bytes that were written.
    pub(super) fn drop_unsent(&mut self) {
        let unsent = self.unsent();
        if unsent > 0 && self.cut.is_none() {
            self.cut = Some(self.coming.saturating_sub(unsent));
            self.arrived.truncate(self.arrived.len() - unsent.saturating_sub(self.coming));
        }
    }
}

/// Connections that wait to be accepted.
pub(super) struct Backlog {
    pub(super) address: Address,
    pub(super) waiting: VecDeque<Key>,
    pub(super) most: usize,
    /// Whether accepted streams are reset when they are closed.
    pub(super) reset_on_close: bool,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// A datagram that was sent in the simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedDatagram {
    /// Its sender; unnamed if the sender was not bound.
    pub from: Address,
    /// Its destination.
    pub to: Address,
    pub ecn: Option<Ecn>,
    pub bytes: Vec<u8>,
}

/// A datagram on its way, or waiting for its receiver.
#[derive(Clone, Debug)]
pub(super) struct SimDatagram {
    pub(super) from: Address,
    pub(super) to: Address,
    /// The two ECN bits.
    pub(super) ecn: u8,
    pub(super) bytes: Vec<u8>,
}

/// A simulated datagram socket.
#[derive(Default)]
pub(super) struct Mailslot {
    pub(super) address: Option<Address>,
    pub(super) peer: Option<Address>,
    pub(super) waiting: VecDeque<SimDatagram>,
    /// A datagram to the connected peer found no receiver.
    pub(super) is_refused: bool,
    /// Number of datagrams that found no space.
    pub(super) dropped: u64,
    /// At all IPv6 addresses, but at no IPv4 address.
    pub(super) is_v6_only: bool,
    /// For each destination, the arrival time of the last datagram that nothing overtakes.
    pub(super) last_arrivals: BTreeMap<Address, Moment>,
}

/// The sockets that are bound to one address.
#[derive(Default)]
pub(super) struct Receivers {
    pub(super) keys: Vec<Key>,
    /// Further sockets may be bound to it.
    pub(super) is_shared: bool,
    /// Number of sockets among which the connection ID selects.
    pub(super) steered: Option<usize>,
}

impl Receivers {
    /// Returns the socket that gets a datagram.
    pub(super) fn select(&self, datagram: &SimDatagram) -> Option<Key> {
        let index = match self.steered {
            Some(count) => steer::index(&datagram.bytes, count),
            None => datagram.from.inet().map_or(0, |from| usize::from(from.port())).checked_rem(self.keys.len())?,
        };
        self.keys.get(index).or(self.keys.first()).copied()
    }
}
