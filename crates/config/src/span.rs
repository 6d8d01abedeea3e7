//! Places in configuration text. Owns [`Span`]; knows nothing of what is written there.

/// A run of bytes on one line of one source file. Lines count from 1, columns are byte offsets from 0 in the raw line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Index of the file in [`crate::document::Sources`].
    pub file: u32,
    /// Line number, from 1; 0 means "no line" (the command line, say).
    pub line: u32,
    /// First byte of the word in the raw line.
    pub start: u32,
    /// First byte behind the word.
    pub end: u32,
}

/// A value together with the place where it was written. Equality looks at the value alone.
#[derive(Debug, Clone, Default)]
pub struct Spanned<T> {
    /// What was written.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Spanned<T> {}

impl<T> Spanned<T> {
    /// Puts a value and its place together.
    pub const fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}
