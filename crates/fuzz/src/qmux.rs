//! A connection of QMux on either side: for any bytes, in any pieces, its streams have the same contents and it ends in the same
//! way; unread bytes stay within the windows, and waiting output is bounded.

use std::collections::BTreeMap;
use std::time::Duration;

use base::moment::Moment;
use quic::qmux::{Connection, Settings};
use quic::stream::{Part, ReadError};
use quic::{Closed, Direction, Event, StreamId};

const SETTINGS: Settings = Settings {
    idle_timeout: Duration::ZERO,
    max_bidirectional: 5,
    max_unidirectional: 3,
    window: 2000,
    stream_window: 900,
};

/// A record with transport parameters.
const PARAMETERS: &[u8] = b"\x40\x15\xff\x51\x53\x30\x0d\x0a\x0d\x0a\x0c\x04\x01\x3f\x05\x01\x3f\x06\x01\x3f\x08\x01\x05";

/// Maximum number of bytes that wait to be sent.
const MOST_OUTPUT: usize = 200_000;

/// The result of a connection.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    streams: BTreeMap<StreamId, (Vec<u8>, Option<u64>)>,
    stopped: Vec<(StreamId, u64)>,
    closed: Option<Closed>,
}

/// Runs on one input: a byte that selects the side and whether the parameters are sent, one that selects the size of pieces, and
/// the bytes of a peer; panics if a property is violated.
pub fn run(data: &[u8]) {
    let Some(([choice, step], bytes)) = data.split_first_chunk::<2>() else { return };
    let is_server = choice & 1 == 0;
    let input = if choice & 2 == 0 { [PARAMETERS, bytes].concat() } else { bytes.to_vec() };
    let whole = receive(is_server, &input, input.len().max(1));
    let pieces = receive(is_server, &input, usize::from(*step).max(1));
    assert_eq!(whole, pieces, "pieces change the result");
}

/// Receives bytes in pieces, and reads the streams at the end. The peer gets no credit meanwhile, so that its windows do not
/// depend on the pieces.
fn receive(is_server: bool, input: &[u8], step: usize) -> Outcome {
    let mut connection = Connection::new(is_server, SETTINGS, Moment::ZERO);
    let mut outcome = Outcome::default();
    for piece in input.chunks(step) {
        connection.receive(Moment::ZERO, piece);
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Closed(closed) => outcome.closed = Some(closed),
                Event::Stopped(id, code) => outcome.stopped.push((id, code)),
                _ => {}
            }
        }
        assert!(connection.is_closed() == outcome.closed.is_some());
    }
    let mut unread = 0;
    for direction in [Direction::Bidirectional, Direction::Unidirectional] {
        while let Some(id) = connection.accept(direction) {
            let (bytes, reset) = outcome.streams.entry(id).or_default();
            loop {
                match connection.read(id, 100) {
                    Ok(Part::Chunk(chunk)) => bytes.extend_from_slice(&chunk),
                    Err(ReadError::Reset(code)) => *reset = Some(code),
                    Ok(Part::End) | Err(_) => break,
                }
            }
            assert!(bytes.len() <= SETTINGS.stream_window as usize);
            unread += bytes.len();
            connection.stop(id, 1);
            connection.reset(id, 1);
        }
    }
    assert!(unread <= SETTINGS.window as usize);
    assert!(connection.output().len() <= MOST_OUTPUT);
    outcome
}
