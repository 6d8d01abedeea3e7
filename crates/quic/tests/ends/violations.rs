//! Violations of QUIC by a client, each with the error that RFC 9000 and RFC 9001 require.

use crate::raw::{Level, Raw, frame, own_id, parameter, varint};

const FLOW_CONTROL: u64 = 0x3;
const STREAM_LIMIT: u64 = 0x4;
const STREAM_STATE: u64 = 0x5;
const FINAL_SIZE: u64 = 0x6;
const FRAME_ENCODING: u64 = 0x7;
const TRANSPORT_PARAMETER: u64 = 0x8;
const CONNECTION_ID_LIMIT: u64 = 0x9;
const PROTOCOL_VIOLATION: u64 = 0xa;
const CRYPTO_BUFFER: u64 = 0xd;
const UNEXPECTED_MESSAGE: u64 = 0x10a;

/// Above the largest number of streams (RFC 9000, section 4.6).
const MANY_STREAMS: u64 = (1 << 60) + 1;

#[test]
fn transport_parameters_are_checked() {
    let with = |id: u64, value: &[u8]| [own_id(), parameter(id, value)].concat();
    let rows = [
        ("without the own id", Vec::new()),
        ("another own id", parameter(0x0f, &[1, 2])),
        ("original_destination_connection_id", with(0x00, &[7; 8])),
        ("stateless_reset_token", with(0x02, &[1; 16])),
        ("preferred_address", with(0x0d, &[[0; 24].to_vec(), vec![4, 1, 1, 1, 1], vec![1; 16]].concat())),
        ("retry_source_connection_id", with(0x10, &[1; 8])),
        ("max_udp_payload_size of 1199", with(0x03, &varint(1_199))),
        ("ack_delay_exponent of 21", with(0x0a, &varint(21))),
        ("max_ack_delay of 2^14", with(0x0b, &varint(1 << 14))),
        ("active_connection_id_limit of 1", with(0x0e, &varint(1))),
        ("initial_max_streams_bidi", with(0x08, &varint(MANY_STREAMS))),
        ("initial_max_streams_uni", with(0x09, &varint(MANY_STREAMS))),
        ("twice", [own_id(), own_id()].concat()),
        ("of a wrong length", with(0x04, &[0, 0, 0])),
        ("truncated", [own_id(), vec![0x04, 9, 1]].concat()),
    ];
    for (row, parameters) in rows {
        let mut raw = Raw::new(parameters);
        raw.begin();
        assert_eq!(raw.code(), Some(TRANSPORT_PARAMETER), "{row}");
    }
}

#[test]
fn first_packets_are_checked() {
    let rows = [
        ("an unknown frame", vec![0x3f], FRAME_ENCODING),
        ("a frame of streams", frame(0x0a, &[0, 1], b"x"), PROTOCOL_VIOLATION),
        ("PATH_CHALLENGE", frame(0x1a, &[], &[1; 8]), PROTOCOL_VIOLATION),
        ("HANDSHAKE_DONE", frame(0x1e, &[], &[]), PROTOCOL_VIOLATION),
        ("NEW_TOKEN", frame(0x07, &[1], b"x"), PROTOCOL_VIOLATION),
        ("MAX_DATA", frame(0x10, &[1], &[]), PROTOCOL_VIOLATION),
        ("an acknowledgment of what was not sent", frame(0x02, &[50, 0, 0, 0], &[]), PROTOCOL_VIOLATION),
        ("CRYPTO far ahead", frame(0x06, &[1 << 20, 1], b"x"), CRYPTO_BUFFER),
        ("half a CRYPTO frame", frame(0x06, &[0, 0x3fff], b"x"), FRAME_ENCODING),
        ("a message that is no hello", frame(0x06, &[0, 4], &[2, 0, 0, 0]), UNEXPECTED_MESSAGE),
    ];
    for (row, frames, code) in rows {
        let mut raw = Raw::new(own_id());
        raw.send(Level::Initial, &frames);
        assert_eq!(raw.code(), Some(code), "{row}");
    }
    // A first packet with reserved bits begins no connection.
    let mut raw = Raw::new(own_id());
    raw.reserved = 0x0c;
    raw.begin();
    assert_eq!((raw.code(), raw.world.server.endpoint.connections()), (None, 0));
}

#[test]
fn packets_of_the_handshake_are_checked() {
    let rows = [
        ("no frames", Vec::new(), 0, PROTOCOL_VIOLATION),
        ("PATH_CHALLENGE", frame(0x1a, &[], &[1; 8]), 0, PROTOCOL_VIOLATION),
        ("a frame of streams", frame(0x0a, &[0, 1], b"x"), 0, PROTOCOL_VIOLATION),
        ("an unknown frame", vec![0x3f], 0, FRAME_ENCODING),
        ("reserved bits", vec![1], 0x0c, PROTOCOL_VIOLATION),
    ];
    for (row, frames, reserved, code) in rows {
        let mut raw = Raw::connected();
        raw.reserved = reserved;
        raw.send(Level::Handshake, &frames);
        // The server has discarded the keys of the handshake with its end: the packet is ignored.
        assert_eq!(raw.code(), None, "{row} after the handshake");
        let mut raw = Raw::new(own_id());
        raw.begin();
        raw.receive_hello();
        raw.reserved = reserved;
        raw.send(Level::Handshake, &frames);
        assert_eq!(raw.code(), Some(code), "{row}");
    }
}

/// Frames after the handshake. The server's limits are those of its defaults: 100 streams, 3 unidirectional ones.
#[test]
fn frames_are_checked() {
    let id = |sequence: u64, retired: u64, length: u8| {
        frame(0x18, &[sequence, retired], &[&[length][..], &vec![5; usize::from(length)], &[6; 16]].concat())
    };
    let stream = |number: u64, offset: u64, data: &[u8]| frame(0x0e, &[number, offset, data.len() as u64], data);
    let ended = |number: u64, data: &[u8]| frame(0x0f, &[number, 0, data.len() as u64], data);
    let ids: Vec<u8> = (1..9)
        .flat_map(|sequence| frame(0x18, &[sequence, 0], &[&[8][..], &[sequence as u8; 8], &[6; 16]].concat()))
        .collect();
    let rows = [
        ("no frames", Vec::new(), PROTOCOL_VIOLATION),
        ("an unknown frame", vec![0x3f], FRAME_ENCODING),
        ("NEW_TOKEN", frame(0x07, &[1], b"x"), PROTOCOL_VIOLATION),
        ("HANDSHAKE_DONE", vec![0x1e], PROTOCOL_VIOLATION),
        ("RETIRE_CONNECTION_ID of an id that was not issued", frame(0x19, &[100], &[]), PROTOCOL_VIOLATION),
        ("NEW_CONNECTION_ID retires later ones", id(1, 2, 8), FRAME_ENCODING),
        ("NEW_CONNECTION_ID of 0 bytes", id(1, 0, 0), FRAME_ENCODING),
        ("NEW_CONNECTION_ID of 21 bytes", id(1, 0, 21), FRAME_ENCODING),
        ("NEW_CONNECTION_ID above the limit", ids, CONNECTION_ID_LIMIT),
        ("STREAM of the server, not begun", stream(1, 0, b"x"), STREAM_STATE),
        ("STREAM that only the server writes", stream(3, 0, b"x"), STREAM_STATE),
        ("RESET_STREAM that only the server writes", frame(0x04, &[3, 0, 0], &[]), STREAM_STATE),
        ("STREAM_DATA_BLOCKED that only the server writes", frame(0x15, &[3, 0], &[]), STREAM_STATE),
        ("STOP_SENDING of one that the server reads", frame(0x05, &[2, 0], &[]), STREAM_STATE),
        ("STOP_SENDING of the server's, not begun", frame(0x05, &[1, 0], &[]), STREAM_STATE),
        ("MAX_STREAM_DATA of one that the server reads", frame(0x11, &[2, 9], &[]), STREAM_STATE),
        ("MAX_STREAM_DATA of the server's, not begun", frame(0x11, &[1, 9], &[]), STREAM_STATE),
        ("too many streams", stream(4 * 100, 0, b"x"), STREAM_LIMIT),
        ("too many unidirectional streams", stream(4 * 3 + 2, 0, b"x"), STREAM_LIMIT),
        ("bytes above the window", stream(0, 1 << 30, b"x"), FLOW_CONTROL),
        ("RESET_STREAM above the window", frame(0x04, &[0, 0, 1 << 30], &[]), FLOW_CONTROL),
        ("bytes after the end", [ended(0, b"ab"), stream(0, 2, b"x")].concat(), FINAL_SIZE),
        ("another end", [ended(0, b"ab"), ended(0, b"a")].concat(), FINAL_SIZE),
        ("RESET_STREAM with another size", [ended(0, b"ab"), frame(0x04, &[0, 0, 9], &[])].concat(), FINAL_SIZE),
        ("RESET_STREAM before what was sent", [stream(0, 0, b"ab"), frame(0x04, &[0, 0, 1], &[])].concat(), FINAL_SIZE),
        ("MAX_STREAMS", frame(0x12, &[MANY_STREAMS], &[]), FRAME_ENCODING),
        ("MAX_STREAMS, unidirectional", frame(0x13, &[MANY_STREAMS], &[]), FRAME_ENCODING),
        ("STREAMS_BLOCKED", frame(0x16, &[MANY_STREAMS], &[]), FRAME_ENCODING),
        ("an acknowledgment of what was not sent", frame(0x02, &[5_000, 0, 0, 0], &[]), PROTOCOL_VIOLATION),
        ("a range below 0", frame(0x02, &[0, 0, 0, 1], &[]), FRAME_ENCODING),
        ("half a frame", frame(0x0e, &[0, 0, 50], b"x"), FRAME_ENCODING),
        ("KeyUpdate of TLS", frame(0x06, &[0, 5], &[24, 0, 0, 1, 0]), UNEXPECTED_MESSAGE),
        ("CRYPTO far ahead", frame(0x06, &[1 << 20, 1], b"x"), CRYPTO_BUFFER),
    ];
    for (row, frames, code) in rows {
        let mut raw = Raw::connected();
        raw.send(Level::OneRtt, &frames);
        assert_eq!(raw.code(), Some(code), "{row}");
    }
    let mut raw = Raw::connected();
    raw.reserved = 0x18;
    raw.send(Level::OneRtt, &[1]);
    assert_eq!(raw.code(), Some(PROTOCOL_VIOLATION), "reserved bits");
    // Valid frames end nothing.
    let mut raw = Raw::connected();
    raw.send(Level::OneRtt, &[vec![1], frame(0x1a, &[], &[1; 8]), frame(0x1b, &[], &[1; 8])].concat());
    assert_eq!(raw.code(), None);
}
