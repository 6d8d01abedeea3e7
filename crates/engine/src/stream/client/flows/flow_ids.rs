//! The QUIC connection IDs of one flow. Must never use more than the limits of their standings.
//!
//! Anyone can send packets with the address of a client and IDs that do not exist. So an ID of the client's packets is one of few
//! until many packets have used it, and never displaces one that the server has written itself.

use quic::cid::Id;
use rt::net::Datagrams;
use wire::quic::{Header, header};

use super::connection_ids::{Chooser, ConnectionIds, Route, UsedId};

/// Number of packets with an ID after which it is no longer new.
const PACKETS: usize = 16;

/// How an ID has proven that it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdStanding {
    /// The flow began with it, or the server's long headers have it.
    Confirmed,
    /// Many packets of the client have had it.
    Used,
    /// The client has changed to it. `packets`: the number of its packets.
    New { packets: usize },
}

impl IdStanding {
    /// Returns the maximum number of IDs of this standing. A server confirms the client's first one, that of a Retry and that of the
    /// handshake; a client uses two while it changes from one to another.
    fn most(self) -> usize {
        match self {
            IdStanding::Confirmed => 3,
            IdStanding::Used => 2,
            IdStanding::New { .. } => 1,
        }
    }

    fn is_like(self, other: IdStanding) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// An ID, also one that others use for another server.
#[derive(Debug)]
struct FlowId {
    id: Id,
    chooser: Chooser,
    standing: IdStanding,
    _used: Option<UsedId>,
}

/// The IDs of a flow.
#[derive(Debug)]
pub(super) struct FlowIds {
    all: ConnectionIds,
    proxy: usize,
    route: Route,
    /// The least recently used one first.
    known: Vec<FlowId>,
    /// The server's ID that packets have used last. Its length is that of all.
    current: Option<Id>,
}

impl FlowIds {
    pub(super) fn new(all: ConnectionIds, proxy: usize, route: Route) -> Self {
        Self { all, proxy, route, known: Vec::new(), current: None }
    }

    /// Returns the index of the flow's server.
    pub(super) fn server(&self) -> usize {
        self.route.server
    }

    /// Adds an ID that the server has confirmed, or that the flow begins with.
    pub(super) fn learn(&mut self, chooser: Chooser, id: Id) {
        let standing = IdStanding::Confirmed;
        match self.known.iter().position(|known| (known.id, known.chooser) == (id, chooser)) {
            Some(place) => self.renew(place, standing),
            None => self.add(chooser, id, standing),
        }
    }

    /// Adds an ID of a packet that comes from the client's address.
    pub(super) fn learn_new(&mut self, chooser: Chooser, id: Id) {
        if !self.known.iter().any(|known| (known.id, known.chooser) == (id, chooser)) {
            self.add(chooser, id, IdStanding::New { packets: 1 });
        }
    }

    /// Adds an ID, instead of the least recently used one of its standing if there are too many.
    fn add(&mut self, chooser: Chooser, id: Id, standing: IdStanding) {
        self.make_room(standing);
        let used = self.all.learn(self.proxy, chooser, id, self.route);
        self.known.push(FlowId { id, chooser, standing, _used: used });
        if chooser == Chooser::Server {
            self.current = Some(id);
        }
    }

    fn make_room(&mut self, standing: IdStanding) {
        let alike = |known: &FlowId| known.standing.is_like(standing);
        if self.known.iter().filter(|known| alike(known)).count() >= standing.most()
            && let Some(oldest) = self.known.iter().position(alike)
        {
            self.known.remove(oldest);
        }
    }

    /// Makes an ID the most recently used one, with this standing.
    fn renew(&mut self, place: usize, standing: IdStanding) {
        let mut known = self.known.remove(place);
        if !known.standing.is_like(standing) {
            self.make_room(standing);
        }
        known.standing = standing;
        if known.chooser == Chooser::Server {
            self.current = Some(known.id);
        }
        self.known.push(known);
    }

    /// Counts packets of the client with a known ID.
    fn count_use(&mut self, place: usize, number: usize) {
        let Some(known) = self.known.get(place) else { return };
        let standing = match known.standing {
            IdStanding::New { packets } if packets + number >= PACKETS => IdStanding::Used,
            IdStanding::New { packets } => IdStanding::New { packets: packets + number },
            other => other,
        };
        self.renew(place, standing);
    }

    /// Forgets all: they lead to no server any longer.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.current = None;
    }

    /// Whether datagrams have short headers with the ID that was used last.
    pub(super) fn are_current(&mut self, datagrams: &Datagrams<'_>) -> bool {
        let Some(current) = &self.current else { return false };
        let are_current = datagrams.iter().all(|bytes| match header(bytes) {
            Some(Header::Short(rest)) => rest.starts_with(current.as_slice()),
            _ => false,
        });
        if are_current
            && let Some(last) = self.known.last()
            && matches!(last.standing, IdStanding::New { .. })
            && last.id == *current
        {
            self.count_use(self.known.len() - 1, datagrams.iter().count());
        }
        are_current
    }

    /// Whether a packet of the client belongs to a connection of the flow, because its ID is known.
    pub(super) fn recognise(&mut self, header: &Header<'_>) -> bool {
        let place = self.known.iter().position(|known| match header {
            Header::Long(header) => known.id.as_slice() == header.destination,
            Header::Short(rest) => known.chooser == Chooser::Server && rest.starts_with(known.id.as_slice()),
        });
        place.is_some_and(|place| {
            self.count_use(place, 1);
            true
        })
    }

    /// Learns the ID that a client has changed to. The server has chosen it in an encrypted frame.
    pub(super) fn note_request(&mut self, header: &Header<'_>) {
        let Some(length) = self.current.map(|current| current.as_slice().len()) else { return };
        let id = match header {
            Header::Long(header) => Some(header.destination),
            Header::Short(rest) => rest.get(..length),
        };
        if let Some(id) = id.filter(|id| id.len() == length).and_then(Id::new) {
            self.learn_new(Chooser::Server, id);
        }
    }

    /// Learns the IDs that the server chooses: the source IDs of its long headers.
    pub(super) fn note_answers(&mut self, datagrams: &Datagrams<'_>) {
        for bytes in datagrams.iter() {
            let Some(Header::Long(header)) = header(bytes) else { continue };
            // Version Negotiation repeats the client's ID.
            if header.version != 0
                && !header.source.is_empty()
                && let Some(id) = Id::new(header.source)
            {
                self.learn(Chooser::Server, id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection_ids::Home;
    use super::super::flow_table::FlowPlace;
    use super::*;

    fn id(text: &str) -> Id {
        Id::new(text.as_bytes()).unwrap()
    }

    fn flow_ids(all: &ConnectionIds) -> FlowIds {
        let route = Route { server: 3, home: Home { listener: 1, place: FlowPlace::default() } };
        let mut ids = FlowIds::new(all.clone(), 7, route);
        ids.learn(Chooser::Client, id("client's"));
        ids.learn(Chooser::Server, id("handshak"));
        ids
    }

    fn short(id: &str) -> Vec<u8> {
        [b"\x40", id.as_bytes(), &[9; 30]].concat()
    }

    /// Processes a packet of the client as a listener does.
    fn send(ids: &mut FlowIds, id: &str) {
        let bytes = &short(id)[..];
        let datagrams =
            Datagrams { bytes, stride: bytes.len(), peer: ([192, 0, 2, 1], 9).into(), local_ip: None, ecn: None };
        let header = header(bytes).unwrap();
        if !ids.are_current(&datagrams) && !ids.recognise(&header) {
            ids.note_request(&header);
        }
    }

    fn leads(all: &ConnectionIds, id: &str) -> bool {
        all.find(7, &header(&short(id)).unwrap()).is_some()
    }

    #[test]
    fn packets_with_ids_that_do_not_exist_displace_none_that_is_in_use() {
        let all = ConnectionIds::default();
        let mut ids = flow_ids(&all);
        for own in ["changed1", "changed2"] {
            (0..PACKETS).for_each(|_| send(&mut ids, own));
        }
        for round in 0..100 {
            send(&mut ids, &format!("forged{round:02}"));
            // Other standings are not displaced by repetition either, as long as the client sends.
            (0..PACKETS).for_each(|_| send(&mut ids, "repeated"));
            send(&mut ids, "changed2");
            assert!(["handshak", "changed2"].iter().all(|own| leads(&all, own)), "{round}");
        }
        // One of them at most.
        assert!(leads(&all, "forged99") && !leads(&all, "forged98"));
        assert!(ids.known.len() <= 6);
        drop(ids);
        assert!(!leads(&all, "changed2"));
    }

    #[test]
    fn an_id_that_a_client_changes_to_is_known_at_once() {
        let all = ConnectionIds::default();
        let mut ids = flow_ids(&all);
        for number in 10..20 {
            let own = format!("change{number}");
            send(&mut ids, &own);
            assert!(leads(&all, &own) && leads(&all, "handshak"), "{own}");
            (1..PACKETS).for_each(|_| send(&mut ids, &own));
        }
        // The last two, and the server's.
        let found: Vec<_> = (10..20).filter(|number| leads(&all, &format!("change{number}"))).collect();
        assert_eq!(found, [18, 19]);
    }

    #[test]
    fn the_oldest_id_that_the_server_has_confirmed_is_displaced_first() {
        let all = ConnectionIds::default();
        let mut ids = flow_ids(&all);
        ids.learn(Chooser::Server, id("retry_id"));
        ids.learn(Chooser::Server, id("handshak"));
        ids.learn(Chooser::Server, id("another1"));
        ids.learn(Chooser::Server, id("another2"));
        assert_eq!(
            ["retry_id", "handshak", "another1", "another2"].map(|own| leads(&all, own)),
            [false, true, true, true]
        );
        send(&mut ids, "changed1");
        ids.learn(Chooser::Server, id("changed1"));
        assert_eq!(ids.known.iter().map(|known| known.standing).collect::<Vec<_>>(), [IdStanding::Confirmed; 3]);
    }

    /// A packet with a forged ID does not make those that follow expensive.
    #[test]
    fn the_id_that_was_used_last_is_current() {
        let all = ConnectionIds::default();
        let mut ids = flow_ids(&all);
        send(&mut ids, "forged00");
        assert_eq!(ids.current, Some(id("forged00")));
        send(&mut ids, "handshak");
        assert_eq!(ids.current, Some(id("handshak")));
    }
}
