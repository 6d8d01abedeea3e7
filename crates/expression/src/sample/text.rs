//! Text that is put together while an expression is evaluated. Must never grow beyond the buffer that HAProxy would have
//! for it: what does not fit makes the sample fail.

use bumpalo::collections::Vec;
use std::fmt;

/// Bytes in the memory of one evaluation.
pub struct Text<'a> {
    bytes: Vec<'a, u8>,
    limit: usize,
    overflowed: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(arena: &'a bumpalo::Bump, capacity: usize, limit: usize) -> Self {
        Self { bytes: Vec::with_capacity_in(capacity.min(limit), arena), limit, overflowed: false }
    }

    /// Adds bytes, as far as there is room.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        if bytes.len() > self.limit - self.bytes.len() {
            self.overflowed = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Adds a byte, if there is room.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        if self.bytes.len() == self.limit {
            self.overflowed = true;
        } else {
            self.bytes.push(byte);
        }
    }

    /// What is there so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Cuts it back.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Whether something did not fit.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// The finished text; `None` when not all of it fitted.
    pub fn finish(self) -> Option<&'a [u8]> {
        (!self.overflowed).then(|| self.bytes.into_bump_slice())
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend(text.as_bytes());
        if self.overflowed { Err(fmt::Error) } else { Ok(()) }
    }
}
