//! The static table of HPACK (RFC 7541, appendix A), and the search for names in it. Must never hold an entry of a peer.

use crate::fields::field::{HeaderField, static_fields};

/// The static table (RFC 7541, appendix A), from index 1.
#[rustfmt::skip]
const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

/// The entries as fields.
pub(super) static ENTRIES: [HeaderField<'static>; 61] = static_fields(&STATIC);

/// Returns the index of a name in the static table, or 0.
pub(super) fn static_name(name: &[u8]) -> usize {
    // Common names of requests and responses, by length and first letter.
    let found = match (name.len(), name.first()) {
        (3, Some(b'a')) => [21, 0],
        (3, Some(b'v')) => [60, 0],
        (4, Some(b'd')) => [33, 0],
        (4, Some(b'e')) => [34, 0],
        (4, Some(b'f')) => [37, 0],
        (4, Some(b'h')) => [38, 0],
        (4, Some(b'l')) => [45, 0],
        (4, Some(b'v')) => [59, 0],
        (5, Some(b'a')) => [22, 0],
        (5, Some(b'r')) => [50, 0],
        (6, Some(b'a')) => [19, 0],
        (6, Some(b'c')) => [32, 0],
        (6, Some(b'e')) => [35, 0],
        (6, Some(b's')) => [54, 0],
        (7, Some(b'e')) => [36, 0],
        (7, Some(b'r')) => [51, 52],
        (8, Some(b'i')) => [39, 42],
        (8, Some(b'l')) => [46, 0],
        (10, Some(b'u')) => [58, 0],
        (10, Some(b's')) => [55, 0],
        (11, Some(b'r')) => [53, 0],
        (12, Some(b'c')) => [31, 0],
        (12, Some(b'm')) => [47, 0],
        (13, Some(b'a')) => [18, 23],
        (13, Some(b'c')) => [24, 30],
        (13, Some(b'i')) => [41, 0],
        (13, Some(b'l')) => [44, 0],
        (14, Some(b'c')) => [28, 0],
        (14, Some(b'a')) => [15, 0],
        (15, Some(b'a')) => [16, 17],
        (16, Some(b'c')) => [26, 27],
        (16, Some(b'w')) => [61, 0],
        (16, Some(b'p')) => [0, 29],
        (17, Some(b'i')) => [40, 0],
        (18, Some(b'p')) => [48, 0],
        (19, Some(b'p')) => [49, 0],
        (19, Some(b'i')) => [43, 0],
        (19, Some(b'c')) => [25, 0],
        (25, Some(b's')) => [56, 0],
        (27, Some(b'a')) => [20, 0],
        _ => return 0,
    };
    let is = |index: &usize| *index > 0 && STATIC[*index - 1].0.as_bytes() == name;
    found.into_iter().find(is).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Name;

    #[test]
    fn names_are_found_in_the_static_table() {
        for (index, (name, _)) in STATIC.iter().enumerate() {
            let found = static_name(name.as_bytes());
            // Names with a colon are encoded by index elsewhere; hop-by-hop fields and content-location are rare.
            let expected = if name.starts_with(':') || matches!(*name, "transfer-encoding" | "content-location") {
                0
            } else {
                index + 1
            };
            assert_eq!(found, expected, "{name}");
        }
        for (entry, (name, value)) in ENTRIES.iter().zip(STATIC) {
            assert_eq!((entry.name, entry.value), (name.as_bytes(), value.as_bytes()));
            assert_eq!(entry.is_pseudo(), name.starts_with(':'), "{name}");
            assert!(entry.is_pseudo() || entry.known_name() == Name::from_token(name.as_bytes()), "{name}");
        }
        for name in ["", "x", "hose", "x-date", "dates"] {
            assert_eq!(static_name(name.as_bytes()), 0, "{name}");
        }
    }
}
