//! Whole HTTP/3 connections over QUIC, in the simulated network: a client completes the handshake and sends any bytes on
//! request, control and QPACK streams, resets them and stops the server's. For any of them there is no panic, answers are
//! frames in an order that RFC 9114 permits, a connection that goes on answers, and all of its tasks end.
//!
//! The input is a sequence of steps: a byte that selects one, a byte with its length, and that many bytes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::buffer::Buffer;
use conn::flow::{ByteSink, ByteSource};
use conn::glitches::GlitchLimits;
use conn::h1::ReadResult;
use conn::h3::{Connection, Stream, Terms};
use conn::quic::{Arrival, Link, Listener, Reception};
use quic::cid::Place;
use quic::endpoint::{ServerSettings, Settings, Target};
use quic::stream::{Part, ReadError};
use quic::{Clock, Closed, Datagram, Direction, Endpoint, Event, HalfOpen, Received, Secrets, StreamId, Transport};
use rt::net::{BindOptions, DatagramSocket, Ecn, ReceiveBatch, Transmit};
use rt::sim::{Options, Simulation};
use rt::{Class, Timer};
use wire::h1::{Edits, HeadLimits, Scan};
use wire::h3::{self, ErrorCode, MessagePart, MessageReader, Role};
use wire::http::{Framing, Head};

use crate::datagram;

/// The limits of a head, in bytes and in fields.
const MAX_HEAD: usize = 2_000;
const MAX_FIELDS: usize = 20;
/// Length of an answer's payload in bytes.
const PAYLOAD: usize = 3_000;
/// Time after which an idle connection ends.
const IDLE: Duration = Duration::from_secs(20);
/// The section of a valid request, in a HEADERS frame.
const GET: &[u8] = &[1, 8, 0, 0, 0xd1, 0xd7, 0x50, 1, b'a', 0xc1];
const POST: &[u8] = &[1, 8, 0, 0, 0xd4, 0xd7, 0x50, 1, b'a', 0xc1];

fn server_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 443))
}

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let simulation = Simulation::new(Options { limit: 20 * IDLE, ..Options::default() });
    let socket = simulation.enter(|| {
        DatagramSocket::bind(server_address(), &BindOptions::default()).expect("the simulated address is free")
    });
    let held = Arc::new(AtomicUsize::new(0));
    let (socket, of_server) = (Mutex::new(Some(socket)), Arc::clone(&held));
    let main: rt::Main = Arc::new(move |_| {
        let socket = socket.lock().ok().and_then(|mut socket| socket.take()).expect("one worker takes it");
        let mut reception = Accepting(Arc::clone(&of_server));
        Box::pin(async move {
            let listener = Listener::new(socket, endpoint(true));
            poll_fn(|cx| listener.poll(cx, &mut reception).map(drop)).await;
        })
    });
    let data = data.to_vec();
    simulation.run(main, async move {
        Client::begin().play(&data).await;
        // What is left ends by the idle timeout.
        let mut timer = Timer::new();
        timer.arm(Some(rt::now() + 3 * IDLE));
        poll_fn(|cx| timer.poll_expired(cx)).await;
        assert_eq!(held.load(Ordering::Relaxed), 0, "connections and streams that never end");
    });
}

/// An endpoint of either side.
fn endpoint(serves: bool) -> Endpoint {
    let settings = Settings {
        place: Place { worker: 0, process: 0 },
        secrets: Secrets::random([u8::from(serves); 32]),
        seed: [u8::from(serves) + 1; 32],
        clock: Clock::new(rt::clock::origin()),
        may_discover_mtu: false,
    };
    let serving = serves.then(|| ServerSettings {
        tls: datagram::server(),
        transport: transport(),
        half_open: Arc::new(HalfOpen::default()),
        retry_threshold: usize::MAX,
        forces_retry: false,
    });
    Endpoint::new(settings, serving)
}

fn transport() -> Transport {
    Transport::new(&quic::transport::Settings { idle_timeout: IDLE, ..quic::transport::Settings::default() })
}

/// Counts a connection or a stream of the server while it exists.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts the connections of a socket.
struct Accepting(Arc<AtomicUsize>);

impl Reception for Accepting {
    fn diverts(&mut self, _: &Datagram<'_>) -> bool {
        false
    }

    fn arrive(&mut self, arrival: Arrival<'_>, _: &Datagram<'_>) {
        if let Some(link) = arrival.accept() {
            rt::spawn(Class::Normal, 0, serve(link, Held::new(&self.0)));
        }
    }
}

/// Serves a connection to its end.
async fn serve(link: Link, held: Held) {
    if poll_fn(|cx| link.poll_handshake(cx).map(|shaken| shaken.is_err())).await {
        return;
    }
    let terms = Terms {
        max_streams: 100,
        max_total: 0,
        max_head: MAX_HEAD,
        max_fields: MAX_FIELDS,
        extends: true,
        webtransport: true,
        accept_unsafe: false,
        glitches: GlitchLimits::default(),
        budget: conn::h2::BUDGET,
    };
    let mut connection = Connection::new(link, terms);
    poll_fn(|cx| {
        loop {
            let Some(stream) = ready!(connection.poll(cx, None)) else { return Poll::Ready(()) };
            rt::spawn(Class::Normal, 0, answer(stream, Held::new(&held.0)));
        }
    })
    .await;
}

/// Reads a request to its end and answers it. A stream that is dropped before is reset.
async fn answer(mut stream: Stream, _held: Held) {
    let limits = HeadLimits { max_head: MAX_HEAD, max_fields: MAX_FIELDS, ..HeadLimits::default() };
    let status = match stream.take_head(&limits, &mut Scan::default(), &mut Head::new()) {
        ReadResult::Head { .. } => 200,
        ReadResult::Invalid { status, .. } => status,
        _ => return,
    };
    let (mut body, mut frame) = (Buffer::with_capacity(700), Buffer::with_capacity(1_000));
    loop {
        body.clear();
        match poll_fn(|cx| stream.poll_read(cx, &mut body)).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) => return,
        }
    }
    let mut head = Head::new();
    head.set_status(status, b"");
    let edits = Edits { framing: Framing::Length(PAYLOAD as u64), ..Edits::default() };
    assert!(h3::encode_response(&head, &edits, &mut frame).is_ok());
    let mut payload = Buffer::with_capacity(PAYLOAD);
    assert!(payload.push(&[b'x'; PAYLOAD]));
    while !(frame.is_empty() && payload.is_empty()) {
        if poll_fn(|cx| stream.poll_write(cx, &mut frame, &mut payload, false)).await.is_err() {
            return;
        }
    }
    stream.complete(None);
}

/// An answer that the client reads.
struct Answer {
    reader: MessageReader,
    payload: usize,
    is_whole: bool,
}

/// The client's side of the connection.
struct Client {
    socket: DatagramSocket,
    endpoint: Endpoint,
    connection: quic::Connection,
    timer: Timer,
    out: Vec<u8>,
    is_connected: bool,
    closed: Option<Closed>,
    answers: BTreeMap<StreamId, Answer>,
    /// The request streams and unidirectional streams that steps select.
    requests: [Option<StreamId>; 4],
    own: [Option<StreamId>; 4],
}

impl Client {
    fn begin() -> Self {
        let address = SocketAddr::from(([192, 0, 2, 9], 5_000));
        let socket = DatagramSocket::bind(address, &BindOptions::default()).expect("the simulated address is free");
        let mut endpoint = endpoint(false);
        let settings = tls::client::Settings { alpn: vec![b"h3".to_vec()], ..tls::client::Settings::default() };
        let tls = Arc::new(tls::Client::new(settings).expect("the settings fit"));
        let name = tls::asked_name(None, Some(server_address().ip()));
        let target = Target { peer: server_address(), tls, identity: name, alpn: None };
        let (_, connection) = endpoint.connect(rt::now(), target, &transport()).expect("the settings fit");
        Self {
            socket,
            endpoint,
            connection,
            timer: Timer::new(),
            out: Vec::new(),
            is_connected: false,
            closed: None,
            answers: BTreeMap::new(),
            requests: [None; 4],
            own: [None; 4],
        }
    }

    /// Plays the steps of an input, and checks that the connection goes on or has ended with an error of HTTP/3.
    async fn play(mut self, data: &[u8]) {
        self.until(|client| client.is_connected || client.closed.is_some()).await;
        assert_eq!(self.closed, None, "the handshake fails");
        let mut rest = data;
        while let Some(([step, length], after)) = rest.split_first_chunk::<2>() {
            let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
            rest = after;
            if self.closed.is_some() {
                break;
            }
            self.step(*step, *length, bytes).await;
        }
        if self.closed.is_none() {
            self.ask().await;
        }
        match self.closed.take() {
            None => self.connection.close(rt::now(), ErrorCode::NoError.number(), b""),
            Some(Closed::ByPeer { code, reason }) => {
                let code = ErrorCode::of(code).expect("a code of HTTP/3");
                assert!(code != ErrorCode::InternalError && *reason == *code.name().as_bytes(), "{code:?}");
            }
            // The answer to a packet that was on its way when the server closed the connection may arrive first.
            Some(Closed::Reset) => {}
            // No step violates QUIC.
            Some(other) => panic!("{other:?}"),
        }
        self.turn().await;
    }

    async fn step(&mut self, step: u8, length: u8, bytes: &[u8]) {
        let at = usize::from(step >> 3 & 3);
        let ends = step & 0x20 != 0;
        match step & 7 {
            0..=2 => {
                let begins: &[u8] = [&[][..], GET, POST][usize::from(step & 7)];
                let is_new = step & 7 > 0 || self.requests[at].is_none();
                if is_new {
                    self.requests[at] = self.open();
                }
                if let Some(id) = self.requests[at] {
                    self.write(id, begins, false);
                    self.write(id, bytes, ends);
                }
            }
            3 => {
                if self.own[at].is_none() {
                    self.own[at] = self.connection.open(Direction::Unidirectional);
                }
                if let Some(id) = self.own[at] {
                    self.write(id, bytes, ends);
                }
            }
            4 => {
                let stream = if ends { self.own[at] } else { self.requests[at] };
                if let Some(id) = stream {
                    self.connection.reset(id, u64::from(length));
                }
            }
            5 => {
                if let Some(id) = self.requests[at] {
                    self.connection.stop(id, u64::from(length));
                    self.answers.remove(&id);
                }
            }
            6 => self.pass(Duration::from_millis(u64::from(length))).await,
            _ => {}
        }
        self.turn().await;
    }

    fn open(&mut self) -> Option<StreamId> {
        let id = self.connection.open(Direction::Bidirectional)?;
        let reader = MessageReader::new(Role::Client, MAX_HEAD);
        self.answers.insert(id, Answer { reader, payload: 0, is_whole: false });
        Some(id)
    }

    fn write(&mut self, id: StreamId, bytes: &[u8], ends: bool) {
        // A stream that was reset or stopped takes nothing.
        if self.connection.write(id, bytes).is_ok() && ends {
            let _ = self.connection.finish(id);
        }
    }

    /// Sends a valid request, which is answered, or whose connection ends.
    async fn ask(&mut self) {
        // Streams that wait for more end, so that their number permits another one.
        for id in std::mem::take(&mut self.requests).into_iter().flatten() {
            self.connection.reset(id, ErrorCode::RequestCancelled.number());
            self.connection.stop(id, ErrorCode::RequestCancelled.number());
            self.answers.remove(&id);
        }
        self.pass(Duration::from_secs(1)).await;
        if self.closed.is_some() {
            return;
        }
        let Some(id) = self.open() else { return };
        self.write(id, GET, true);
        self.until(|client| client.closed.is_some() || client.answers.get(&id).is_none_or(|answer| answer.is_whole))
            .await;
        if self.closed.is_none() {
            let answer = self.answers.get(&id).expect("the valid request is not reset");
            assert_eq!(answer.payload, PAYLOAD, "the answer is whole");
        }
    }

    /// Lets time pass.
    async fn pass(&mut self, time: Duration) {
        let end = rt::now() + time;
        let mut timer = Timer::new();
        timer.arm(Some(end));
        poll_fn(|cx| {
            while self.poll(cx).is_ready() {}
            timer.poll_expired(cx)
        })
        .await;
    }

    /// Sends what there is.
    async fn turn(&mut self) {
        poll_fn(|cx| {
            let _ = self.poll(cx);
            Poll::Ready(())
        })
        .await;
    }

    async fn until(&mut self, mut is_done: impl FnMut(&Self) -> bool) {
        poll_fn(|cx| {
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
            match event {
                Event::Connected => self.is_connected = true,
                Event::Closed(closed) => self.closed = Some(closed),
                Event::Readable(id) if id.direction() == Direction::Bidirectional => self.read(id),
                _ => {}
            }
        }
        while let Some(transmit) = self.connection.transmit(rt::now(), 10, &mut self.out) {
            let segment_size = Some(transmit.segment).filter(|segment| *segment < transmit.size);
            let contents = &self.out[..transmit.size];
            let ecn = Ecn::from_bits(transmit.ecn);
            let mut batch = [Transmit { destination: transmit.to, source: transmit.from, ecn, contents, segment_size }];
            assert!(self.socket.try_send(&mut batch) > 0);
        }
        let mut batch = ReceiveBatch::new();
        if self.socket.poll_receive(cx, &mut batch).is_ready() {
            for message in batch.iter() {
                for bytes in message.iter() {
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
        self.timer.arm(self.connection.deadline());
        self.timer.poll_expired(cx)
    }

    /// Reads an answer: its frames are in order and whole.
    fn read(&mut self, id: StreamId) {
        let Some(answer) = self.answers.get_mut(&id) else { return };
        loop {
            match self.connection.read(id, usize::MAX) {
                Ok(Part::Chunk(bytes)) => {
                    let mut input = &bytes[..];
                    while let Some(part) = answer.reader.next(&mut input).expect("frames in order") {
                        match part {
                            MessagePart::Data(data) => answer.payload += data.len(),
                            MessagePart::Head(_) => {}
                            other => panic!("{other:?}"),
                        }
                    }
                }
                Ok(Part::End) => {
                    assert_eq!(answer.reader.finish(), Ok(()));
                    answer.is_whole = true;
                    return;
                }
                Err(ReadError::Blocked) => return,
                Err(ReadError::Reset(code)) => {
                    assert!(ErrorCode::of(code).is_some(), "{code:#x}");
                    self.answers.remove(&id);
                    return;
                }
                // Its end was read before.
                Err(ReadError::Closed) => return,
            }
        }
    }
}
