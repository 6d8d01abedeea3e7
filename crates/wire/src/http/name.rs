//! Field names that the proxy itself acts on, so that no later step searches for them.

/// A well-known field name. `Other` names are only text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
#[allow(missing_docs)]
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
}

impl Name {
    /// Recognises a name in whatever case, by its length and its first letter before anything else. The name must be a
    /// token.
    #[inline]
    pub fn from_token(name: &[u8]) -> Name {
        let Some(first) = name.first() else { return Name::Other };
        let (is_it, known) = match (name.len() << 8) | usize::from(first | 0x20) {
            TE => (is(name, b"te"), Name::Te),
            HOST => (is(name, b"host"), Name::Host),
            EXPECT => (is(name, b"expect"), Name::Expect),
            UPGRADE => (is(name, b"upgrade"), Name::Upgrade),
            TRAILER => (is(name, b"trailer"), Name::Trailer),
            CONNECTION => (is(name, b"connection"), Name::Connection),
            KEEP_ALIVE => (is(name, b"keep-alive"), Name::KeepAlive),
            CONTENT_LENGTH => (is(name, b"content-length"), Name::ContentLength),
            PROXY_CONNECTION => (is(name, b"proxy-connection"), Name::ProxyConnection),
            TRANSFER_ENCODING => (is(name, b"transfer-encoding"), Name::TransferEncoding),
            _ => return Name::Other,
        };
        if is_it { known } else { Name::Other }
    }
}

/// Whether a token is that name, in whatever case, as few words: no other byte of a token differs from a lower-case
/// letter or a dash by the bit for the case alone.
#[inline]
fn is<const N: usize>(name: &[u8], expected: &[u8; N]) -> bool {
    let Some(name) = name.first_chunk::<N>() else { return false };
    let differs = |at: usize| (word(name, at) | CASE) ^ word(expected, at);
    if N >= 8 {
        // The last word overlaps the one before it.
        return differs(0) | differs((N - 8).min(8)) | differs(N - 8) == 0;
    }
    name.iter().zip(expected).fold(0, |differs, (byte, expected)| differs | ((byte | 0x20) ^ expected)) == 0
}

const CASE: u64 = 0x2020_2020_2020_2020;

#[inline]
fn word(text: &[u8], at: usize) -> u64 {
    text.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Length and first letter of each name.
const TE: usize = (2 << 8) | b't' as usize;
const HOST: usize = (4 << 8) | b'h' as usize;
const EXPECT: usize = (6 << 8) | b'e' as usize;
const UPGRADE: usize = (7 << 8) | b'u' as usize;
const TRAILER: usize = (7 << 8) | b't' as usize;
const CONNECTION: usize = (10 << 8) | b'c' as usize;
const KEEP_ALIVE: usize = (10 << 8) | b'k' as usize;
const CONTENT_LENGTH: usize = (14 << 8) | b'c' as usize;
const PROXY_CONNECTION: usize = (16 << 8) | b'p' as usize;
const TRANSFER_ENCODING: usize = (17 << 8) | b't' as usize;

/// A set of names that may be in a message. A name in it may have been removed since; one that is not in it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Names(u16);

impl Names {
    #[inline]
    pub(crate) fn add(&mut self, name: Name) {
        self.0 |= 1 << (name as u8);
    }

    #[inline]
    pub(crate) fn has(self, name: Name) -> bool {
        self.0 & (1 << (name as u8)) != 0
    }

    /// Whether it has a name other than those two, `Other` aside.
    #[inline]
    pub(crate) fn has_beside(self, one: Name, two: Name) -> bool {
        self.0 & !(1 | (1 << (one as u8)) | (1 << (two as u8))) != 0
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
        names.add(Name::Host);
        names.add(Name::Other);
        assert!(names.has(Name::Host) && !names.has(Name::Te));
        assert!(!names.has_beside(Name::Host, Name::Trailer));
        names.add(Name::Te);
        assert!(names.has_beside(Name::Host, Name::Trailer));
    }
}
