//! The data types of entries, by their protocol numbers. Must never encode one.

/// The encoding of a data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A number of 32 bits.
    Number,
    /// A number of 64 bits.
    Large,
    /// A rate: the age of the current period, and the events of the current and the previous one.
    Rate,
    /// The name of a server.
    Server,
}

/// Number of known data types; the bits of a definition.
pub const KINDS: u8 = 27;

/// Returns the encoding of a data type.
pub const fn form(kind: u8) -> Form {
    match kind {
        13 | 15 => Form::Large,
        3 | 5 | 8 | 10 | 12 | 14 | 16 | 18 | 21 | 24 | 26 => Form::Rate,
        19 => Form::Server,
        _ => Form::Number,
    }
}

/// Whether a data type is an array.
pub const fn is_array(kind: u8) -> bool {
    matches!(kind, 22..=24)
}
