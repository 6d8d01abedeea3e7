//! Fields of header blocks: valid names and values, and trailers (RFC 9113, section 8). Must never know what kind of
//! message they belong to.

use super::static_table::{FIRST_REGULAR, static_known};
use crate::byte_class;
use crate::h1;
use crate::http::{Fields, Name};

/// A malformed message: its stream is reset with PROTOCOL_ERROR (RFC 9113, section 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// A field of a block, and its known properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField<'f> {
    /// The name.
    pub name: &'f [u8],
    /// The value.
    pub value: &'f [u8],
    /// The index of an entry of the static table with that name; 0: unknown.
    pub(super) known: u8,
    /// The name and the value were found valid ([`HeaderField::is_valid`]); of a pseudo-header field: they are those of
    /// an entry of the static table.
    pub(super) is_valid: bool,
}

impl<'f> HeaderField<'f> {
    /// A field of which nothing is known but its text.
    pub fn new(name: &'f [u8], value: &'f [u8]) -> Self {
        Self { name, value, known: 0, is_valid: false }
    }

    /// The name, if it is one that the proxy acts on.
    #[inline]
    pub(super) fn known_name(&self) -> Name {
        match self.known {
            0 => Name::from_token(self.name),
            known => static_known(known),
        }
    }

    /// Whether the name is a token in lower case, and the value has no control character except tabs, and no blanks at
    /// its ends.
    #[inline]
    pub(super) fn is_valid(&self) -> bool {
        self.is_valid || self.has_valid_name() && is_value(self.value) && trim(self.value).len() == self.value.len()
    }

    /// Whether the name is a token in lower case, as all names of the static table without a colon are.
    #[inline]
    pub(super) fn has_valid_name(&self) -> bool {
        self.known >= FIRST_REGULAR || is_name(self.name)
    }

    /// Whether it is a pseudo-header field.
    #[inline]
    pub(super) fn is_pseudo(&self) -> bool {
        match self.known {
            0 => self.name.first() == Some(&b':'),
            known => known < FIRST_REGULAR,
        }
    }
}

/// Whether a field is connection-specific, which is not permitted in HTTP/2 (RFC 9113, section 8.2.2).
#[inline]
pub(super) fn is_of_connection(name: Name) -> bool {
    matches!(name, Name::Connection | Name::KeepAlive | Name::ProxyConnection | Name::TransferEncoding | Name::Upgrade)
}

/// Whether a name is a token in lower case (RFC 9113, section 8.2.1).
#[inline]
pub(super) fn is_name(name: &[u8]) -> bool {
    let is_other = || h1::is_token(name) && !name.iter().any(u8::is_ascii_uppercase);
    !name.is_empty() && (byte_class::is_small(name) || is_other())
}

/// Whether a value has no control character except tabs.
#[inline]
pub(super) fn is_value(value: &[u8]) -> bool {
    byte_class::is_printable(value)
}

/// Removes leading and trailing blanks, which are not significant. CR and LF are not removed, so that they are rejected.
#[inline]
pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The remaining capacity for the fields of a head, or for trailers. A field that a block refers to takes one byte in
/// the block and more than its text here, so that both the number of fields and their bytes are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes of names and values, and four for each field, for its line in HTTP/1.
    pub bytes: usize,
    /// Number of fields. Crumbs of a cookie are one field.
    pub fields: usize,
}

impl Capacity {
    /// Reserves the bytes of a field; false if they exceed the capacity.
    #[inline]
    pub(super) fn take_bytes(&mut self, name: &[u8], value: &[u8]) -> bool {
        match self.bytes.checked_sub(name.len() + value.len() + 4) {
            Some(left) => self.bytes = left,
            None => return false,
        }
        true
    }

    /// Reserves one field; false if there are too many.
    #[inline]
    pub(super) fn take_field(&mut self) -> bool {
        match self.fields.checked_sub(1) {
            Some(left) => self.fields = left,
            None => return false,
        }
        true
    }
}

/// Reads a field of the trailers (RFC 9113, section 8.1); pseudo-headers are not permitted. Fields that HTTP/1 would
/// act on are dropped.
///
/// # Errors
/// The field is malformed, or exceeds the capacity.
pub fn read_trailers(
    trailers: &mut Fields,
    capacity: &mut Capacity,
    name: &[u8],
    value: &[u8],
) -> Result<(), Malformed> {
    let value = trim(value);
    let fits = capacity.take_bytes(name, value) && capacity.take_field();
    if !fits || !is_name(name) || !is_value(value) {
        return Err(Malformed);
    }
    if Name::from_token(name).is_plain() {
        trailers.append(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_have_no_say() {
        let mut trailers = Fields::new();
        let mut capacity = Capacity { bytes: 1000, fields: 5 };
        let mut read =
            |name: &str, value: &str| read_trailers(&mut trailers, &mut capacity, name.as_bytes(), value.as_bytes());
        for (name, value) in [("x-sum", "1"), ("content-length", "5"), ("host", "evil"), ("grpc-status", " 0\t")] {
            read(name, value).unwrap();
        }
        for (name, value) in [(":path", "/"), ("X", "1"), ("x", "a\nb"), ("x", "a\r\n"), ("x", "\0")] {
            assert_eq!(read(name, value), Err(Malformed));
        }
        let names: Vec<&[u8]> = trailers.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [&b"x-sum"[..], b"grpc-status"]);
        assert_eq!(trailers.first(b"grpc-status"), Some(&b"0"[..]));
        for mut capacity in [Capacity { bytes: 100, fields: 0 }, Capacity { bytes: 5, fields: 1 }] {
            assert_eq!(read_trailers(&mut trailers, &mut capacity, b"x", b"1"), Err(Malformed));
        }
    }
}
