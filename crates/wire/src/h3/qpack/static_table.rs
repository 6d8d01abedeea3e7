//! The static table of QPACK (RFC 9204, appendix A), and the search for fields in it. Must never hold an entry of a peer.

use crate::fields::field::{HeaderField, static_fields};
use crate::http::Method;

/// Number of entries.
const COUNT: usize = 99;

/// The static table (RFC 9204, appendix A), from index 0.
#[rustfmt::skip]
const STATIC: [(&str, &str); COUNT] = [
    (":authority", ""), (":path", "/"), ("age", "0"), ("content-disposition", ""), ("content-length", "0"),
    ("cookie", ""), ("date", ""), ("etag", ""), ("if-modified-since", ""), ("if-none-match", ""),
    ("last-modified", ""), ("link", ""), ("location", ""), ("referer", ""), ("set-cookie", ""),
    (":method", "CONNECT"), (":method", "DELETE"), (":method", "GET"), (":method", "HEAD"), (":method", "OPTIONS"),
    (":method", "POST"), (":method", "PUT"), (":scheme", "http"), (":scheme", "https"), (":status", "103"),
    (":status", "200"), (":status", "304"), (":status", "404"), (":status", "503"), ("accept", "*/*"),
    ("accept", "application/dns-message"), ("accept-encoding", "gzip, deflate, br"), ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"), ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"), ("cache-control", "max-age=0"), ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"), ("cache-control", "no-cache"), ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"), ("content-encoding", "br"), ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"), ("content-type", "application/javascript"),
    ("content-type", "application/json"), ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"), ("content-type", "image/jpeg"), ("content-type", "image/png"),
    ("content-type", "text/css"), ("content-type", "text/html; charset=utf-8"), ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"), ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"), ("vary", "accept-encoding"),
    ("vary", "origin"), ("x-content-type-options", "nosniff"), ("x-xss-protection", "1; mode=block"),
    (":status", "100"), (":status", "204"), (":status", "206"), (":status", "302"), (":status", "400"),
    (":status", "403"), (":status", "421"), (":status", "425"), (":status", "500"), ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"), ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"), ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"), ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"), ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"), ("access-control-request-method", "post"), ("alt-svc", "clear"),
    ("authorization", ""), ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"), ("expect-ct", ""), ("forwarded", ""), ("if-range", ""), ("origin", ""),
    ("purpose", "prefetch"), ("server", ""), ("timing-allow-origin", "*"), ("upgrade-insecure-requests", "1"),
    ("user-agent", ""), ("x-forwarded-for", ""), ("x-frame-options", "deny"), ("x-frame-options", "sameorigin"),
];

/// The entries as fields.
static ENTRIES: [HeaderField<'static>; COUNT] = static_fields(&STATIC);

/// Returns the entry at an index.
#[inline]
pub(super) fn get(index: usize) -> Option<HeaderField<'static>> {
    ENTRIES.get(index).copied()
}

/// The end of a list of entries.
const END: u8 = u8::MAX;

/// For each hash of a name: the first entry with it. Pseudo-header fields are not included.
static FIRST: [u8; 128] = {
    let mut first = [END; 128];
    let mut index = 0;
    while index < COUNT {
        let name = STATIC[index].0.as_bytes();
        if name[0] != b':' {
            let place = hash(name);
            let before = first[place];
            // Different names have different hashes.
            assert!(before == END || STATIC[before as usize].0.len() == name.len());
            if before == END {
                first[place] = index as u8;
            }
        }
        index += 1;
    }
    first
};

/// For each entry: the next one with the same name.
static NEXT: [u8; COUNT] = {
    let mut next = [END; COUNT];
    let mut index = 0;
    while index < COUNT {
        let place = hash(STATIC[index].0.as_bytes());
        let mut later = index + 1;
        while later < COUNT && next[index] == END {
            let name = STATIC[later].0.as_bytes();
            if STATIC[index].0.len() == name.len() && hash(name) == place {
                next[index] = later as u8;
            }
            later += 1;
        }
        index += 1;
    }
    next
};

/// Hashes a name of at least one byte by its length, its first byte and one of its last quarter.
const fn hash(name: &[u8]) -> usize {
    let later = name[name.len() * 3 / 4];
    (name.len() * 95 + name[0] as usize * 63 + later as usize * 55) & 127
}

/// An entry that a field matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// Name and value.
    Field(usize),
    /// The name.
    Name(usize),
    Nothing,
}

/// Finds a field that is no pseudo-header field.
#[inline]
pub(super) fn find(name: &[u8], value: &[u8]) -> Match {
    if name.is_empty() {
        return Match::Nothing;
    }
    let first = FIRST[hash(name)];
    let Some(entry) = ENTRIES.get(usize::from(first)).filter(|entry| entry.name == name) else {
        return Match::Nothing;
    };
    let (mut entry, mut index) = (entry, first);
    while entry.value != value {
        index = NEXT[usize::from(index)];
        match ENTRIES.get(usize::from(index)) {
            Some(next) => entry = next,
            None => return Match::Name(usize::from(first)),
        }
    }
    Match::Field(usize::from(index))
}

/// The index of the first entry `:authority`, `:path`, `:method`, `:scheme`, `:status`, and `content-length`.
pub(super) const AUTHORITY: usize = 0;
pub(super) const PATH: usize = 1;
pub(super) const METHOD: usize = 15;
pub(super) const SCHEME: usize = 22;
pub(super) const STATUS: usize = 24;
pub(super) const CONTENT_LENGTH: usize = 4;

/// Returns the index of a method.
#[inline]
pub(super) fn method(method: Method) -> Option<usize> {
    Some(match method {
        Method::Connect => 15,
        Method::Delete => 16,
        Method::Get => 17,
        Method::Head => 18,
        Method::Options => 19,
        Method::Post => 20,
        Method::Put => 21,
        Method::Trace | Method::Other => return None,
    })
}

/// Returns the index of a scheme.
#[inline]
pub(super) fn scheme(scheme: &[u8]) -> Option<usize> {
    match scheme {
        b"http" => Some(22),
        b"https" => Some(23),
        _ => None,
    }
}

/// Returns the index of a status.
#[inline]
pub(super) fn status(status: u16) -> Option<usize> {
    Some(match status {
        103 => 24,
        200 => 25,
        304 => 26,
        404 => 27,
        503 => 28,
        100 => 63,
        204 => 64,
        206 => 65,
        302 => 66,
        400 => 67,
        403 => 68,
        421 => 69,
        425 => 70,
        500 => 71,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::write::status_digits;
    use crate::http::Name;

    #[test]
    fn entries_are_found() {
        for (index, (name, value)) in STATIC.iter().enumerate() {
            let entry = get(index).unwrap();
            assert_eq!((entry.name, entry.value), (name.as_bytes(), value.as_bytes()));
            assert_eq!(entry.is_pseudo(), name.starts_with(':'), "{name}");
            if !entry.is_pseudo() {
                assert_eq!(entry.known_name(), Name::from_token(name.as_bytes()), "{name}");
                assert!(HeaderField::new(entry.name, entry.value).is_valid(), "{name}: {value}");
                assert_eq!(find(name.as_bytes(), value.as_bytes()), Match::Field(index), "{name}: {value}");
                let first = STATIC.iter().position(|(other, _)| other == name).unwrap();
                assert_eq!(find(name.as_bytes(), b"\0"), Match::Name(first), "{name}");
            }
        }
        assert_eq!(get(COUNT), None);
        for name in ["", "x", "hose", "x-date", "dates", ":path", "Age", "access-control-allow-xxxxxxx"] {
            assert_eq!(find(name.as_bytes(), b""), Match::Nothing, "{name}");
        }
    }

    #[test]
    fn pseudo_header_fields_have_their_indexes() {
        let text = |index: usize| (STATIC[index].0, STATIC[index].1.as_bytes());
        for index in 15..=21 {
            assert_eq!(method(Method::from_text(text(index).1)), Some(index));
        }
        for index in 22..=23 {
            assert_eq!(scheme(text(index).1), Some(index));
        }
        let known: Vec<usize> = (0..1000).filter_map(status).collect();
        assert_eq!(known.len(), STATIC.iter().filter(|(name, _)| *name == ":status").count());
        for code in (0..1000).filter(|code| status(*code).is_some()) {
            assert_eq!(text(status(code).unwrap()), (":status", &status_digits(code)[..]));
        }
        let names = [AUTHORITY, PATH, METHOD, SCHEME, STATUS, CONTENT_LENGTH].map(|index| text(index).0);
        assert_eq!(names, [":authority", ":path", ":method", ":scheme", ":status", "content-length"]);
        assert_eq!((text(PATH).1, text(CONTENT_LENGTH).1), (&b"/"[..], &b"0"[..]));
    }
}
