//! Whole HTTP/2 connections, either side: for any bytes of a peer, in any pieces, the output is frames in an order that
//! RFC 9113 permits, the result is the same, and memory is bounded.

use std::collections::HashMap;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use conn::flow::{ByteSink, ByteSource};
use conn::h1::ReadResult;
use conn::h2::{Machine, Request, Stream, Terms};
use wire::h1::{Edits, HeadLimits, Scan};
use wire::h2::{FrameHeader, HEADER_LENGTH, Kind, MAX_FRAME_SIZE, PREFACE, encode_request, encode_response, flag};
use wire::http::{Framing, Head, Method};

/// Maximum number of bytes that a connection may hold: for each stream its share of the windows, its head and its
/// output.
const MOST_HELD: usize = 16 << 20;

fn terms() -> Terms {
    Terms { max_streams: 8, window: 1000, shared_window: 8000, max_head: 4096, max_fields: 20, ..Terms::default() }
}

/// Runs on one input: a byte that selects the side, one that selects the size of pieces, and the bytes of a peer;
/// panics if a property is violated.
pub fn run(data: &[u8]) {
    let Some(([side, cut], bytes)) = data.split_first_chunk::<2>() else { return };
    let is_server = side & 1 == 0;
    let whole = play(is_server, bytes, bytes.len().max(1), false);
    let pieces = play(is_server, bytes, usize::from(*cut) + 1, false);
    assert!(whole == pieces, "pieces change the verdict");
    play(is_server, bytes, usize::from(*cut) + 1, true);
}

/// Runs a connection; returns its output, and whether the peer has violated the protocol.
fn play(is_server: bool, bytes: &[u8], piece: usize, active: bool) -> (Vec<u8>, bool) {
    let mut machine = if is_server { Machine::server(terms()) } else { Machine::client(terms()) };
    let mut requests: Vec<Request> = Vec::new();
    if !is_server {
        requests.extend((0..3).filter_map(|number| ask(&machine, number)));
    }
    let mut streams: Vec<Stream> = Vec::new();
    let mut out = Vec::new();
    for (turn, part) in bytes.chunks(piece).enumerate() {
        if machine.receive(part) < part.len() {
            break;
        }
        streams.extend(std::iter::from_fn(|| machine.accept()));
        assert!(machine.held() < MOST_HELD, "{} bytes", machine.held());
        if !active {
            continue;
        }
        out.extend(machine.send(usize::MAX));
        match turn % 4 {
            0 => streams.iter_mut().for_each(read),
            1 => streams.iter_mut().for_each(answer),
            2 => requests.iter_mut().for_each(receive),
            _ => drop((streams.pop(), requests.pop())),
        }
    }
    // The remaining output, before the streams are dropped.
    while machine.waiting() > 0 {
        out.extend(machine.send(usize::MAX));
    }
    let broken = machine.is_broken();
    drop((streams, requests));
    assert!(machine.open() == 0, "streams that nobody has");
    let mut all = out.clone();
    while machine.waiting() > 0 {
        all.extend(machine.send(usize::MAX));
    }
    check(is_server, &all);
    (out, broken)
}

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Starts a request with a body.
fn ask(machine: &Machine, number: u32) -> Option<Request> {
    let mut request = machine.begin()?;
    let (mut head, mut out) = (Head::new(), Buffer::with_capacity(1000));
    head.set_method(b"POST");
    head.set_target(b"/");
    head.append(b"host", b"a");
    encode_request(0, &head, &Edits { framing: Framing::Chunked, ..Edits::default() }, &mut out).ok()?;
    let mut body = Buffer::with_capacity(100);
    assert!(body.push(b"body"));
    let _ = request.poll_write(&mut cx(), &mut out, &mut body, false);
    if number > 0 {
        request.complete(None);
    }
    Some(request)
}

fn read(source: &mut impl ByteSource) {
    let mut buffer = Buffer::with_capacity(700);
    let _ = source.poll_read(&mut cx(), &mut buffer);
}

/// Takes the head of a request and responds to it.
fn answer(stream: &mut Stream) {
    // A request is answered once.
    let taken = stream.take_head(&HeadLimits::default(), &mut Scan::default(), &mut Head::new());
    if !matches!(taken, ReadResult::Head { .. } | ReadResult::Invalid { .. }) {
        return;
    }
    let (mut head, mut out, mut body) = (Head::new(), Buffer::with_capacity(1000), Buffer::with_capacity(3000));
    head.set_status(200, b"");
    let edits = Edits { framing: Framing::Length(3000), ..Edits::default() };
    assert!(encode_response(stream.number(), &head, &edits, &mut out).is_ok());
    assert!(body.push(&[b'x'; 3000]));
    while !(out.is_empty() && body.is_empty()) {
        let Poll::Ready(Ok(_)) = stream.poll_write(&mut cx(), &mut out, &mut body, false) else { return };
    }
    stream.complete(None);
}

/// Takes the heads and the payload of a response.
fn receive(request: &mut Request) {
    let limits = HeadLimits { max_head: 4096, ..HeadLimits::default() };
    while request.poll_head(&mut cx()) == Poll::Ready(true) {
        request.take_head(Method::Post, &limits, &mut Head::new());
    }
    read(request);
}

/// The state of one stream's output.
#[derive(Default)]
struct StreamOutput {
    ended: bool,
    reset: bool,
}

/// Checks the frames of the output.
fn check(is_server: bool, bytes: &[u8]) {
    let mut rest = if is_server { bytes } else { bytes.strip_prefix(PREFACE).expect("the preface comes first") };
    let mut streams: HashMap<u32, StreamOutput> = HashMap::new();
    while let Some(header) = FrameHeader::parse(rest) {
        assert!(header.length <= MAX_FRAME_SIZE && header.kind != Kind::Unknown);
        rest = rest.get(HEADER_LENGTH + header.length..).expect("frames are whole");
        let of_connection = matches!(header.kind, Kind::Settings | Kind::Ping | Kind::GoAway);
        assert!(header.kind == Kind::WindowUpdate || of_connection == (header.stream == 0));
        if header.stream == 0 || matches!(header.kind, Kind::WindowUpdate) {
            continue;
        }
        let sent = streams.entry(header.stream).or_default();
        match header.kind {
            Kind::RstStream => sent.reset = true,
            Kind::Data | Kind::Headers | Kind::Continuation => {
                assert!(!sent.ended && !sent.reset, "{:?} of stream {} after its end", header.kind, header.stream);
                sent.ended = header.kind != Kind::Continuation && header.has(flag::END_STREAM);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(rest.is_empty(), "frames are whole");
}
