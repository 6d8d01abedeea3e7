//! The peer's unidirectional streams (RFC 9114, section 6.2; RFC 9204, section 4.2): their types, and which of them a
//! connection needs. Must never read their contents.

use super::Role;
use super::error::{Error, ErrorCode};
use super::varint::{self, VarintReader};
use super::webtransport;

/// The type of a unidirectional stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamType {
    /// The control stream.
    Control,
    /// A pushed response.
    Push,
    /// The instructions of the sender's QPACK encoder.
    QpackEncoder,
    /// The instructions of the sender's QPACK decoder.
    QpackDecoder,
    /// A stream of a WebTransport session.
    WebTransport,
    /// A reserved or unknown type.
    Unknown(u64),
}

impl StreamType {
    /// Returns the type with a number.
    pub fn of(number: u64) -> Self {
        match number {
            0x00 => Self::Control,
            0x01 => Self::Push,
            0x02 => Self::QpackEncoder,
            0x03 => Self::QpackDecoder,
            webtransport::STREAM => Self::WebTransport,
            other => Self::Unknown(other),
        }
    }

    /// The number of the type.
    pub fn number(self) -> u64 {
        match self {
            Self::Control => 0x00,
            Self::Push => 0x01,
            Self::QpackEncoder => 0x02,
            Self::QpackDecoder => 0x03,
            Self::WebTransport => webtransport::STREAM,
            Self::Unknown(number) => number,
        }
    }

    /// Whether a connection ends if the stream is closed.
    pub fn is_critical(self) -> bool {
        matches!(self, Self::Control | Self::QpackEncoder | Self::QpackDecoder)
    }
}

/// Appends the type of a stream, with which it begins.
pub fn push_stream_type(kind: StreamType, out: &mut Vec<u8>) {
    varint::push(kind.number().min(varint::MAX), out);
}

/// Reads the type of a stream.
#[derive(Debug, Default)]
pub struct TypeReader(VarintReader);

impl TypeReader {
    /// Continues, and advances `input`. `None`: all input is consumed, and more is necessary.
    pub fn read(&mut self, input: &mut &[u8]) -> Option<StreamType> {
        self.0.read(input).map(StreamType::of)
    }
}

/// The critical streams that the peer has opened.
#[derive(Debug)]
pub struct PeerStreams {
    role: Role,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
}

impl PeerStreams {
    /// Creates the list for an endpoint's role.
    pub fn new(role: Role) -> Self {
        Self { role, has_control: false, has_encoder: false, has_decoder: false }
    }

    /// Records a stream whose type was read.
    ///
    /// # Errors
    /// The peer may not open it. With the scope of the stream: its reading is aborted (RFC 9114, section 6.2.3).
    pub fn open(&mut self, kind: StreamType) -> Result<(), Error> {
        let refused = Error::connection(ErrorCode::StreamCreationError);
        let has = match kind {
            StreamType::Control => &mut self.has_control,
            StreamType::QpackEncoder => &mut self.has_encoder,
            StreamType::QpackDecoder => &mut self.has_decoder,
            StreamType::Push if self.role == Role::Server => return Err(refused),
            // This endpoint never sends MAX_PUSH_ID, so that no push is permitted (RFC 9114, section 4.6).
            StreamType::Push => return Err(Error::connection(ErrorCode::IdError)),
            StreamType::WebTransport | StreamType::Unknown(_) => {
                return Err(Error::stream(ErrorCode::StreamCreationError));
            }
        };
        if std::mem::replace(has, true) { Err(refused) } else { Ok(()) }
    }

    /// Checks whether a stream may be closed.
    ///
    /// # Errors
    /// The connection needs it.
    pub fn close(&self, kind: StreamType) -> Result<(), Error> {
        if kind.is_critical() { Err(Error::connection(ErrorCode::ClosedCriticalStream)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_back_from_any_pieces() {
        for kind in (0..6).chain([0x21, 0x54, 0x4321, varint::MAX]).map(StreamType::of) {
            let mut bytes = Vec::new();
            push_stream_type(kind, &mut bytes);
            bytes.push(9);
            for cut in 0..bytes.len() - 1 {
                let (mut first, mut second) = bytes.split_at(cut);
                let mut reader = TypeReader::default();
                assert_eq!(reader.read(&mut first), None);
                assert_eq!((reader.read(&mut second), second), (Some(kind), &[9][..]));
            }
        }
    }

    /// RFC 9114, sections 4.6 and 6.2; RFC 9204, section 4.2.
    #[test]
    fn critical_streams_are_opened_once_and_never_closed() {
        let duplicate = Err(Error::connection(ErrorCode::StreamCreationError));
        for role in [Role::Client, Role::Server] {
            let mut streams = PeerStreams::new(role);
            for kind in [StreamType::Control, StreamType::QpackEncoder, StreamType::QpackDecoder] {
                assert_eq!(streams.open(kind), Ok(()));
                assert_eq!(streams.open(kind), duplicate);
                assert_eq!(streams.close(kind), Err(Error::connection(ErrorCode::ClosedCriticalStream)));
            }
            for _ in 0..2 {
                let unknown = StreamType::of(0x21);
                assert_eq!(streams.open(unknown), Err(Error::stream(ErrorCode::StreamCreationError)));
                assert_eq!(streams.close(unknown), Ok(()));
            }
        }
        assert_eq!(PeerStreams::new(Role::Server).open(StreamType::Push), duplicate);
        let client = PeerStreams::new(Role::Client).open(StreamType::Push);
        assert_eq!(client, Err(Error::connection(ErrorCode::IdError)));
    }
}
