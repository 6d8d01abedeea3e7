//! The ends of matches at a byte. Must never look at a text.

/// Whether matches end at a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct MatchEnds {
    /// A match ended before the byte.
    pub(super) before: bool,
    /// A match ends after the byte.
    pub(super) after: bool,
}
