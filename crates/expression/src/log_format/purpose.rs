//! The purpose of a format's text, which determines its encoding. Must never know a format.

/// The purpose of a format's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A log line: a missing value prints as "-", and no byte can forge a line.
    Log,
    /// A unique identifier: part of a message head, with merged spaces as in a log line.
    Identifier,
    /// Part of a message head: samples cannot add control characters to it except the tab.
    Head,
    /// A body, a variable, a key: samples are inserted unmodified.
    Text,
}

impl Purpose {
    /// Whether spaces are separators: consecutive ones print as one.
    pub const fn merges_spaces(self) -> bool {
        matches!(self, Self::Log | Self::Identifier)
    }

    /// Whether control characters of samples are percent-encoded.
    pub(super) const fn is_head(self) -> bool {
        matches!(self, Self::Head | Self::Identifier)
    }
}
