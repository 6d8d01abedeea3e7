//! The bytes that bodies are made of: one block of each kind for the whole process. Must never be written after the
//! start.

use std::sync::{Arc, OnceLock};

use wire::haterm::{Chunks, LINE};

/// Bytes of a chunk of one byte.
pub const BYTES_A_CHUNK: u64 = 6;
/// A chunk of one byte.
const CHUNK: &[u8; BYTES_A_CHUNK as usize] = b"1\r\n1\r\n";
/// Bytes of a block, about: large enough for one call to fill a socket's buffer, small enough for the second cache.
const ABOUT: usize = 256 * 1024;
/// Bytes of a large chunk's content.
pub const LARGEST_CHUNK: u64 = 64 * 1024;

/// The blocks.
#[derive(Debug)]
pub struct Patterns {
    lines: Box<[u8]>,
    bytes: Box<[u8]>,
    random: OnceLock<Box<[u8]>>,
}

/// What a body consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Lines of text.
    Lines,
    /// Random bytes.
    Random,
    /// Chunks of one byte.
    ByteChunks,
}

impl Content {
    /// What parameters ask for.
    pub fn of(chunks: Chunks, random: bool) -> Self {
        match (chunks, random) {
            (Chunks::Bytes, _) => Self::ByteChunks,
            (_, true) => Self::Random,
            (_, false) => Self::Lines,
        }
    }
}

impl Patterns {
    /// Makes the blocks; the random one is made on first use.
    pub fn new() -> Arc<Self> {
        let repeat = |piece: &[u8]| piece.repeat(ABOUT / piece.len()).into_boxed_slice();
        Arc::new(Self { lines: repeat(LINE), bytes: repeat(CHUNK), random: OnceLock::new() })
    }

    /// Bytes of a body from `position` on: at least half a block of them. Random ones start anywhere, so that a body is
    /// no repetition of one block.
    pub fn from(&self, content: Content, position: u64) -> &[u8] {
        match content {
            Content::Lines => &self.lines[(position % LINE.len() as u64) as usize..],
            Content::ByteChunks => &self.bytes[(position % CHUNK.len() as u64) as usize..],
            Content::Random => {
                let block = self.random.get_or_init(noise);
                &block[(rt::random() as usize) % (block.len() / 2)..]
            }
        }
    }
}

/// A block of random bytes.
fn noise() -> Box<[u8]> {
    (0..ABOUT / 8).flat_map(|_| rt::random().to_le_bytes()).collect()
}
