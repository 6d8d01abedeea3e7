//! The static and the dynamic table of HPACK (RFC 7541, section 2.3). Owns the entries that a peer has added; must
//! never exceed the table's size.

use std::collections::VecDeque;

/// Overhead of each entry beyond its text (RFC 7541, section 4.1).
const OVERHEAD: usize = 32;

/// The static table (RFC 7541, appendix A), from index 1.
#[rustfmt::skip]
pub(super) const STATIC: [(&str, &str); 61] = [
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

/// The dynamic table, newest entry first.
#[derive(Debug)]
pub(super) struct Dynamic {
    /// Name and value as one text, and the offset of the value.
    entries: VecDeque<(Box<[u8]>, u32)>,
    size: usize,
    /// The current maximum size, chosen by the peer.
    most: usize,
    /// The advertised maximum size, the largest that the peer may choose.
    announced: usize,
}

impl Dynamic {
    pub(super) fn new(announced: usize) -> Self {
        Self { entries: VecDeque::new(), size: 0, most: announced, announced }
    }

    /// Applies a size update of the peer. `None` if it exceeds the advertised size.
    pub(super) fn resize(&mut self, most: usize) -> Option<()> {
        if most > self.announced {
            return None;
        }
        self.most = most;
        self.evict(0);
        Some(())
    }

    /// Adds an entry and evicts the oldest ones if necessary.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + OVERHEAD;
        self.evict(size);
        if size > self.most {
            return;
        }
        self.size += size;
        let mut text = Vec::with_capacity(name.len() + value.len());
        text.extend_from_slice(name);
        text.extend_from_slice(value);
        self.entries.push_front((text.into_boxed_slice(), name.len() as u32));
    }

    /// Evicts the oldest entries until an entry of `size` bytes fits, or none is left.
    fn evict(&mut self, size: usize) {
        while self.size + size > self.most {
            let Some((text, _)) = self.entries.pop_back() else { return };
            self.size -= text.len() + OVERHEAD;
        }
    }

    /// Returns the entry at an index of the combined static and dynamic table.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let (text, split) = self.entries.get(index - STATIC.len())?;
        text.split_at_checked(*split as usize)
    }

    /// Size of the dynamic table in bytes, as the RFC defines it.
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

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
        for name in ["", "x", "hose", "x-date", "dates"] {
            assert_eq!(static_name(name.as_bytes()), 0, "{name}");
        }
    }

    #[test]
    fn the_oldest_make_room() {
        let mut table = Dynamic::new(100);
        table.add(b"a", b"1");
        table.add(b"b", b"2");
        assert_eq!((table.get(62), table.get(63)), (Some((&b"b"[..], &b"2"[..])), Some((&b"a"[..], &b"1"[..]))));
        table.add(b"c", b"3");
        assert_eq!((table.get(63), table.get(64), table.size()), (Some((&b"b"[..], &b"2"[..])), None, 68));
        table.add(&[b'x'; 200], b"");
        assert_eq!((table.get(62), table.size()), (None, 0));
        table.add(b"d", b"4");
        assert_eq!(table.resize(101), None);
        assert_eq!(table.resize(0), Some(()));
        assert_eq!(
            (table.get(62), table.get(0), table.get(61)),
            (None, None, Some((&b"www-authenticate"[..], &b""[..])))
        );
    }
}
