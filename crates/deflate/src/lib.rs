//! A fast DEFLATE encoder (RFC 1951), with zlib's format (RFC 1950), gzip's (RFC 1952) or none: compresses bodies while
//! they are forwarded. One level, comparable to zlib's level 1. Must never decode, hold more than [`MEMORY`], or depend
//! on another crate of the workspace.
//!
//! `matches` finds repetitions, `huffman` computes codes, `block` selects block types and writes blocks, `encoder`
//! controls the order.

mod bits;
mod block;
mod checksum;
mod encoder;
mod huffman;
mod matches;
mod symbols;

#[cfg(test)]
mod tests;

pub use encoder::Encoder;

/// Size of an encoder in bytes, regardless of its window: history and a block, the hash table, the sequences of a
/// block, its codes.
pub const MEMORY: usize = size_of::<Encoder>() + matches::MEMORY + 8 * 1024;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 1951.
    Raw,
}

/// The flush mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// More input follows.
    Later,
    /// All input so far can be decoded from the output, which ends with a whole byte.
    Now,
    /// The input is complete.
    End,
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of input bytes accepted.
    pub taken: usize,
    /// Number of output bytes written.
    pub made: usize,
    /// The last byte has been written.
    pub finished: bool,
}
