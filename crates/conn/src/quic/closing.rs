//! The closing and draining periods of connections (RFC 9000, section 10.2): packets that arrive after the end of a connection
//! are answered with its last packet again, or not at all, and never with a stateless reset. Must never keep a connection
//! itself: a few hundred bytes remain of each.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::task::Context;

use base::moment::Moment;
use quic::{Datagram, Handle, Transmit};

/// Maximum number of connections of a socket in these periods. The one whose period ends first makes room for another.
const MOST_CLOSING: usize = 1_024;
/// Maximum number of bytes sent for each byte received, as long as the address of the peer may be forged.
const AMPLIFICATION: usize = 3;

/// The packet that informs the peer of the end (CONNECTION_CLOSE).
pub(super) struct LastPacket {
    pub(super) transmit: Transmit,
    pub(super) bytes: Box<[u8]>,
}

impl LastPacket {
    /// Copies a packet that is sent.
    pub(super) fn new(transmit: &Transmit, bytes: &[u8]) -> Self {
        Self { transmit: *transmit, bytes: bytes[..transmit.size].into() }
    }
}

/// A connection that has ended.
pub(super) struct Closing {
    peer: SocketAddr,
    /// `None`: the peer has ended the connection (the draining period).
    last: Option<Box<LastPacket>>,
    /// The number of datagrams received since.
    received: u32,
}

impl Closing {
    pub(super) fn new(peer: SocketAddr, last: Option<Box<LastPacket>>) -> Self {
        Self { peer, last, received: 0 }
    }

    /// Returns the packet that answers a datagram: the last one again, for the first, the second, the fourth datagram and so
    /// on (section 10.2.1).
    fn answer(&mut self, datagram: &Datagram<'_>) -> Option<&LastPacket> {
        self.received = self.received.saturating_add(1);
        let last = self.last.as_deref()?;
        let is_due = self.received.is_power_of_two();
        let is_in_proportion = last.bytes.len() <= AMPLIFICATION * datagram.bytes.len();
        Some(last).filter(|_| is_due && is_in_proportion && datagram.peer == self.peer)
    }
}

/// The connections of a socket that have ended.
#[derive(Default)]
pub(super) struct ClosingPeriods {
    connections: HashMap<Handle, Closing>,
    /// The ends of the periods.
    ends: BinaryHeap<Reverse<(Moment, Handle)>>,
    timer: rt::Timer,
}

impl ClosingPeriods {
    /// Adds a connection until `end`. Returns the connection whose place it takes.
    pub(super) fn add(&mut self, handle: Handle, closing: Closing, end: Moment) -> Option<Handle> {
        let replaced = if self.ends.len() < MOST_CLOSING { None } else { self.remove_first() };
        self.connections.insert(handle, closing);
        self.ends.push(Reverse((end, handle)));
        replaced
    }

    /// Returns the packet that answers a datagram for a connection that has ended.
    pub(super) fn answer(&mut self, handle: Handle, datagram: &Datagram<'_>) -> Option<&LastPacket> {
        self.connections.get_mut(&handle)?.answer(datagram)
    }

    /// Returns a connection whose period is over, or arranges a wake-up at the end of the next one.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Option<Handle> {
        let Reverse((end, _)) = self.ends.peek()?;
        if *end <= rt::now() {
            return self.remove_first();
        }
        self.timer.arm(Some(*end));
        // It has not expired: the end is later.
        let _ = self.timer.poll_expired(cx);
        None
    }

    fn remove_first(&mut self) -> Option<Handle> {
        let Reverse((_, handle)) = self.ends.pop()?;
        self.connections.remove(&handle);
        Some(handle)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;
    use std::time::Duration;

    use quic::Transport;

    use super::super::test_endpoint::{endpoint, simulate, target};
    use super::*;

    const PEER: &str = "10.0.0.9:5000";

    fn closing(last: Option<usize>) -> Closing {
        let peer = PEER.parse().unwrap();
        let packet = |size| {
            let transmit = Transmit { to: peer, from: None, ecn: 0, size, segment: size };
            Box::new(LastPacket::new(&transmit, &[7; 1_500]))
        };
        Closing::new(peer, last.map(packet))
    }

    /// Returns the numbers of the datagrams that are answered, of nine.
    fn answered(mut closing: Closing, size: usize, peer: &str) -> Vec<u32> {
        let bytes = vec![0; size];
        let datagram = Datagram { bytes: &bytes, peer: peer.parse().unwrap(), local: None, ecn: 0 };
        (1..10)
            .filter(|_| closing.answer(&datagram).is_some_and(|last| last.bytes.len() == last.transmit.size))
            .collect()
    }

    #[test]
    fn late_datagrams_are_rarely_answered() {
        let doublings = &[1, 2, 4, 8][..];
        let rows = [
            ("closing", Some(40), 30, PEER, doublings),
            ("draining", None, 30, PEER, &[]),
            ("from another address", Some(40), 30, "10.0.0.8:5000", &[]),
            ("three times the bytes", Some(1_200), 400, PEER, doublings),
            ("more than three times the bytes", Some(1_200), 399, PEER, &[]),
        ];
        for (row, last, size, peer, expected) in rows {
            assert_eq!(answered(closing(last), size, peer), expected, "{row}");
        }
    }

    /// Returns handles of one endpoint.
    fn handles(count: usize) -> Vec<Handle> {
        let (mut endpoint, target) = (endpoint(), target());
        let mut connect = |_| endpoint.connect(rt::now(), target.clone(), &Transport::default()).unwrap().0;
        (0..count).map(&mut connect).collect()
    }

    /// Returns the connections whose period is over now.
    async fn ended(periods: &mut ClosingPeriods) -> Vec<Handle> {
        std::future::poll_fn(|cx| Poll::Ready(std::iter::from_fn(|| periods.poll_ended(cx)).collect())).await
    }

    #[test]
    fn periods_end_one_after_the_other() {
        simulate(async {
            let (mut periods, handles) = (ClosingPeriods::default(), handles(3));
            let begin = rt::now();
            for (handle, seconds) in handles.iter().zip([5, 1, 3]) {
                assert_eq!(periods.add(*handle, closing(Some(40)), begin + Duration::from_secs(seconds)), None);
            }
            let mut order = Vec::new();
            while order.len() < 3 {
                // The timer of the periods wakes the task.
                let handle = std::future::poll_fn(|cx| periods.poll_ended(cx).map_or(Poll::Pending, Poll::Ready)).await;
                order.push((handle, rt::now().saturating_since(begin).as_secs()));
            }
            assert_eq!(order, [(handles[1], 1), (handles[2], 3), (handles[0], 5)]);
            assert!(periods.connections.is_empty());
        });
    }

    #[test]
    fn the_first_to_end_makes_room() {
        simulate(async {
            let (mut periods, handles) = (ClosingPeriods::default(), handles(MOST_CLOSING + 1));
            let end = |at: usize| rt::now() + Duration::from_millis(if at == 7 { 1 } else { 2 + at as u64 });
            for (at, handle) in handles.iter().enumerate() {
                let replaced = periods.add(*handle, closing(Some(40)), end(at));
                assert_eq!(replaced, (at == MOST_CLOSING).then(|| handles[7]));
            }
            assert_eq!(periods.connections.len(), MOST_CLOSING);
            assert_eq!(ended(&mut periods).await, []);
        });
    }
}
