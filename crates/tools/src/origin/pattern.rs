//! Content of bodies: one block of each kind for the whole process. Must never be changed after
//! startup.

use std::sync::{Arc, OnceLock};

use wire::haterm::{Chunks, LINE};

/// Size of a chunk with one byte of content, in bytes.
pub const BYTES_A_CHUNK: u64 = 6;
/// A chunk with one byte of content.
const CHUNK: &[u8; BYTES_A_CHUNK as usize] = b"1\r\n1\r\n";
/// Approximate size of a block in bytes: large enough to fill a socket's buffer with one call, small enough for the
/// second-level cache.
const ABOUT: usize = 256 * 1024;
/// Maximum content of a large chunk, in bytes.
pub const LARGEST_CHUNK: u64 = 64 * 1024;

#[derive(Debug)]
pub struct Patterns {
    lines: Box<[u8]>,
    /// Length of one of the lines, in bytes.
    line: usize,
    bytes: Box<[u8]>,
    random: OnceLock<Box<[u8]>>,
}

/// Kind of a body's content.
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
    /// Returns the content for the parameters.
    pub fn of(chunks: Chunks, random: bool) -> Self {
        match (chunks, random) {
            (Chunks::Bytes, _) => Self::ByteChunks,
            (_, true) => Self::Random,
            (_, false) => Self::Lines,
        }
    }
}

impl Patterns {
    /// Creates the blocks with haterm's line; the random one is created on first use.
    pub fn new() -> Arc<Self> {
        Self::of_lines(LINE)
    }

    /// Creates the blocks with another line of text, at most half of [`ABOUT`].
    pub fn of_lines(line: &[u8]) -> Arc<Self> {
        let repeat = |piece: &[u8]| piece.repeat(ABOUT / piece.len()).into_boxed_slice();
        Arc::new(Self { lines: repeat(line), line: line.len(), bytes: repeat(CHUNK), random: OnceLock::new() })
    }

    /// Returns bytes of a body from `position` on: at least half a block. Random ones start anywhere, so that a body
    /// does not repeat one block.
    pub fn from(&self, content: Content, position: u64) -> &[u8] {
        match content {
            // Most bodies are sent at once.
            Content::Lines if position == 0 => &self.lines,
            Content::Lines => &self.lines[(position % self.line as u64) as usize..],
            Content::ByteChunks => &self.bytes[(position % CHUNK.len() as u64) as usize..],
            Content::Random => {
                let block = self.random.get_or_init(noise);
                &block[(rt::random() as usize) % (block.len() / 2)..]
            }
        }
    }
}

/// Returns a block of random bytes.
fn noise() -> Box<[u8]> {
    (0..ABOUT / 8).flat_map(|_| rt::random().to_le_bytes()).collect()
}
