//! Text that is built during an evaluation. Must never exceed the buffer that HAProxy would use: if it overflows, there
//! is no sample.

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

    /// Appends bytes, if they fit.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        if bytes.len() > self.limit - self.bytes.len() {
            self.overflowed = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Appends a byte, if it fits.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        if self.bytes.len() == self.limit {
            self.overflowed = true;
        } else {
            self.bytes.push(byte);
        }
    }

    /// The current contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Truncates it to that length.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Whether appended bytes did not fit.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Returns the finished text; `None` if it overflowed.
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
