//! A client that seals its packets itself, so that it can violate the protocol in any of them.

use tls::quic::{KeyChange, Keys, Session, Side, initial_keys};

use crate::certificates::{Authority, client, client_settings, identity, server, settings};
use crate::world::{CLIENT, Plan, SERVER, World};
use weir_quic::{Closed, Event};

/// The id that the client chooses for the server, and its own.
const CHOSEN: [u8; 8] = [7; 8];
const OWN: [u8; 4] = [9; 4];
const TAG: usize = 16;
/// Size of a client's first datagrams in bytes (RFC 9000, section 14.1).
const FIRST: usize = 1_200;

/// The kind of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Initial,
    Handshake,
    OneRtt,
}

/// An integer of QUIC (RFC 9000, section 16).
pub fn varint(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

/// A frame: its type, integers, and the bytes after them.
pub fn frame(kind: u8, numbers: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    numbers.iter().for_each(|number| bytes.extend(varint(*number)));
    bytes.extend_from_slice(rest);
    bytes
}

/// A transport parameter.
pub fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    [varint(id), varint(value.len() as u64), value.to_vec()].concat()
}

/// The parameter without which no client is valid (initial_source_connection_id).
pub fn own_id() -> Vec<u8> {
    parameter(0x0f, &OWN)
}

pub struct Raw {
    pub world: World,
    session: Session,
    keys: [Option<Keys>; 3],
    /// Numbers of the next packets.
    numbers: [u32; 3],
    /// Bytes of the handshake sent and received at each level.
    sent: [usize; 3],
    received: [usize; 3],
    /// The id of the server.
    peer: Vec<u8>,
    /// Datagrams that were read.
    read: usize,
    /// The reserved bits of the next packet.
    pub reserved: u8,
    /// The token of Initial packets, with its length before it.
    pub token: Vec<u8>,
}

impl Raw {
    /// A client with these transport parameters that has sent nothing.
    pub fn new(parameters: Vec<u8>) -> Self {
        let authority = Authority::new();
        let tls = server(&[authority.certificate(&["a.test"])], settings(), false);
        let mut world = World::new(Plan::new(tls));
        // What the server sends is in the log.
        world.link = Box::new(|_, packet| packet.to == SERVER);
        let tls = client(client_settings(&authority));
        let session = Session::of_client(&tls, identity("a.test"), None, parameters).unwrap();
        let keys = [initial_keys(&CHOSEN, Side::Client), None, None];
        let numbers = [0; 3];
        Self {
            world,
            session,
            keys,
            numbers,
            sent: [0; 3],
            received: [0; 3],
            peer: CHOSEN.to_vec(),
            read: 0,
            reserved: 0,
            token: vec![0],
        }
    }

    /// A client that has completed a handshake.
    pub fn connected() -> Self {
        let mut raw = Self::new(own_id());
        raw.begin();
        raw.receive();
        assert!(raw.keys[2].is_some(), "no handshake");
        assert!(raw.world.server.events.iter().any(|(_, event)| *event == Event::Connected));
        raw
    }

    /// Sends the first datagram.
    pub fn begin(&mut self) {
        self.speak();
    }

    /// Sends a packet with these frames.
    pub fn send(&mut self, level: Level, frames: &[u8]) {
        let bytes = self.seal(level, frames);
        self.world.inject(CLIENT, SERVER, &bytes);
        self.world.run_for(std::time::Duration::from_millis(1));
    }

    /// Returns a packet with these frames.
    fn seal(&mut self, level: Level, frames: &[u8]) -> Vec<u8> {
        let at = level as usize;
        let number = self.numbers[at];
        self.numbers[at] += 1;
        let length =
            if level == Level::Initial && !frames.is_empty() { frames.len().max(FIRST - 64) } else { frames.len() };
        let size = ((length + TAG + 4) as u16 | 0x4000).to_be_bytes().to_vec();
        let ids = [&[self.peer.len() as u8][..], &self.peer, &[OWN.len() as u8], &OWN].concat();
        let long = |kind: u8| [&[kind | 3][..], &[0, 0, 0, 1], &ids].concat();
        let mut packet = match level {
            Level::Initial => [long(0xc0), self.token.clone(), size].concat(),
            Level::Handshake => [long(0xe0), size].concat(),
            Level::OneRtt => [&[0x43][..], &self.peer].concat(),
        };
        packet[0] |= self.reserved;
        packet.extend(number.to_be_bytes());
        let header = packet.len();
        packet.extend_from_slice(frames);
        packet.resize(header + length, 0);
        let keys = &self.keys[at].as_ref().expect("the keys of the level").local;
        let (head, payload) = packet.split_at_mut(header);
        let tag = keys.packet.encrypt_in_place(u64::from(number), head, payload).unwrap();
        packet.extend_from_slice(tag.as_ref());
        let (head, payload) = packet.split_at_mut(header);
        let (first, rest) = head.split_first_mut().unwrap();
        let at = rest.len() - 4;
        keys.header.encrypt_in_place(&payload[..TAG], first, &mut rest[at..]).unwrap();
        if level == Level::Initial {
            packet.resize(packet.len().max(FIRST), 0);
        }
        packet
    }

    /// Sends what the handshake has to send.
    fn speak(&mut self) {
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            let at = level as usize;
            if self.keys[at].is_none() || self.keys.get(at + 1).is_some_and(Option::is_some) {
                continue;
            }
            let mut out = Vec::new();
            let change = self.session.write(&mut out);
            if !out.is_empty() {
                let crypto = frame(6, &[self.sent[at] as u64, out.len() as u64], &out);
                self.sent[at] += out.len();
                self.send(level, &crypto);
            }
            match change {
                Some(KeyChange::Handshake { keys }) => self.keys[1] = Some(keys),
                Some(KeyChange::OneRtt { keys, .. }) => self.keys[2] = Some(keys),
                None => return,
            }
        }
    }

    /// Processes the server's Initial packets alone, after which the client has the keys of the handshake.
    pub fn receive_hello(&mut self) {
        let log = self.world.log.clone();
        for (_, datagram) in log.iter().filter(|(from, bytes)| *from == SERVER && bytes[0] & 0xb0 == 0x80) {
            self.open(datagram);
        }
        assert!(self.keys[1].is_some() && self.keys[2].is_none());
    }

    /// Processes what the server has sent.
    fn receive(&mut self) {
        while self.read < self.world.log.len() {
            let (from, datagram) = self.world.log[self.read].clone();
            self.read += 1;
            if from == SERVER {
                let mut rest = &datagram[..];
                while rest.first().is_some_and(|first| first & 0x80 != 0) {
                    rest = self.open(rest);
                }
            }
        }
    }

    /// Opens a packet with a long header, and processes its CRYPTO frames. Returns the rest of the datagram.
    fn open<'a>(&mut self, datagram: &'a [u8]) -> &'a [u8] {
        let at = if datagram[0] & 0x30 == 0 { 0 } else { 1 };
        let mut cursor = 6 + usize::from(datagram[5]);
        let length = usize::from(datagram[cursor]);
        self.peer = datagram[cursor + 1..][..length].to_vec();
        cursor += 1 + length;
        if at == 0 {
            cursor += 1 + usize::from(datagram[cursor]);
        }
        let length = usize::from(u16::from_be_bytes([datagram[cursor], datagram[cursor + 1]]) & 0x3fff);
        cursor += 2;
        let (packet, rest) = datagram.split_at(cursor + length);
        let mut packet = packet.to_vec();
        let Some(keys) = self.keys[at].as_ref().map(|keys| &keys.remote) else { return rest };
        let sample = packet[cursor + 4..][..TAG].to_vec();
        let (first, head) = packet.split_first_mut().unwrap();
        keys.header.decrypt_in_place(&sample, first, &mut head[cursor - 1..][..4]).unwrap();
        let size = usize::from(packet[0] & 3) + 1;
        let number = packet[cursor..][..size].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (head, payload) = packet.split_at_mut(cursor + size);
        let frames = keys.packet.decrypt_in_place(number, head, payload).unwrap().to_vec();
        self.process(at, &frames);
        rest
    }

    fn process(&mut self, at: usize, frames: &[u8]) {
        let mut input = frames;
        while let Some((kind, rest)) = input.split_first() {
            input = rest;
            match kind {
                0 | 1 => {}
                2 => {
                    let [_, _, ranges, _] = [(); 4].map(|()| number(&mut input));
                    (0..2 * ranges).for_each(|_| _ = number(&mut input));
                }
                6 => {
                    let [offset, length] = [(); 2].map(|()| number(&mut input) as usize);
                    let (data, rest) = input.split_at(length);
                    input = rest;
                    if offset == self.received[at] {
                        self.received[at] += length;
                        self.session.read(data).unwrap();
                        self.speak();
                    }
                }
                // The connection is closed: the server knows why.
                _ => return,
            }
        }
    }

    /// The code with which the server has closed the connection because of a violation.
    pub fn code(&self) -> Option<u64> {
        let refused = self.world.server.refusals.iter().map(|refusal| &refusal.reason);
        let closed = self.world.server.events.iter().filter_map(|(_, event)| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        });
        refused.chain(closed).find_map(|reason| match reason {
            Closed::Transport { code, .. } => Some(*code),
            _ => None,
        })
    }
}

fn number(input: &mut &[u8]) -> u64 {
    let size = 1 << (input[0] >> 6);
    let (bytes, rest) = input.split_at(size);
    *input = rest;
    bytes[1..].iter().fold(u64::from(bytes[0] & 0x3f), |number, byte| number << 8 | u64::from(*byte))
}
