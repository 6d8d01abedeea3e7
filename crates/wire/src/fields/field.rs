//! Fields of field sections: valid names and values, and trailers (RFC 9113, section 8; RFC 9114, section 4). Must never
//! know what kind of message they belong to.

use crate::byte_class;
use crate::h1;
use crate::http::{Fields, Name};

/// A malformed message: its stream is reset with PROTOCOL_ERROR (RFC 9113, section 8.1.1) or H3_MESSAGE_ERROR (RFC 9114,
/// section 4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// A name that comes from a static table, so that its text needs no comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownName {
    /// Only the text is known.
    Unknown,
    Authority,
    Method,
    Path,
    Scheme,
    Status,
    /// No pseudo-header field; a token in lower case.
    Regular(Name),
}

impl KnownName {
    /// Classifies a name of a static table.
    const fn of_entry(name: &str) -> Self {
        const ALL: [(&str, KnownName); 13] = [
            (":authority", KnownName::Authority),
            (":method", KnownName::Method),
            (":path", KnownName::Path),
            (":scheme", KnownName::Scheme),
            (":status", KnownName::Status),
            ("authorization", KnownName::Regular(Name::Authorization)),
            ("content-length", KnownName::Regular(Name::ContentLength)),
            ("expect", KnownName::Regular(Name::Expect)),
            ("host", KnownName::Regular(Name::Host)),
            ("proxy-authenticate", KnownName::Regular(Name::ProxyAuthenticate)),
            ("proxy-authorization", KnownName::Regular(Name::ProxyAuthorization)),
            ("transfer-encoding", KnownName::Regular(Name::TransferEncoding)),
            ("www-authenticate", KnownName::Regular(Name::WwwAuthenticate)),
        ];
        let mut at = 0;
        while at < ALL.len() {
            if is_same(ALL[at].0.as_bytes(), name.as_bytes()) {
                return ALL[at].1;
            }
            at += 1;
        }
        Self::Regular(Name::Other)
    }
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// A field of a field section, and its known properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField<'f> {
    /// The name.
    pub name: &'f [u8],
    /// The value.
    pub value: &'f [u8],
    /// The name, if it comes from a static table.
    pub(crate) known: KnownName,
    /// The name and the value were found valid ([`HeaderField::is_valid`]); of a pseudo-header field: they are those of
    /// an entry of a static table.
    pub(crate) is_valid: bool,
}

/// Returns the entries of a static table as fields.
pub(crate) const fn static_fields<const COUNT: usize>(
    entries: &[(&'static str, &'static str); COUNT],
) -> [HeaderField<'static>; COUNT] {
    let mut fields = [HeaderField { name: b"", value: b"", known: KnownName::Unknown, is_valid: true }; COUNT];
    let mut at = 0;
    while at < COUNT {
        let (name, value) = entries[at];
        fields[at].name = name.as_bytes();
        fields[at].value = value.as_bytes();
        fields[at].known = KnownName::of_entry(name);
        at += 1;
    }
    fields
}

impl<'f> HeaderField<'f> {
    /// A field of which nothing is known but its text.
    pub fn new(name: &'f [u8], value: &'f [u8]) -> Self {
        Self { name, value, known: KnownName::Unknown, is_valid: false }
    }

    /// The name, if it is one that the proxy acts on.
    #[inline]
    pub(crate) fn known_name(&self) -> Name {
        match self.known {
            KnownName::Regular(known) => known,
            _ => Name::from_token(self.name),
        }
    }

    /// Whether the name is a token in lower case, and the value has no control character except tabs, and no blanks at
    /// its ends.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.is_valid || self.has_valid_name() && is_value(self.value) && trim(self.value).len() == self.value.len()
    }

    /// Whether the name is a token in lower case, as all names of the static tables without a colon are.
    #[inline]
    pub(crate) fn has_valid_name(&self) -> bool {
        matches!(self.known, KnownName::Regular(_)) || is_name(self.name)
    }

    /// Whether it is a pseudo-header field.
    #[inline]
    pub(crate) fn is_pseudo(&self) -> bool {
        match self.known {
            KnownName::Unknown => self.name.first() == Some(&b':'),
            KnownName::Regular(_) => false,
            _ => true,
        }
    }
}

/// Whether a field is connection-specific, which is not permitted since HTTP/2 (RFC 9113, section 8.2.2; RFC 9114,
/// section 4.2).
#[inline]
pub(crate) fn is_of_connection(name: Name) -> bool {
    matches!(name, Name::Connection | Name::KeepAlive | Name::ProxyConnection | Name::TransferEncoding | Name::Upgrade)
}

/// Whether a name is a token in lower case (RFC 9113, section 8.2.1; RFC 9114, section 4.2).
#[inline]
pub(crate) fn is_name(name: &[u8]) -> bool {
    let is_other = || h1::is_token(name) && !name.iter().any(u8::is_ascii_uppercase);
    !name.is_empty() && (byte_class::is_small(name) || is_other())
}

/// Whether a value has no control character except tabs.
#[inline]
pub(crate) fn is_value(value: &[u8]) -> bool {
    byte_class::is_printable(value)
}

/// Removes leading and trailing blanks, which are not significant. CR and LF are not removed, so that they are rejected.
#[inline]
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
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
    pub(crate) fn take_bytes(&mut self, name: &[u8], value: &[u8]) -> bool {
        match self.bytes.checked_sub(name.len() + value.len() + 4) {
            Some(left) => self.bytes = left,
            None => return false,
        }
        true
    }

    /// Reserves one field; false if there are too many.
    #[inline]
    pub(crate) fn take_field(&mut self) -> bool {
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
