//! The messages between a process and one that has its UDP sockets as well: their bytes. The other process may be of another
//! version, so every message is checked. Must never act on a message.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use quic::Datagram;
use quic::cid::{self, HandshakeIds, Id};

/// Maximum length of a message in bytes: a datagram with its addresses.
pub const LONGEST: usize = 65_535 + 64;
/// Maximum number of sockets in a message.
pub const MOST_SOCKETS: usize = 4_096;
/// Maximum number of handshakes in a message.
pub const MOST_HANDSHAKES: usize = 1_024;

const DATAGRAM: u8 = 1;
const TAKE: u8 = 2;
const HANDSHAKES: u8 = 3;
const TAKEN: u8 = 4;

/// Families of addresses.
const NONE: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;

/// A datagram for the other process.
#[derive(Debug, Clone, Copy)]
pub struct Parcel<'a> {
    /// The group of the socket that has received it: the identity of its first socket.
    pub group: u64,
    /// The index of the worker's socket in the group, as the connection id has it.
    pub worker: u8,
    pub datagram: Datagram<'a>,
}

/// A message.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// A datagram that belongs to the other process.
    Datagram(Parcel<'a>),
    /// The sender receives from these sockets from now on: the other process shall stop.
    Take { number: u64, sockets: Vec<u64> },
    /// Handshakes in progress in the process that answers [`Message::Take`].
    Handshakes { number: u64, ids: Vec<HandshakeIds> },
    /// The other process has stopped: the last answer.
    Taken { number: u64 },
}

impl Message<'_> {
    /// Writes the message into `out`, which is cleared. What is above the limits is left out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Self::Datagram(Parcel { group, worker, datagram }) => {
                out.push(DATAGRAM);
                out.extend_from_slice(&group.to_be_bytes());
                out.extend_from_slice(&[*worker, datagram.ecn]);
                push_ip(Some(datagram.peer.ip()), out);
                out.extend_from_slice(&datagram.peer.port().to_be_bytes());
                if let SocketAddr::V6(peer) = datagram.peer {
                    out.extend_from_slice(&peer.scope_id().to_be_bytes());
                }
                push_ip(datagram.local, out);
                out.extend_from_slice(datagram.bytes);
            }
            Self::Take { number, sockets } => {
                begin(TAKE, *number, out);
                for socket in sockets.iter().take(MOST_SOCKETS) {
                    out.extend_from_slice(&socket.to_be_bytes());
                }
            }
            Self::Handshakes { number, ids } => {
                begin(HANDSHAKES, *number, out);
                for HandshakeIds { chosen, own } in ids.iter().take(MOST_HANDSHAKES) {
                    out.extend_from_slice(own);
                    // An id has at most 20 bytes.
                    out.push(chosen.as_slice().len() as u8);
                    out.extend_from_slice(chosen.as_slice());
                }
            }
            Self::Taken { number } => begin(TAKEN, *number, out),
        }
    }
}

impl<'a> Message<'a> {
    /// Reads a message. `None`: it is malformed, longer than permitted, or of a kind that is not known.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() > LONGEST {
            return None;
        }
        let mut reader = Reader(bytes);
        match reader.byte()? {
            DATAGRAM => {
                let group = reader.number()?;
                let [worker, ecn] = *reader.array::<2>()?;
                let (ip, port) = (reader.ip()??, u16::from_be_bytes(*reader.array()?));
                let peer = match ip {
                    IpAddr::V4(ip) => SocketAddr::from((ip, port)),
                    IpAddr::V6(ip) => {
                        SocketAddr::V6(SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(*reader.array()?)))
                    }
                };
                let local = reader.ip()?;
                let is_valid = ecn < 4 && local.is_none_or(|local| local.is_ipv4() == peer.is_ipv4());
                let datagram = Datagram { bytes: reader.0, peer, local, ecn };
                is_valid.then_some(Self::Datagram(Parcel { group, worker, datagram }))
            }
            TAKE => {
                let number = reader.number()?;
                let (sockets, rest) = reader.0.as_chunks::<8>();
                let is_valid = rest.is_empty() && sockets.len() <= MOST_SOCKETS;
                let sockets = sockets.iter().map(|socket| u64::from_be_bytes(*socket)).collect();
                is_valid.then_some(Self::Take { number, sockets })
            }
            HANDSHAKES => {
                let (number, mut ids) = (reader.number()?, Vec::new());
                while !reader.0.is_empty() {
                    let own = *reader.array::<{ cid::LENGTH }>()?;
                    let length = usize::from(reader.byte()?);
                    let chosen = Id::new(reader.bytes(length)?)?;
                    ids.push(HandshakeIds { chosen, own });
                }
                (ids.len() <= MOST_HANDSHAKES).then_some(Self::Handshakes { number, ids })
            }
            TAKEN => {
                let number = reader.number()?;
                reader.0.is_empty().then_some(Self::Taken { number })
            }
            _ => None,
        }
    }
}

fn begin(kind: u8, number: u64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&number.to_be_bytes());
}

fn push_ip(ip: Option<IpAddr>, out: &mut Vec<u8>) {
    match ip {
        None => out.push(NONE),
        Some(IpAddr::V4(ip)) => {
            out.push(V4);
            out.extend_from_slice(&ip.octets());
        }
        Some(IpAddr::V6(ip)) => {
            out.push(V6);
            out.extend_from_slice(&ip.octets());
        }
    }
}

/// The part of a message that was not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (read, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(read)
    }

    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (read, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(read)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| *byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    /// `None`: malformed; `Some(None)`: no address.
    fn ip(&mut self) -> Option<Option<IpAddr>> {
        match self.byte()? {
            NONE => Some(None),
            V4 => self.array::<4>().map(|octets| Some(Ipv4Addr::from(*octets).into())),
            V6 => self.array::<16>().map(|octets| Some(Ipv6Addr::from(*octets).into())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(message: &Message<'_>) -> Vec<u8> {
        let mut out = vec![1, 2, 3];
        message.encode(&mut out);
        out
    }

    fn parcel(peer: &str, local: Option<&str>, bytes: &[u8]) -> Vec<u8> {
        let local = local.map(|local| local.parse().unwrap());
        let datagram = Datagram { bytes, peer: peer.parse().unwrap(), local, ecn: 2 };
        encoded(&Message::Datagram(Parcel { group: 77, worker: 3, datagram }))
    }

    /// Reads a message, and writes it again.
    fn again(bytes: &[u8]) -> Option<Vec<u8>> {
        Message::decode(bytes).map(|message| encoded(&message))
    }

    #[test]
    fn a_datagram_arrives_as_it_was_sent() {
        let largest = vec![9; 65_535];
        let rows = [
            ("192.0.2.1:4433", Some("198.51.100.7"), &b"packet"[..]),
            ("192.0.2.1:1", None, b"x"),
            ("[2001:db8::1]:65535", Some("2001:db8::2"), &largest),
            ("[fe80::1%7]:443", Some("fe80::2"), b""),
        ];
        for (peer, local, bytes) in rows {
            let sent = parcel(peer, local, bytes);
            let Some(Message::Datagram(received)) = Message::decode(&sent) else { panic!("{peer}") };
            assert_eq!((received.group, received.worker, received.datagram.ecn), (77, 3, 2));
            assert_eq!(received.datagram.peer, peer.parse().unwrap());
            assert_eq!(received.datagram.local, local.map(|local| local.parse().unwrap()));
            assert_eq!(received.datagram.bytes, bytes);
            assert!(sent.len() <= LONGEST);
        }
    }

    #[test]
    fn the_other_messages_arrive_as_they_were_sent() {
        let ids = vec![
            HandshakeIds { chosen: Id::new(&[1; 20]).unwrap(), own: [5, 6, 7, 8, 9, 1, 2, 3] },
            HandshakeIds { chosen: Id::new(&[]).unwrap(), own: [0; 8] },
        ];
        let sent = encoded(&Message::Handshakes { number: 4, ids: ids.clone() });
        assert!(matches!(Message::decode(&sent), Some(Message::Handshakes { number: 4, ids: read }) if read == ids));
        let sockets: Vec<u64> = (0..MOST_SOCKETS as u64).collect();
        let sent = encoded(&Message::Take { number: 5, sockets: sockets.clone() });
        assert!(matches!(Message::decode(&sent), Some(Message::Take { number: 5, sockets: read }) if read == sockets));
        assert!(sent.len() <= LONGEST);
        let sent = encoded(&Message::Taken { number: u64::MAX });
        assert!(matches!(Message::decode(&sent), Some(Message::Taken { number: u64::MAX })));
        // The longest messages are within the limit.
        let ids = vec![HandshakeIds { chosen: Id::new(&[1; 20]).unwrap(), own: [0; 8] }; MOST_HANDSHAKES + 5];
        let sent = encoded(&Message::Handshakes { number: 4, ids });
        let read = Message::decode(&sent);
        assert!(matches!(read, Some(Message::Handshakes { ids, .. }) if ids.len() == MOST_HANDSHAKES));
        assert!(sent.len() <= LONGEST);
    }

    #[test]
    fn malformed_messages_are_refused() {
        let whole = parcel("192.0.2.1:4433", Some("198.51.100.7"), b"");
        assert!((0..whole.len()).all(|cut| Message::decode(&whole[..cut]).is_none()));
        let changed = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            Message::decode(&bytes).is_none()
        };
        // The kind; ECN bits; the family of either address.
        assert!(changed(0, 0) && changed(0, 5) && changed(10, 4) && changed(11, 0) && changed(11, 5) && changed(18, 1));
        assert!(Message::decode(&parcel("[::1]:1", Some("127.0.0.1"), b"x")).is_none(), "of different families");
        assert!(Message::decode(&[0; 3]).is_none() && Message::decode(&[DATAGRAM; LONGEST + 1]).is_none());
        let number = 7_u64.to_be_bytes();
        let of = |kind: u8, rest: &[u8]| Message::decode(&[&[kind][..], &number, rest].concat()).is_none();
        assert!(of(TAKE, &[0; 9]) && of(TAKE, &[0; 8 * MOST_SOCKETS + 8]) && of(TAKEN, &[0]));
        assert!(of(HANDSHAKES, &[0; 8]) && of(HANDSHAKES, &[0, 0, 0, 0, 0, 0, 0, 0, 21]));
        assert!(of(HANDSHAKES, &[0; 9 * (MOST_HANDSHAKES + 1)]));
    }

    proptest! {
        /// Any bytes are read without a panic, and a message that is accepted has one form.
        #[test]
        fn any_bytes_are_read(kind in 0_u8..6, rest in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = [&[kind][..], &rest].concat();
            if let Some(again) = again(&bytes) {
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
