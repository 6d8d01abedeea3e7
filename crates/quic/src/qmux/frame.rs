//! The frames of QMux: those of RFC 9000 that it permits (section 19), and its own. A STREAM frame is read up to its payload, a
//! CONNECTION_CLOSE frame up to its reason.

use super::error::ErrorCode;
use super::parameters::{MOST_STREAMS, Parameters};
use super::varint;
use crate::stream::Direction;

/// The type of QX_TRANSPORT_PARAMETERS frames.
pub(super) const PARAMETERS: u64 = 0x3f51_5330_0d0a_0d0a;
/// The types of QX_PING frames: a request, and its response.
pub(super) const PING: u64 = 0x348c_6752_9ef8_c7bd;
pub(super) const PONG: u64 = PING + 1;

const PADDING: u64 = 0x0;
pub(super) const RESET_STREAM: u64 = 0x4;
pub(super) const STOP_SENDING: u64 = 0x5;
const STREAM: u64 = 0x8;
pub(super) const MAX_DATA: u64 = 0x10;
pub(super) const MAX_STREAM_DATA: u64 = 0x11;
pub(super) const MAX_STREAMS: u64 = 0x12;
const MAX_STREAMS_UNIDIRECTIONAL: u64 = 0x13;
pub(super) const DATA_BLOCKED: u64 = 0x14;
pub(super) const STREAM_DATA_BLOCKED: u64 = 0x15;
const STREAMS_BLOCKED: u64 = 0x16;
const STREAMS_BLOCKED_UNIDIRECTIONAL: u64 = 0x17;
pub(super) const CONNECTION_CLOSE: u64 = 0x1c;
pub(super) const APPLICATION_CLOSE: u64 = 0x1d;

/// Flags of the type of a STREAM frame.
pub(super) const FIN: u8 = 0x1;
pub(super) const LENGTH: u8 = 0x2;
pub(super) const OFFSET: u8 = 0x4;
/// The type of a STREAM frame with a length.
pub(super) const STREAM_WITH_LENGTH: u8 = STREAM as u8 | LENGTH;

/// A frame that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Padding,
    Parameters(Parameters),
    Reset {
        stream: u64,
        code: u64,
        size: u64,
    },
    Stop {
        stream: u64,
        code: u64,
    },
    /// Its payload follows.
    Stream {
        stream: u64,
        offset: u64,
        length: u64,
        is_last: bool,
    },
    MaxData(u64),
    MaxStreamData {
        stream: u64,
        most: u64,
    },
    MaxStreams {
        direction: Direction,
        most: u64,
    },
    DataBlocked,
    StreamDataBlocked {
        stream: u64,
    },
    StreamsBlocked(Direction),
    /// Its reason, of `length` bytes, follows.
    Close {
        code: u64,
        is_application: bool,
        length: u64,
    },
    Ping(u64),
    Pong,
}

/// Why no frame was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// More bytes are needed.
    Incomplete,
    /// The peer has violated the protocol.
    Invalid(ErrorCode),
}

fn take(input: &mut &[u8]) -> Result<u64, Unread> {
    varint::take(input).ok_or(Unread::Incomplete)
}

impl Frame {
    /// Reads a frame, and advances the input. `left` is the number of bytes of the record from the frame's first byte on.
    pub(super) fn take(input: &mut &[u8], left: u64) -> Result<Self, Unread> {
        let available = input.len();
        let frame = Self::parse(input, left)?;
        // A length that is in the input may end after the record.
        let (payload, read) = (frame.payload(), (available - input.len()) as u64);
        match read.checked_add(payload) {
            Some(end) if end <= left => Ok(frame),
            _ => Err(Unread::Invalid(ErrorCode::FrameEncoding)),
        }
    }

    fn parse(input: &mut &[u8], left: u64) -> Result<Self, Unread> {
        let available = input.len();
        let kind = take(input)?;
        let direction = if kind & 1 == 0 { Direction::Bidirectional } else { Direction::Unidirectional };
        Ok(match kind {
            PADDING => Self::Padding,
            PARAMETERS => {
                let length = take(input)?;
                let read = (available - input.len()) as u64;
                if read.checked_add(length).is_none_or(|end| end > left) {
                    return Err(Unread::Invalid(ErrorCode::FrameEncoding));
                }
                let length = usize::try_from(length).map_err(|_| Unread::Incomplete)?;
                let contents = input.get(..length).ok_or(Unread::Incomplete)?;
                *input = &input[length..];
                Self::Parameters(Parameters::read(contents).map_err(Unread::Invalid)?)
            }
            RESET_STREAM => Self::Reset { stream: take(input)?, code: take(input)?, size: take(input)? },
            STOP_SENDING => Self::Stop { stream: take(input)?, code: take(input)? },
            STREAM..0x10 => {
                let has = |flag: u8| kind & u64::from(flag) != 0;
                let stream = take(input)?;
                let offset = if has(OFFSET) { take(input)? } else { 0 };
                let length = match has(LENGTH) {
                    true => take(input)?,
                    // The record ends the payload.
                    false => left.saturating_sub((available - input.len()) as u64),
                };
                if offset.checked_add(length).is_none_or(|end| end > varint::MAX) {
                    return Err(Unread::Invalid(ErrorCode::FrameEncoding));
                }
                Self::Stream { stream, offset, length, is_last: has(FIN) }
            }
            MAX_DATA => Self::MaxData(take(input)?),
            MAX_STREAM_DATA => Self::MaxStreamData { stream: take(input)?, most: take(input)? },
            MAX_STREAMS | MAX_STREAMS_UNIDIRECTIONAL => Self::MaxStreams { direction, most: streams(input)? },
            DATA_BLOCKED => take(input).map(|_| Self::DataBlocked)?,
            STREAM_DATA_BLOCKED => {
                let stream = take(input)?;
                take(input)?;
                Self::StreamDataBlocked { stream }
            }
            STREAMS_BLOCKED | STREAMS_BLOCKED_UNIDIRECTIONAL => {
                streams(input)?;
                Self::StreamsBlocked(direction)
            }
            CONNECTION_CLOSE | APPLICATION_CLOSE => {
                let (code, is_application) = (take(input)?, kind == APPLICATION_CLOSE);
                if !is_application {
                    take(input)?;
                }
                Self::Close { code, is_application, length: take(input)? }
            }
            PING => Self::Ping(take(input)?),
            PONG => take(input).map(|_| Self::Pong)?,
            // Those of other versions, and those that QMux prohibits.
            _ => return Err(Unread::Invalid(ErrorCode::FrameEncoding)),
        })
    }

    /// Returns the number of bytes that follow what was read of the frame.
    pub(super) fn payload(&self) -> u64 {
        match self {
            Self::Stream { length, .. } | Self::Close { length, .. } => *length,
            _ => 0,
        }
    }
}

/// Reads a number of streams.
fn streams(input: &mut &[u8]) -> Result<u64, Unread> {
    match take(input)? {
        most if most <= MOST_STREAMS => Ok(most),
        _ => Err(Unread::Invalid(ErrorCode::FrameEncoding)),
    }
}
