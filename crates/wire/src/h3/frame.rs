//! Frame headers and the rules for types (RFC 9114, section 7; RFC 9218, section 7.2). Must never keep a payload.

use super::varint::{self, VarintReader};
use super::webtransport;

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameType {
    /// Payload of a message.
    Data,
    /// A head, or trailers.
    Headers,
    /// A push that is not wanted, or not made.
    CancelPush,
    /// Settings.
    Settings,
    /// A promised request.
    PushPromise,
    /// The sender accepts no new requests or pushes.
    GoAway,
    /// The largest permitted push ID.
    MaxPushId,
    /// A changed priority of a request.
    PriorityUpdate,
    /// A changed priority of a push.
    PushPriorityUpdate,
    /// A type of HTTP/2 without a counterpart: PRIORITY, PING, WINDOW_UPDATE, CONTINUATION (RFC 9114, section 7.2.8).
    Http2,
    /// The signal that begins a bidirectional stream of a WebTransport session; an unknown type elsewhere.
    StreamSignal,
    /// A reserved or unknown type, which is ignored.
    Unknown,
}

/// The kind of a stream that carries frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameStream {
    Control,
    Request,
    Push,
}

impl FrameType {
    /// Returns the type with a number.
    pub fn of(number: u64) -> Self {
        match number {
            0x00 => Self::Data,
            0x01 => Self::Headers,
            0x03 => Self::CancelPush,
            0x04 => Self::Settings,
            0x05 => Self::PushPromise,
            0x07 => Self::GoAway,
            0x0d => Self::MaxPushId,
            0xf0700 => Self::PriorityUpdate,
            0xf0701 => Self::PushPriorityUpdate,
            0x02 | 0x06 | 0x08 | 0x09 => Self::Http2,
            webtransport::SIGNAL => Self::StreamSignal,
            _ => Self::Unknown,
        }
    }

    /// The number of the type. Of the types that are not sent: reserved ones (RFC 9114, section 7.2.8).
    pub fn number(self) -> u64 {
        match self {
            Self::Data => 0x00,
            Self::Headers => 0x01,
            Self::CancelPush => 0x03,
            Self::Settings => 0x04,
            Self::PushPromise => 0x05,
            Self::GoAway => 0x07,
            Self::MaxPushId => 0x0d,
            Self::PriorityUpdate => 0xf0700,
            Self::PushPriorityUpdate => 0xf0701,
            Self::StreamSignal => webtransport::SIGNAL,
            Self::Http2 | Self::Unknown => 0x21,
        }
    }

    /// Whether a frame of the type has no meaning, so that its payload is skipped.
    pub(super) fn is_ignored(self) -> bool {
        matches!(self, Self::Unknown | Self::StreamSignal)
    }

    /// Whether a stream may carry the type (RFC 9114, table 1; RFC 9218, section 7.2).
    pub fn is_permitted_on(self, stream: FrameStream) -> bool {
        match self {
            Self::Data | Self::Headers => stream != FrameStream::Control,
            Self::PushPromise => stream == FrameStream::Request,
            Self::CancelPush
            | Self::Settings
            | Self::GoAway
            | Self::MaxPushId
            | Self::PriorityUpdate
            | Self::PushPriorityUpdate => stream == FrameStream::Control,
            Self::Http2 => false,
            Self::StreamSignal | Self::Unknown => true,
        }
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) kind: FrameType,
    /// Length of the payload in bytes.
    pub(super) length: u64,
}

/// Reads frame headers from input that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct HeaderReader {
    varint: VarintReader,
    /// The type, once it is read.
    kind: Option<FrameType>,
}

impl HeaderReader {
    /// Continues, and advances `input`. `None`: all input is consumed, and more is necessary.
    #[inline]
    pub(super) fn read(&mut self, input: &mut &[u8]) -> Option<FrameHeader> {
        let kind = match self.kind {
            Some(kind) => kind,
            None => *self.kind.insert(FrameType::of(self.varint.read(input)?)),
        };
        let length = self.varint.read(input)?;
        self.kind = None;
        Some(FrameHeader { kind, length })
    }

    /// Whether a header is read in part.
    pub(super) fn is_partial(&self) -> bool {
        self.kind.is_some() || self.varint.is_partial()
    }
}

/// Takes the next part of a payload of which `left` bytes are missing from the input.
#[inline]
pub(super) fn take<'i>(input: &mut &'i [u8], left: &mut u64) -> &'i [u8] {
    let most = usize::try_from(*left).unwrap_or(usize::MAX);
    let (part, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    *left -= part.len() as u64;
    part
}

/// Space for the header of any frame whose type takes one byte, such as DATA.
pub const MAX_DATA_HEADER: usize = 1 + varint::LONGEST;

/// An encoded frame header.
#[derive(Debug, Clone, Copy)]
pub struct EncodedHeader {
    bytes: [u8; 2 * varint::LONGEST],
    length: u8,
}

impl EncodedHeader {
    /// The bytes of the header.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Encodes the header of a frame whose payload has `length` bytes, at most [`varint::MAX`].
pub fn frame_header(kind: FrameType, length: u64) -> EncodedHeader {
    let mut bytes = [0; 2 * varint::LONGEST];
    let first = varint::write(kind.number(), &mut bytes).unwrap_or_default();
    let second = varint::write(length.min(varint::MAX), &mut bytes[first..]).unwrap_or_default();
    EncodedHeader { bytes, length: (first + second) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [FrameType; 11] = [
        FrameType::Data,
        FrameType::Headers,
        FrameType::CancelPush,
        FrameType::Settings,
        FrameType::PushPromise,
        FrameType::GoAway,
        FrameType::MaxPushId,
        FrameType::PriorityUpdate,
        FrameType::PushPriorityUpdate,
        FrameType::Http2,
        FrameType::Unknown,
    ];

    /// RFC 9114, table 1: control, request, push.
    #[test]
    fn types_are_permitted_on_their_streams() {
        let rows = [
            (0x00, [false, true, true]),
            (0x01, [false, true, true]),
            (0x02, [false, false, false]),
            (0x03, [true, false, false]),
            (0x04, [true, false, false]),
            (0x05, [false, true, false]),
            (0x06, [false, false, false]),
            (0x07, [true, false, false]),
            (0x08, [false, false, false]),
            (0x09, [false, false, false]),
            (0x0d, [true, false, false]),
            (0x21, [true, true, true]),
            (0x1f * 1_000_000 + 0x21, [true, true, true]),
            (0x0a, [true, true, true]),
            (0xf0700, [true, false, false]),
            (0xf0701, [true, false, false]),
            (varint::MAX, [true, true, true]),
        ];
        for (number, expected) in rows {
            let kind = FrameType::of(number);
            let streams = [FrameStream::Control, FrameStream::Request, FrameStream::Push];
            assert_eq!(streams.map(|stream| kind.is_permitted_on(stream)), expected, "{number:x}");
        }
    }

    #[test]
    fn headers_come_back_from_any_pieces() {
        for kind in ALL {
            for length in [0, 1, 63, 64, 16_383, 16_384, 1 << 30, varint::MAX] {
                let bytes = frame_header(kind, length);
                for cut in 0..bytes.as_slice().len() {
                    let (mut first, mut second) = bytes.as_slice().split_at(cut);
                    let mut reader = HeaderReader::default();
                    assert_eq!(reader.read(&mut first), None);
                    assert_eq!(reader.is_partial(), cut > 0);
                    let header = reader.read(&mut second).unwrap();
                    let sent = if kind == FrameType::Http2 { FrameType::Unknown } else { kind };
                    assert_eq!((header, second.len()), (FrameHeader { kind: sent, length }, 0));
                    assert!(!reader.is_partial());
                }
            }
        }
        assert_eq!(frame_header(FrameType::Data, varint::MAX).as_slice().len(), MAX_DATA_HEADER);
    }
}
