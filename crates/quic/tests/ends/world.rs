//! Two endpoints and the network between them, on a virtual clock.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::moment::{Moment, WallTime};
use weir_quic::cid::Place;
use weir_quic::endpoint::{Refusal, ServerSettings, Settings, Target};
use weir_quic::stream::{Part, ReadError};
use weir_quic::{
    Clock, Connection, Datagram, Endpoint, Event, HalfOpen, Handle, Received, Secrets, StreamId, Transmit, Transport,
};

use crate::certificates::{Authority, client, client_settings, identity, server, settings};

/// The time that a datagram takes.
const LATENCY: Duration = Duration::from_millis(10);
/// Steps after which a test has hung.
const MOST_STEPS: usize = 20_000;
pub const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 443);
pub const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 4000);

/// What is done with a connection that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Accepted, after a Retry if the endpoint wants one.
    Accept,
    Refuse,
    Retry,
    Ignore,
}

/// An endpoint with its connections.
pub struct Side {
    pub endpoint: Endpoint,
    pub connections: BTreeMap<Handle, Connection>,
    pub events: VecDeque<(Handle, Event)>,
    pub refusals: Vec<Refusal>,
    pub decision: Decision,
    /// Number of Retry packets sent.
    pub retries: usize,
    address: SocketAddr,
    out: Vec<u8>,
    /// The most bytes that were sent at once.
    pub largest: usize,
}

/// A datagram on its way.
pub struct Packet {
    pub at: Moment,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    pub ecn: u8,
}

/// Decides whether a datagram arrives, and may change it: the number of the datagram is its first argument.
pub type Link = Box<dyn FnMut(usize, &mut Packet) -> bool>;

pub struct World {
    pub now: Moment,
    pub server: Side,
    pub client: Side,
    pub half_open: Arc<HalfOpen>,
    pub link: Link,
    /// All datagrams that were sent.
    pub log: Vec<(SocketAddr, Vec<u8>)>,
    on_way: Vec<Packet>,
    sent: usize,
}

/// The settings of a world.
pub struct Plan {
    pub tls: Arc<tls::Server>,
    pub transport: Transport,
    pub secrets: Secrets,
    pub retry_threshold: usize,
    pub forces_retry: bool,
}

impl Plan {
    pub fn new(tls: Arc<tls::Server>) -> Self {
        Self {
            tls,
            transport: Transport::default(),
            secrets: Secrets::random([3; 32]),
            retry_threshold: 100,
            forces_retry: false,
        }
    }
}

impl Side {
    fn new(seed: u8, secrets: Secrets, server: Option<ServerSettings>) -> Self {
        let is_server = server.is_some();
        let settings = Settings {
            place: Place { worker: seed, process: 42 },
            secrets,
            seed: [seed; 32],
            clock: Clock::new(Instant::now()),
            may_discover_mtu: true,
        };
        Self {
            endpoint: Endpoint::new(settings, server),
            connections: BTreeMap::new(),
            events: VecDeque::new(),
            refusals: Vec::new(),
            decision: Decision::Accept,
            retries: 0,
            address: if is_server { SERVER } else { CLIENT },
            out: Vec::new(),
            largest: 0,
        }
    }

    fn receive(&mut self, now: Moment, packet: &Packet) -> Vec<(Transmit, Vec<u8>)> {
        let wall = WallTime { seconds: 1_700_000_000 + (now.as_nanos() / 1_000_000_000) as i64, nanos: 0 };
        let datagram =
            Datagram { bytes: &packet.bytes, peer: packet.from, local: Some(self.address.ip()), ecn: packet.ecn };
        let mut out = std::mem::take(&mut self.out);
        let answer = match self.endpoint.receive(now, wall, &datagram, &mut out) {
            Received::Nothing => None,
            Received::Answer(answer) => Some(answer),
            Received::Input(handle, input) => {
                if let Some(connection) = self.connections.get_mut(&handle) {
                    connection.receive(input);
                }
                None
            }
            Received::Incoming(incoming) => match self.decision {
                Decision::Refuse => Some(self.endpoint.refuse(incoming, &mut out)),
                Decision::Ignore => {
                    self.endpoint.ignore(incoming);
                    None
                }
                decision => {
                    let wants = decision == Decision::Retry && incoming.may_retry();
                    if wants || self.endpoint.wants_retry(&incoming) {
                        self.retries += 1;
                        Some(self.endpoint.retry(incoming, &mut out).unwrap())
                    } else {
                        match self.endpoint.accept(incoming, now, &mut out) {
                            Ok((handle, connection)) => {
                                self.connections.insert(handle, connection);
                                None
                            }
                            Err(mut refusal) => {
                                let answer = refusal.answer.take();
                                self.refusals.push(*refusal);
                                answer
                            }
                        }
                    }
                }
            },
        };
        let sent = answer.map(|answer| (answer, out[..answer.size].to_vec()));
        self.out = out;
        sent.into_iter().collect()
    }

    /// Lets all connections proceed. Returns what they send.
    fn proceed(&mut self, now: Moment) -> Vec<(Transmit, Vec<u8>)> {
        let mut sent = Vec::new();
        let mut over = Vec::new();
        for (handle, connection) in &mut self.connections {
            connection.expire(now);
            self.endpoint.settle(connection);
            while let Some(event) = connection.poll_event() {
                self.events.push_back((*handle, event));
            }
            while let Some(transmit) = connection.transmit(now, 64, &mut self.out) {
                self.largest = self.largest.max(transmit.size);
                sent.push((transmit, self.out[..transmit.size].to_vec()));
            }
            if !self.endpoint.settle(connection) {
                over.push(*handle);
            }
        }
        for handle in over {
            self.connections.remove(&handle);
        }
        sent
    }

    fn deadline(&mut self) -> Option<Moment> {
        self.connections.values_mut().filter_map(Connection::deadline).min()
    }

    /// Returns the events of a connection so far.
    pub fn events_of(&self, handle: Handle) -> Vec<&Event> {
        self.events.iter().filter(|(of, _)| *of == handle).map(|(_, event)| event).collect()
    }

    /// Returns the only connection.
    pub fn only(&mut self) -> (Handle, &mut Connection) {
        assert_eq!(self.connections.len(), 1);
        let (handle, connection) = self.connections.iter_mut().next().unwrap();
        (*handle, connection)
    }
}

impl World {
    pub fn new(plan: Plan) -> Self {
        let half_open = Arc::new(HalfOpen::default());
        let serving = ServerSettings {
            tls: plan.tls,
            transport: plan.transport,
            half_open: Arc::clone(&half_open),
            retry_threshold: plan.retry_threshold,
            forces_retry: plan.forces_retry,
        };
        Self {
            now: Moment::from_nanos(1_000_000_000),
            server: Side::new(1, plan.secrets, Some(serving)),
            client: Side::new(2, Secrets::random([9; 32]), None),
            half_open,
            link: Box::new(|_, _| true),
            log: Vec::new(),
            on_way: Vec::new(),
            sent: 0,
        }
    }

    /// Both sides with a certificate for "a.test".
    pub fn usual() -> (Self, Arc<tls::Client>) {
        let authority = Authority::new();
        let tls = server(&[authority.certificate(&["a.test"])], settings(), false);
        (Self::new(Plan::new(tls)), client(client_settings(&authority)))
    }

    pub fn connect(&mut self, tls: &Arc<tls::Client>, name: &str) -> Handle {
        self.connect_with(tls, identity(name), &Transport::default())
    }

    pub fn connect_with(
        &mut self,
        tls: &Arc<tls::Client>,
        identity: tls::ServerIdentity,
        transport: &Transport,
    ) -> Handle {
        let target = Target { peer: SERVER, tls: Arc::clone(tls), identity, alpn: None };
        let (handle, connection) = self.client.endpoint.connect(self.now, target, transport).unwrap();
        self.client.connections.insert(handle, connection);
        handle
    }

    fn send(&mut self, from: SocketAddr, all: Vec<(Transmit, Vec<u8>)>) {
        for (transmit, bytes) in all {
            for bytes in bytes.chunks(transmit.segment) {
                self.log.push((from, bytes.to_vec()));
                let mut packet =
                    Packet { at: self.now + LATENCY, from, to: transmit.to, bytes: bytes.to_vec(), ecn: transmit.ecn };
                if (self.link)(self.sent, &mut packet) {
                    self.on_way.push(packet);
                }
                self.sent += 1;
            }
        }
    }

    /// Puts a datagram on its way.
    pub fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.on_way.push(Packet { at: self.now, from, to, bytes: bytes.to_vec(), ecn: 0 });
    }

    fn deliver(&mut self) {
        let (due, later) = std::mem::take(&mut self.on_way).into_iter().partition(|packet| packet.at <= self.now);
        self.on_way = later;
        let due: Vec<Packet> = due;
        for packet in due {
            if packet.to == SERVER {
                let answers = self.server.receive(self.now, &packet);
                self.send(SERVER, answers);
            } else {
                let answers = self.client.receive(self.now, &packet);
                self.send(packet.to, answers);
            }
        }
    }

    /// Proceeds at the current time. Returns when something happens next.
    fn step(&mut self) -> Option<Moment> {
        self.deliver();
        let from_client = self.client.proceed(self.now);
        self.send(CLIENT, from_client);
        let from_server = self.server.proceed(self.now);
        self.send(SERVER, from_server);
        let arrival = self.on_way.iter().map(|packet| packet.at).min();
        [arrival, self.client.deadline(), self.server.deadline()].into_iter().flatten().min()
    }

    /// Proceeds until `is_done`, or until nothing more can happen. Returns whether it was.
    pub fn until(&mut self, mut is_done: impl FnMut(&mut Self) -> bool) -> bool {
        for _ in 0..MOST_STEPS {
            let next = self.step();
            if is_done(self) {
                return true;
            }
            match next {
                Some(next) => self.now = self.now.max(next),
                None => return false,
            }
        }
        panic!("no end after {MOST_STEPS} steps");
    }

    /// Proceeds for some time.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        for _ in 0..MOST_STEPS {
            match self.step() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("no end after {MOST_STEPS} steps");
    }

    /// Proceeds until both sides have completed the handshake. Returns the server's handle.
    pub fn shake(&mut self, client: Handle) -> Handle {
        let done = self.until(|world| {
            let ended = |side: &Side| side.events.iter().any(|(_, event)| *event == Event::Connected);
            ended(&world.server) && world.client.events_of(client).contains(&&Event::Connected)
        });
        assert!(done, "no handshake: {:?} {:?}", self.client.events, self.server.events);
        self.server.events.iter().rev().find(|(_, event)| *event == Event::Connected).unwrap().0
    }
}

/// Reads what a stream has. Returns the bytes, and whether its end was reached.
pub fn read(connection: &mut Connection, id: StreamId) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        match connection.read(id, usize::MAX) {
            Ok(Part::Chunk(bytes)) => all.extend_from_slice(&bytes),
            Ok(Part::End) => return (all, true),
            Err(ReadError::Blocked) => return (all, false),
            Err(error) => panic!("{error:?} after {} bytes", all.len()),
        }
    }
}
