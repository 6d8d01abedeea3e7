//! Violations of HTTP/3 and QPACK by a client, each with the error that RFC 9114 and RFC 9204 require.

use std::rc::Rc;

use quic::Closed;
use testkit::{Scope, Service};
use wire::h3::{self, ErrorCode, StreamType};

use crate::http3_client::{Client, request, tls, trailers};
use crate::messages::*;
use crate::multiplexed_client::echo;
use crate::world::*;

pub const CLIENT: &str = "10.0.9.1:5000";
pub const QUIC: &str = "10.0.0.1:443";

pub fn serving() -> Worlds {
    let text = format!("listen l\n    bind quic4@{QUIC} ssl crt a.pem\n    server s1 {S1}\n");
    config(&text).seeds(0..1).workers(&[1])
}

/// A frame whose type and length take a byte, or two.
pub fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = varint(kind);
    bytes.extend(varint(payload.len() as u64));
    bytes.extend_from_slice(payload);
    bytes
}

/// An integer of QUIC (RFC 9000, section 16).
pub fn varint(value: u64) -> Vec<u8> {
    match value {
        0..64 => vec![value as u8],
        64..16_384 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        _ => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
    }
}

/// A HEADERS frame of literal fields, one for each line `name value`; names may begin with a colon.
fn head(lines: &str) -> Vec<u8> {
    let mut section = vec![0, 0];
    for line in lines.lines() {
        let (name, value) = line.split_once(' ').unwrap();
        match name.len() {
            length @ 0..7 => section.push(0x20 | length as u8),
            length => section.extend([0x27, length as u8 - 7]),
        }
        section.extend_from_slice(name.as_bytes());
        section.push(value.len() as u8);
        section.extend_from_slice(value.as_bytes());
    }
    frame(0x01, &section)
}

const HEAD: &str = ":method POST\n:scheme https\n:authority a\n:path /\n";

/// The head of a valid request, and these lines.
pub fn with(lines: &str) -> Vec<u8> {
    head(&format!("{HEAD}{lines}"))
}

/// A HEADERS frame with this field section.
fn section(bytes: &[u8]) -> Vec<u8> {
    frame(0x01, bytes)
}

/// A unidirectional stream of a client.
struct Uni {
    bytes: Vec<u8>,
    end: UniEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UniEnd {
    Open,
    Finished,
    Reset,
}

fn uni(kind: StreamType, parts: &[Vec<u8>]) -> Uni {
    let mut bytes = Vec::new();
    h3::push_stream_type(kind, &mut bytes);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    Uni { bytes, end: UniEnd::Open }
}

fn ended(kind: StreamType, end: UniEnd) -> Uni {
    let settings = if kind == StreamType::Control { frame(0x04, &[]) } else { Vec::new() };
    Uni { end, ..uni(kind, &[settings]) }
}

/// A control stream with SETTINGS and these frames.
fn control(frames: &[Vec<u8>]) -> Vec<Uni> {
    vec![uni(StreamType::Control, &[&[frame(0x04, &[])][..], frames].concat())]
}

/// A connection whose client opens these streams ends with this code.
async fn expect_end(name: &str, port: usize, streams: Vec<Uni>, code: ErrorCode) {
    let mut client = Client::begin(&format!("10.0.9.1:{port}"), QUIC, &tls(&["h3"], false));
    client.until(|client| client.is_connected()).await;
    for stream in streams {
        let id = client.open_uni(&stream.bytes);
        match stream.end {
            UniEnd::Open => {}
            UniEnd::Finished => client.finish(id),
            UniEnd::Reset => {
                // The type is received before the reset.
                client.until(|client| !client.control.is_empty()).await;
                client.reset(id, 0x100);
            }
        }
    }
    client.until(|client| client.closed.is_some()).await;
    expect_code(name, &client, code);
}

#[track_caller]
fn expect_code(name: &str, client: &Client, code: ErrorCode) {
    let Some(Closed::ByPeer { code: received, reason }) = &client.closed else { panic!("{name}: {:?}", client.closed) };
    assert_eq!(ErrorCode::of(*received), Some(code), "{name}");
    assert_eq!(String::from_utf8_lossy(reason), code.name(), "{name}");
}

#[test]
fn control_streams_carry_their_frames_in_order() {
    use ErrorCode::*;
    serving().run(|world| async move {
        let before = |frame: Vec<u8>| vec![uni(StreamType::Control, &[frame])];
        let settings = |payload: &[u8]| before(frame(0x04, payload));
        let priority = |stream: u64, kind: u64| frame(kind, &[varint(stream), b"u=1".to_vec()].concat());
        let mut cases = vec![
            ("DATA first", before(frame(0x00, b"x")), MissingSettings),
            ("HEADERS first", before(frame(0x01, &[0, 0])), MissingSettings),
            ("GOAWAY first", before(frame(0x07, &[0])), MissingSettings),
            ("a reserved frame first", before(frame(0x21, b"x")), MissingSettings),
            ("PRIORITY_UPDATE first", before(priority(0, 0xf0700)), MissingSettings),
            ("SETTINGS twice", control(&[frame(0x04, &[])]), FrameUnexpected),
            ("DATA", control(&[frame(0x00, b"x")]), FrameUnexpected),
            ("HEADERS", control(&[frame(0x01, &[0, 0])]), FrameUnexpected),
            ("PUSH_PROMISE", control(&[frame(0x05, &[0, 0, 0])]), FrameUnexpected),
            ("a setting twice", settings(&[0x06, 1, 0x06, 1]), SettingsError),
            ("a reserved setting twice", settings(&[0x21, 1, 0x21, 1]), SettingsError),
            ("extended CONNECT 2", settings(&[0x08, 2]), SettingsError),
            ("datagrams 2", settings(&[0x33, 2]), SettingsError),
            ("half a setting", settings(&[0x06]), FrameError),
            ("long SETTINGS", before([&[0x04][..], &varint(5_000), &[0; 100]].concat()), ExcessiveLoad),
            (
                "many settings",
                settings(&(64..160).flat_map(|n| [varint(n), vec![0]].concat()).collect::<Vec<_>>()),
                ExcessiveLoad,
            ),
            ("MAX_PUSH_ID decreases", control(&[frame(0x0d, &[9]), frame(0x0d, &[8])]), IdError),
            ("MAX_PUSH_ID is empty", control(&[frame(0x0d, &[])]), FrameError),
            ("MAX_PUSH_ID with more", control(&[frame(0x0d, &[9, 9])]), FrameError),
            ("CANCEL_PUSH unknown", control(&[frame(0x03, &[0])]), IdError),
            ("GOAWAY grows", control(&[frame(0x07, &[4]), frame(0x07, &[8])]), IdError),
            ("GOAWAY is empty", control(&[frame(0x07, &[])]), FrameError),
            ("long GOAWAY", control(&[frame(0x07, &[0; 9])]), FrameError),
            ("priority of a stream of the server", control(&[priority(1, 0xf0700)]), IdError),
            ("priority beyond the limit of streams", control(&[priority(4 * 24, 0xf0700)]), IdError),
            ("priority of a push", control(&[priority(0, 0xf0701)]), IdError),
            ("priority without a stream", control(&[frame(0xf0700, &[])]), FrameError),
        ];
        for setting in [0x00, 0x02, 0x03, 0x04, 0x05] {
            cases.push(("a setting of HTTP/2", settings(&[setting, 1]), SettingsError));
        }
        for kind in [0x02, 0x06, 0x08, 0x09] {
            cases.push(("a frame of HTTP/2", control(&[frame(kind, &[0; 4])]), FrameUnexpected));
        }
        for (number, (name, streams, code)) in cases.into_iter().enumerate() {
            expect_end(name, 5_000 + number, streams, code).await;
        }
        world.forget_log();
    });
}

#[test]
fn critical_streams_exist_once_and_stay_open() {
    use ErrorCode::*;
    serving().run(|world| async move {
        let mut cases = vec![("a push", vec![uni(StreamType::Push, &[vec![0]])], StreamCreationError)];
        for kind in [StreamType::Control, StreamType::QpackEncoder, StreamType::QpackDecoder] {
            let open = || ended(kind, UniEnd::Open);
            cases.push(("twice", vec![open(), open()], StreamCreationError));
            cases.push(("finished", vec![ended(kind, UniEnd::Finished)], ClosedCriticalStream));
            cases.push(("reset", vec![ended(kind, UniEnd::Reset)], ClosedCriticalStream));
        }
        for (number, (name, streams, code)) in cases.into_iter().enumerate() {
            let name = format!("{name}, {:x?}", streams[0].bytes);
            expect_end(&name, 5_000 + number, streams, code).await;
        }
        world.forget_log();
    });
}

/// The client must not request that the server close its control stream (RFC 9114, section 6.2.1).
#[test]
fn the_control_stream_of_the_server_cannot_be_stopped() {
    serving().run(|world| async move {
        let mut client = Client::connect(CLIENT, QUIC).await;
        client.until(|client| !client.control.is_empty()).await;
        client.stop(quic::StreamId::of_number(3).unwrap(), 0x100);
        client.until(|client| client.closed.is_some()).await;
        expect_code("stopped", &client, ErrorCode::ClosedCriticalStream);
        world.forget_log();
    });
}

/// Streams of unknown types are not read, and their connection goes on.
#[test]
fn unknown_streams_are_not_read() {
    serving().run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CLIENT, QUIC).await;
        let id = client.open_uni(&[0x21, 1, 2, 3]);
        client.until(|client| !client.stopped.is_empty()).await;
        assert_eq!(client.stopped, [(id, ErrorCode::StreamCreationError.number())]);
        // A stream that ends before its type is known.
        let silent = client.open_uni(&[0x40]);
        client.finish(silent);
        let next = client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(client.answer(next).await.ended);
        client.close().await;
        world.forget_log();
    });
}

#[test]
fn qpack_streams_stay_within_the_announced_table() {
    use ErrorCode::*;
    serving().run(|world| async move {
        let encoder = |bytes: &[u8]| vec![uni(StreamType::QpackEncoder, &[bytes.to_vec()])];
        let decoder = |bytes: &[u8]| vec![uni(StreamType::QpackDecoder, &[bytes.to_vec()])];
        let cases = [
            ("capacity above the maximum", encoder(&[0x3f, 0x01]), QpackEncoderStreamError),
            ("capacity of 1", encoder(&[0x21]), QpackEncoderStreamError),
            ("insertion with a static name", encoder(&[0xc0, 1, b'x']), QpackEncoderStreamError),
            ("insertion with a dynamic name", encoder(&[0x80, 1, b'x']), QpackEncoderStreamError),
            ("insertion", encoder(&[0x41, b'a', 1, b'x']), QpackEncoderStreamError),
            ("duplicate", encoder(&[0x00]), QpackEncoderStreamError),
            ("endless integer", encoder(&[&[0x3f][..], &[0xff; 12]].concat()), QpackEncoderStreamError),
            ("increment of 0", decoder(&[0x00]), QpackDecoderStreamError),
            ("increment above what was sent", decoder(&[0x01]), QpackDecoderStreamError),
            ("acknowledgment of nothing", decoder(&[0x80]), QpackDecoderStreamError),
            ("endless cancellation", decoder(&[&[0x7f][..], &[0xff; 12]].concat()), QpackDecoderStreamError),
        ];
        for (number, (name, streams, code)) in cases.into_iter().enumerate() {
            expect_end(name, 5_000 + number, streams, code).await;
        }
        // A capacity of 0 and cancellations are valid.
        let mut client = Client::connect(CLIENT, QUIC).await;
        client.open_uni(&[2, 0x20]);
        client.open_uni(&[3, 0x40, 0x44]);
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let next = client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(client.answer(next).await.ended);
        client.close().await;
        world.forget_log();
    });
}

/// Sends bytes on a request stream and ends it. Returns the client, and the code with which the stream was reset.
async fn send(port: usize, bytes: &[u8]) -> (Client, Option<ErrorCode>) {
    let mut client = Client::connect(&format!("10.0.9.1:{port}"), QUIC).await;
    let id = client.open_whole(bytes);
    let reset = client.answer(id).await.reset;
    (client, reset.and_then(ErrorCode::of))
}

#[test]
fn frames_of_requests_are_in_order_and_whole() {
    use ErrorCode::*;
    serving().run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let after = |frames: &[Vec<u8>]| [with(""), frames.concat()].concat();
        let end = trailers("a: b");
        let connect = head(":method CONNECT\n:authority a:443\n");
        let priority = frame(0xf0700, &[0]);
        let mut cases = vec![
            ("DATA first", frame(0x00, b"x"), FrameUnexpected),
            ("DATA after trailers", after(&[end.clone(), frame(0x00, b"x")]), FrameUnexpected),
            ("empty DATA after trailers", after(&[end.clone(), frame(0x00, b"")]), FrameUnexpected),
            ("HEADERS after trailers", after(&[end.clone(), end]), FrameUnexpected),
            ("HEADERS in a tunnel", [connect, with("")].concat(), FrameUnexpected),
            ("half a HEADERS frame", with("")[..9].to_vec(), FrameError),
            ("half a DATA frame", after(&[vec![0x00, 9, b'x']]), FrameError),
            ("half a header", after(&[vec![0x00]]), FrameError),
            ("half a type", after(&[vec![0x40]]), FrameError),
            ("half a reserved frame", after(&[vec![0x21, 9, b'x']]), FrameError),
            ("a head that is too large and cut short", vec![0x01, 0xbf, 0xff, 0xff, 0xff, b'a', b'b'], FrameError),
            ("a section that is empty", section(&[]), QpackDecompressionFailed),
            ("static index 99", section(&[0, 0, 0xff, 0x24]), QpackDecompressionFailed),
            ("static name 99", section(&[0, 0, 0x5f, 0x54, 1, b'x']), QpackDecompressionFailed),
            ("dynamic index", section(&[0, 0, 0x80]), QpackDecompressionFailed),
            ("dynamic index after the base", section(&[0, 0, 0x10]), QpackDecompressionFailed),
            ("dynamic name", section(&[0, 0, 0x40, 1, b'x']), QpackDecompressionFailed),
            ("an insertion is required", section(&[1, 0, 0xd1]), QpackDecompressionFailed),
            ("negative base", section(&[0, 0x80, 0xd1]), QpackDecompressionFailed),
            ("half a string", section(&[0, 0, 0x51, 9, b'x']), QpackDecompressionFailed),
            ("endless integer", section(&[&[0, 0][..], &[0xff; 12]].concat()), QpackDecompressionFailed),
            ("padding of 8 bits", section(&[0, 0, 0x51, 0x81, 0xff]), QpackDecompressionFailed),
            ("trailers with static index 99", after(&[section(&[0, 0, 0xff, 0x24])]), QpackDecompressionFailed),
        ];
        for (name, kind) in [
            ("CANCEL_PUSH", 0x03),
            ("SETTINGS", 0x04),
            ("PUSH_PROMISE", 0x05),
            ("GOAWAY", 0x07),
            ("MAX_PUSH_ID", 0x0d),
            ("PRIORITY", 0x02),
            ("PING", 0x06),
            ("WINDOW_UPDATE", 0x08),
            ("CONTINUATION", 0x09),
        ] {
            cases.push((name, frame(kind, &[0]), FrameUnexpected));
            cases.push((name, after(&[frame(kind, &[0])]), FrameUnexpected));
        }
        cases.push(("PRIORITY_UPDATE", after(&[priority]), FrameUnexpected));
        for (number, (name, bytes, code)) in cases.into_iter().enumerate() {
            let (client, _) = send(5_000 + number, &bytes).await;
            expect_code(name, &client, code);
        }
        world.forget_log();
    });
}

#[test]
fn malformed_heads_reset_their_stream_alone() {
    serving().run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let message = ErrorCode::MessageError;
        let without = |name: &str| {
            head(
                &HEAD
                    .lines()
                    .filter(|line| !line.starts_with(name))
                    .fold(String::new(), |lines, line| lines + line + "\n"),
            )
        };
        let cases = [
            ("nothing", Vec::new(), ErrorCode::RequestIncomplete),
            ("a reserved frame alone", frame(0x21, b"x"), ErrorCode::RequestIncomplete),
            ("no method", without(":method"), message),
            ("no scheme", without(":scheme"), message),
            ("no path", without(":path"), message),
            ("no authority", without(":authority"), message),
            ("an empty path", head(&HEAD.replace(":path /", ":path ")), message),
            ("two methods", with(":method GET"), message),
            ("two paths", with(":path /b"), message),
            ("two authorities", with(":authority a"), message),
            ("a pseudo field after others", head(":method GET\n:scheme https\n:authority a\nb c\n:path /"), message),
            ("an unknown pseudo field", with(":b c"), message),
            ("a pseudo field of responses", with(":status 200"), message),
            ("a protocol without CONNECT", with(":protocol websocket"), message),
            ("CONNECT with a path", head(":method CONNECT\n:authority a:1\n:path /"), message),
            ("CONNECT with a scheme", head(":method CONNECT\n:authority a:1\n:scheme https"), message),
            ("CONNECT without an authority", head(":method CONNECT\na b"), message),
            ("another host", with("host b"), message),
            ("upper case", with("B c"), message),
            ("an empty name", with(" c"), message),
            ("a name with a colon", with("b:c d"), message),
            ("a name with a control character", with("b\u{1} d"), message),
            (
                "a value with a line feed",
                head(&format!("{HEAD}b c")).iter().map(|byte| if *byte == b'c' { b'\n' } else { *byte }).collect(),
                message,
            ),
            ("connection", with("connection close"), message),
            ("keep-alive", with("keep-alive 1"), message),
            ("proxy-connection", with("proxy-connection close"), message),
            ("transfer-encoding", with("transfer-encoding chunked"), message),
            ("upgrade", with("upgrade h2c"), message),
            ("te", with("te gzip"), message),
            ("two lengths", with("content-length 1\ncontent-length 2"), message),
            ("a length that is none", with("content-length +1"), message),
            ("a length without payload", with("content-length 9"), message),
            ("an empty frame under a length", [with("content-length 9"), vec![0, 0]].concat(), message),
            ("payload below the length", [with("content-length 9"), frame(0, b"12345678")].concat(), message),
            ("payload above the length", [with("content-length 1"), frame(0, b"12")].concat(), message),
            ("payload with a length of 0", [with("content-length 0"), frame(0, b"1")].concat(), message),
            ("trailers under a length", [with("content-length 1"), trailers("a: b")].concat(), message),
            ("trailers with a pseudo field", [with(""), head(":path /")].concat(), message),
            ("trailers with upper case", [with(""), head("A b")].concat(), message),
        ];
        for (number, (name, bytes, code)) in cases.into_iter().enumerate() {
            let (mut client, reset) = send(5_000 + number, &bytes).await;
            assert_eq!((reset, &client.closed), (Some(code), &None), "{name}");
            let next = client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert!(client.answer(next).await.ended, "{name}");
            client.close().await;
        }
        world.forget_log();
    });
}

/// A request ends before its content-length, after the server has received its head (CVE-2026-33555): the connection to the
/// server is closed, so that no other request completes it.
#[test]
fn a_request_that_ends_early_does_not_leave_its_connection_to_others() {
    for frames in [Vec::new(), frame(0x00, b""), frame(0x00, b"GET /"), trailers("a: b")] {
        serving().workers(&[1, 2]).run(move |world| {
            let frames = frames.clone();
            async move {
                let mut s1 = Service::at(S1);
                let mut client = Client::connect(CLIENT, QUIC).await;
                let id = client.open();
                client.write(id, &request("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n")).await;
                let mut one = client.beside(s1.accept()).await;
                client.beside(one.receive_head()).await;
                client.write(id, &frames).await;
                client.finish(id);
                let answered = client.answer(id).await;
                assert_eq!(answered.reset.and_then(ErrorCode::of), Some(ErrorCode::MessageError));
                let (rest, is_whole) = client.beside(one.try_receive_up_to(40)).await;
                assert!(!is_whole && b"GET /".starts_with(&rest), "{rest:?}");
                let second = client.request("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
                let mut two = client.beside(s1.accept()).await;
                client.beside(two.expect(get_at_server("/2"))).await;
                two.send(answer("two")).await;
                assert_eq!(client.answer(second).await.payload, b"two");
                client.close().await;
                world.forget_log();
            }
        });
    }
}
