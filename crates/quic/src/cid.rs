//! Connection ids of this program: 8 bytes that lead a datagram to its worker and its process (RFC 9000, section 5.1).
//! Must never reveal which ids belong to one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lc_rs::hmac;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};

/// Length of an id in bytes.
pub const LENGTH: usize = 8;
/// Number of bytes of an id that are its place.
const PLACED: usize = 2;
/// The bit of the first byte that marks a long header (RFC 9000, section 17.2).
const LONG: u8 = 0x80;
/// The types of long headers whose destination id the client may have chosen: Initial and 0-RTT.
const CHOSEN_BY_CLIENT: [u8; 2] = [0x00, 0x10];
/// Offset of the length of the destination id in a long header.
const LENGTH_AT: usize = 5;

/// Maximum length of an id in bytes (RFC 9000, section 17.2).
pub const LONGEST: usize = 20;

/// A connection id that either side has chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    length: u8,
    bytes: [u8; LONGEST],
}

impl Id {
    /// Returns the id with these bytes; `None`: there are more than [`LONGEST`].
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { length: u8::try_from(id.len()).ok()?, bytes })
    }

    /// Returns its bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Ids are not printed: they would reveal which datagrams belong together.
impl std::fmt::Debug for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Id").field("length", &self.length).finish_non_exhaustive()
    }
}

/// The ids that packets of a handshake may have as their destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeIds {
    /// The id that the client has chosen for its first packets.
    pub chosen: Id,
    /// The id of this side.
    pub own: [u8; LENGTH],
}

impl HandshakeIds {
    /// Returns the owner of the connection.
    pub fn place(&self) -> Place {
        Place { worker: self.own[0], process: self.own[1] }
    }
}

/// The owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Place {
    /// The worker's number: the first byte of an id.
    pub worker: u8,
    /// The process: the second byte of an id.
    pub process: u8,
}

/// Returns the place in the destination id of a datagram. `None`: a client may have chosen the id, it has another length
/// than those of this program, or the datagram is too short.
pub fn place(datagram: &[u8]) -> Option<Place> {
    let (first, rest) = datagram.split_first()?;
    let id = if first & LONG == 0 {
        rest.first_chunk::<LENGTH>()?
    } else {
        if CHOSEN_BY_CLIENT.contains(&(first & 0x30)) || datagram.get(1..LENGTH_AT)? == [0; 4] {
            return None;
        }
        if usize::from(*datagram.get(LENGTH_AT)?) != LENGTH {
            return None;
        }
        datagram.get(LENGTH_AT + 1..)?.first_chunk::<LENGTH>()?
    };
    Some(Place { worker: id[0], process: id[1] })
}

/// Returns the destination id of a datagram that begins with an Initial or 0-RTT packet. A client has chosen it, or uses one
/// of this program's already.
pub fn of_handshake(datagram: &[u8]) -> Option<Id> {
    let first = *datagram.first()?;
    if first & LONG == 0 || !CHOSEN_BY_CLIENT.contains(&(first & 0x30)) || datagram.get(1..LENGTH_AT)? == [0; 4] {
        return None;
    }
    let length = usize::from(*datagram.get(LENGTH_AT)?);
    Id::new(datagram.get(LENGTH_AT + 1..)?.get(..length)?)
}

/// The id that a generator has made last.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastId(Arc<AtomicU64>);

impl LastId {
    pub(crate) fn get(&self) -> [u8; LENGTH] {
        self.0.load(Ordering::Relaxed).to_ne_bytes()
    }
}

/// Bytes of an id that are not its place.
const UNPREDICTABLE: usize = LENGTH - PLACED;
/// Number of ids for which one value of the keyed function suffices.
const IDS_OF_A_VALUE: u64 = (DIGEST / UNPREDICTABLE) as u64;
/// Length of a value of the keyed function in bytes.
const DIGEST: usize = 32;

/// Makes the ids of an endpoint: its place, and bytes of a keyed function of a counter.
pub(crate) struct Generator {
    place: Place,
    key: hmac::Key,
    count: u64,
    /// The value of the function for the newest ids.
    value: [u8; DIGEST],
    last: LastId,
}

impl Generator {
    pub(crate) fn new(place: Place, seed: &[u8; 32]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[&b"connection ids"[..], seed].concat());
        Self { place, key, count: 0, value: [0; DIGEST], last: LastId::default() }
    }

    /// Reports each id that is made.
    pub(crate) fn reporting(mut self, last: LastId) -> Self {
        self.last = last;
        self
    }
}

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        let (number, position) = (self.count / IDS_OF_A_VALUE, (self.count % IDS_OF_A_VALUE) as usize);
        if position == 0 {
            self.value.copy_from_slice(hmac::sign(&self.key, &number.to_be_bytes()).as_ref());
        }
        self.count = self.count.wrapping_add(1);
        let mut id = [0; LENGTH];
        id[..PLACED].copy_from_slice(&[self.place.worker, self.place.process]);
        id[PLACED..].copy_from_slice(&self.value[position * UNPREDICTABLE..][..UNPREDICTABLE]);
        self.last.0.store(u64::from_ne_bytes(id), Ordering::Relaxed);
        ConnectionId::new(&id)
    }

    /// Refuses the ids of other workers of this process, whose connections may be alive: they get no stateless reset.
    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        match **id {
            [worker, process, ..] if process == self.place.process && worker != self.place.worker => Err(InvalidCid),
            _ => Ok(()),
        }
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_name_their_place() {
        let id = [3, 9, 1, 2, 3, 4, 5, 6];
        let short = [&[0x40][..], &id, &[7; 20]].concat();
        let long = |first: u8, version: u32, length: u8| {
            [&[first][..], &version.to_be_bytes(), &[length], &id, &[8; 20]].concat()
        };
        let here = Some(Place { worker: 3, process: 9 });
        let rows = [
            ("short header", short.clone(), here),
            ("Handshake", long(0xe0, 1, 8), here),
            ("Initial", long(0xc0, 1, 8), None),
            ("0-RTT", long(0xd0, 1, 8), None),
            ("another length", long(0xe0, 1, 9), None),
            ("version negotiation", long(0xe0, 0, 8), None),
            ("nothing", Vec::new(), None),
        ];
        for (name, datagram, expected) in rows {
            assert_eq!(place(&datagram), expected, "{name}");
        }
        for (whole, length) in [(short, 9), (long(0xe0, 1, 8), 14)] {
            assert!((0..length).all(|cut| place(&whole[..cut]).is_none()) && place(&whole[..length]).is_some());
        }
    }

    #[test]
    fn ids_of_handshakes_are_read_where_a_client_may_choose() {
        let datagram = |first: u8, version: u32, id: &[u8]| {
            [&[first][..], &version.to_be_bytes(), &[id.len() as u8], id, &[8; 3]].concat()
        };
        let rows = [
            ("Initial", 0xc0, 1, &[1; 8][..], true),
            ("0-RTT", 0xd0, 1, &[1; 20], true),
            ("an empty id", 0xc0, 1, &[], true),
            ("Handshake", 0xe0, 1, &[1; 8], false),
            ("Retry", 0xf0, 1, &[1; 8], false),
            ("version negotiation", 0xc0, 0, &[1; 8], false),
            ("a short header", 0x40, 1, &[1; 8], false),
            ("too long", 0xc0, 1, &[1; 21], false),
        ];
        for (name, first, version, id, expected) in rows {
            let whole = datagram(first, version, id);
            assert_eq!(of_handshake(&whole), Id::new(id).filter(|_| expected), "{name}");
            assert!((0..6 + id.len()).all(|cut| of_handshake(&whole[..cut]).is_none()), "{name}");
        }
        assert_eq!(Id::new(&[7; 20]).unwrap().as_slice(), [7; 20]);
    }

    #[test]
    fn ids_carry_their_place_and_are_never_the_same() {
        let here = Place { worker: 5, process: 200 };
        let mut ids = Generator::new(here, &[1; 32]);
        let mut others = Generator::new(here, &[2; 32]);
        let made: std::collections::HashSet<ConnectionId> =
            (0..1_000).flat_map(|_| [ids.generate_cid(), others.generate_cid()]).collect();
        assert_eq!(made.len(), 2_000);
        assert!(made.iter().all(|id| id.len() == LENGTH && id[..2] == [5, 200]));
        assert_eq!(Generator::new(here, &[1; 32]).generate_cid(), Generator::new(here, &[1; 32]).generate_cid());
    }

    #[test]
    fn ids_of_other_workers_are_left_alone() {
        let ids = Generator::new(Place { worker: 1, process: 7 }, &[0; 32]);
        let rows = [([1, 7], true), ([2, 7], false), ([2, 8], true), ([1, 8], true)];
        for (place, expected) in rows {
            let id = ConnectionId::new(&[&place[..], &[0; 6]].concat());
            assert_eq!(ids.validate(&id).is_ok(), expected, "{place:?}");
        }
    }
}
