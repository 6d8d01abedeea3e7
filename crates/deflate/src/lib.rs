//! A fast encoder of DEFLATE (RFC 1951), alone, in zlib's format (RFC 1950) or in gzip's (RFC 1952): bodies that are compressed while
//! they pass. One level, the counterpart of zlib's level 1. Must never decode, hold more than [`MEMORY`], or depend on another crate of
//! the workspace.
//!
//! `matches` finds repetitions, `huffman` computes codes, `block` chooses how a block is written, `encoder` keeps the order.

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

/// Bytes that an encoder holds, whatever its window: history and a block, the table of places, the sequences of a block, its codes.
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

/// What is to become of the bytes that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// More follow.
    Later,
    /// They can be decoded from what is written, which ends with a whole byte.
    Now,
    /// Nothing follows.
    End,
}

/// What one call has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were taken.
    pub taken: usize,
    /// Bytes that were written.
    pub made: usize,
    /// The last byte was written.
    pub finished: bool,
}
