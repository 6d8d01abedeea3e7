//! The first datagrams of QUIC connections, held until their ClientHello is complete. Must never hold more than its limits.

use std::collections::{BTreeMap, HashMap};
use std::hash::RandomState;
use std::time::Duration;

use base::moment::Moment;
use tls::quic_hello::{HelloCollector, Progress};

use super::flow_table::FlowKey;

/// Maximum number of clients whose datagrams are held.
const MOST_CLIENTS: usize = 256;
/// Maximum number of datagrams of a client, and of their bytes.
const MOST_DATAGRAMS: usize = 8;
const MOST_BYTES: usize = 16 * 1024;
/// Maximum time to wait for a ClientHello. A client repeats a lost datagram after a second (RFC 9002, section 6.2.2).
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Datagrams of one client, in the order of their arrival.
type Kept = Vec<Box<[u8]>>;

struct HeldHello {
    client: FlowKey,
    since: Moment,
    collector: HelloCollector,
    kept: Kept,
}

/// Result of adding a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It is held. The number of another client's datagrams that are dropped for it.
    Held { dropped: usize },
    /// It is to be passed on after these. `contents`: the ClientHello in a record; `None`: there is none.
    Released { before: Kept, contents: Option<Vec<u8>> },
}

/// The datagrams that are held for one socket.
#[derive(Default)]
pub(super) struct HeldHellos {
    /// By their number, which increases.
    held: BTreeMap<u64, HeldHello>,
    numbers: HashMap<FlowKey, u64, RandomState>,
    next: u64,
}

impl HeldHellos {
    /// Whether datagrams of a client are held.
    pub(super) fn has(&self, client: &FlowKey) -> bool {
        self.numbers.contains_key(client)
    }

    /// Adds a datagram.
    pub(super) fn add(&mut self, client: FlowKey, datagram: &[u8], now: Moment) -> Hold {
        let known = self.numbers.get(&client).and_then(|number| self.held.get_mut(number));
        let Some(hello) = known else { return self.begin(client, datagram, now) };
        let progress = hello.collector.add(datagram);
        let bytes: usize = hello.kept.iter().map(|kept| kept.len()).sum();
        let is_full = hello.kept.len() + 1 == MOST_DATAGRAMS || bytes + datagram.len() > MOST_BYTES;
        let contents = match progress {
            Progress::Whole(record) => Some(record),
            Progress::Part if !is_full => {
                hello.kept.push(datagram.into());
                return Hold::Held { dropped: 0 };
            }
            Progress::Part | Progress::Broken => None,
        };
        let before = self.remove(&client).map_or_else(Vec::new, |hello| hello.kept);
        Hold::Released { before, contents }
    }

    /// Adds the first datagram of a client.
    fn begin(&mut self, client: FlowKey, datagram: &[u8], now: Moment) -> Hold {
        let mut collector = HelloCollector::default();
        let contents = match collector.add(datagram) {
            Progress::Part if datagram.len() <= MOST_BYTES => {
                let dropped = self.drop_oldest_if_full();
                self.held.insert(self.next, HeldHello { client, since: now, collector, kept: vec![datagram.into()] });
                self.numbers.insert(client, self.next);
                self.next += 1;
                return Hold::Held { dropped };
            }
            Progress::Whole(record) => Some(record),
            Progress::Part | Progress::Broken => None,
        };
        Hold::Released { before: Vec::new(), contents }
    }

    fn remove(&mut self, client: &FlowKey) -> Option<HeldHello> {
        self.held.remove(&self.numbers.remove(client)?)
    }

    /// Makes room for another client. Returns the number of datagrams that are dropped.
    fn drop_oldest_if_full(&mut self) -> usize {
        if self.held.len() < MOST_CLIENTS {
            return 0;
        }
        let Some((_, oldest)) = self.held.pop_first() else { return 0 };
        self.numbers.remove(&oldest.client);
        oldest.kept.len()
    }

    /// Returns the time at which the next client has waited long enough.
    pub(super) fn due(&self) -> Option<Moment> {
        self.held.first_key_value().map(|(_, oldest)| oldest.since + LONGEST_WAIT)
    }

    /// Takes the datagrams of a client that has waited long enough.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<(FlowKey, Kept)> {
        if self.due()? > now {
            return None;
        }
        let (_, oldest) = self.held.pop_first()?;
        self.numbers.remove(&oldest.client);
        Some((oldest.client, oldest.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn client(port: u16) -> FlowKey {
        FlowKey { peer: SocketAddr::from(([192, 0, 2, 1], port)), local: None }
    }

    /// A 0-RTT packet, which an Initial packet should precede.
    fn early(size: usize) -> Vec<u8> {
        let mut datagram = vec![0xd0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 4, 1, 2, 3, 4];
        datagram.resize(size, 0);
        datagram
    }

    fn released(before: usize) -> Hold {
        Hold::Released { before: vec![early(1_200).into(); before], contents: None }
    }

    #[test]
    fn a_client_has_a_limit_of_datagrams_and_of_bytes() {
        let (mut held, now) = (HeldHellos::default(), Moment::from_nanos(5));
        for _ in 0..MOST_DATAGRAMS - 1 {
            assert_eq!(held.add(client(1), &early(1_200), now), Hold::Held { dropped: 0 });
        }
        assert_eq!(held.add(client(1), &early(1_200), now), released(MOST_DATAGRAMS - 1));
        assert!(!held.has(&client(1)) && held.due().is_none());
        assert_eq!(held.add(client(1), &early(1_200), now), Hold::Held { dropped: 0 });
        assert_eq!(held.add(client(1), &early(MOST_BYTES), now), released(1));
        assert!(matches!(held.add(client(1), &early(MOST_BYTES + 1), now), Hold::Released { contents: None, .. }));
    }

    #[test]
    fn the_oldest_client_is_dropped_for_another_one() {
        let (mut held, now) = (HeldHellos::default(), Moment::from_nanos(5));
        for port in 0..MOST_CLIENTS as u16 {
            assert_eq!(held.add(client(port), &early(1_200), now), Hold::Held { dropped: 0 });
        }
        held.add(client(0), &early(1_200), now);
        assert_eq!(held.add(client(9_999), &early(1_200), now), Hold::Held { dropped: 2 });
        assert_eq!((held.has(&client(0)), held.has(&client(1)), held.held.len()), (false, true, MOST_CLIENTS));
        assert_eq!(held.numbers.len(), MOST_CLIENTS);
    }

    #[test]
    fn datagrams_are_released_when_the_time_is_over() {
        let (mut held, now) = (HeldHellos::default(), Moment::from_nanos(5));
        held.add(client(1), &early(1_200), now);
        held.add(client(2), &early(1_200), now + Duration::from_secs(1));
        held.add(client(1), &early(1_200), now + Duration::from_secs(1));
        assert_eq!(held.take_due(now + Duration::from_millis(1_999)), None);
        let kept = vec![early(1_200).into(); 2];
        assert_eq!(held.take_due(now + LONGEST_WAIT), Some((client(1), kept)));
        assert_eq!(held.take_due(now + LONGEST_WAIT), None);
        assert_eq!(held.due(), Some(now + LONGEST_WAIT + Duration::from_secs(1)));
    }
}
