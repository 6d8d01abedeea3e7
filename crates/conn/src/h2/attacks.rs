//! Tests of attacks on a connection, and of their cost: bytes of memory, steps, wakes of tasks. Must never judge by the
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use base::buffer::Buffer;
use wire::h1::{Edits, HeadLimits, Scan};
use wire::h2::{
    ErrorCode, FrameHeader, HEADER_LENGTH, Kind, MAX_FRAME_SIZE, Setting, encode_response, flag, push_frame,
};
use wire::http::{Framing, Head};

use super::{Machine, Stream, Terms};
use crate::flow::{ByteSink, ByteSource};

/// The most memory that a connection may hold in addition to the payload and heads that its terms grant: output, input,
/// lists.
const BASE: usize = 400 * 1024;

const GET: &[u8] = &[0x82, 0x86, 0x84, 0x01, 0x01, b'a'];
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 0x01, b'a'];

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame(&mut out, kind, flags, stream, payload);
    out
}

fn headers(stream: u32, ends: bool, block: &[u8]) -> Vec<u8> {
    frame(Kind::Headers, flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 }, stream, block)
}

fn rst(stream: u32) -> Vec<u8> {
    frame(Kind::RstStream, 0, stream, &ErrorCode::Cancel.bytes())
}

/// Creates a connection whose client has sent its SETTINGS.
fn server(settings: &[u8]) -> Machine {
    let mut machine = Machine::server(Terms::default());
    take(&mut machine, &frame(Kind::Settings, 0, 0, settings));
    machine
}

/// Sends bytes to the machine, which has to accept all of them.
fn take(machine: &mut Machine, bytes: &[u8]) {
    assert_eq!(machine.receive(bytes), bytes.len());
}

/// Returns the frames of the output, which the peer receives.
fn frames(machine: &mut Machine) -> Vec<(FrameHeader, Vec<u8>)> {
    let mut bytes = Vec::new();
    while machine.waiting() > 0 {
        bytes.extend(machine.send(usize::MAX));
    }
    let (mut rest, mut frames) = (&bytes[..], Vec::new());
    while let Some(header) = FrameHeader::parse(rest) {
        frames.push((header, rest[HEADER_LENGTH..][..header.length].to_vec()));
        rest = &rest[HEADER_LENGTH + header.length..];
    }
    assert!(rest.is_empty());
    frames
}

fn count(frames: &[(FrameHeader, Vec<u8>)], kind: Kind) -> usize {
    frames.iter().filter(|(header, _)| header.kind == kind).count()
}

/// Returns the error code of a GOAWAY among the frames.
fn gone(frames: &[(FrameHeader, Vec<u8>)]) -> Option<u32> {
    let (_, payload) = frames.iter().find(|(header, _)| header.kind == Kind::GoAway)?;
    Some(u32::from_be_bytes(*payload[4..].first_chunk()?))
}

fn take_head(stream: &mut Stream) {
    stream.take_head(&HeadLimits::default(), &mut Scan::default(), &mut Head::new());
}

/// Answers with that number of bytes of payload, as far as the windows allow. Returns whether all were written.
fn answer(stream: &mut Stream, bytes: usize) -> bool {
    take_head(stream);
    let (mut head, mut out) = (Head::new(), Buffer::with_capacity(1000));
    head.set_status(200, b"");
    let edits = Edits { framing: Framing::Length(bytes as u64), ..Edits::default() };
    encode_response(stream.number(), &head, &edits, &mut out).unwrap();
    let mut body = Buffer::with_capacity(bytes);
    assert!(body.push(&vec![b'x'; bytes]));
    while !(out.is_empty() && body.is_empty()) {
        match stream.poll_write(&mut cx(), &mut out, &mut body, false) {
            Poll::Ready(Ok(_)) => {}
            _ => return false,
        }
    }
    stream.complete(None);
    true
}

/// CVE-2023-44487: requests that are reset at once. Streams that their tasks have not released count as open.
#[test]
fn rapid_reset_holds_nothing() {
    let mut machine = server(&[]);
    for number in 0..20_000 {
        let stream = 2 * number + 1;
        take(&mut machine, &[headers(stream, true, GET), rst(stream)].concat());
        drop(machine.accept());
        assert_eq!(machine.open(), 0);
        machine.send(usize::MAX);
    }
    assert!(machine.held() < BASE, "{}", machine.held());
    // Slow tasks: there are no more streams than were granted, however many are reset.
    let mut served = Vec::new();
    for number in 20_000..21_000 {
        let stream = 2 * number + 1;
        take(&mut machine, &[headers(stream, true, GET), rst(stream)].concat());
        served.extend(machine.accept());
    }
    assert_eq!((served.len(), machine.open()), (100, 100));
    let refused = frames(&mut machine);
    assert_eq!(count(&refused, Kind::RstStream), 900);
    assert!(refused.iter().all(|(_, code)| code == &ErrorCode::RefusedStream.bytes()));
}

/// Answers that wait for the connection's window hold nothing after their streams were reset.
#[test]
fn rapid_reset_without_a_window_holds_nothing() {
    let mut machine = server(&[]);
    for (stream, bytes) in [(1, 40_000), (3, 25_535)] {
        take(&mut machine, &headers(stream, true, GET));
        let mut served = machine.accept().unwrap();
        assert!(answer(&mut served, bytes));
        machine.send(usize::MAX);
    }
    let mut early = 0;
    for number in 2..20_000 {
        let stream = 2 * number + 1;
        take(&mut machine, &headers(stream, true, GET));
        let mut served = machine.accept().unwrap();
        assert!(!answer(&mut served, 10), "there is no window");
        take(&mut machine, &rst(stream));
        drop(served);
        machine.send(usize::MAX);
        early = if number == 100 { machine.held() } else { early };
    }
    assert!(machine.held() <= early, "{} after {early}", machine.held());
}

/// CVE-2025-8671: an event that makes this side reset a stream ends it for its task as well, and it counts as open
/// until the task has released it.
#[test]
fn made_you_reset_opens_no_more_streams_than_were_granted() {
    let tricks: [&dyn Fn(u32) -> Vec<u8>; 3] = [
        &|stream| frame(Kind::WindowUpdate, 0, stream, &[0; 4]),
        &|stream| frame(Kind::WindowUpdate, 0, stream, &[0x7f, 255, 255, 255]),
        &|stream| frame(Kind::Data, 0, stream, b"x"),
    ];
    for (number, trick) in tricks.iter().enumerate() {
        let mut machine = server(&[]);
        let mut served = Vec::new();
        for number in 0..1000 {
            let stream = 2 * number + 1;
            take(&mut machine, &[headers(stream, true, GET), trick(stream)].concat());
            served.extend(machine.accept());
        }
        assert_eq!((served.len(), machine.open()), (100, 100), "trick {number}");
        for stream in &mut served {
            assert!(stream.poll_closed(&mut cx()).is_ready(), "trick {number}: its task is told");
        }
        assert!(machine.held() < BASE, "{}", machine.held());
    }
}

/// Frames that no client of HTTP/2 sends end the connection at once, because resets of their streams could be provoked
/// repeatedly.
#[test]
fn frames_that_break_the_protocol_end_the_connection() {
    let itself = |stream: u32| [&stream.to_be_bytes()[..], &[0]].concat();
    let depends = flag::END_HEADERS | flag::END_STREAM | flag::PRIORITY;
    let rows = [
        (frame(Kind::Priority, 0, 1, &itself(1)), ErrorCode::ProtocolError),
        (frame(Kind::Priority, 0, 9, &itself(9)), ErrorCode::ProtocolError),
        (frame(Kind::Priority, 0, 1, &[0; 4]), ErrorCode::FrameSizeError),
        (frame(Kind::Headers, depends, 3, &[&itself(3)[..], GET].concat()), ErrorCode::ProtocolError),
        // A head without a field.
        (headers(3, true, b""), ErrorCode::FrameSizeError),
        // Trailers without END_STREAM.
        (headers(1, false, &[0, 1, b'b', 1, b'c']), ErrorCode::ProtocolError),
        // A second head, after the end of a request.
        ([headers(3, true, GET), headers(3, true, GET)].concat(), ErrorCode::StreamClosed),
    ];
    for (frames_sent, code) in rows {
        let mut machine = server(&[]);
        take(&mut machine, &headers(1, false, POST));
        let served = machine.accept();
        machine.receive(&frames_sent);
        assert!(machine.is_broken(), "{frames_sent:?}");
        assert_eq!(gone(&frames(&mut machine)), Some(code as u32), "{frames_sent:?}");
        drop((served, machine.accept()));
    }
}

/// Requests that are answered early, and never end.
#[test]
fn streams_that_are_never_finished_take_bounded_memory() {
    let mut machine = server(&[]);
    let large = [POST, &[0, 1, b'x', 0x7f, 0x81, 0x3e], &[b'v'; 8064][..]].concat();
    let mut resets = 0;
    for number in 0..5_000 {
        let stream = 2 * number + 1;
        take(&mut machine, &headers(stream, false, &large));
        let mut served = machine.accept().unwrap();
        assert!(answer(&mut served, 1));
        take(&mut machine, &frame(Kind::WindowUpdate, 0, 0, &1_u32.to_be_bytes()));
        drop(served);
        resets += count(&frames(&mut machine), Kind::RstStream);
    }
    assert!(machine.held() < BASE, "{}", machine.held());
    assert_eq!(resets, 5_000 - 64);
    // The last of them may still end.
    take(&mut machine, &frame(Kind::Data, flag::END_STREAM, 9_999, b""));
    assert_eq!(count(&frames(&mut machine), Kind::GoAway), 0);
}

/// An upload of which a part is always waiting for its reader.
#[test]
fn a_long_upload_is_held_no_longer_than_until_it_is_taken() {
    let mut machine = server(&[]);
    take(&mut machine, &headers(1, false, POST));
    let mut served = machine.accept().unwrap();
    take_head(&mut served);
    let mut most = 0;
    let piece = frame(Kind::Data, 0, 1, &[b'x'; 1000]);
    take(&mut machine, &piece);
    for _ in 0..20_000 {
        take(&mut machine, &piece);
        let mut buffer = Buffer::with_capacity(1000);
        assert_eq!(served.poll_read(&mut cx(), &mut buffer).map(Result::unwrap), Poll::Ready(1000));
        machine.send(usize::MAX);
        most = most.max(machine.held());
    }
    assert!(most < BASE, "{most}");
}

/// Memory of streams with much payload is not kept for later streams.
#[test]
fn memory_of_large_streams_is_not_kept_for_others() {
    let mut machine = server(&[]);
    take(&mut machine, &headers(1, false, POST));
    let first = machine.accept().unwrap();
    for number in 1..20 {
        let stream = 2 * number + 1;
        take(&mut machine, &headers(stream, false, POST));
        let served = machine.accept().unwrap();
        for _ in 0..20 {
            take(&mut machine, &frame(Kind::Data, 0, stream, &[b'x'; MAX_FRAME_SIZE]));
        }
        take(&mut machine, &rst(stream));
        drop(served);
        machine.send(usize::MAX);
    }
    assert!(machine.held() < BASE, "{}", machine.held());
    drop(first);
}

/// A frame is judged once, however often the connection is polled before its bytes were received.
#[test]
fn frames_that_come_slowly_count_once() {
    let mut machine = server(&[]);
    let block = headers(1, false, POST);
    take(&mut machine, &block[..HEADER_LENGTH]);
    for _ in 0..100 {
        take(&mut machine, b"");
    }
    take(&mut machine, &block[HEADER_LENGTH..]);
    let served = machine.accept().unwrap();
    let padded = frame(Kind::Data, flag::PADDED, 1, &[1; 1000]);
    take(&mut machine, &padded[..HEADER_LENGTH]);
    for _ in 0..1000 {
        take(&mut machine, b"");
    }
    take(&mut machine, &padded[HEADER_LENGTH..]);
    let out = frames(&mut machine);
    assert_eq!((count(&out, Kind::RstStream), count(&out, Kind::GoAway)), (0, 0));
    drop(served);
}

/// CVE-2024-27316: a head without an end.
#[test]
fn continuation_floods_end_the_connection() {
    for piece in [0, 1, 1000, MAX_FRAME_SIZE] {
        let mut machine = server(&[]);
        take(&mut machine, &frame(Kind::Headers, flag::END_STREAM, 1, &[0x82; 1]));
        let continuation = frame(Kind::Continuation, 0, 1, &vec![0x20; piece]);
        let mut sent = 0;
        while machine.receive(&continuation) == continuation.len() && !machine.is_broken() {
            sent += 1;
            assert!(machine.held() < BASE, "{}", machine.held());
        }
        assert!(sent <= 32, "{sent} pieces of {piece} bytes");
        assert_eq!(gone(&frames(&mut machine)), Some(ErrorCode::EnhanceYourCalm as u32));
    }
}

/// CVE-2026-49975: heads that are small on the wire and large in memory, of requests whose answers the client does not
/// read.
#[test]
fn hpack_bombs_take_bounded_memory() {
    let mut machine = server(&Setting::InitialWindowSize.bytes(0));
    let entry = [0x40, 1, b'a', 0];
    let mut served = Vec::new();
    for number in 0..100 {
        let (stream, bomb) = (2 * number + 1, [GET, &entry, &[0xbe; 380]].concat());
        take(&mut machine, &headers(stream, true, &bomb));
        served.extend(machine.accept());
        machine.send(usize::MAX);
    }
    assert_eq!(served.len(), 100);
    assert!(machine.held() < BASE + 100 * 8192, "{}", machine.held());
    assert!(served.iter_mut().all(|stream| {
        let mut head = Head::new();
        let taken = stream.take_head(&HeadLimits::default(), &mut Scan::default(), &mut head);
        matches!(taken, crate::h1::ReadResult::Invalid { status: 400 | 431, .. })
    }));
    // More fields than are allowed.
    let mut machine = server(&[]);
    take(&mut machine, &headers(1, true, &[GET, &[0x90; 500]].concat()));
    assert_eq!(gone(&frames(&mut machine)), Some(ErrorCode::CompressionError as u32));
    // Pieces of a cookie are one field.
    let mut machine = server(&[]);
    take(&mut machine, &headers(1, true, &[GET, &[0x0f, 0x11, 1, b'a'].repeat(500)].concat()));
    assert!(machine.accept().is_some());
    // An entry of 4,000 bytes referred to by each byte of a block.
    let mut machine = server(&[]);
    let entry = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4000]].concat();
    take(&mut machine, &headers(1, true, &[GET, &entry, &[0xbe; 12_000]].concat()));
    assert_eq!(gone(&frames(&mut machine)), Some(ErrorCode::CompressionError as u32));
}

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Settings, empty payload, priorities, windows: they wake no task that cannot make progress.
#[test]
fn floods_of_small_frames_wake_nobody() {
    let window = |size: u32| Setting::InitialWindowSize.bytes(size);
    let mut machine = server(&window(0));
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut served = Vec::new();
    for number in 0..100 {
        take(&mut machine, &headers(2 * number + 1, false, POST));
        let mut stream = machine.accept().unwrap();
        assert!(!answer(&mut stream, 10));
        let (mut none, mut body) = (Buffer::empty(), Buffer::with_capacity(1));
        assert!(body.push(b"x"));
        assert!(stream.poll_write(&mut Context::from_waker(&waker), &mut none, &mut body, false).is_pending());
        served.push(stream);
    }
    let settings: Vec<u8> = (0..170).flat_map(|number| window(1 - number % 2)).collect();
    for _ in 0..100 {
        take(&mut machine, &frame(Kind::Settings, 0, 0, &settings));
        for number in 0..100 {
            let stream = 2 * number + 1;
            take(&mut machine, &frame(Kind::Data, 0, stream, b""));
            take(&mut machine, &frame(Kind::Priority, 0, stream, &[0; 5]));
            take(&mut machine, &frame(Kind::WindowUpdate, 0, 0, &1_u32.to_be_bytes()));
        }
        machine.send(usize::MAX);
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    assert!(machine.held() < BASE, "{}", machine.held());
    take(&mut machine, &frame(Kind::Settings, 0, 0, &window(1)));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 100, "now they can go on");
}

/// Frames that require an answer are not read by the megabyte from a client that reads none.
#[test]
fn floods_that_are_answered_stop_with_the_answers() {
    let open = headers(1, false, POST);
    let floods = [
        frame(Kind::Ping, 0, 0, &[1; 8]),
        frame(Kind::Settings, 0, 0, &[]),
        frame(Kind::Settings, 0, 0, &Setting::InitialWindowSize.bytes(0)),
        frame(Kind::WindowUpdate, 0, 1, &[0; 4]),
        frame(Kind::Priority, 0, 9, &[0, 0, 0, 9, 1]),
        frame(Kind::Priority, 0, 9, &[0, 0, 0, 8]),
    ];
    for flood in floods {
        let mut machine = server(&[]);
        take(&mut machine, &open);
        let served = machine.accept();
        let mut sent = 0;
        while machine.receive(&flood) == flood.len() && sent < 100_000 {
            sent += 1;
        }
        assert!(sent < 20_000, "{sent} of {flood:?}");
        assert!(machine.held() < BASE, "{}", machine.held());
        drop(served);
    }
}

/// A client that has not read our settings may send as much as the protocol allows, even if our settings grant less.
#[test]
fn settings_count_from_when_they_are_read() {
    let mut machine = server(&[]);
    let mut served = Vec::new();
    for number in 0..20 {
        take(&mut machine, &headers(2 * number + 1, false, POST));
        served.extend(machine.accept());
    }
    let send = |machine: &mut Machine, stream, bytes: usize| {
        for _ in 0..bytes / 5000 {
            take(machine, &frame(Kind::Data, 0, stream, &[b'x'; 5000]));
        }
        count(&frames(machine), Kind::RstStream)
    };
    assert_eq!(send(&mut machine, 37, 65_000), 0);
    assert_eq!(send(&mut machine, 39, 10_000), 0);
    take(&mut machine, &frame(Kind::Settings, flag::ACK, 0, &[]));
    assert_eq!(send(&mut machine, 37, 5_000), 1, "it knows now");
    assert_eq!(send(&mut machine, 39, 5_000), 0);
    assert_eq!(send(&mut machine, 39, 5_000), 1);
    drop(served);
}

/// A body that fits the window needs no WINDOW_UPDATE: a small POST costs no frame, and no more is received than was
/// announced.
#[test]
fn a_body_that_fits_its_window_is_granted_no_more() {
    let length = |length: &str| {
        let value = [&[0x0f, 0x0d, length.len() as u8], length.as_bytes()].concat();
        [POST, &value].concat()
    };
    for (block, windows) in [(POST.to_vec(), 1), (length("5"), 0), (length("16384"), 0), (length("16385"), 1)] {
        let mut machine = server(&[]);
        take(&mut machine, &headers(1, false, &block));
        let mut served = machine.accept().unwrap();
        take_head(&mut served);
        assert_eq!(count(&frames(&mut machine), Kind::WindowUpdate), windows, "{block:?}");
        if block == length("16384") {
            // All of it is received, although the client has read our settings by now, and a part of it is padding.
            take(&mut machine, &frame(Kind::Settings, flag::ACK, 0, &[]));
            let (mut credit, mut sent) = (16_384_i64, 0_usize);
            while sent < 16_384 {
                let some = 1000.min(16_384 - sent).min(usize::try_from(credit - 256).unwrap());
                let padded = [&[255][..], &vec![b'x'; some], &[0; 255]].concat();
                take(&mut machine, &frame(Kind::Data, flag::PADDED, 1, &padded));
                (sent, credit) = (sent + some, credit - padded.len() as i64);
                let mut buffer = Buffer::with_capacity(some);
                assert_eq!(served.poll_read(&mut cx(), &mut buffer).map(Result::unwrap), Poll::Ready(some));
                for (header, payload) in frames(&mut machine) {
                    if (header.kind, header.stream) == (Kind::WindowUpdate, 1) {
                        credit += i64::from(u32::from_be_bytes(*payload.first_chunk().unwrap()));
                    }
                }
            }
            take(&mut machine, &frame(Kind::Data, flag::END_STREAM, 1, b""));
        }
    }
}

/// Padding counts against windows, and is credited again.
#[test]
fn padding_neither_starves_a_stream_nor_is_free() {
    let mut machine = server(&[]);
    take(&mut machine, &headers(1, false, POST));
    let mut served = machine.accept().unwrap();
    take_head(&mut served);
    let padded = frame(Kind::Data, flag::PADDED, 1, &[&[255][..], b"x", &[0; 255]].concat());
    take(&mut machine, &frame(Kind::Settings, flag::ACK, 0, &[]));
    let mut credit = 16_384_i64;
    for _ in 0..5_000 {
        credit -= 257;
        take(&mut machine, &padded);
        let mut buffer = Buffer::with_capacity(10);
        assert_eq!(served.poll_read(&mut cx(), &mut buffer).map(Result::unwrap), Poll::Ready(1));
        for (header, payload) in frames(&mut machine) {
            match (header.kind, header.stream) {
                (Kind::WindowUpdate, 1) => credit += i64::from(u32::from_be_bytes(*payload.first_chunk().unwrap())),
                (Kind::WindowUpdate | Kind::Settings, 0) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(credit > 257, "it can go on");
    }
    // More than the windows allow is refused, payload as well as padding.
    let mut resets = 0;
    for _ in 0..10_000 {
        let before = machine.receive(&padded);
        assert_eq!(before, padded.len());
        resets += count(&frames(&mut machine), Kind::RstStream);
        if resets > 0 {
            break;
        }
    }
    assert_eq!(resets, 0, "padding alone never exceeds what it gives back, but for its payload");
    for _ in 0..2_000 {
        take(&mut machine, &frame(Kind::Data, 0, 1, &[b'x'; 1000]));
        resets += count(&frames(&mut machine), Kind::RstStream);
    }
    assert!(resets > 0);
    assert!(machine.held() < BASE + (1 << 21), "{}", machine.held());
}
