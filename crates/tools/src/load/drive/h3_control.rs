//! The unidirectional streams of an HTTP/3 connection of the load: its control stream and those of the server. Must never
//! send a request.

use quic::stream::{Part, ReadError};
use quic::{Bytes, Connection, Direction, StreamId};
use wire::h3::qpack::{AcknowledgmentReader, Decoder, TableLimits};
use wire::h3::{
    self, Capacity, ControlFrame, ControlReader, PeerStreams, Role, Settings, StreamType, TypeReader, push_settings,
    push_stream_type,
};

/// Bytes of a stream that are taken from the connection at once.
const MOST: usize = 4096;
/// Limits of a head.
const CAPACITY: Capacity = Capacity { bytes: 64 * 1024, fields: 1000 };

/// A stream of the server.
struct PeerStream {
    id: StreamId,
    name: TypeReader,
    /// Its type, once that was received.
    kind: Option<StreamType>,
}

/// The unidirectional streams of a connection.
pub(super) struct Control {
    /// The control stream of this side, once it is open.
    own: Option<StreamId>,
    /// Bytes of it that were not sent.
    output: Vec<u8>,
    streams: Vec<PeerStream>,
    peer: PeerStreams,
    reader: ControlReader,
    decoder: Decoder,
    acknowledgments: AcknowledgmentReader,
    /// Requests from this identifier on are not processed (GOAWAY).
    pub(super) limit: Option<u64>,
}

impl Control {
    pub(super) fn new() -> Self {
        let mut output = Vec::new();
        push_stream_type(StreamType::Control, &mut output);
        push_settings(&Settings::default(), &mut output);
        Self {
            own: None,
            output,
            streams: Vec::new(),
            peer: PeerStreams::new(Role::Client),
            reader: ControlReader::new(Role::Client),
            decoder: Decoder::new(TableLimits::default()),
            acknowledgments: AcknowledgmentReader::default(),
            limit: None,
        }
    }

    /// Sends what is left of the control stream, as far as the server permits.
    pub(super) fn send(&mut self, connection: &mut Connection) {
        if self.output.is_empty() {
            return;
        }
        let Some(id) = self.own.or_else(|| connection.open(Direction::Unidirectional)) else { return };
        self.own = Some(id);
        // A server that stops the stream violates HTTP/3, which costs no request.
        let sent = connection.write(id, &self.output).unwrap_or(0);
        self.output.drain(..sent);
    }

    /// Accepts the streams that the server has opened.
    ///
    /// # Errors
    /// The server violates HTTP/3.
    pub(super) fn accept(&mut self, connection: &mut Connection) -> Result<(), h3::Error> {
        while let Some(id) = connection.accept(Direction::Unidirectional) {
            self.streams.push(PeerStream { id, name: TypeReader::default(), kind: None });
            self.read(id, connection)?;
        }
        Ok(())
    }

    /// Reads a stream of the server.
    ///
    /// # Errors
    /// The server violates HTTP/3.
    pub(super) fn read(&mut self, id: StreamId, connection: &mut Connection) -> Result<(), h3::Error> {
        while let Some(position) = self.streams.iter().position(|stream| stream.id == id) {
            match connection.read(id, MOST) {
                Ok(Part::Chunk(bytes)) => {
                    if !self.take(position, &bytes)? {
                        connection.stop(id, h3::ErrorCode::StreamCreationError.number());
                        self.streams.swap_remove(position);
                    }
                }
                Err(ReadError::Blocked) => return Ok(()),
                Ok(Part::End) | Err(ReadError::Reset(_) | ReadError::Closed) => {
                    let ended = self.streams.swap_remove(position);
                    return ended.kind.map_or(Ok(()), |kind| self.peer.close(kind));
                }
            }
        }
        Ok(())
    }

    /// Processes bytes of a stream. Returns false if no more of it are read.
    fn take(&mut self, position: usize, bytes: &Bytes) -> Result<bool, h3::Error> {
        let mut input = &bytes[..];
        let Some(stream) = self.streams.get_mut(position) else { return Ok(false) };
        let kind = match stream.kind {
            Some(kind) => kind,
            None => {
                let Some(kind) = stream.name.read(&mut input) else { return Ok(true) };
                stream.kind = Some(kind);
                if let Err(error) = self.peer.open(kind) {
                    return if error.scope == h3::Scope::Connection { Err(error) } else { Ok(false) };
                }
                kind
            }
        };
        match kind {
            StreamType::Control => {
                while let Some(frame) = self.reader.next(&mut input)? {
                    if let ControlFrame::GoAway(limit) = frame {
                        self.limit = Some(limit);
                    }
                }
            }
            StreamType::QpackEncoder => self.decoder.read_instructions(input)?,
            StreamType::QpackDecoder => self.acknowledgments.read(input)?,
            StreamType::Push | StreamType::WebTransport | StreamType::Unknown(_) => {}
        }
        Ok(true)
    }

    /// Returns the status of a head; 0 if it has none.
    ///
    /// # Errors
    /// The field section is invalid.
    pub(super) fn status(&mut self, stream: StreamId, section: &[u8]) -> Result<u16, h3::Error> {
        let mut status = 0;
        let decoded = self.decoder.decode(stream.number(), section, CAPACITY, |field| {
            if field.name == b":status" {
                status = std::str::from_utf8(field.value).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            }
        });
        decoded.map(|_| status).map_err(h3::Error::from)
    }

    /// Decodes trailers, whose fields are dropped.
    ///
    /// # Errors
    /// The field section is invalid.
    pub(super) fn trailers(&mut self, stream: StreamId, section: &[u8]) -> Result<(), h3::Error> {
        self.status(stream, section).map(drop)
    }
}
