//! The instructions of a decoder (RFC 9204, section 4.4), in both directions. Must never grow without a bound.

use crate::fields::integer::{self, IntegerError};
use crate::h3::error::{Error, ErrorCode};

/// Maximum number of bytes that wait to be sent. A peer that does not read them learns of no more sections: its encoder
/// only keeps references for longer.
const MOST: usize = 8192;

const SECTION_ACKNOWLEDGMENT: u8 = 0x80;
const STREAM_CANCELLATION: u8 = 0x40;
const INSERT_COUNT_INCREMENT: u8 = 0x00;

/// The instructions to be sent to the peer's encoder.
#[derive(Debug, Default)]
pub(super) struct Acknowledgments {
    out: Vec<u8>,
    /// The number of insertions that the peer knows to be received (Known Received Count).
    known: u64,
}

impl Acknowledgments {
    /// Acknowledges a section that needed `required` insertions.
    pub(super) fn acknowledge(&mut self, stream: u64, required: u64) {
        if self.push(stream, 7, SECTION_ACKNOWLEDGMENT) {
            self.known = self.known.max(required);
        }
    }

    /// Cancels the sections of a stream.
    pub(super) fn cancel(&mut self, stream: u64) {
        self.push(stream, 6, STREAM_CANCELLATION);
    }

    /// Returns the bytes to send, once `inserted` insertions were received.
    pub(super) fn output(&mut self, inserted: u64) -> &[u8] {
        let increment = inserted.saturating_sub(self.known);
        if increment > 0 && self.push(increment, 6, INSERT_COUNT_INCREMENT) {
            self.known = inserted;
        }
        &self.out
    }

    /// Removes the first `count` bytes.
    pub(super) fn advance(&mut self, count: usize) {
        if count >= self.out.len() {
            self.out.clear();
        } else {
            self.out.drain(..count);
        }
    }

    /// Appends an instruction; false if there are too many.
    fn push(&mut self, value: u64, prefix: u32, kind: u8) -> bool {
        let fits = self.out.len() < MOST;
        if fits {
            integer::push(value, prefix, kind, &mut self.out);
        }
        fits
    }
}

/// Reads the instructions of the peer's decoder. The encoder of this endpoint never inserts an entry, so that there is
/// nothing to acknowledge.
#[derive(Debug, Default)]
pub struct AcknowledgmentReader {
    /// The received part of an instruction that was split.
    partial: [u8; 10],
    length: u8,
}

impl AcknowledgmentReader {
    /// Reads the next bytes of the decoder stream.
    ///
    /// # Errors
    /// An instruction is invalid, or acknowledges what was not sent.
    pub fn read(&mut self, input: &[u8]) -> Result<(), Error> {
        let invalid = Error::connection(ErrorCode::QpackDecoderStreamError);
        for byte in input {
            let at = usize::from(self.length);
            *self.partial.get_mut(at).ok_or(invalid)? = *byte;
            let read = self.partial.get(..=at).unwrap_or_default();
            let is_cancellation = read.first().is_some_and(|first| first & 0xc0 == STREAM_CANCELLATION);
            match integer::read_wide(&mut &*read, 6) {
                _ if !is_cancellation => return Err(invalid),
                Ok(_) => self.length = 0,
                Err(IntegerError::Truncated) => self.length += 1,
                Err(IntegerError::TooLarge) => return Err(invalid),
            }
        }
        Ok(())
    }
}
