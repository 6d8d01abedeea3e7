//! The chunked transfer coding (RFC 9112 section 7.1), decoded in place from arbitrarily fragmented input.
//!
//! Chunk lines end with CR LF only, sizes are plain hexadecimal numbers, extensions are validated and dropped.

use super::charset::is_blank;
use super::error::{ChunkError, StepError, Violation};
use super::lines::{self, Lines, Rules};
use super::parse::HeadLimits;
use super::settle;
use crate::http::{Fields, Name};

/// The last chunk of a body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The largest chunk size; HAProxy's limit too.
const LARGEST_CHUNK: u64 = (1 << 52) - 1;

/// Bytes of chunk lines that a body may have beyond the usual overhead, which is 16 per chunk and two for each byte of
/// payload.
const MOST_OVERHEAD: u64 = 16 * 1024;

/// Writes the line that opens a chunk of `length` bytes (not zero) and returns the bytes to send, with capital digits
/// as HAProxy does. The caller appends `\r\n` after the chunk.
#[inline]
pub fn chunk_header(length: u64, room: &mut [u8; 18]) -> &[u8] {
    let mut at = room.len() - 2;
    room[at..].copy_from_slice(b"\r\n");
    let mut rest = length;
    loop {
        at -= 1;
        room[at] = base::hex::UPPER[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            return &room[at..];
        }
    }
}

/// Whether the body continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkState {
    /// More bytes are needed.
    More,
    /// The last chunk and the trailers were decoded.
    End,
}

/// Result of one call of [`ChunkDecoder::decode_in_place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct DecodedChunks {
    /// Bytes of the input that were consumed: all of them, except at the end of the body. Bytes after the end are
    /// unchanged.
    pub consumed: usize,
    /// Bytes of payload, contiguous at the front of the input.
    pub payload: usize,
    pub state: ChunkState,
}

/// The element that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// The first digit of a size.
    #[default]
    Size,
    /// Another digit, or the first byte after the size.
    SizeMore,
    /// Blanks after a size.
    SizeBlank,
    Extension,
    Quoted,
    QuotedPair,
    /// The LF that ends a chunk's line.
    LineFeed,
    /// `remaining` bytes of payload.
    Data,
    /// The CR after a chunk.
    DataCr,
    /// The LF after a chunk.
    DataLf,
    Trailers,
    End,
}

/// Decodes the chunked transfer coding from arbitrarily fragmented input.
#[derive(Debug, Clone, Default)]
pub struct ChunkDecoder {
    state: State,
    /// The size while its line is read, then the bytes left in the chunk.
    remaining: u64,
    /// Bytes of chunk lines beyond the usual overhead.
    overhead: u64,
    limits: HeadLimits,
    /// Incomplete trailer section; the lines before offset `line` are parsed.
    trailers: Vec<u8>,
    line: usize,
    dropped: bool,
}

impl ChunkDecoder {
    /// Creates a decoder for a new body, with the default limits for trailers.
    pub fn new() -> ChunkDecoder {
        ChunkDecoder::default()
    }

    /// Creates a decoder for a new body. Trailers are subject to the limits of a head.
    pub fn with_limits(limits: &HeadLimits) -> ChunkDecoder {
        ChunkDecoder { limits: *limits, ..ChunkDecoder::default() }
    }

    /// Bytes of the current chunk that have not been received; zero between chunks.
    #[inline]
    pub fn remaining_in_chunk(&self) -> u64 {
        if self.state == State::Data { self.remaining } else { 0 }
    }

    /// Skips the next `count` bytes, at most [`ChunkDecoder::remaining_in_chunk`], for callers that discard the payload
    /// or forward it by other means. Returns the number of bytes skipped.
    #[inline]
    pub fn skip(&mut self, count: u64) -> u64 {
        let skipped = count.min(self.remaining_in_chunk());
        if skipped > 0 {
            self.remaining -= skipped;
            if self.remaining == 0 {
                self.state = State::DataCr;
            }
        }
        skipped
    }

    /// Moves the payload in `data` to its front. Consumes every byte up to the end of the body, and then stores the
    /// trailers in `trailers`. After an error the decoder must not be used.
    pub fn decode_in_place(&mut self, data: &mut [u8], trailers: &mut Fields) -> Result<DecodedChunks, ChunkError> {
        let mut read = 0;
        let mut payload = 0;
        while read < data.len() && self.state != State::End {
            match self.state {
                State::Data => {
                    let available = (data.len() - read) as u64;
                    let count = self.remaining.min(available) as usize;
                    if read != payload {
                        data.copy_within(read..read + count, payload);
                    }
                    read += count;
                    payload += count;
                    self.remaining -= count as u64;
                    if self.remaining == 0 {
                        self.state = State::DataCr;
                    }
                }
                State::Trailers => {
                    read += self.take_trailers(&data[read..], trailers).map_err(|broken| {
                        let position = (read + broken.position).min(data.len());
                        ChunkError { violation: broken.violation, position }
                    })?
                }
                _ => {
                    self.take_framing(data[read]).map_err(|violation| ChunkError { violation, position: read })?;
                    read += 1;
                }
            }
        }
        let state = if self.state == State::End { ChunkState::End } else { ChunkState::More };
        Ok(DecodedChunks { consumed: read, payload, state })
    }

    /// Consumes one byte of a chunk's line, or of the line end after a chunk.
    #[inline]
    fn take_framing(&mut self, byte: u8) -> Result<(), Violation> {
        self.overhead += 1;
        if self.overhead > MOST_OVERHEAD {
            return Err(Violation::ChunkOverhead);
        }
        self.state = match (self.state, byte) {
            (State::Size | State::SizeMore, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = base::hex::digit(byte).unwrap_or_default();
                let before = if self.state == State::Size { 0 } else { self.remaining };
                self.remaining = (before << 4) | u64::from(digit);
                if self.remaining > LARGEST_CHUNK {
                    return Err(Violation::ChunkTooLarge);
                }
                State::SizeMore
            }
            (State::SizeMore | State::SizeBlank, _) if is_blank(byte) => State::SizeBlank,
            (State::SizeMore | State::SizeBlank, b';') => State::Extension,
            (State::SizeMore | State::SizeBlank | State::Extension, b'\r') => State::LineFeed,
            (State::Extension, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::Extension,
            (State::Quoted, b'\\') => State::QuotedPair,
            (State::QuotedPair, _) if is_text(byte) => State::Quoted,
            (State::Quoted, _) if is_text(byte) => State::Quoted,
            (State::Extension, _) if is_text(byte) && byte != b'\\' => State::Extension,
            (State::LineFeed, b'\n') => self.end_line(),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size,
            (State::Size | State::SizeMore, b'\n') => return Err(Violation::BareLf),
            (State::Size | State::SizeMore | State::SizeBlank, _) => return Err(Violation::ChunkSize),
            (State::LineFeed, _) => return Err(Violation::BareCr),
            (State::DataCr | State::DataLf, _) => return Err(Violation::ChunkEnd),
            _ => return Err(Violation::ChunkExtension),
        };
        Ok(())
    }

    fn end_line(&mut self) -> State {
        self.overhead = self.overhead.saturating_sub(16 + 2 * self.remaining);
        if self.remaining == 0 { State::Trailers } else { State::Data }
    }

    /// Consumes bytes of the trailer section; returns their number.
    fn take_trailers(&mut self, data: &[u8], fields: &mut Fields) -> Result<usize, StepError> {
        let held = self.trailers.len();
        if held == 0 {
            fields.clear();
            let ending = if data.starts_with(b"\r\n") { 2 } else { usize::from(data.starts_with(b"\n")) };
            if ending > 0 {
                self.state = State::End;
                return Ok(ending);
            }
        }
        let room = self.limits.max_head.saturating_sub(held);
        let fresh = &data[..data.len().min(room)];
        if fresh.is_empty() {
            return StepError::at(Violation::TrailersTooLarge, 0);
        }
        self.trailers.extend_from_slice(fresh);
        // Only complete lines are parsed, so that the result does not depend on fragmentation.
        let Some(last) = memchr::memrchr(b'\n', fresh) else { return Ok(fresh.len()) };
        let lines = &self.trailers[..held + last + 1];
        // Converts a position in the section to one in `data`.
        let from_data = |broken: StepError| StepError {
            violation: broken.violation,
            position: broken.position.saturating_sub(held),
        };
        let rules = Rules { most: self.limits.max_fields, accept_unsafe: self.limits.accept_unsafe };
        let parsed = lines::parse_lines(lines, self.line, &rules, &mut self.dropped, fields);
        match parsed.map_err(from_data)? {
            Lines::Partial { line } => {
                self.line = line;
                Ok(fresh.len())
            }
            Lines::End { behind } => {
                settle_trailers(fields).map_err(|violation| StepError { violation, position: 0 })?;
                self.trailers = Vec::new();
                self.state = State::End;
                Ok(behind - held)
            }
        }
    }
}

/// Whether a byte is permitted in an extension, apart from its delimiters.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Removes fields that would frame, route or end a message: they are not permitted in trailers (RFC 9110
/// section 6.5.1). They are validated first, as HAProxy does.
fn settle_trailers(fields: &mut Fields) -> Result<(), Violation> {
    if fields.names == crate::http::name::Names::default() {
        return Ok(());
    }
    settle::content_length(fields)?;
    settle::transfer_encoding(fields, false)?;
    let mut hosts = fields.list.iter().filter(|field| field.name == Name::Host).map(|field| fields.value_of(field));
    if let Some(first) = hosts.next()
        && hosts.any(|other| !other.eq_ignore_ascii_case(first))
    {
        return Err(Violation::HostRepeated);
    }
    fields.list.retain(|field| field.name.is_plain());
    if fields.overflowed() { Err(Violation::TrailersTooLarge) } else { Ok(()) }
}
