//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): the beginnings of its streams and of HTTP Datagrams (RFC 9297,
//! section 2.1), which name a session. Must never know whether that exists.

use super::error::{Error, ErrorCode};
use super::varint::{self, VarintReader};

/// WEBTRANSPORT_BUFFERED_STREAM_REJECTED: too many streams wait for their sessions.
pub const BUFFERED_STREAM_REJECTED: u64 = 0x3994_bd84;
/// WEBTRANSPORT_SESSION_GONE: the session of a stream has ended.
pub const SESSION_GONE: u64 = 0x170d_7b68;

/// The signal that begins a bidirectional stream, in the place of a frame's type.
pub(super) const SIGNAL: u64 = 0x41;
/// The type of a unidirectional stream.
pub(super) const STREAM: u64 = 0x54;

/// The largest quarter of a stream ID.
const MOST_QUARTERS: u64 = varint::MAX / 4;

/// Checks that a session is a stream on which clients send requests.
///
/// # Errors
/// It is not.
pub fn session(id: u64) -> Result<u64, Error> {
    if id.is_multiple_of(4) { Ok(id) } else { Err(Error::connection(ErrorCode::IdError)) }
}

/// Reads the session in the beginning of a stream.
#[derive(Debug, Default)]
pub struct BeginningReader {
    varint: VarintReader,
    /// Whether the signal or the type is read.
    is_named: bool,
}

impl BeginningReader {
    /// Creates a reader of a bidirectional stream, from its first byte on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader of a unidirectional stream whose type is read.
    pub fn after_type() -> Self {
        Self { is_named: true, ..Self::default() }
    }

    /// Continues, and advances `input`. `None`: all input is consumed, and more is necessary.
    ///
    /// # Errors
    /// The stream does not begin with the signal, or its session is no request.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<u64>, Error> {
        if !self.is_named {
            match self.varint.read(input) {
                None => return Ok(None),
                Some(SIGNAL) => self.is_named = true,
                Some(_) => return Err(Error::connection(ErrorCode::StreamCreationError)),
            }
        }
        self.varint.read(input).map(session).transpose()
    }
}

/// Appends the beginning of a stream of a session.
pub fn push_beginning(session: u64, is_bidirectional: bool, out: &mut Vec<u8>) {
    varint::push(if is_bidirectional { SIGNAL } else { STREAM }, out);
    varint::push(session.min(varint::MAX), out);
}

/// Reads the session of an HTTP Datagram, and advances `input` to its payload.
///
/// # Errors
/// It is truncated, or names no stream.
pub fn read_datagram(input: &mut &[u8]) -> Result<u64, Error> {
    let quarter = varint::read(input).filter(|quarter| *quarter <= MOST_QUARTERS);
    quarter.map(|quarter| 4 * quarter).ok_or(Error::connection(ErrorCode::DatagramError))
}

/// Appends the beginning of an HTTP Datagram of a session.
pub fn push_datagram(session: u64, out: &mut Vec<u8>) {
    varint::push((session / 4).min(MOST_QUARTERS), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_come_back_from_any_pieces() {
        for (session, is_bidirectional) in
            [(0, true), (0, false), (252, true), (16_384, false), (varint::MAX - 3, true)]
        {
            let mut bytes = Vec::new();
            push_beginning(session, is_bidirectional, &mut bytes);
            bytes.push(9);
            for cut in 0..bytes.len() - 1 {
                let mut whole = &bytes[..];
                let mut reader = if is_bidirectional {
                    BeginningReader::new()
                } else {
                    assert_eq!(varint::read(&mut whole), Some(STREAM));
                    BeginningReader::after_type()
                };
                let (mut first, mut second) = whole.split_at(cut.min(whole.len() - 2));
                assert_eq!(reader.read(&mut first), Ok(None));
                assert_eq!((reader.read(&mut second), second), (Ok(Some(session)), &[9][..]));
            }
        }
    }

    #[test]
    fn other_beginnings_are_refused() {
        let refused = |bytes: &[u8]| BeginningReader::new().read(&mut &bytes[..]);
        // A frame of HTTP/3, and sessions that are not requests of clients.
        assert_eq!(refused(&[0x01, 0x00]), Err(Error::connection(ErrorCode::StreamCreationError)));
        for session in [1, 2, 3] {
            assert_eq!(refused(&[0x40, 0x41, session]), Err(Error::connection(ErrorCode::IdError)));
        }
    }

    /// RFC 9297, section 2.1.
    #[test]
    fn datagrams_name_a_quarter_of_a_stream() {
        for (session, expected) in [(0, &[0][..]), (4, &[1]), (252, &[63]), (256, &[0x40, 64])] {
            let mut bytes = Vec::new();
            push_datagram(session, &mut bytes);
            assert_eq!(bytes, expected);
            bytes.extend_from_slice(b"one");
            let mut input = &bytes[..];
            assert_eq!((read_datagram(&mut input), input), (Ok(session), &b"one"[..]));
        }
        // Truncated, empty, and beyond the largest stream.
        for bytes in [&[][..], &[0x40], &[0xd0, 0, 0, 0, 0, 0, 0, 0], &[0xff; 8]] {
            assert_eq!(read_datagram(&mut &bytes[..]), Err(Error::connection(ErrorCode::DatagramError)), "{bytes:x?}");
        }
        let largest = [0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(read_datagram(&mut &largest[..]), Ok(varint::MAX - 3));
    }
}
