//! The field names that the proxy itself acts on, recognized once so that no later step searches for them. Must never
//! hold the text of a name.

/// A well-known field name. `Other` names are opaque text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Name {
    #[default]
    Other,
    Host,
    ContentLength,
    TransferEncoding,
    Connection,
    Expect,
    Upgrade,
    KeepAlive,
    ProxyConnection,
    Te,
    Trailer,
    Authorization,
    ProxyAuthorization,
    WwwAuthenticate,
    ProxyAuthenticate,
}

/// The authentication fields, as bits of [`Names`].
const AUTHENTICATION: u16 = 1 << Name::Authorization as u8
    | 1 << Name::ProxyAuthorization as u8
    | 1 << Name::WwwAuthenticate as u8
    | 1 << Name::ProxyAuthenticate as u8;

impl Name {
    /// Recognizes a name in any case, by its length and first letter before anything else. The name must be a token.
    #[inline]
    pub fn from_token(name: &[u8]) -> Name {
        shape(name).map_or(Name::Other, |shape| Name::of(shape, place(shape), name))
    }

    /// Recognizes a name of a shape, with the hash of the shape.
    #[inline]
    fn of(shape: usize, place: usize, name: &[u8]) -> Name {
        let (of_known, known) = KNOWN[place & 63];
        if of_known != shape { Name::Other } else { known.verify(name) }
    }

    /// Whether the name affects neither framing nor connection handling.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        (1 | AUTHENTICATION) & (1 << (self as u8)) != 0
    }

    /// Returns `self` if `name`, a token of the same length and first letter, is that name; else `Other`.
    #[inline]
    fn verify(self, name: &[u8]) -> Name {
        let is_it = match self {
            Name::Other => false,
            Name::Te => is(name, b"te"),
            Name::Host => is(name, b"host"),
            Name::Expect => is(name, b"expect"),
            Name::Upgrade => is(name, b"upgrade"),
            Name::Trailer => is(name, b"trailer"),
            Name::Connection => is(name, b"connection"),
            Name::KeepAlive => is(name, b"keep-alive"),
            Name::ContentLength => is(name, b"content-length"),
            Name::ProxyConnection => is(name, b"proxy-connection"),
            Name::TransferEncoding => is(name, b"transfer-encoding"),
            Name::Authorization => is(name, b"authorization"),
            Name::ProxyAuthorization => is(name, b"proxy-authorization"),
            Name::WwwAuthenticate => is(name, b"www-authenticate"),
            Name::ProxyAuthenticate => is(name, b"proxy-authenticate"),
        };
        if is_it { self } else { Name::Other }
    }
}

/// Combines the length and the first letter of a name, case-insensitively. `None` if it is empty.
#[inline]
fn shape(name: &[u8]) -> Option<usize> {
    name.first().map(|first| (name.len() << 8) | (*first as usize | 0x20))
}

/// Hashes a shape to a number below 64, without collisions between well-known names.
#[inline]
const fn place(shape: usize) -> usize {
    ((shape as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// Well-known names, indexed by the hash of their shape.
static KNOWN: [(usize, Name); 64] = {
    let names: [(&[u8], Name); 14] = [
        (b"te", Name::Te),
        (b"host", Name::Host),
        (b"expect", Name::Expect),
        (b"upgrade", Name::Upgrade),
        (b"trailer", Name::Trailer),
        (b"connection", Name::Connection),
        (b"keep-alive", Name::KeepAlive),
        (b"content-length", Name::ContentLength),
        (b"proxy-connection", Name::ProxyConnection),
        (b"transfer-encoding", Name::TransferEncoding),
        (b"authorization", Name::Authorization),
        (b"proxy-authorization", Name::ProxyAuthorization),
        (b"www-authenticate", Name::WwwAuthenticate),
        (b"proxy-authenticate", Name::ProxyAuthenticate),
    ];
    let mut known = [(0, Name::Other); 64];
    let mut at = 0;
    while at < names.len() {
        let (name, this) = names[at];
        let shape = (name.len() << 8) | name[0] as usize;
        assert!(known[place(shape)].0 == 0, "two names at one place");
        known[place(shape)] = (shape, this);
        at += 1;
    }
    known
};

/// Compares a token with a name case-insensitively, a word at a time. Setting the case bit is safe: no other byte of a
/// token differs from a lower-case letter or a dash by that bit alone.
#[inline]
fn is<const N: usize>(name: &[u8], expected: &[u8; N]) -> bool {
    let Some(name) = name.first_chunk::<N>() else { return false };
    let differs = |at: usize| (word(name, at) | CASE) ^ word(expected, at);
    if N >= 8 {
        // The last word overlaps with the one before it.
        return differs(0) | differs((N - 8).min(8)) | differs(N - 8) == 0;
    }
    name.iter().zip(expected).fold(0, |differs, (byte, expected)| differs | ((byte | 0x20) ^ expected)) == 0
}

const CASE: u64 = 0x2020_2020_2020_2020;

#[inline]
fn word(text: &[u8], at: usize) -> u64 {
    text.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A set of names that a message may contain. A name in the set may have been removed from the message; a name not in
/// it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Names {
    known: u16,
    /// A well-known name was added more than once.
    repeated: bool,
    /// A bitmap of name hashes; several names share a bit.
    seen: u64,
}

/// Returns the bit of a name, independent of its case.
#[inline]
fn bit(name: &[u8]) -> u64 {
    shape(name).map_or(0, |shape| 1 << place(shape))
}

impl Names {
    /// Adds a name, recognized as `known`.
    #[inline]
    pub(crate) fn add(&mut self, known: Name, name: &[u8]) {
        self.mark(known);
        self.seen |= bit(name);
    }

    /// Recognizes a token and adds it.
    #[inline]
    pub(crate) fn add_token(&mut self, name: &[u8]) -> Name {
        let Some(shape) = shape(name) else { return Name::Other };
        let place = place(shape);
        let known = Name::of(shape, place, name);
        self.mark(known);
        self.seen |= 1 << place;
        known
    }

    #[inline]
    fn mark(&mut self, known: Name) {
        let bit = 1 << (known as u8);
        self.repeated |= self.known & bit & !1 != 0;
        self.known |= bit;
    }

    /// Whether each well-known name was added at most once.
    #[inline]
    pub(crate) fn are_distinct(self) -> bool {
        !self.repeated
    }

    #[inline]
    pub(crate) fn has(self, name: Name) -> bool {
        self.known & (1 << (name as u8)) != 0
    }

    /// Whether there may be a field with that name.
    #[inline]
    pub(crate) fn may_have(self, name: &[u8]) -> bool {
        self.seen & bit(name) != 0
    }

    /// Whether the set contains a well-known name besides the two given and plain ones.
    #[inline]
    pub(crate) fn has_beside(self, one: Name, two: Name) -> bool {
        self.known & !(1 | AUTHENTICATION | (1 << (one as u8)) | (1 << (two as u8))) != 0
    }

    /// Whether one of both sets contains an authentication field.
    #[inline]
    pub(crate) fn authenticate(self, other: Self) -> bool {
        (self.known | other.known) & AUTHENTICATION != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_any_case_and_nothing_else() {
        let known = [
            ("TE", Name::Te),
            ("Host", Name::Host),
            ("expect", Name::Expect),
            ("UPGRADE", Name::Upgrade),
            ("Trailer", Name::Trailer),
            ("Connection", Name::Connection),
            ("Keep-Alive", Name::KeepAlive),
            ("Content-Length", Name::ContentLength),
            ("Proxy-Connection", Name::ProxyConnection),
            ("Transfer-Encoding", Name::TransferEncoding),
            ("Authorization", Name::Authorization),
            ("Proxy-Authorization", Name::ProxyAuthorization),
            ("WWW-Authenticate", Name::WwwAuthenticate),
            ("Proxy-Authenticate", Name::ProxyAuthenticate),
        ];
        for (text, name) in known {
            assert_eq!(Name::from_token(text.as_bytes()), name);
            assert_eq!(Name::from_token(&text.as_bytes()[1..]), Name::Other);
            assert_eq!(Name::from_token(text.replace('e', "x").as_bytes()) == name, !text.contains('e'));
        }
        assert_eq!(Name::from_token(b""), Name::Other);
    }

    #[test]
    fn a_set_holds_what_was_added() {
        let mut names = Names::default();
        names.add(Name::Host, b"HOST");
        names.add(Name::Other, b"X-Request-Id");
        assert!(names.may_have(b"host") && names.may_have(b"x-request-id"));
        assert!(!names.may_have(b"te") && !names.may_have(b"accept") && !names.may_have(b""));
        assert!(names.has(Name::Host) && !names.has(Name::Te));
        assert!(!names.has_beside(Name::Host, Name::Trailer));
        names.add(Name::Authorization, b"authorization");
        assert!(!names.has_beside(Name::Host, Name::Trailer));
        assert!(names.authenticate(Names::default()) && Names::default().authenticate(names));
        assert!(!Names::default().authenticate(Names::default()));
        names.add(Name::Te, b"te");
        assert!(names.has_beside(Name::Host, Name::Trailer));
    }
}
