//! A client of HTTP/3 over a UDP socket of its own, for tests of the finished program.

use base::{Moment, WallTime};
use quic::cid::Place;
use quic::endpoint::{Settings, Target};
use quic::stream::Part;
use quic::{Clock, Closed, Connection, Datagram, Direction, Endpoint, Event, Received, Secrets, StreamId, Transport};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::h1::{self, Edits, HeadLimits, Parse, Scan};
use wire::h2::Capacity;
use wire::h3::{self, MessagePart, MessageReader, Role, StreamType};
use wire::http::Head;

use crate::support::PATIENCE;

/// A connection to a server, whose certificate is not verified.
pub struct Client {
    socket: UdpSocket,
    endpoint: Endpoint,
    connection: Connection,
    origin: Instant,
    decoder: h3::qpack::Decoder,
    streams: BTreeMap<StreamId, Stream>,
    /// Bytes of the server's control stream and of its other unidirectional ones.
    pub control: Vec<u8>,
    /// How the connection has ended.
    pub closed: Option<Closed>,
    is_connected: bool,
    out: Vec<u8>,
}

struct Stream {
    reader: MessageReader,
    status: String,
    payload: Vec<u8>,
    has_ended: bool,
}

/// The TLS settings of a client.
fn tls() -> Arc<tls::Client> {
    let settings = tls::client::Settings { alpn: vec![b"h3".to_vec()], ..tls::client::Settings::default() };
    Arc::new(tls::Client::new(settings).expect("settings"))
}

impl Client {
    /// Connects to an address and completes the handshake.
    pub fn connect(to: (Ipv4Addr, u16)) -> Self {
        let mut client = Self::begin(to);
        client.until("a handshake", |client| client.is_connected || client.closed.is_some());
        assert_eq!(client.closed, None);
        let mut bytes = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut bytes);
        h3::push_settings(&h3::Settings::default(), &mut bytes);
        let id = client.connection.open(Direction::Unidirectional).expect("a stream");
        assert_eq!(client.connection.write(id, &bytes), Ok(bytes.len()));
        client
    }

    /// Begins a connection: its first datagrams are sent, and no answer is read.
    pub fn begin(to: (Ipv4Addr, u16)) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_ne_bytes());
        seed[8..12].copy_from_slice(&std::process::id().to_ne_bytes());
        let origin = Instant::now();
        let settings = Settings {
            place: Place { worker: 0, process: 0 },
            secrets: Secrets::random(seed),
            seed,
            clock: Clock::new(origin),
            may_discover_mtu: false,
        };
        let mut endpoint = Endpoint::new(settings, None);
        let name = rustls::pki_types::ServerName::try_from("a.example").expect("a name");
        let target = Target { peer: SocketAddr::from(to), tls: tls(), identity: name.into(), alpn: None };
        let (_, connection) = endpoint.connect(Moment::ZERO, target, &Transport::default()).expect("a connection");
        let mut client = Self {
            socket,
            endpoint,
            connection,
            origin,
            decoder: h3::qpack::Decoder::new(h3::qpack::TableLimits::default()),
            streams: BTreeMap::new(),
            control: Vec::new(),
            closed: None,
            is_connected: false,
            out: Vec::new(),
        };
        client.proceed();
        client
    }

    /// Continues from another port, as a client does whose NAT has forgotten it.
    pub fn change_port(&mut self) {
        self.socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    }

    /// Sends a request. Returns its stream.
    pub fn send(&mut self, path: &str) -> StreamId {
        let id = self.connection.open(Direction::Bidirectional).expect("a stream");
        let reader = MessageReader::new(Role::Client, 65_536);
        self.streams.insert(id, Stream { reader, status: String::new(), payload: Vec::new(), has_ended: false });
        let bytes = request(path);
        assert_eq!(self.connection.write(id, &bytes), Ok(bytes.len()));
        self.connection.finish(id).expect("open");
        self.proceed();
        id
    }

    /// Returns status and payload of an answer.
    pub fn answer(&mut self, id: StreamId) -> (String, String) {
        self.until("an answer", |client| client.streams[&id].has_ended || client.closed.is_some());
        let Stream { status, payload, has_ended, .. } = self.streams.remove(&id).expect("a stream");
        assert!(has_ended, "{:?}", self.closed);
        (status, String::from_utf8(payload).expect("text"))
    }

    /// Sends a request and returns the payload of its answer, whose status is 200.
    pub fn get(&mut self, path: &str) -> String {
        let id = self.send(path);
        let (status, payload) = self.answer(id);
        assert_eq!(status, "200");
        payload
    }

    /// Sends a request on a new connection and returns the payload of its answer. A server that stops may close the connection
    /// before it has read the request, which is sent again then (RFC 9114, section 5.2).
    pub fn get_anew(to: (Ipv4Addr, u16), path: &str) -> String {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let mut client = Self::connect(to);
            let id = client.send(path);
            client.until("an answer", |client| client.streams[&id].has_ended || client.closed.is_some());
            if client.streams[&id].has_ended {
                let (status, payload) = client.answer(id);
                assert_eq!(status, "200");
                client.close();
                return payload;
            }
            assert!(matches!(client.closed, Some(Closed::ByPeer { code: 0x100, .. })), "{:?}", client.closed);
        }
        panic!("no answer");
    }

    /// Sends a packet that the server acknowledges.
    pub fn ping(&mut self) {
        self.connection.ping();
        self.proceed();
    }

    /// Closes the connection.
    pub fn close(mut self) {
        self.connection.close(self.now(), h3::ErrorCode::NoError.number(), b"");
        self.proceed();
    }

    /// Proceeds until something is true.
    pub fn until(&mut self, what: &str, is_done: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        loop {
            self.proceed();
            if is_done(self) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "waited for {what}");
            self.receive();
        }
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).expect("a time"))
    }

    /// Processes deadlines and events, and sends what there is.
    fn proceed(&mut self) {
        self.connection.expire(self.now());
        self.endpoint.settle(&mut self.connection);
        while let Some(event) = self.connection.poll_event() {
            self.note(event);
        }
        while let Some(transmit) = self.connection.transmit(self.now(), 1, &mut self.out) {
            self.socket.send_to(&self.out[..transmit.size], transmit.to).expect("sent");
        }
        self.endpoint.settle(&mut self.connection);
    }

    /// Waits for a datagram, or until the next deadline.
    fn receive(&mut self) {
        let wait =
            self.connection.deadline().map_or(Duration::from_secs(1), |deadline| deadline.saturating_since(self.now()));
        self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1)))).expect("a socket");
        let mut space = [0; 2_048];
        let (length, peer) = match self.socket.recv_from(&mut space) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
            Err(error) => panic!("{error}"),
        };
        let datagram = Datagram { bytes: &space[..length], peer, local: None, ecn: 0 };
        let wall = WallTime::default();
        if let Received::Input(_, input) = self.endpoint.receive(self.now(), wall, &datagram, &mut self.out) {
            self.connection.receive(input);
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Connected => self.is_connected = true,
            Event::Closed(closed) => self.closed = Some(closed),
            Event::StreamsOpened(Direction::Unidirectional) => {
                while let Some(id) = self.connection.accept(Direction::Unidirectional) {
                    self.read_control(id);
                }
            }
            Event::Readable(id) if id.direction() == Direction::Unidirectional => self.read_control(id),
            Event::Readable(id) => self.read(id),
            _ => {}
        }
    }

    fn read_control(&mut self, id: StreamId) {
        while let Ok(Part::Chunk(bytes)) = self.connection.read(id, usize::MAX) {
            self.control.extend_from_slice(&bytes);
        }
    }

    fn read(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        while let Ok(part) = self.connection.read(id, usize::MAX) {
            let Part::Chunk(bytes) = part else {
                stream.has_ended = true;
                return;
            };
            let mut input = &bytes[..];
            while let Some(part) = stream.reader.next(&mut input).expect("valid frames") {
                match part {
                    MessagePart::Data(data) => stream.payload.extend_from_slice(data),
                    MessagePart::Head(section) => {
                        let (status, capacity) = (&mut stream.status, Capacity { bytes: 65_536, fields: 200 });
                        let take = |field: &wire::h2::HeaderField<'_>| {
                            if field.name == b":status" {
                                *status = String::from_utf8_lossy(field.value).into_owned();
                            }
                        };
                        self.decoder.decode(id.number(), section, capacity, take).expect("a section");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The frames of a request.
pub fn request(path: &str) -> Vec<u8> {
    let text = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let (mut head, mut bytes) = (Head::new(), Vec::new());
    let parsed = h1::parse_request(text.as_bytes(), &HeadLimits::default(), &mut Scan::default(), &mut head);
    assert!(matches!(parsed, Ok(Parse::Complete { .. })), "{text}");
    let edits = Edits { framing: head.framing, version: head.version(), ..Edits::interim() };
    h3::encode_request(&head, &edits, &mut bytes).expect("a head");
    bytes
}
