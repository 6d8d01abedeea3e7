//! The streams and messages of a QUIC connection as bytes, for tests of WebTransport on both sides.

use std::collections::BTreeMap;

use quic::stream::{Part, ReadError};
use quic::{Connection, Direction, StreamId, Transport, transport};
use wire::h3::{self, StreamType};

/// A stream, as far as it was received.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RawStream {
    pub bytes: Vec<u8>,
    pub ended: bool,
    pub reset: Option<u64>,
}

/// What was received.
#[derive(Debug, Default)]
pub struct RawStreams {
    pub streams: BTreeMap<StreamId, RawStream>,
    pub messages: Vec<Vec<u8>>,
    /// Streams that the peer does not read any further, with its codes.
    pub stopped: Vec<(StreamId, u64)>,
}

impl RawStreams {
    /// Accepts the streams that the peer has opened.
    pub fn accept(&mut self, direction: Direction, connection: &mut Connection) {
        while let Some(id) = connection.accept(direction) {
            self.read(id, connection);
        }
    }

    /// Opens a stream with these bytes.
    pub fn open(&mut self, direction: Direction, bytes: &[u8], connection: &mut Connection) -> StreamId {
        let id = connection.open(direction).unwrap();
        self.streams.insert(id, RawStream::default());
        assert_eq!(connection.write(id, bytes), Ok(bytes.len()));
        id
    }

    /// Reads what a stream has received.
    pub fn read(&mut self, id: StreamId, connection: &mut Connection) {
        let stream = self.streams.entry(id).or_default();
        loop {
            match connection.read(id, usize::MAX) {
                Ok(Part::Chunk(bytes)) => stream.bytes.extend_from_slice(&bytes),
                Ok(Part::End) => {
                    stream.ended = true;
                    return;
                }
                Err(ReadError::Reset(code)) => {
                    stream.reset = Some(code);
                    return;
                }
                Err(ReadError::Blocked | ReadError::Closed) => return,
            }
        }
    }

    /// Receives the messages.
    pub fn receive(&mut self, connection: &mut Connection) {
        while let Some(message) = connection.receive_message() {
            self.messages.push(message.to_vec());
        }
    }

    /// Returns the stream of the peer that begins with these bytes, and what follows them.
    pub fn beginning(&self, beginning: &[u8]) -> Option<(StreamId, &RawStream)> {
        self.streams.iter().map(|(id, stream)| (*id, stream)).find(|(_, stream)| stream.bytes.starts_with(beginning))
    }
}

/// The parameters of a connection with sessions.
pub fn transport(max_streams: u32) -> Transport {
    Transport::new(&transport::Settings {
        max_bidirectional: max_streams,
        max_unidirectional: 3 + max_streams,
        messages: Some(65_536),
        ..transport::Settings::default()
    })
}

/// The bytes of a control stream with settings for sessions.
pub fn control() -> Vec<u8> {
    let mut bytes = Vec::new();
    h3::push_stream_type(StreamType::Control, &mut bytes);
    let settings = h3::Settings { extended_connect: true, datagrams: true, sessions: 1, ..h3::Settings::default() };
    h3::push_settings(&settings, &mut bytes);
    bytes
}
