//! A server of HTTP/3 that reads and writes frames as a test asks for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use quic::cid::Place;
use quic::endpoint::{ServerSettings, Settings};
use quic::stream::{Part, ReadError, WriteError};
use quic::{
    Clock, Closed, Connection, Datagram, Direction, Endpoint, Event, HalfOpen, Handle, Received, Secrets, StreamId,
    Transport,
};
use rt::net::{BindOptions, DatagramSocket, Ecn, ReceiveBatch, Transmit};
use wire::h1::{self, Edits, HeadLimits, Parse, RequestContext, Scan};
use wire::h2::Capacity;
use wire::h3::{self, MessagePart, MessageReader, Role, StreamType};
use wire::http::Head;

use crate::http3_client::push_data;
use crate::raw_streams::{self, RawStreams};
use crate::secure;

/// A request, as far as it was received.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The fields, pseudo fields first, a line each.
    pub head: String,
    pub payload: Vec<u8>,
    /// Trailers, a line each.
    pub trailers: Vec<String>,
    /// Whether the head was received before the handshake was complete.
    pub early: bool,
    /// Whether the end of the stream was received.
    pub ended: bool,
    /// The code of a reset by the client.
    pub reset: Option<u64>,
}

/// A stream of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    /// The number of its connection, from 0.
    pub connection: usize,
    id: StreamId,
}

struct Link {
    handle: Handle,
    connection: Connection,
    decoder: h3::qpack::Decoder,
    control: Option<StreamId>,
    /// Bytes of the client's unidirectional streams.
    unidirectional: BTreeMap<StreamId, Vec<u8>>,
    closed: Option<Closed>,
    /// Streams and messages of WebTransport sessions.
    raw: RawStreams,
}

impl Link {
    fn read_unidirectional(&mut self, id: StreamId) {
        let Some(bytes) = self.unidirectional.get_mut(&id) else { return };
        while let Ok(Part::Chunk(chunk)) = self.connection.read(id, usize::MAX) {
            bytes.extend_from_slice(&chunk);
        }
    }
}

/// A server, with all connections that it has accepted.
pub struct Origin {
    socket: DatagramSocket,
    endpoint: Endpoint,
    links: Vec<Link>,
    streams: BTreeMap<Stream, (MessageReader, Asked)>,
    /// Streams that the client does not read any further, with its codes.
    pub stopped: Vec<(Stream, u64)>,
    /// Whole requests that were not returned.
    whole: Vec<Stream>,
    /// Whether WebTransport sessions are announced.
    sessions: bool,
    timer: rt::Timer,
    out: Vec<u8>,
}

fn server_settings(tls: Arc<tls::Server>, transport: Transport) -> ServerSettings {
    ServerSettings {
        tls,
        transport,
        half_open: Arc::new(HalfOpen::default()),
        retry_threshold: usize::MAX,
        forces_retry: false,
    }
}

const CAPACITY: Capacity = Capacity { bytes: 65_536, fields: 200 };

impl Origin {
    /// Listens at an address.
    pub fn at(address: &str) -> Self {
        Self::with_tls(address, secure::quic_server())
    }

    /// Listens at an address, with these settings of TLS.
    pub fn with_tls(address: &str, tls: Arc<tls::Server>) -> Self {
        let socket = DatagramSocket::bind(address.parse().unwrap(), &BindOptions::default()).unwrap();
        let mut seed = [0; 32];
        seed.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&rt::random().to_be_bytes()));
        let settings = Settings {
            place: Place { worker: 0, process: 0 },
            secrets: Secrets::random(seed),
            seed,
            clock: Clock::new(rt::clock::origin()),
            may_discover_mtu: true,
        };
        Self {
            socket,
            endpoint: Endpoint::new(settings, Some(server_settings(tls, Transport::default()))),
            links: Vec::new(),
            streams: BTreeMap::new(),
            stopped: Vec::new(),
            whole: Vec::new(),
            sessions: false,
            timer: rt::Timer::new(),
            out: Vec::new(),
        }
    }

    /// Listens at an address, with settings for WebTransport sessions. Clients may open that number of streams at a time.
    pub fn with_sessions(address: &str, max_streams: u32) -> Self {
        let mut origin = Self::at(address);
        let settings = server_settings(secure::quic_server(), raw_streams::transport(max_streams));
        origin.endpoint.serve(Some(settings));
        origin.sessions = true;
        origin
    }

    /// Returns the streams and messages of the sessions of a connection, and the connection.
    pub fn raw(&mut self, connection: usize) -> (&mut RawStreams, &mut Connection) {
        let link = &mut self.links[connection];
        (&mut link.raw, &mut link.connection)
    }

    /// Returns the streams and messages of the sessions of a connection.
    pub fn raw_streams(&self, connection: usize) -> &RawStreams {
        &self.links[connection].raw
    }

    /// Returns the request of a session, once its head was received.
    pub async fn session(&mut self, connection: usize) -> Stream {
        let has_head = |origin: &Self| {
            let own = origin.streams.iter().find(|(stream, _)| stream.connection == connection);
            own.is_some_and(|(_, (_, asked))| !asked.head.is_empty())
        };
        self.until(has_head).await;
        *self.streams.keys().find(|stream| stream.connection == connection).unwrap()
    }

    /// Sets the settings of TLS of connections that begin from now on.
    pub fn serve(&mut self, tls: Arc<tls::Server>) {
        self.endpoint.serve(Some(server_settings(tls, Transport::default())));
    }

    /// Like [`Self::serve`], with that number of requests at a time on a connection.
    pub fn serve_streams(&mut self, tls: Arc<tls::Server>, max_bidirectional: u32) {
        let settings = quic::transport::Settings { max_bidirectional, ..quic::transport::Settings::default() };
        self.endpoint.serve(Some(server_settings(tls, Transport::new(&settings))));
    }

    /// The number of connections accepted.
    pub fn connections(&self) -> usize {
        self.links.len()
    }

    /// How a connection has ended.
    pub fn closed(&self, connection: usize) -> Option<&Closed> {
        self.links[connection].closed.as_ref()
    }

    /// Returns the next request that was received whole.
    pub async fn request(&mut self) -> Stream {
        self.until(|origin| !origin.whole.is_empty()).await;
        self.whole.remove(0)
    }

    /// Returns the first request whose head was received.
    pub async fn begun(&mut self) -> Stream {
        let found = |origin: &Self| {
            origin.streams.iter().find(|(_, (_, asked))| !asked.head.is_empty()).map(|(stream, _)| *stream)
        };
        self.until(|origin| found(origin).is_some()).await;
        found(self).unwrap()
    }

    /// Does not read a stream any further.
    pub async fn stop(&mut self, stream: Stream, code: u64) {
        self.links[stream.connection].connection.stop(stream.id, code);
        self.pause().await;
    }

    /// Returns what was received on a stream.
    pub fn asked(&self, stream: Stream) -> &Asked {
        &self.streams[&stream].1
    }

    /// Returns what was received on the streams of a connection, the first stream first.
    pub fn all_asked(&self, connection: usize) -> impl Iterator<Item = &Asked> {
        self.streams.iter().filter(move |(stream, _)| stream.connection == connection).map(|(_, (_, asked))| asked)
    }

    /// Returns what was received on the client's unidirectional streams of a connection, the first stream first.
    pub fn unidirectional(&self, connection: usize) -> impl Iterator<Item = &[u8]> {
        self.links[connection].unidirectional.values().map(Vec::as_slice)
    }

    /// Sends an answer with its end: the head as text of HTTP/1.
    pub async fn answer(&mut self, stream: Stream, head: &str, payload: &[u8]) {
        let mut bytes = encoded(head);
        push_data(&mut bytes, payload);
        self.write(stream, &bytes).await;
        self.finish(stream).await;
    }

    /// Writes bytes to a stream.
    pub async fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let mut left = bytes;
        while !left.is_empty() {
            match self.links[stream.connection].connection.write(stream.id, left) {
                Ok(written) => left = &left[written..],
                Err(WriteError::Blocked) => {}
                Err(error) => panic!("{error:?}"),
            }
            self.pause().await;
        }
    }

    /// Ends our direction of a stream.
    pub async fn finish(&mut self, stream: Stream) {
        self.links[stream.connection].connection.finish(stream.id).unwrap();
        self.pause().await;
    }

    /// Ends our direction of a stream, unless the client has stopped it or the connection has ended.
    pub async fn end(&mut self, stream: Stream) {
        let _ = self.links[stream.connection].connection.finish(stream.id);
        self.pause().await;
    }

    /// Resets our direction of a stream, and does not read it any further.
    pub async fn reset(&mut self, stream: Stream, code: u64) {
        let connection = &mut self.links[stream.connection].connection;
        connection.stop(stream.id, code);
        connection.reset(stream.id, code);
        self.pause().await;
    }

    /// Announces that requests from this one on are not processed; `None`: those that may begin from now on.
    pub async fn go_away(&mut self, connection: usize, first: Option<Stream>) {
        let own = self.streams.keys().filter(|stream| stream.connection == connection);
        let next = own.map(|stream| stream.id.number() + 4);
        let next = first.map_or(next.max().unwrap_or(0), |first| first.id.number());
        let mut bytes = Vec::new();
        h3::push_go_away(next, &mut bytes);
        self.write_control(connection, &bytes).await;
    }

    /// Writes to our control stream.
    pub async fn write_control(&mut self, connection: usize, bytes: &[u8]) {
        let link = &mut self.links[connection];
        assert_eq!(link.connection.write(link.control.unwrap(), bytes), Ok(bytes.len()));
        self.pause().await;
    }

    /// Closes a connection.
    pub async fn close(&mut self, connection: usize, code: u64) {
        self.links[connection].connection.close(rt::now(), code, b"");
        self.pause().await;
    }

    /// Proceeds once, without waiting.
    async fn pause(&mut self) {
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
        for number in 0..self.links.len() {
            let connection = &mut self.links[number].connection;
            connection.expire(rt::now());
            self.endpoint.settle(connection);
            while let Some(event) = self.links[number].connection.poll_event() {
                self.note(number, event);
            }
            let connection = &mut self.links[number].connection;
            while let Some(transmit) = connection.transmit(rt::now(), 10, &mut self.out) {
                send(&self.socket, &transmit, &self.out);
            }
        }
        let mut batch = ReceiveBatch::new();
        if self.socket.poll_receive(cx, &mut batch).is_ready() {
            for message in batch.iter() {
                for bytes in message.iter() {
                    let ecn = message.ecn.map_or(0, Ecn::bits);
                    self.receive(&Datagram { bytes, peer: message.peer, local: message.local_ip, ecn });
                }
            }
            return Poll::Ready(());
        }
        let deadline = self.links.iter_mut().filter_map(|link| link.connection.deadline()).min();
        self.timer.arm(deadline);
        self.timer.poll_expired(cx)
    }

    fn receive(&mut self, datagram: &Datagram<'_>) {
        match self.endpoint.receive(rt::now(), rt::wall(), datagram, &mut self.out) {
            Received::Nothing => {}
            Received::Answer(transmit) => send(&self.socket, &transmit, &self.out),
            Received::Input(handle, input) => {
                // The handle of a connection that has ended is used again.
                let mut newest = self.links.iter_mut().rev();
                if let Some(link) = newest.find(|link| link.handle == handle && link.closed.is_none()) {
                    link.connection.receive(input);
                }
            }
            Received::Incoming(incoming) => {
                let (handle, connection) = self.endpoint.accept(incoming, rt::now(), &mut self.out).unwrap();
                let decoder = h3::qpack::Decoder::new(h3::qpack::TableLimits::default());
                let (unidirectional, raw) = (BTreeMap::new(), RawStreams::default());
                self.links.push(Link { handle, connection, decoder, control: None, unidirectional, closed: None, raw });
            }
        }
    }

    /// Handles an event of a connection with sessions. Returns false if it concerns a request.
    fn note_session(&mut self, number: usize, event: &Event) -> bool {
        let link = &mut self.links[number];
        match *event {
            Event::Connected => {
                let id = link.connection.open(Direction::Unidirectional).unwrap();
                let bytes = raw_streams::control();
                assert_eq!(link.connection.write(id, &bytes), Ok(bytes.len()));
                link.control = Some(id);
            }
            // The first stream is that of the request.
            Event::StreamsOpened(Direction::Bidirectional)
                if self.streams.keys().all(|own| own.connection != number) =>
            {
                return false;
            }
            Event::StreamsOpened(direction) => link.raw.accept(direction, &mut link.connection),
            Event::Readable(id) if !self.streams.contains_key(&Stream { connection: number, id }) => {
                link.raw.read(id, &mut link.connection);
            }
            Event::Stopped(id, code) => link.raw.stopped.push((id, code)),
            Event::Messages => link.raw.receive(&mut link.connection),
            _ => return false,
        }
        true
    }

    fn note(&mut self, number: usize, event: Event) {
        if self.sessions && self.note_session(number, &event) {
            return;
        }
        let is_session = self.sessions;
        let link = &mut self.links[number];
        match event {
            Event::Connected => {
                let mut bytes = Vec::new();
                h3::push_stream_type(StreamType::Control, &mut bytes);
                h3::push_settings(&h3::Settings { extended_connect: true, ..h3::Settings::default() }, &mut bytes);
                // The client may have closed the connection already, after an answer to early data.
                let Some(id) = link.connection.open(Direction::Unidirectional) else { return };
                assert_eq!(link.connection.write(id, &bytes), Ok(bytes.len()));
                link.control = Some(id);
            }
            Event::Closed(closed) => link.closed = Some(closed),
            Event::Stopped(id, code) => self.stopped.push((Stream { connection: number, id }, code)),
            Event::StreamsOpened(Direction::Bidirectional) => {
                while let Some(id) = link.connection.accept(Direction::Bidirectional) {
                    if is_session && self.streams.keys().any(|own| own.connection == number) {
                        link.raw.read(id, &mut link.connection);
                        continue;
                    }
                    let reader = MessageReader::new(Role::Server, 65_536);
                    self.streams.insert(Stream { connection: number, id }, (reader, Asked::default()));
                }
                let all: Vec<Stream> = self.streams.keys().copied().collect();
                all.into_iter().for_each(|stream| self.read(stream));
            }
            Event::StreamsOpened(Direction::Unidirectional) => {
                while let Some(id) = link.connection.accept(Direction::Unidirectional) {
                    link.unidirectional.insert(id, Vec::new());
                    link.read_unidirectional(id);
                }
            }
            Event::Readable(id) if id.direction() == Direction::Bidirectional => {
                self.read(Stream { connection: number, id });
            }
            Event::Readable(id) => link.read_unidirectional(id),
            _ => {}
        }
    }

    fn read(&mut self, stream: Stream) {
        let Some((reader, asked)) = self.streams.get_mut(&stream) else { return };
        let link = &mut self.links[stream.connection];
        while !asked.ended {
            match link.connection.read(stream.id, usize::MAX) {
                Ok(Part::Chunk(bytes)) => {
                    let mut input = &bytes[..];
                    while let Some(part) = reader.next(&mut input).unwrap() {
                        match part {
                            MessagePart::Data(data) => asked.payload.extend_from_slice(data),
                            MessagePart::Head(section) => {
                                asked.early = link.connection.is_handshaking();
                                asked.head = lines(&mut link.decoder, stream.id, section).join("\n");
                            }
                            MessagePart::Trailers(section) => {
                                asked.trailers = lines(&mut link.decoder, stream.id, section);
                            }
                            MessagePart::TooLarge { .. }
                            | MessagePart::Skipped { .. }
                            | MessagePart::StreamOf { .. } => {}
                        }
                    }
                }
                Ok(Part::End) => {
                    asked.ended = true;
                    self.whole.push(stream);
                    return;
                }
                Err(ReadError::Reset(code)) => {
                    asked.reset = Some(code);
                    return;
                }
                Err(ReadError::Blocked | ReadError::Closed) => return,
            }
        }
    }
}

impl Drop for Origin {
    /// Closes the connections: no timeout has to be waited for.
    fn drop(&mut self) {
        for link in &mut self.links {
            link.connection.close(rt::now(), h3::ErrorCode::NoError.number(), b"");
            while let Some(transmit) = link.connection.transmit(rt::now(), 10, &mut self.out) {
                send(&self.socket, &transmit, &self.out);
            }
        }
    }
}

fn send(socket: &DatagramSocket, transmit: &quic::Transmit, out: &[u8]) {
    let segment_size = Some(transmit.segment).filter(|segment| *segment > 0 && *segment < transmit.size);
    let (contents, ecn) = (&out[..transmit.size], Ecn::from_bits(transmit.ecn));
    let mut batch = [Transmit { destination: transmit.to, source: transmit.from, ecn, contents, segment_size }];
    assert!(socket.try_send(&mut batch) > 0);
}

fn lines(decoder: &mut h3::qpack::Decoder, id: StreamId, section: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let take = |field: &wire::h2::HeaderField<'_>| {
        lines.push(format!("{}: {}", String::from_utf8_lossy(field.name), String::from_utf8_lossy(field.value)));
    };
    decoder.decode(id.number(), section, CAPACITY, take).unwrap();
    lines
}

/// The frame of an answer's head that has the text of HTTP/1.
pub fn encoded(text: &str) -> Vec<u8> {
    let (mut head, mut bytes) = (Head::new(), Vec::new());
    let (limits, context) = (HeadLimits::default(), RequestContext::default());
    let parsed = h1::parse_response(text.as_bytes(), &limits, &context, &mut Scan::default(), &mut head);
    assert!(matches!(parsed, Ok(Parse::Complete { .. })), "{text:?}");
    let edits = Edits { framing: head.framing, version: head.version(), ..Edits::interim() };
    h3::encode_response(&head, &edits, &mut bytes).unwrap();
    bytes
}
