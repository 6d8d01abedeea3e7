//! Field names in the case that a bogus HTTP/1 application requires (`h1-case-adjust`). Only the case of letters
//! changes, so names are rewritten in place. Must never change anything else.

/// A map of field names to their required spelling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spelling {
    /// Sorted.
    names: Vec<Spelt>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Spelt {
    /// The name in lower case, for lookups.
    lower: Box<[u8]>,
    /// The name as written to the message.
    written: Box<[u8]>,
}

impl Spelling {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Rewrites the names in complete lines `name: value`, each followed by CR LF. Lines that are not fields (a start
    /// line, the empty line) have no colon before their first blank and are left unchanged.
    pub fn apply(&self, lines: &mut [u8]) {
        let mut at = 0;
        while let Some(line) = lines.get_mut(at..).filter(|rest| !rest.is_empty()) {
            let length = memchr::memchr(b'\n', line).map_or(line.len(), |end| end + 1);
            let stop = memchr::memchr3(b':', b' ', b'\r', &line[..length]);
            if let Some(end) = stop.filter(|end| line[*end] == b':') {
                let name = &mut line[..end];
                if let Ok(found) = self.names.binary_search_by(|spelt| (*spelt.lower).cmp(&*name)) {
                    name.copy_from_slice(&self.names[found].written);
                }
            }
            at += length;
        }
    }
}

/// Pairs that differ in more than case are dropped.
impl<F: AsRef<[u8]>, T: AsRef<[u8]>> FromIterator<(F, T)> for Spelling {
    fn from_iter<I: IntoIterator<Item = (F, T)>>(pairs: I) -> Self {
        let mut names: Vec<Spelt> = pairs
            .into_iter()
            .filter(|(from, to)| from.as_ref().eq_ignore_ascii_case(to.as_ref()))
            .map(|(from, to)| Spelt { lower: from.as_ref().into(), written: to.as_ref().into() })
            .collect();
        names.sort();
        Self { names }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_rewritten_and_nothing_else_is() {
        let spelling: Spelling =
            [("host", "Host"), ("x-a", "X-A"), ("get", "GeT"), ("http/1", "hTTP/1"), ("bad", "bade")]
                .into_iter()
                .collect();
        let rows: &[(&str, &str)] = &[
            (
                "GET /host:x-a HTTP/1.1\r\nhost: host: x-a\r\nx-a: 1\r\nx-ab: 2\r\n\r\n",
                "GET /host:x-a HTTP/1.1\r\nHost: host: x-a\r\nX-A: 1\r\nx-ab: 2\r\n\r\n",
            ),
            ("host:\r\nx-a: \r\nbad: 1\r\n", "Host:\r\nX-A: \r\nbad: 1\r\n"),
            ("0\r\nx-a: 1\r\n\r\n", "0\r\nX-A: 1\r\n\r\n"),
            ("get a:b HTTP/1.1\r\n\r\n", "get a:b HTTP/1.1\r\n\r\n"),
            ("host: 1", "Host: 1"),
            ("", ""),
        ];
        for (text, expected) in rows {
            let mut bytes = text.as_bytes().to_vec();
            spelling.apply(&mut bytes);
            assert_eq!(String::from_utf8_lossy(&bytes), *expected);
        }
    }
}
