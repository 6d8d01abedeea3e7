//! A client of HTTP/3 that reads and writes frames as a test asks for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use quic::cid::Place;
use quic::endpoint::{Settings, Target};
use quic::stream::{Part, ReadError, WriteError};
use quic::{Clock, Closed, Connection, Datagram, Direction, Endpoint, Event, Received, Secrets, StreamId, Transport};
use rt::net::{BindOptions, DatagramSocket, Ecn, ReceiveBatch, Transmit};
use rustls::pki_types::ServerName;
use wire::h1::{self, Edits, HeadLimits, Parse, Scan};
use wire::h2::Capacity;
use wire::h3::{self, FrameType, MessagePart, MessageReader, Role, StreamType};
use wire::http::{Fields, Head};

use crate::raw_streams::{self, RawStreams};

/// An answer, as far as it was received.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The heads in the text of HTTP/1, interim ones included.
    pub heads: Vec<String>,
    pub payload: Vec<u8>,
    /// Trailers, a line each.
    pub trailers: Vec<String>,
    /// Whether the end of the stream was received.
    pub ended: bool,
    /// The code of a reset by the server.
    pub reset: Option<u64>,
}

struct Stream {
    reader: MessageReader,
    answer: Answer,
}

/// A client's connection.
pub struct Client {
    socket: DatagramSocket,
    endpoint: Endpoint,
    connection: Connection,
    decoder: h3::qpack::Decoder,
    streams: BTreeMap<StreamId, Stream>,
    /// Bytes of the server's unidirectional streams.
    pub control: Vec<u8>,
    /// How the connection has ended.
    pub closed: Option<Closed>,
    /// Streams that the server does not read any further, with its codes.
    pub stopped: Vec<(StreamId, u64)>,
    /// Streams that the server has received whole.
    pub sent: Vec<StreamId>,
    /// The number of times that the server has announced more request streams.
    pub announcements: usize,
    /// Bytes of all streams that were read.
    pub read: u64,
    /// Streams and messages of WebTransport sessions, if there may be some.
    pub raw: Option<RawStreams>,
    /// Request streams that are not read, with those that have something to read.
    unread: Option<Vec<StreamId>>,
    /// Datagrams that were received.
    pub heard: usize,
    /// The batch that was sent last.
    sent_last: Vec<u8>,
    is_connected: bool,
    timer: rt::Timer,
    out: Vec<u8>,
}

/// The TLS settings of a client that accepts any certificate.
pub fn tls(alpn: &[&str], early: bool) -> Arc<tls::Client> {
    let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let settings = tls::client::Settings { alpn, resumes: true, early_data: early, ..tls::client::Settings::default() };
    Arc::new(tls::Client::new(settings).unwrap())
}

impl Client {
    /// Begins a connection from one address to another.
    pub fn begin(from: &str, to: &str, tls: &Arc<tls::Client>) -> Self {
        Self::begin_over(from, to, tls, &Transport::default())
    }

    fn begin_over(from: &str, to: &str, tls: &Arc<tls::Client>, transport: &Transport) -> Self {
        let socket = DatagramSocket::bind(from.parse().unwrap(), &BindOptions::default()).unwrap();
        let mut seed = [0; 32];
        seed.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rt::random().to_be_bytes()));
        let settings = Settings {
            place: Place { worker: 0, process: 0 },
            secrets: Secrets::random(seed),
            seed,
            clock: Clock::new(rt::clock::origin()),
            may_discover_mtu: true,
        };
        let mut endpoint = Endpoint::new(settings, None);
        let peer: SocketAddr = to.parse().unwrap();
        let name = ServerName::try_from("a.example").unwrap();
        let target = Target { peer, tls: Arc::clone(tls), identity: name.into(), alpn: None };
        let (_, connection) = endpoint.connect(rt::now(), target, transport).unwrap();
        Self {
            socket,
            endpoint,
            connection,
            decoder: h3::qpack::Decoder::new(h3::qpack::TableLimits::default()),
            streams: BTreeMap::new(),
            control: Vec::new(),
            closed: None,
            stopped: Vec::new(),
            sent: Vec::new(),
            announcements: 0,
            read: 0,
            raw: None,
            unread: None,
            heard: 0,
            sent_last: Vec::new(),
            is_connected: false,
            timer: rt::Timer::new(),
            out: Vec::new(),
        }
    }

    /// Whether the handshake is complete.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Connects, completes the handshake and sends SETTINGS.
    pub async fn connect(from: &str, to: &str) -> Self {
        Self::begin(from, to, &tls(&["h3"], false)).connected().await
    }

    /// Connects with a window of the connection in bytes. Answers are not read before [`Client::resume`].
    pub async fn connect_paused(from: &str, to: &str, window: u32) -> Self {
        let settings = quic::transport::Settings { window, ..quic::transport::Settings::default() };
        let mut client = Self::begin_over(from, to, &tls(&["h3"], false), &Transport::new(&settings));
        client.unread = Some(Vec::new());
        client.connected().await
    }

    /// Connects with settings for WebTransport sessions. The server may open that number of streams at a time.
    pub async fn connect_sessions(from: &str, to: &str, max_streams: u32) -> Self {
        let mut client = Self::begin_over(from, to, &tls(&["h3"], false), &raw_streams::transport(max_streams));
        client.raw = Some(RawStreams::default());
        client.until(|client| client.is_connected).await;
        client.open_uni(&raw_streams::control());
        client
    }

    /// Returns the streams and messages of sessions, and the connection.
    pub fn raw(&mut self) -> (&mut RawStreams, &mut Connection) {
        (self.raw.as_mut().unwrap(), &mut self.connection)
    }

    async fn connected(mut self) -> Self {
        self.until(|client| client.is_connected || client.closed.is_some()).await;
        assert_eq!(self.closed, None);
        self.send_settings();
        self
    }

    /// Reads answers from now on.
    pub fn resume(&mut self) {
        for id in self.unread.take().unwrap_or_default() {
            self.read(id);
        }
    }

    /// Sends our SETTINGS on a control stream.
    pub fn send_settings(&mut self) {
        let mut bytes = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut bytes);
        h3::push_settings(&h3::Settings::default(), &mut bytes);
        self.open_uni(&bytes);
    }

    /// Opens a unidirectional stream with these bytes.
    pub fn open_uni(&mut self, bytes: &[u8]) -> StreamId {
        let id = self.connection.open(Direction::Unidirectional).unwrap();
        assert_eq!(self.connection.write(id, bytes), Ok(bytes.len()));
        id
    }

    /// Writes bytes to a stream.
    pub async fn write(&mut self, id: StreamId, bytes: &[u8]) {
        let mut left = bytes;
        while !left.is_empty() {
            match self.connection.write(id, left) {
                Ok(written) => left = &left[written..],
                Err(WriteError::Blocked) => {}
                Err(error) => panic!("{error:?}"),
            }
            self.step().await;
        }
    }

    /// Opens a request stream.
    pub fn open(&mut self) -> StreamId {
        self.try_open().unwrap()
    }

    /// Opens a request stream, unless as many are open as the server has announced.
    pub fn try_open(&mut self) -> Option<StreamId> {
        let id = self.connection.open(Direction::Bidirectional)?;
        let reader = MessageReader::new(Role::Client, 65_536);
        self.streams.insert(id, Stream { reader, answer: Answer::default() });
        Some(id)
    }

    /// Ends our direction of a stream.
    pub fn finish(&mut self, id: StreamId) {
        self.connection.finish(id).unwrap();
    }

    /// Resets our direction of a stream.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        self.connection.reset(id, code);
    }

    /// Does not read a stream any further.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        self.connection.stop(id, code);
    }

    /// Sends a request whose head has the text of HTTP/1, with payload after it. Returns its stream.
    pub async fn request(&mut self, text: &str) -> StreamId {
        let id = self.open_whole(&request(text));
        self.step().await;
        id
    }

    /// Opens a request stream with these bytes, which end it in the same packet.
    pub fn open_whole(&mut self, bytes: &[u8]) -> StreamId {
        let id = self.open();
        assert_eq!(self.connection.write(id, bytes), Ok(bytes.len()));
        self.finish(id);
        id
    }

    /// Sends a request with payload. Returns its stream.
    pub async fn post(&mut self, head: &str, payload: &[u8]) -> StreamId {
        let id = self.open();
        let mut bytes = request(head);
        push_data(&mut bytes, payload);
        self.write(id, &bytes).await;
        self.finish(id);
        id
    }

    /// Returns an answer, as far as it was received.
    pub fn received(&self, id: StreamId) -> &Answer {
        &self.streams[&id].answer
    }

    /// Returns an answer, once its stream has ended.
    pub async fn answer(&mut self, id: StreamId) -> Answer {
        self.until(|client| {
            let answer = &client.streams[&id].answer;
            answer.ended || answer.reset.is_some() || client.closed.is_some()
        })
        .await;
        self.streams[&id].answer.clone()
    }

    /// Closes the connection.
    pub async fn close(&mut self) {
        self.connection.close(rt::now(), h3::ErrorCode::NoError.number(), b"");
        self.step().await;
    }

    /// Sends a packet that the server acknowledges.
    pub async fn ping(&mut self) {
        self.connection.ping();
        self.step().await;
    }

    /// Sends the last datagram again.
    pub fn repeat(&mut self) {
        let (destination, contents) = (self.connection.peer(), &self.sent_last[..]);
        let mut batch = [Transmit { destination, source: None, ecn: None, contents, segment_size: None }];
        assert!(self.socket.try_send(&mut batch) > 0);
    }

    /// Proceeds once, without waiting.
    pub async fn step(&mut self) {
        std::future::poll_fn(|cx| {
            let _ = self.poll(cx);
            Poll::Ready(())
        })
        .await;
    }

    /// Proceeds until a future is ready.
    pub async fn beside<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            loop {
                if let Poll::Ready(result) = future.as_mut().poll(cx) {
                    return Poll::Ready(result);
                }
                if self.poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Proceeds until something is true.
    pub async fn until(&mut self, mut is_done: impl FnMut(&Self) -> bool) {
        std::future::poll_fn(|cx| {
            loop {
                let waits = self.poll(cx).is_pending();
                if is_done(self) {
                    return Poll::Ready(());
                }
                if waits {
                    return Poll::Pending;
                }
            }
        })
        .await;
    }

    /// Proceeds. Pending: nothing more can be done now.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.expire(rt::now());
        self.endpoint.settle(&mut self.connection);
        while let Some(event) = self.connection.poll_event() {
            self.note(event);
        }
        while let Some(transmit) = self.connection.transmit(rt::now(), 10, &mut self.out) {
            let segment_size = Some(transmit.segment).filter(|segment| *segment < transmit.size);
            let contents = &self.out[..transmit.size];
            self.sent_last.clear();
            self.sent_last.extend_from_slice(contents);
            let ecn = Ecn::from_bits(transmit.ecn);
            let mut batch = [Transmit { destination: transmit.to, source: transmit.from, ecn, contents, segment_size }];
            assert!(self.socket.try_send(&mut batch) > 0);
        }
        let mut batch = ReceiveBatch::new();
        if self.socket.poll_receive(cx, &mut batch).is_ready() {
            for message in batch.iter() {
                for bytes in message.iter() {
                    self.heard += 1;
                    let ecn = message.ecn.map_or(0, Ecn::bits);
                    let datagram = Datagram { bytes, peer: message.peer, local: message.local_ip, ecn };
                    let received = self.endpoint.receive(rt::now(), rt::wall(), &datagram, &mut self.out);
                    if let Received::Input(_, input) = received {
                        self.connection.receive(input);
                    }
                }
            }
            return Poll::Ready(());
        }
        let deadline = self.connection.deadline();
        self.timer.arm(deadline);
        self.timer.poll_expired(cx)
    }

    fn note(&mut self, event: Event) {
        if let Some(raw) = &mut self.raw {
            match event {
                Event::StreamsOpened(direction) => return raw.accept(direction, &mut self.connection),
                Event::Readable(id) if !self.streams.contains_key(&id) => return raw.read(id, &mut self.connection),
                Event::Stopped(id, code) => raw.stopped.push((id, code)),
                Event::Messages => return raw.receive(&mut self.connection),
                _ => {}
            }
        }
        match event {
            Event::Connected => self.is_connected = true,
            Event::Closed(closed) => self.closed = Some(closed),
            Event::Stopped(id, code) => self.stopped.push((id, code)),
            Event::Finished(id) => self.sent.push(id),
            Event::StreamsAvailable(Direction::Bidirectional) => self.announcements += 1,
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
            self.read += bytes.len() as u64;
            self.control.extend_from_slice(&bytes);
        }
    }

    fn read(&mut self, id: StreamId) {
        if let Some(unread) = &mut self.unread {
            unread.push(id);
            return;
        }
        let Some(Stream { reader, answer }) = self.streams.get_mut(&id) else { return };
        loop {
            match self.connection.read(id, usize::MAX) {
                Ok(Part::Chunk(bytes)) => {
                    let mut input = &bytes[..];
                    self.read += bytes.len() as u64;
                    while let Some(part) = reader.next(&mut input).unwrap() {
                        let mut is_interim = false;
                        match part {
                            MessagePart::Data(data) => answer.payload.extend_from_slice(data),
                            MessagePart::Head(section) => {
                                let head = decode(&mut self.decoder, id, section);
                                is_interim = head.starts_with("HTTP/3.0 1");
                                answer.heads.push(head);
                            }
                            MessagePart::Trailers(section) => {
                                let (decoder, trailers) = (&mut self.decoder, &mut answer.trailers);
                                let take =
                                    |field: &wire::h2::HeaderField<'_>| trailers.push(line(field.name, field.value));
                                decoder.decode(id.number(), section, CAPACITY, take).unwrap();
                            }
                            MessagePart::TooLarge { .. }
                            | MessagePart::Skipped { .. }
                            | MessagePart::StreamOf { .. } => {}
                        }
                        if is_interim {
                            reader.note_interim();
                        }
                    }
                }
                Ok(Part::End) => {
                    answer.ended = true;
                    return;
                }
                Err(ReadError::Reset(code)) => {
                    answer.reset = Some(code);
                    return;
                }
                Err(ReadError::Blocked | ReadError::Closed) => return,
            }
        }
    }
}

const CAPACITY: Capacity = Capacity { bytes: 65_536, fields: 200 };

fn line(name: &[u8], value: &[u8]) -> String {
    format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
}

fn decode(decoder: &mut h3::qpack::Decoder, id: StreamId, section: &[u8]) -> String {
    let (mut status, mut fields) = (String::new(), Vec::new());
    let take = |field: &wire::h2::HeaderField<'_>| match field.name {
        b":status" => status = format!("HTTP/3.0 {}", String::from_utf8_lossy(field.value)),
        name => fields.push(line(name, field.value)),
    };
    decoder.decode(id.number(), section, CAPACITY, take).unwrap();
    std::iter::once(status).chain(fields).collect::<Vec<_>>().join("\n")
}

/// The frames of a request whose head has the text of HTTP/1, with payload after it.
pub fn request(text: &str) -> Vec<u8> {
    let (mut head, mut bytes) = (Head::new(), Vec::new());
    let limits = HeadLimits { max_head: text.len(), ..HeadLimits::default() };
    let parsed = h1::parse_request(text.as_bytes(), &limits, &mut Scan::default(), &mut head);
    let Ok(Parse::Complete { consumed }) = parsed else { panic!("{text:?}") };
    let edits = Edits { framing: head.framing, version: head.version(), ..Edits::interim() };
    h3::encode_request(&head, &edits, &mut bytes).unwrap();
    push_data(&mut bytes, &text.as_bytes()[consumed..]);
    bytes
}

/// The frame of trailers, given as lines.
pub fn trailers(lines: &str) -> Vec<u8> {
    let (mut fields, mut bytes) = (Fields::new(), Vec::new());
    for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
        fields.append(name.as_bytes(), value.as_bytes());
    }
    h3::encode_trailers(&fields, &mut bytes).unwrap();
    bytes
}

/// Appends a DATA frame, unless the payload is empty.
pub fn push_data(bytes: &mut Vec<u8>, payload: &[u8]) {
    if !payload.is_empty() {
        bytes.extend_from_slice(h3::frame_header(FrameType::Data, payload.len() as u64).as_slice());
        bytes.extend_from_slice(payload);
    }
}
