//! Places in configuration text. Owns [`Span`]; must never interpret the text.

/// A range of bytes on one line of one source file. Lines count from 1, columns are byte offsets from 0 in the raw
/// line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Index of the file in [`crate::document::Sources`].
    pub file: u32,
    /// Line number, from 1; 0 means "no line" (for example the command line).
    pub line: u32,
    /// Offset of the first byte in the raw line.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

/// A value with the place where it was written. Equality compares the value only.
#[derive(Debug, Clone, Default)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Spanned<T> {}

impl<T> Spanned<T> {
    /// Combines a value with its place.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}
