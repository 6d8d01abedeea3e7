//! Datagrams of clients at an endpoint of QUIC: any bytes, and packets that are sealed correctly around any frames. For any
//! of them there is no panic, an unconfirmed address gets no more than the protocol permits, and every connection ends.
//!
//! The input is a sequence of steps: a byte that selects one, a byte with its length, and that many bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::moment::{Moment, WallTime};
use quic::cid::Place;
use quic::endpoint::{ServerSettings, Settings};
use quic::{
    Clock, Connection, Datagram, Direction, Endpoint, Event, HalfOpen, Handle, Incoming, Received, Secrets, StreamId,
    Transport,
};
use tls::quic::{Keys, Side, initial_keys};
use tls::resumption::Resumption;
use tools::origin::certificate::{Kind, Origin, offer};

/// Maximum number of datagrams that one datagram can cause.
const MOST_ANSWERS: usize = 64;
/// Maximum number of deadlines until every connection has ended.
const MOST_DEADLINES: usize = 2_000;
/// Size of a client's first datagrams in bytes (RFC 9000, section 14.1).
const FIRST: usize = 1_200;
/// Bytes that a server may send beyond three times those received: the rest of one datagram for each connection.
const ROUNDED: usize = 1_500;
const TAG: usize = 16;

pub(crate) fn server() -> Arc<tls::Server> {
    static SERVER: OnceLock<Arc<tls::Server>> = OnceLock::new();
    Arc::clone(SERVER.get_or_init(|| {
        let mut entries = offer(Origin::Made(Kind::P256)).expect("a certificate can be generated").quic.entries();
        for entry in &mut entries {
            let settings =
                tls::server::Settings { alpn: vec![b"h3".to_vec()], is_quic: true, ..(*entry.settings).clone() };
            entry.settings = Arc::new(settings);
        }
        Arc::new(tls::Server::new(entries, false, Resumption::default()).expect("the settings fit"))
    }))
}

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let mut side = ServerSide::new();
    let mut rest = data;
    while let Some(([step, length], after)) = rest.split_first_chunk::<2>() {
        let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        side.step(*step, *length, bytes);
    }
    side.end();
}

/// The decision about a connection that begins.
#[derive(Clone, Copy)]
enum Decision {
    Accept,
    Refuse,
    Retry,
    Ignore,
}

/// The bytes exchanged with a client.
#[derive(Default)]
struct Traffic {
    received: usize,
    sent: usize,
    connections: usize,
}

struct ServerSide {
    endpoint: Endpoint,
    half_open: Arc<HalfOpen>,
    connections: BTreeMap<Handle, Connection>,
    now: Moment,
    decision: Decision,
    traffic: BTreeMap<SocketAddr, Traffic>,
    /// Number of the client's next packet, and of its next byte in CRYPTO frames.
    packet: u32,
    crypto: u64,
    last_answer: Vec<u8>,
}

impl ServerSide {
    fn new() -> Self {
        let half_open = Arc::new(HalfOpen::default());
        let settings = Settings {
            place: Place { worker: 1, process: 2 },
            secrets: Secrets::of_cluster(b"secret"),
            seed: [7; 32],
            clock: Clock::new(rt::clock::origin()),
            may_discover_mtu: true,
        };
        let serving = ServerSettings {
            tls: server(),
            transport: Transport::default(),
            half_open: Arc::clone(&half_open),
            retry_threshold: 3,
            forces_retry: false,
        };
        Self {
            endpoint: Endpoint::new(settings, Some(serving)),
            half_open,
            connections: BTreeMap::new(),
            now: Moment::from_nanos(1),
            decision: Decision::Accept,
            traffic: BTreeMap::new(),
            packet: 0,
            crypto: 0,
            last_answer: Vec::new(),
        }
    }

    fn step(&mut self, step: u8, length: u8, bytes: &[u8]) {
        let client = SocketAddr::from(([192, 0, 2, step >> 6], 443));
        // A client has one of two ids.
        let id = [step & 0x20; 8];
        match step & 7 {
            0 => self.receive(client, bytes),
            1 => {
                let datagram = self.initial(&id, bytes);
                self.receive(client, &datagram);
            }
            2 => {
                let frame = self.crypto_frame(bytes);
                let datagram = self.initial(&id, &frame);
                self.receive(client, &datagram);
            }
            3 => {
                let mut datagram = self.initial(&id, &[1]);
                datagram.extend_from_slice(bytes);
                self.receive(client, &datagram);
            }
            4 => self.advance(Duration::from_millis(u64::from(length) * 40)),
            5 => {
                self.decision =
                    [Decision::Accept, Decision::Refuse, Decision::Retry, Decision::Ignore][usize::from(length & 3)];
            }
            6 => {
                let answer = std::mem::take(&mut self.last_answer);
                self.receive(client, &answer);
            }
            _ => {
                for connection in self.connections.values_mut() {
                    use_streams(connection, length, bytes);
                }
                self.proceed();
            }
        }
    }

    /// Returns an Initial packet with these frames, sealed.
    fn initial(&mut self, id: &[u8; 8], frames: &[u8]) -> Vec<u8> {
        let keys = initial_keys(id, Side::Client).expect("the cipher is there");
        let payload = frames.len().max(FIRST - 64);
        let header = header(id, self.packet, payload + TAG);
        self.packet += 1;
        seal(&keys, &header, self.packet - 1, frames, payload)
    }

    /// Returns a CRYPTO frame with the next bytes of the handshake.
    fn crypto_frame(&mut self, bytes: &[u8]) -> Vec<u8> {
        let offset = (self.crypto as u32 | 0x8000_0000).to_be_bytes();
        let length = (bytes.len() as u16 | 0x4000).to_be_bytes();
        self.crypto += bytes.len() as u64;
        [&[6][..], &offset, &length, bytes].concat()
    }

    fn receive(&mut self, client: SocketAddr, bytes: &[u8]) {
        self.traffic.entry(client).or_default().received += bytes.len();
        let wall = WallTime { seconds: 1_700_000_000, nanos: 0 };
        let datagram = Datagram { bytes, peer: client, local: None, ecn: bytes.first().map_or(0, |first| first & 3) };
        let mut out = Vec::new();
        let answer = match self.endpoint.receive(self.now, wall, &datagram, &mut out) {
            Received::Nothing => None,
            Received::Answer(answer) => Some(answer),
            Received::Input(handle, input) => {
                self.connections.get_mut(&handle).expect("it exists").receive(input);
                None
            }
            Received::Incoming(incoming) => self.decide(incoming, &mut out),
        };
        if let Some(answer) = answer {
            self.send(answer.to, &out[..answer.size]);
        }
        self.proceed();
    }

    fn decide(&mut self, incoming: Incoming, out: &mut Vec<u8>) -> Option<quic::Transmit> {
        let peer = incoming.peer();
        if self.endpoint.wants_retry(&incoming) {
            return self.endpoint.retry(incoming, out).ok();
        }
        match self.decision {
            Decision::Refuse => Some(self.endpoint.refuse(incoming, out)),
            Decision::Retry => match self.endpoint.retry(incoming, out) {
                Ok(answer) => Some(answer),
                Err(incoming) => {
                    self.endpoint.ignore(incoming);
                    None
                }
            },
            Decision::Ignore => {
                self.endpoint.ignore(incoming);
                None
            }
            Decision::Accept => {
                self.traffic.entry(peer).or_default().connections += 1;
                match self.endpoint.accept(incoming, self.now, out) {
                    Ok((handle, connection)) => {
                        assert!(self.connections.insert(handle, connection).is_none(), "a handle is used twice");
                        None
                    }
                    Err(refusal) => refusal.answer,
                }
            }
        }
    }

    fn send(&mut self, client: SocketAddr, bytes: &[u8]) {
        let traffic = self.traffic.entry(client).or_default();
        traffic.sent += bytes.len();
        let most = 3 * traffic.received + ROUNDED * traffic.connections;
        assert!(traffic.sent <= most, "{} bytes for {} received", traffic.sent, traffic.received);
        self.last_answer = bytes.to_vec();
    }

    fn proceed(&mut self) {
        let mut sent = Vec::new();
        self.connections.retain(|_, connection| {
            connection.expire(self.now);
            self.endpoint.settle(connection);
            while let Some(event) = connection.poll_event() {
                assert!(!matches!(event, Event::Connected), "no client has the keys");
            }
            let mut out = Vec::new();
            let mut answers = 0;
            while let Some(transmit) = connection.transmit(self.now, 10, &mut out) {
                answers += 1;
                assert!(answers < MOST_ANSWERS, "{answers} answers at once");
                sent.push((transmit.to, out[..transmit.size].to_vec()));
            }
            self.endpoint.settle(connection)
        });
        for (client, bytes) in sent {
            self.send(client, &bytes);
        }
        assert!(self.half_open.count() <= self.connections.len());
        assert_eq!(self.endpoint.connections(), self.connections.len());
    }

    fn advance(&mut self, duration: Duration) {
        self.now = self.now + duration;
        self.proceed();
    }

    /// Lets all deadlines pass.
    fn end(mut self) {
        for _ in 0..MOST_DEADLINES {
            let next = self.connections.values_mut().filter_map(Connection::deadline).min();
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            self.proceed();
        }
        assert_eq!((self.connections.len(), self.half_open.count()), (0, 0), "connections that never end");
    }
}

/// Calls the functions of streams, most of which a handshake in progress refuses.
fn use_streams(connection: &mut Connection, choice: u8, bytes: &[u8]) {
    let Some(id) = StreamId::of_number(u64::from(choice >> 3)) else { return };
    match choice & 7 {
        0 => drop(connection.write(id, bytes)),
        1 => drop(connection.read(id, bytes.len())),
        2 => drop(connection.finish(id)),
        3 => connection.reset(id, u64::from(choice)),
        4 => connection.stop(id, u64::MAX),
        5 => connection.set_priority(id, i32::from(choice)),
        6 => drop(connection.open(Direction::Unidirectional)),
        _ => drop((connection.accept(Direction::Bidirectional), connection.statistics(), connection.handshake_info())),
    }
}

/// Returns the header of an Initial packet: both ids, no token, and a number of four bytes.
fn header(id: &[u8; 8], number: u32, length: usize) -> Vec<u8> {
    let length = (length as u16 + 4) | 0x4000;
    [&[0xc3, 0, 0, 0, 1, 8][..], id, &[4, 1, 2, 3, 4, 0], &length.to_be_bytes(), &number.to_be_bytes()].concat()
}

/// Seals a packet (RFC 9001, section 5). `length`: of the payload, which is padded.
fn seal(keys: &Keys, header: &[u8], number: u32, frames: &[u8], length: usize) -> Vec<u8> {
    let mut packet = [header, frames].concat();
    packet.resize(header.len() + length, 0);
    let (head, payload) = packet.split_at_mut(header.len());
    let tag = keys.local.packet.encrypt_in_place(u64::from(number), head, payload).expect("it is short");
    packet.extend_from_slice(tag.as_ref());
    let (head, payload) = packet.split_at_mut(header.len());
    let (first, rest) = head.split_first_mut().expect("there is a header");
    let at = rest.len() - 4;
    keys.local.header.encrypt_in_place(&payload[..TAG], first, &mut rest[at..]).expect("the sample is long enough");
    packet
}
