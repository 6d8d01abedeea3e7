//! The chunked transfer coding (RFC 9112 section 7.1), taken apart where it lies, however it was fragmented.
//!
//! Chunk lines end with CR LF and nothing else, sizes are plain hexadecimal numbers, extensions are checked and dropped.

use super::charset::is_blank;
use super::error::{Broken, ChunkError, Violation};
use super::lines::{self, Lines, Rules};
use super::parse::HeadLimits;
use super::settle;
use crate::http::{Fields, Name};

/// The last chunk of a body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The largest chunk; HAProxy's limit too.
const LARGEST_CHUNK: u64 = (1 << 52) - 1;

/// Bytes of chunk lines that a body may have beyond what is usual, which is 16 a chunk and two for each byte carried.
const MOST_OVERHEAD: u64 = 16 * 1024;

/// Writes the line that opens a chunk of `length` bytes (not zero) and gives the bytes to send, in capital digits as
/// HAProxy. `\r\n` follows the chunk.
#[inline]
pub fn chunk_header(length: u64, room: &mut [u8; 18]) -> &[u8] {
    let mut at = room.len() - 2;
    room[at..].copy_from_slice(b"\r\n");
    let mut rest = length;
    loop {
        at -= 1;
        room[at] = b"0123456789ABCDEF"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            return &room[at..];
        }
    }
}

/// Whether the body goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkState {
    /// More bytes are needed.
    More,
    /// The last chunk and the trailers were read.
    End,
}

/// What one call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Decoded {
    /// Bytes of the input that were used: all of them, but at the end of the body. What lies behind stays as it was.
    pub consumed: usize,
    /// Bytes of payload, now contiguous at the front of the input.
    pub payload: usize,
    /// Whether the body goes on.
    pub state: ChunkState,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// The first digit of a size.
    #[default]
    Size,
    /// Another digit, or what follows the size.
    SizeMore,
    /// Blanks behind a size.
    SizeBlank,
    Extension,
    Quoted,
    QuotedPair,
    /// The LF that ends a chunk's line.
    LineFeed,
    /// `remaining` bytes of payload.
    Data,
    /// The CR behind a chunk.
    DataCr,
    /// The LF behind a chunk.
    DataLf,
    Trailers,
    End,
}

/// Takes chunks apart, however they were fragmented.
#[derive(Debug, Clone, Default)]
pub struct ChunkDecoder {
    state: State,
    /// The size while its line is read, then what is missing of the chunk.
    remaining: u64,
    /// Bytes of chunk lines beyond what is usual.
    overhead: u64,
    limits: HeadLimits,
    /// Trailers while they are incomplete; lines before `line` are parsed.
    trailers: Vec<u8>,
    line: usize,
    dropped: bool,
}

impl ChunkDecoder {
    /// A decoder for a new body, with the default limits for trailers.
    pub fn new() -> ChunkDecoder {
        ChunkDecoder::default()
    }

    /// A decoder for a new body. Trailers are held to the limits of a head.
    pub fn with_limits(limits: &HeadLimits) -> ChunkDecoder {
        ChunkDecoder { limits: *limits, ..ChunkDecoder::default() }
    }

    /// Bytes of the current chunk that have not come yet; zero between chunks.
    #[inline]
    pub fn remaining_in_chunk(&self) -> u64 {
        if self.state == State::Data { self.remaining } else { 0 }
    }

    /// Leaves out the next `count` bytes, at most [`ChunkDecoder::remaining_in_chunk`]: a caller that drops the payload,
    /// or moves it on another way, need not bring it here. Returns how many bytes were left out.
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

    /// Moves the payload in `data` to its front. Every byte is used, whatever it is a part of, up to the end of the
    /// body; `trailers` holds the trailers then. After an error the decoder must not be used.
    pub fn decode_in_place(&mut self, data: &mut [u8], trailers: &mut Fields) -> Result<Decoded, ChunkError> {
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
        Ok(Decoded { consumed: read, payload, state })
    }

    /// One byte of a chunk's line, or of what follows a chunk.
    #[inline]
    fn take_framing(&mut self, byte: u8) -> Result<(), Violation> {
        self.overhead += 1;
        if self.overhead > MOST_OVERHEAD {
            return Err(Violation::ChunkOverhead);
        }
        self.state = match (self.state, byte) {
            (State::Size | State::SizeMore, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
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

    /// Takes what `data` has of the trailer section; tells how many bytes that were.
    fn take_trailers(&mut self, data: &[u8], fields: &mut Fields) -> Result<usize, Broken> {
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
            return Broken::at(Violation::TrailersTooLarge, 0);
        }
        self.trailers.extend_from_slice(fresh);
        // Whole lines only, so that pieces are judged as the whole is.
        let Some(last) = memchr::memrchr(b'\n', fresh) else { return Ok(fresh.len()) };
        let lines = &self.trailers[..held + last + 1];
        // Positions count from the section's beginning; the caller wants them from the data's.
        let from_data =
            |broken: Broken| Broken { violation: broken.violation, position: broken.position.saturating_sub(held) };
        let rules = Rules { most: self.limits.max_fields, accept_unsafe: self.limits.accept_unsafe };
        let parsed = lines::parse_lines(lines, self.line, &rules, &mut self.dropped, fields);
        match parsed.map_err(from_data)? {
            Lines::Partial { line } => {
                self.line = line;
                Ok(fresh.len())
            }
            Lines::End { behind } => {
                settle_trailers(fields).map_err(|violation| Broken { violation, position: 0 })?;
                self.trailers = Vec::new();
                self.state = State::End;
                Ok(behind - held)
            }
        }
    }
}

/// What an extension may hold beside its own punctuation.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Fields that would frame, route or end a message have no business in trailers (RFC 9110 section 6.5.1): they are
/// checked, as HAProxy does, and left out.
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
