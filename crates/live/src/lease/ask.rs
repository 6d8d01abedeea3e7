//! Requests of tokens to the store, and its answers. Must never refer to an entry by anything but numbers.

use std::time::Duration;

/// A request for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub(super) part: u32,
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) epoch: u32,
    /// Time of the request to the store before, or of the first use of the key, in milliseconds.
    pub(super) since: u32,
    /// Tokens taken without a lease, also if others are given back.
    pub(super) reported: u32,
    /// The key as it is written in the store, without prefix.
    pub key: Vec<u8>,
    /// Tokens taken without a lease; negative: tokens given back.
    pub spent: i64,
    /// Time since these tokens began to be taken: the store has added others since then.
    pub age: Duration,
    /// Tokens requested.
    pub want: u32,
}

/// The answer for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    Tokens {
        /// Tokens granted.
        count: u32,
        /// Tokens left in the store; negative: more were taken than it had.
        left: i64,
    },
    /// The store holds other data for the key.
    Foreign,
}
