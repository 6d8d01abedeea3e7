//! Tests of the default budget of a client's connection: floods exhaust it, clients that cancel many requests do not.
//! Must never judge by the clock.

use std::time::Duration;

use base::moment::Moment;
use wire::h2::{ErrorCode, FrameHeader, HEADER_LENGTH, Kind, flag, push_frame};

use super::{BUDGET, Machine, Terms};

const GET: &[u8] = &[0x82, 0x86, 0x84, 0x01, 0x01, b'a'];
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 0x01, b'a'];
const LENGTH_1: &[u8] = &[0x83, 0x86, 0x84, 0x01, 0x01, b'a', 0x0f, 0x0d, 1, b'1'];

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame(&mut out, kind, flags, stream, payload);
    out
}

fn headers(stream: u32, ends: bool, block: &[u8]) -> Vec<u8> {
    frame(Kind::Headers, flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 }, stream, block)
}

fn get(stream: u32) -> Vec<u8> {
    headers(stream, true, GET)
}

fn rst(stream: u32) -> Vec<u8> {
    frame(Kind::RstStream, 0, stream, &ErrorCode::Cancel.bytes())
}

/// Creates a connection with a budget and one open stream.
fn server(budget: u32) -> Machine {
    let mut machine = Machine::server(Terms { budget, ..Terms::default() });
    machine.receive(&[frame(Kind::Settings, 0, 0, &[]), headers(1, false, POST)].concat());
    machine
}

/// Returns the error codes of the GOAWAY frames in the output.
fn departures(output: &[u8]) -> Vec<u32> {
    let (mut rest, mut codes) = (output, Vec::new());
    while let Some(header) = FrameHeader::parse(rest) {
        let payload = &rest[HEADER_LENGTH..][..header.length];
        if header.kind == Kind::GoAway {
            codes.push(u32::from_be_bytes(*payload[4..].first_chunk().unwrap()));
        }
        rest = &rest[HEADER_LENGTH + header.length..];
    }
    codes
}

/// Sends rounds of frames until the connection ends. Returns the rounds of the graceful GOAWAY and of the end.
fn rounds(budget: u32, make: &dyn Fn(u32) -> Vec<u8>) -> (Option<u32>, Option<u32>) {
    let mut machine = server(budget);
    let first = machine.accept();
    let (mut warned, mut ended) = (None, None);
    for round in 1..2_500 {
        machine.receive(&make(2 * round + 1));
        while let Some(stream) = machine.accept() {
            drop(stream);
        }
        for code in departures(&machine.send(usize::MAX)) {
            match code {
                0 => warned = warned.or(Some(round)),
                _ => ended = ended.or(Some(round)),
            }
        }
        if machine.is_broken() {
            break;
        }
    }
    drop(first);
    (warned, ended)
}

/// A name, the frames of a round, and the last round that the connection may reach.
type Row = (&'static str, Box<dyn Fn(u32) -> Vec<u8>>, u32);

/// Every frame that costs more than it carries, and the last round before the connection has to end.
#[test]
fn floods_end_the_connection() {
    let many = |frame: Vec<u8>| frame.repeat(10);
    let rows: Vec<Row> = vec![
        ("settings", Box::new(move |_| many(frame(Kind::Settings, 0, 0, &[]))), 120),
        ("settings acknowledged", Box::new(move |_| many(frame(Kind::Settings, flag::ACK, 0, &[]))), 120),
        ("pings", Box::new(move |_| many(frame(Kind::Ping, 0, 0, &[0; 8]))), 120),
        ("answers to pings", Box::new(move |_| many(frame(Kind::Ping, flag::ACK, 0, &[0; 8]))), 120),
        ("departures", Box::new(move |_| many(frame(Kind::GoAway, 0, 0, &[0; 8]))), 120),
        ("windows", Box::new(move |_| many(frame(Kind::WindowUpdate, 0, 0, &[0, 0, 0, 1]))), 120),
        ("windows of a stream", Box::new(move |_| many(frame(Kind::WindowUpdate, 0, 1, &[0, 0, 0, 1]))), 120),
        ("priorities", Box::new(move |_| many(frame(Kind::Priority, 0, 1, &[0; 5]))), 120),
        ("priority updates", Box::new(move |_| many(frame(Kind::PriorityUpdate, 0, 0, &[0, 0, 0, 3]))), 120),
        ("unknown frames", Box::new(move |_| many(frame(Kind::Unknown, 0, 0, &[]))), 120),
        ("empty payload", Box::new(move |_| many(frame(Kind::Data, 0, 1, &[]))), 120),
        ("padding alone", Box::new(move |_| many(frame(Kind::Data, flag::PADDED, 1, &[3, 0, 0, 0]))), 120),
        (
            "two pings beside payload of a byte",
            Box::new(move |_| {
                many([frame(Kind::Ping, 0, 0, &[0; 8]).repeat(2), frame(Kind::Data, 0, 1, b"x")].concat())
            }),
            120,
        ),
        (
            "padding of streams that were reset",
            Box::new(move |stream| {
                let beyond = frame(Kind::WindowUpdate, 0, stream, &[0; 4]);
                [get(stream), beyond, many(frame(Kind::Data, flag::PADDED, stream, &[0]))].concat()
            }),
            160,
        ),
        (
            "trailers that are malformed",
            Box::new(|stream| [headers(stream, false, POST), headers(stream, true, &[0x84])].concat()),
            210,
        ),
        ("resets of a stream that has ended", Box::new(move |stream| [get(stream), many(rst(stream))].concat()), 200),
        ("rapid reset", Box::new(|stream| [get(stream), rst(stream)].concat()), 1000),
        (
            "windows of 0",
            Box::new(|stream| [get(stream), frame(Kind::WindowUpdate, 0, stream, &[0; 4])].concat()),
            1000,
        ),
        (
            "windows beyond what there are",
            Box::new(|stream| [get(stream), frame(Kind::WindowUpdate, 0, stream, &[127, 255, 255, 255])].concat()),
            1000,
        ),
        ("payload behind the end", Box::new(|stream| [get(stream), frame(Kind::Data, 0, stream, b"x")].concat()), 1000),
        (
            "payload beyond its length",
            Box::new(|stream| [headers(stream, false, LENGTH_1), frame(Kind::Data, 1, stream, b"ab")].concat()),
            1000,
        ),
        (
            "payload short of its length",
            Box::new(|stream| [headers(stream, false, LENGTH_1), frame(Kind::Data, 1, stream, b"")].concat()),
            1000,
        ),
        (
            "heads that are malformed",
            Box::new(|stream| headers(stream, true, &[GET, &[0, 1, b'B', 1, b'c']].concat())),
            1000,
        ),
        (
            "heads with too many fields",
            Box::new(|stream| headers(stream, true, &[GET, &[0x84; 1], &[0x90; 380]].concat())),
            1000,
        ),
        (
            "heads in many pieces",
            Box::new(|stream| {
                let mut out = frame(Kind::Headers, flag::END_STREAM, stream, &GET[..1]);
                GET[1..].iter().for_each(|byte| out.extend(frame(Kind::Continuation, 0, stream, &[*byte])));
                out.extend(frame(Kind::Continuation, 0, stream, &[]));
                out.extend(frame(Kind::Continuation, flag::END_HEADERS, stream, &[]));
                out
            }),
            1000,
        ),
    ];
    for (name, make, most) in rows {
        let (warned, ended) = rounds(BUDGET, &*make);
        assert!(ended.is_some_and(|ended| ended <= most), "{name}: {ended:?}");
        assert!(warned.is_some_and(|warned| Some(warned) <= ended), "{name}: {warned:?}, {ended:?}");
        // If the configuration sets no threshold, none of them ends a connection.
        assert_eq!(rounds(0, &*make).1, None, "{name}");
    }
}

/// Clients that cancel many requests, in numbers that browsers and gRPC clients reach, and small windows for small
/// payload.
#[test]
fn clients_that_cancel_much_go_on() {
    // Every other request is cancelled.
    let every_other = |round: u32| [get(2 * round - 1), get(2 * round + 1), rst(2 * round + 1)].concat();
    assert_eq!(rounds(BUDGET, &every_other), (None, None));
    // All of them are, at a rate of a hundred per second.
    let mut machine = server(BUDGET);
    let start = Moment::ZERO + Duration::from_secs(1);
    for number in 1..5_000 {
        machine.advance(start + Duration::from_millis(10) * number);
        machine.receive(&[get(2 * number + 1), rst(2 * number + 1)].concat());
        while let Some(stream) = machine.accept() {
            drop(stream);
        }
        assert!(departures(&machine.send(usize::MAX)).is_empty(), "{number}");
    }
    // Two pages of a hundred requests each are cancelled one after the other.
    let mut machine = server(BUDGET);
    for page in 0..2 {
        let streams = || (1..=99).map(move |number| 200 * page + 2 * number + 1);
        machine.receive(&streams().flat_map(get).collect::<Vec<_>>());
        machine.receive(&streams().flat_map(rst).collect::<Vec<_>>());
        while let Some(stream) = machine.accept() {
            drop(stream);
        }
        assert!(departures(&machine.send(usize::MAX)).is_empty());
    }
}

/// Returns a connection with the maximum number of open streams, and these streams.
fn full(acknowledged: bool) -> (Machine, Vec<super::Stream>) {
    let mut machine = server(BUDGET);
    if acknowledged {
        machine.receive(&frame(Kind::Settings, flag::ACK, 0, &[]));
    }
    machine.receive(&(1..100).flat_map(|number| headers(2 * number + 1, false, POST)).collect::<Vec<_>>());
    let streams: Vec<_> = std::iter::from_fn(|| machine.accept()).collect();
    assert_eq!(streams.len(), 100);
    machine.send(usize::MAX);
    (machine, streams)
}

/// A client knows the limit of concurrent streams as soon as it has read our settings.
#[test]
fn streams_beyond_the_limit_end_the_connection() {
    let more = |from: u32, count: u32| {
        (from..from + count).flat_map(|number| headers(2 * number + 1, false, POST)).collect::<Vec<_>>()
    };
    let (mut machine, streams) = full(true);
    machine.receive(&more(100, 14));
    assert!(departures(&machine.send(usize::MAX)).is_empty());
    machine.receive(&more(114, 10));
    assert_eq!(departures(&machine.send(usize::MAX)), [0, ErrorCode::EnhanceYourCalm as u32]);
    drop(streams);
    // A client that has not may open more streams at first, but not without limit.
    let (mut machine, streams) = full(false);
    machine.receive(&more(100, 100));
    assert!(departures(&machine.send(usize::MAX)).is_empty());
    machine.receive(&more(200, 30));
    assert_eq!(departures(&machine.send(usize::MAX)), [0, ErrorCode::EnhanceYourCalm as u32]);
    drop(streams);
}

/// A browser that leaves a page cancels its requests and begins others: streams that their tasks have not released are
/// not its fault.
#[test]
fn streams_that_are_over_for_their_client_are_not_beyond_the_limit() {
    let (mut machine, streams) = full(true);
    machine.receive(&(0..100).flat_map(|number| rst(2 * number + 1)).collect::<Vec<_>>());
    machine.receive(&(100..200).flat_map(|number| get(2 * number + 1)).collect::<Vec<_>>());
    assert!(departures(&machine.send(usize::MAX)).is_empty());
    drop(streams);
    // Requests of two pages at once, before the client knows that it may have a hundred.
    let (mut machine, streams) = full(false);
    machine.receive(&(100..200).flat_map(|number| get(2 * number + 1)).collect::<Vec<_>>());
    machine.receive(&frame(Kind::Settings, flag::ACK, 0, &[]));
    assert!(departures(&machine.send(usize::MAX)).is_empty());
    drop(streams);
}
