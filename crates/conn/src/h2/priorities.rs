//! Tests of priorities of requests (RFC 9218) on a connection without a transport: the order in which payload is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use base::buffer::Buffer;
use wire::h1::{Edits, HeadLimits, Scan};
use wire::h2::{ErrorCode, FrameHeader, HEADER_LENGTH, Kind, Setting, encode_response, flag, push_frame};
use wire::http::{Framing, Head};

use super::{Machine, Stream, Terms};
use crate::flow::ByteSink;

/// The length of each answer in bytes.
const LENGTH: usize = 300_000;

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn frame(kind: Kind, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let flags = if kind == Kind::Headers { flag::END_HEADERS | flag::END_STREAM } else { 0 };
    push_frame(&mut out, kind, flags, stream, payload);
    out
}

/// A request with that `priority` field.
fn request(stream: u32, priority: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x84, 0x01, 0x01, b'a'];
    if !priority.is_empty() {
        block.extend([0, 8]);
        block.extend(b"priority");
        block.push(priority.len() as u8);
        block.extend(priority.as_bytes());
    }
    frame(Kind::Headers, stream, &block)
}

/// A PRIORITY_UPDATE frame.
fn update(stream: u32, priority: &str) -> Vec<u8> {
    frame(Kind::PriorityUpdate, 0, &[&stream.to_be_bytes()[..], priority.as_bytes()].concat())
}

/// Creates a connection whose client has large windows.
fn server() -> Machine {
    let mut machine = Machine::server(Terms::default());
    let settings = Setting::InitialWindowSize.bytes(1 << 30);
    take(&mut machine, &frame(Kind::Settings, 0, &settings));
    take(&mut machine, &frame(Kind::WindowUpdate, 0, &(1_u32 << 30).to_be_bytes()));
    machine
}

fn take(machine: &mut Machine, bytes: &[u8]) {
    assert_eq!(machine.receive(bytes), bytes.len());
}

/// A stream with its answer.
struct Answering {
    stream: Stream,
    body: Buffer,
    woken: Arc<Woken>,
    ended: bool,
}

impl Answering {
    fn new(mut stream: Stream) -> Self {
        stream.take_head(&HeadLimits::default(), &mut Scan::default(), &mut Head::new());
        let mut body = Buffer::with_capacity(LENGTH);
        assert!(body.push(&vec![b'x'; LENGTH]));
        let (mut head, mut out) = (Head::new(), Buffer::with_capacity(1_000));
        head.set_status(200, b"");
        let edits = Edits { framing: Framing::Length(LENGTH as u64), ..Edits::default() };
        assert!(encode_response(stream.number(), &head, &edits, &mut out).is_ok());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(stream.poll_write(&mut cx, &mut out, &mut Buffer::empty(), false).is_ready());
        Self { stream, body, woken: Arc::new(Woken(AtomicBool::new(true))), ended: false }
    }

    fn go_on(&mut self) {
        if self.ended || !self.woken.0.swap(false, Ordering::Relaxed) {
            return;
        }
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut cx = Context::from_waker(&waker);
        while !self.body.is_empty() {
            let Poll::Ready(Ok(_)) = self.stream.poll_write(&mut cx, &mut Buffer::empty(), &mut self.body, false)
            else {
                return;
            };
        }
        self.stream.complete(None);
        self.ended = true;
    }
}

/// Serves the streams that have begun to their ends. Returns the stream of each frame of payload; after `at` such
/// frames, the client sends `says`.
fn serve(machine: &mut Machine, at: usize, says: &[u8]) -> Vec<u32> {
    let mut streams: Vec<_> = std::iter::from_fn(|| machine.accept()).map(Answering::new).collect();
    let (mut bytes, mut order, mut turns) = (Vec::new(), Vec::new(), 0);
    while streams.iter().any(|stream| !stream.ended) || machine.waiting() > 0 {
        turns += 1;
        assert!(turns < 10_000, "nothing goes on");
        streams.iter_mut().for_each(Answering::go_on);
        bytes.extend(machine.send(16 * 1024));
        while let Some(header) = FrameHeader::parse(&bytes)
            && bytes.len() >= HEADER_LENGTH + header.length
        {
            bytes.drain(..HEADER_LENGTH + header.length);
            if header.kind == Kind::Data {
                order.push(header.stream);
                if order.len() == at {
                    take(machine, says);
                }
            }
        }
    }
    order
}

/// The index of the last frame of a stream.
fn end(order: &[u32], stream: u32) -> usize {
    order.iter().rposition(|number| *number == stream).unwrap()
}

/// The index of the first frame of a stream.
fn begin(order: &[u32], stream: u32) -> usize {
    order.iter().position(|number| *number == stream).unwrap()
}

fn begun(priorities: &[&str]) -> Machine {
    let mut machine = server();
    for (number, priority) in priorities.iter().enumerate() {
        take(&mut machine, &request(2 * number as u32 + 1, priority));
    }
    machine
}

#[test]
fn urgent_answers_end_first() {
    let order = serve(&mut begun(&["u=6", "", "u=0", "u=1"]), 0, &[]);
    let ends: Vec<usize> = [5, 7, 3, 1].into_iter().map(|stream| end(&order, stream)).collect();
    assert!(ends.is_sorted(), "{order:?}");
    // Less urgent streams also get some of the output.
    let mut others = order[..ends[0]].iter().filter(|stream| **stream != 5);
    assert!(others.next().is_some());
}

#[test]
fn as_urgent_ones_go_out_one_after_the_other_or_together() {
    let order = serve(&mut begun(&["u=2", "u=2"]), 0, &[]);
    // Except for payload sent before the second one had begun, and some of it now and then.
    let early = order[..end(&order, 1)].iter().filter(|stream| **stream == 3).count();
    assert!(early <= 3, "{order:?}");
    let order = serve(&mut begun(&["u=2, i", "u=2, i"]), 0, &[]);
    let together = order[..end(&order, 1)].iter().filter(|stream| **stream == 3).count();
    assert!(together > 8, "{order:?}");
    // Without priorities they share the output.
    let order = serve(&mut begun(&["", ""]), 0, &[]);
    let together = order[..end(&order, 1)].iter().filter(|stream| **stream == 3).count();
    assert!(together > 8, "{order:?}");
}

#[test]
fn a_client_changes_its_mind() {
    let order = serve(&mut begun(&["u=1", "u=5"]), 4, &update(3, "u=0"));
    assert!(end(&order, 3) < end(&order, 1), "{order:?}");
    // The frame is received before the request, and takes precedence over the request's field.
    let mut machine = server();
    take(&mut machine, &[update(3, "u=0"), request(1, "u=2"), request(3, "u=7")].concat());
    let order = serve(&mut machine, 0, &[]);
    assert!(end(&order, 3) < end(&order, 1) && begin(&order, 1) < 4, "{order:?}");
}

#[test]
fn frames_that_break_the_protocol_end_the_connection() {
    let gone = |says: &[u8]| {
        let mut machine = begun(&["u=1"]);
        machine.receive(says);
        let mut bytes = machine.send(usize::MAX);
        while let Some(header) = FrameHeader::parse(&bytes) {
            let rest = bytes.split_off(HEADER_LENGTH + header.length);
            if header.kind == Kind::GoAway {
                return bytes[HEADER_LENGTH + 4..].first_chunk().map(|code| u32::from_be_bytes(*code));
            }
            bytes = rest;
        }
        None
    };
    assert_eq!(gone(&update(1, "u=2")), None);
    assert_eq!(gone(&update(1, &"u=2,".repeat(1_000))), None);
    assert_eq!(gone(&update(99, "nonsense \u{1}")), None);
    let protocol = Some(ErrorCode::ProtocolError as u32);
    assert_eq!(gone(&update(0, "u=2")), protocol);
    assert_eq!(gone(&update(2, "u=2")), protocol);
    assert_eq!(gone(&frame(Kind::PriorityUpdate, 1, &[0, 0, 0, 1])), protocol);
    assert_eq!(gone(&frame(Kind::PriorityUpdate, 0, &[0, 0, 1])), Some(ErrorCode::FrameSizeError as u32));
}

/// Priorities of streams that never begin take no memory, whatever their number.
#[test]
fn floods_of_priorities_hold_nothing() {
    let mut machine = begun(&["u=1"]);
    let before = machine.held();
    for number in 0..5_000_u32 {
        machine.receive(&update(2 * (number % 1_000) + 5, "u=0, i"));
        machine.send(usize::MAX);
    }
    assert!(machine.held() < before + 4_096, "{}", machine.held());
}
