//! Two connections without a transport, and one with hand-made records.

use std::time::Duration;

use base::moment::Moment;

use super::varint;
use super::{Connection, Settings};
use crate::closed::Closed;
use crate::connection::Event;
use crate::stream::{Direction, Part, ReadError, StreamId, WriteError};

const NOW: Moment = Moment::ZERO;
const SETTINGS: Settings = Settings {
    idle_timeout: Duration::from_secs(30),
    max_bidirectional: 4,
    max_unidirectional: 3,
    window: 100_000,
    stream_window: 40_000,
};

/// Moves bytes in both directions until nothing moves, at most `most` of them at a time.
fn exchange(client: &mut Connection, server: &mut Connection, most: usize) {
    loop {
        let mut moved = 0;
        for is_of_client in [true, false] {
            let (from, to) = if is_of_client { (&mut *client, &mut *server) } else { (&mut *server, &mut *client) };
            let length = from.output().len().min(most);
            let bytes = from.output()[..length].to_vec();
            from.note_sent(NOW, length);
            to.receive(NOW, &bytes);
            moved += length;
        }
        if moved == 0 {
            return;
        }
    }
}

fn pair() -> (Connection, Connection) {
    let (mut client, mut server) = (Connection::new(false, SETTINGS, NOW), Connection::new(true, SETTINGS, NOW));
    assert!(!client.is_ready() && client.open(Direction::Bidirectional).is_none());
    exchange(&mut client, &mut server, usize::MAX);
    assert!(client.is_ready() && server.is_ready());
    (client, server)
}

fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.poll_event()).collect()
}

fn id(number: u64) -> StreamId {
    StreamId::of_number(number).unwrap()
}

fn read_all(connection: &mut Connection, stream: StreamId) -> (Vec<u8>, Option<ReadError>) {
    let mut bytes = Vec::new();
    loop {
        match connection.read(stream, 10_000) {
            Ok(Part::Chunk(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(Part::End) => return (bytes, None),
            Err(error) => return (bytes, Some(error)),
        }
    }
}

#[test]
fn a_request_and_its_answer_are_one_record_each() {
    let (mut client, mut server) = pair();
    let stream = client.open(Direction::Bidirectional).unwrap();
    assert_eq!(client.write(stream, b"hel"), Ok(3));
    assert_eq!(client.write(stream, b"lo"), Ok(2));
    client.finish(stream).unwrap();
    assert_eq!(client.output(), b"\x40\x09\x0b\0\x40\x05hello");
    exchange(&mut client, &mut server, 1);
    assert!(events(&mut server).contains(&Event::StreamsOpened(Direction::Bidirectional)));
    assert_eq!(server.accept(Direction::Bidirectional), Some(stream));
    assert_eq!(server.accept(Direction::Bidirectional), None);
    assert_eq!(read_all(&mut server, stream), (b"hello".to_vec(), None));
    server.write(stream, b"world").unwrap();
    server.finish(stream).unwrap();
    assert_eq!(server.write(stream, b"!"), Err(WriteError::Closed));
    exchange(&mut client, &mut server, 3);
    assert!(events(&mut server).contains(&Event::Finished(stream)));
    assert!(events(&mut client).contains(&Event::Readable(stream)));
    assert_eq!(read_all(&mut client, stream), (b"world".to_vec(), None));
    assert_eq!(client.read(stream, 1), Err(ReadError::Closed));
}

/// Bytes that were shown to the transport do not change, also if it has accepted none of them.
#[test]
fn output_that_was_shown_stays() {
    let (mut client, _) = pair();
    let stream = client.open(Direction::Bidirectional).unwrap();
    client.write(stream, b"one").unwrap();
    let shown = client.output().to_vec();
    client.write(stream, b"two").unwrap();
    client.finish(stream).unwrap();
    assert!(client.output().starts_with(&shown));
}

#[test]
fn large_messages_pass_within_the_windows() {
    [7, 61, 7_001, 16_384].into_iter().for_each(pass_large_message);
}

/// Sends a message that arrives in pieces of that size.
fn pass_large_message(piece: usize) {
    let (mut client, mut server) = pair();
    let stream = client.open(Direction::Bidirectional).unwrap();
    let message: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
    let (mut written, mut received, mut rounds) = (0, Vec::new(), 0);
    while received.len() < message.len() {
        match client.write(stream, &message[written..]) {
            Ok(count) => written += count,
            Err(error) => assert_eq!(error, WriteError::Blocked),
        }
        assert!(client.output().len() <= 64 * 1024);
        exchange(&mut client, &mut server, piece);
        server.accept(Direction::Bidirectional);
        // No more is ever unread than the window.
        assert!(written - received.len() <= 40_000);
        let (bytes, end) = read_all(&mut server, stream);
        assert_eq!(end, Some(ReadError::Blocked));
        received.extend_from_slice(&bytes);
        rounds += 1;
        assert!(rounds < 1000);
    }
    assert_eq!(received, message);
    assert!(!client.is_closed() && !server.is_closed());
}

#[test]
fn a_blocked_stream_goes_on_after_credit() {
    let (mut client, mut server) = pair();
    let streams: Vec<_> = (0..3).map(|_| client.open(Direction::Bidirectional).unwrap()).collect();
    let message = vec![7; 40_000];
    // The window of the connection ends within the third stream.
    for (stream, expected) in streams.iter().zip([40_000, 40_000, 20_000]) {
        let mut written = 0;
        while let Ok(count) = client.write(*stream, &message[written..]) {
            written += count;
            exchange(&mut client, &mut server, usize::MAX);
            if written == message.len() {
                break;
            }
        }
        assert_eq!(written, expected);
    }
    events(&mut client);
    while let Some(stream) = server.accept(Direction::Bidirectional) {
        if stream == streams[1] {
            assert_eq!(read_all(&mut server, stream).0.len(), 40_000);
        }
    }
    exchange(&mut client, &mut server, usize::MAX);
    // The second stream has waited for nothing.
    assert_eq!(events(&mut client), []);
    assert_eq!(read_all(&mut server, streams[0]).0.len(), 40_000);
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(events(&mut client), [Event::Writable(streams[2])]);
    assert_eq!(client.write(streams[2], &message[20_000..]), Ok(20_000));
}

#[test]
fn streams_may_be_opened_as_others_end() {
    let (mut client, mut server) = pair();
    for round in 0..20 {
        let streams: Vec<_> = std::iter::from_fn(|| client.open(Direction::Bidirectional)).collect();
        assert_eq!(streams.len(), 4, "{round}");
        for stream in &streams {
            client.finish(*stream).unwrap();
        }
        exchange(&mut client, &mut server, usize::MAX);
        events(&mut client);
        while let Some(stream) = server.accept(Direction::Bidirectional) {
            assert_eq!(read_all(&mut server, stream), (Vec::new(), None));
            server.finish(stream).unwrap();
        }
        exchange(&mut client, &mut server, usize::MAX);
        for stream in streams {
            assert_eq!(read_all(&mut client, stream), (Vec::new(), None));
        }
        // Those that ended are known to the client with what is sent next.
        exchange(&mut client, &mut server, usize::MAX);
        assert!(events(&mut client).contains(&Event::StreamsAvailable(Direction::Bidirectional)), "{round}");
    }
    server.set_max_streams(Direction::Bidirectional, 9);
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(std::iter::from_fn(|| client.open(Direction::Bidirectional)).count(), 9);
}

#[test]
fn resets_and_stops_end_their_directions() {
    let (mut client, mut server) = pair();
    let stream = client.open(Direction::Bidirectional).unwrap();
    client.write(stream, b"abc").unwrap();
    exchange(&mut client, &mut server, usize::MAX);
    server.accept(Direction::Bidirectional).unwrap();
    events(&mut server);
    client.reset(stream, 0x10c);
    server.stop(stream, 0x100);
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(client.write(stream, b"d"), Err(WriteError::Closed));
    assert_eq!(server.read(stream, 1), Err(ReadError::Closed));
    server.write(stream, b"answer").unwrap();
    exchange(&mut client, &mut server, usize::MAX);
    client.stop(stream, 0x10c);
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(events(&mut server), [Event::Stopped(stream, 0x10c)]);
    assert_eq!(server.write(stream, b"more"), Err(WriteError::Stopped(0x10c)));
    server.reset(stream, 0x10c);
    exchange(&mut client, &mut server, usize::MAX);

    let other = client.open(Direction::Bidirectional).unwrap();
    client.write(other, b"abc").unwrap();
    exchange(&mut client, &mut server, usize::MAX);
    server.accept(Direction::Bidirectional).unwrap();
    client.reset(other, 7);
    exchange(&mut client, &mut server, usize::MAX);
    assert_eq!(events(&mut server), [Event::StreamsOpened(Direction::Bidirectional), Event::Readable(other)]);
    assert_eq!(server.read(other, 9), Err(ReadError::Reset(7)));
    assert!(!client.is_closed() && !server.is_closed());
}

#[test]
fn a_close_ends_both_sides_and_an_idle_connection_ends() {
    let (mut client, mut server) = pair();
    events(&mut client);
    server.close(0x100, b"bye");
    assert!(server.is_closed());
    exchange(&mut client, &mut server, 1);
    assert_eq!(events(&mut client), [Event::Closed(Closed::ByPeer { code: 0x100, reason: [].into() })]);
    assert!(client.is_closed() && client.open(Direction::Bidirectional).is_none());

    let (mut client, mut server) = pair();
    events(&mut server);
    let later = NOW + Duration::from_secs(30);
    assert_eq!(server.deadline(), Some(later));
    client.open(Direction::Bidirectional).unwrap();
    assert_eq!(client.deadline(), None);
    server.expire(later);
    assert_eq!(events(&mut server), [Event::Closed(Closed::TimedOut)]);
    assert!(server.output().is_empty());
}

/// Returns a record with these frames.
fn record(frames: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::push(frames.len() as u64, &mut bytes);
    bytes.extend_from_slice(frames);
    bytes
}

const PARAMETERS: &[u8] = b"\xff\x51\x53\x30\x0d\x0a\x0d\x0a\x06\x04\x01\x3f\x06\x01\x3f";

#[test]
fn violations_close_the_connection() {
    use super::error::ErrorCode::*;
    let first = record(PARAMETERS);
    let rows: [(&[u8], super::error::ErrorCode); 22] = [
        // A frame twice, or with a type of other versions or none.
        (PARAMETERS, TransportParameter),
        (b"\x01", FrameEncoding),
        (b"\x02\0\0\0\0", FrameEncoding),
        (b"\x06\0\0", FrameEncoding),
        (b"\x1e", FrameEncoding),
        (b"\x21\0", FrameEncoding),
        // Truncated frames, also a length that ends after the record.
        (b"\x04\0\0", FrameEncoding),
        (b"\x0a\0\x05abcd", FrameEncoding),
        (b"\x1d\0\x02a", FrameEncoding),
        // Numbers and offsets that are too large.
        (b"\x0e\0\xff\xff\xff\xff\xff\xff\xff\xff\x01a", FrameEncoding),
        (b"\x12\xd0\0\0\0\0\0\0\x01", FrameEncoding),
        // Streams above the limit, of this side, and of the wrong direction.
        (b"\x0a\x10\x01a", StreamLimit),
        (b"\x0a\x0e\x01a", StreamLimit),
        (b"\x0a\x01\x01a", StreamState),
        (b"\x0a\x03\x01a", StreamState),
        (b"\x05\x02\0", StreamState),
        (b"\x11\x01\x05", StreamState),
        // Order and size.
        (b"\x0e\0\x01\x01a", ProtocolViolation),
        (b"\x0b\0\x01a\x0e\0\x01\x01b", FinalSize),
        (b"\x0a\0\x02ab\x04\0\0\x01", FinalSize),
        // Windows.
        (b"\x04\0\0\x80\0\x9c\x41", FlowControl),
        (b"", ProtocolViolation),
    ];
    for (frames, code) in rows {
        for piece in [1, usize::MAX] {
            let mut server = Connection::new(true, SETTINGS, NOW);
            let input = [&first[..], &record(frames)].concat();
            input.chunks(piece.min(input.len())).for_each(|piece| server.receive(NOW, piece));
            let closed = events(&mut server).pop();
            let expected = Event::Closed(Closed::Transport { code: code as u64, reason: code.name().into() });
            assert_eq!(closed, Some(expected), "{frames:x?} {piece}");
            let end = server.output().len();
            assert_eq!(&server.output()[end - code.name().len()..], code.name().as_bytes());
        }
    }
    for beginning in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &record(b"\x0a\0\x01a"), &record(b"\0"), b"PRI * HTTP/2.0\r\n\r\n"]
    {
        for piece in [1, usize::MAX] {
            let mut server = Connection::new(true, SETTINGS, NOW);
            beginning.chunks(piece.min(beginning.len())).for_each(|piece| server.receive(NOW, piece));
            assert!(server.is_closed(), "{beginning:x?} {piece}");
        }
    }
    // Larger than any record may be.
    let mut server = Connection::new(true, SETTINGS, NOW);
    server.receive(NOW, b"\x7f\xff");
    assert!(server.is_closed());
}

#[test]
fn pings_are_answered_once_and_a_peer_that_reads_nothing_costs_little() {
    let mut server = Connection::new(true, SETTINGS, NOW);
    server.receive(NOW, &record(PARAMETERS));
    let length = server.output().len();
    server.note_sent(NOW, length);
    let mut ping = b"\xf4\x8c\x67\x52\x9e\xf8\xc7\xbd\x05".to_vec();
    ping.extend_from_slice(b"\xf4\x8c\x67\x52\x9e\xf8\xc7\xbd\x09");
    (0..1000).for_each(|_| server.receive(NOW, &record(&ping)));
    assert_eq!(server.output(), b"\x40\x09\xf4\x8c\x67\x52\x9e\xf8\xc7\xbe\x09");
    assert_eq!(server.take_glitches(), 2000);
    // Streams that are begun and reset: each costs a frame of the server.
    let mut number = 0;
    while !server.is_closed() {
        let mut frames = vec![0x0a];
        varint::push(number * 4, &mut frames);
        frames.extend_from_slice(b"\x01a");
        server.receive(NOW, &record(&frames));
        if let Some(stream) = server.accept(Direction::Bidirectional) {
            server.stop(stream, 1);
            server.reset(stream, 1);
        }
        frames[0] = 0x04;
        frames.truncate(frames.len() - 2);
        frames.extend_from_slice(b"\0\x01");
        server.receive(NOW, &record(&frames));
        let _ = events(&mut server);
        let _ = server.output();
        number += 1;
        assert!(number < 100_000);
    }
    assert!(server.output().len() < 200_000);
}

/// A peer reports what keeps it from sending as often as it likes.
#[test]
fn blocked_frames_are_counted_and_are_no_glitches() {
    let mut server = Connection::new(true, SETTINGS, NOW);
    server.receive(NOW, &record(PARAMETERS));
    for (frame, count) in [(&b"\x14\x09"[..], 200), (b"\x15\0\x09", 300), (b"\x16\x05", 400), (b"\x17\x05", 500)] {
        (0..count).for_each(|_| server.receive(NOW, &record(frame)));
    }
    assert_eq!((server.take_glitches(), server.is_closed()), (0, false));
    let frames = server.received_frames();
    assert_eq!((frames.data_blocked, frames.stream_data_blocked, frames.streams_blocked), (200, 300, [400, 500]));
    // Padding is one.
    server.receive(NOW, &record(b"\0\0"));
    assert_eq!(server.take_glitches(), 1);
}

#[test]
fn priorities_order_the_streams_that_wait() {
    let (mut client, mut server) = pair();
    let streams: Vec<_> = (0..3).map(|_| client.open(Direction::Bidirectional).unwrap()).collect();
    for (stream, priority) in streams.iter().zip([0, 2, 1]) {
        client.set_priority(*stream, priority);
    }
    // The output is full.
    assert_eq!(client.write(streams[0], &[1; 40_000]), Ok(40_000));
    assert!(client.write(streams[1], &[1; 40_000]).unwrap() < 40_000);
    for stream in &streams[1..] {
        assert_eq!(client.write(*stream, &[1; 40_000]), Err(WriteError::Blocked));
    }
    assert_eq!(client.write(streams[0], &[1]), Err(WriteError::Blocked));
    events(&mut client);
    let length = client.output().len();
    let bytes = client.output()[..length].to_vec();
    server.receive(NOW, &bytes);
    client.note_sent(NOW, length);
    // The first one has no window.
    assert_eq!(events(&mut client), [Event::Writable(streams[1]), Event::Writable(streams[2])]);
    assert_eq!(id(0), streams[0]);
}
