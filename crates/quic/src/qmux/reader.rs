//! Reads records and their frames from bytes as they arrive. A frame that is incomplete is kept, payload is passed on as it is.
//! Must never know a stream.

use super::error::ErrorCode;
use super::frame::{self, Frame, Unread};
use super::parameters::RECORD_SIZE;
use super::varint;

/// Bytes of a frame without its payload: its type, and three integers.
const LONGEST: usize = 8 * 4;
/// Maximum number of bytes of the first frame, which contains transport parameters.
const LONGEST_FIRST: usize = 4096;

/// The next part of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A frame. The payload of a STREAM frame follows, unless its length is 0.
    Frame(Frame),
    /// Payload of the STREAM frame before.
    Payload { bytes: &'a [u8], is_last: bool },
}

/// The state of the reader.
pub(super) struct Reader {
    /// Bytes of the current record that were not read.
    record_left: u64,
    /// Payload of the current frame that was not read.
    payload_left: u64,
    /// Whether that is passed on. The reason of a CONNECTION_CLOSE frame is not.
    is_payload_wanted: bool,
    /// Bytes of the size of a record, or of a frame, that are incomplete.
    stash: Vec<u8>,
    /// Whether no frame was read.
    is_first: bool,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { record_left: 0, payload_left: 0, is_payload_wanted: false, stash: Vec::new(), is_first: true }
    }

    /// Returns the next part and advances the input. `None`: all of it was read.
    ///
    /// # Errors
    /// The peer has violated the protocol.
    pub(super) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Item<'a>>, ErrorCode> {
        loop {
            if self.payload_left > 0 {
                if input.is_empty() {
                    return Ok(None);
                }
                let length = usize::try_from(self.payload_left).unwrap_or(usize::MAX).min(input.len());
                let (bytes, rest) = input.split_at(length);
                *input = rest;
                self.payload_left -= length as u64;
                self.record_left -= length as u64;
                if self.is_payload_wanted {
                    return Ok(Some(Item::Payload { bytes, is_last: self.payload_left == 0 }));
                }
            } else if self.record_left == 0 {
                if !self.read_size(input)? {
                    return Ok(None);
                }
            } else {
                return self.read_frame(input).map(|frame| frame.map(Item::Frame));
            }
        }
    }

    /// Reads the size of a record. Returns false if it is incomplete.
    fn read_size(&mut self, input: &mut &[u8]) -> Result<bool, ErrorCode> {
        let Some(first) = self.stash.first().or(input.first()) else { return Ok(false) };
        let missing = (1 << (first >> 6)) - self.stash.len();
        let length = missing.min(input.len());
        self.stash.extend_from_slice(&input[..length]);
        *input = &input[length..];
        let Some(size) = varint::take(&mut &self.stash[..]) else { return Ok(false) };
        self.stash = Vec::new();
        match size {
            0 => Err(ErrorCode::ProtocolViolation),
            1..=RECORD_SIZE => {
                self.record_left = size;
                Ok(true)
            }
            _ => Err(ErrorCode::FrameEncoding),
        }
    }

    /// Reads a frame up to its payload. `None`: it is incomplete.
    fn read_frame(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, ErrorCode> {
        let left = usize::try_from(self.record_left).unwrap_or(usize::MAX);
        let longest = if self.is_first { LONGEST_FIRST } else { LONGEST };
        let stashed = self.stash.len();
        let available = input.len().min(left - stashed.min(left));
        let (read, consumed) = if stashed == 0 {
            let mut bytes = &input[..available];
            let read = Frame::take(&mut bytes, self.record_left);
            (read, available - bytes.len())
        } else {
            let added = available.min(longest.saturating_sub(stashed));
            self.stash.extend_from_slice(&input[..added]);
            let mut bytes = &self.stash[..];
            let read = Frame::take(&mut bytes, self.record_left);
            (read, self.stash.len() - bytes.len())
        };
        let is_whole = stashed + available == left;
        match read {
            Ok(frame) => {
                *input = &input[consumed - stashed..];
                self.stash = Vec::new();
                self.record_left -= consumed as u64;
                self.payload_left = frame.payload();
                self.is_payload_wanted = matches!(frame, Frame::Stream { .. });
                self.note_first(&frame)?;
                if frame == Frame::Padding {
                    self.skip_padding(input);
                }
                Ok(Some(frame))
            }
            Err(Unread::Invalid(code)) => Err(self.first_or(code)),
            Err(Unread::Incomplete) if is_whole || stashed + available >= longest => {
                Err(self.first_or(ErrorCode::FrameEncoding))
            }
            Err(Unread::Incomplete) => {
                if stashed == 0 {
                    self.stash.extend_from_slice(&input[..available]);
                }
                *input = &input[available..];
                self.check_beginning()?;
                Ok(None)
            }
        }
    }

    /// Refuses a connection that cannot begin with transport parameters before all of the frame was received.
    fn check_beginning(&self) -> Result<(), ErrorCode> {
        let mut magic = Vec::with_capacity(8);
        varint::push(frame::PARAMETERS, &mut magic);
        let known = self.stash.len().min(magic.len());
        if self.is_first && self.stash[..known] != magic[..known] {
            return Err(ErrorCode::TransportParameter);
        }
        Ok(())
    }

    /// The first frame contains transport parameters, no other does.
    fn note_first(&mut self, frame: &Frame) -> Result<(), ErrorCode> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        if is_first == matches!(frame, Frame::Parameters(_)) { Ok(()) } else { Err(ErrorCode::TransportParameter) }
    }

    /// Returns the error of a connection whose first frame is invalid.
    fn first_or(&self, code: ErrorCode) -> ErrorCode {
        if self.is_first { ErrorCode::TransportParameter } else { code }
    }

    /// Skips the PADDING frames after the first one.
    fn skip_padding(&mut self, input: &mut &[u8]) {
        let left = usize::try_from(self.record_left).unwrap_or(usize::MAX).min(input.len());
        let count = input[..left].iter().take_while(|byte| **byte == 0).count();
        *input = &input[count..];
        self.record_left -= count as u64;
    }
}
