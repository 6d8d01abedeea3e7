//! The request fields that a response may vary on (RFC 9111, section 4.1): Accept-Encoding, by the acceptable codings,
//! Referer and Origin. Must never depend on the requested key.

use sha2::{Digest, Sha256};
use wire::http::Head;
use wire::http::coding::accepted;

/// Registered codings (RFC 9110, section 8.4.1, and the IANA registry), without aliases.
const CODINGS: &[&[u8]] = &[
    b"identity",
    b"gzip",
    b"deflate",
    b"compress",
    b"br",
    b"zstd",
    b"aes128gcm",
    b"dcb",
    b"dcz",
    b"exi",
    b"pack200-gzip",
];

/// Maximum number of elements of Accept-Encoding.
const MOST_ELEMENTS: usize = 16;

/// A set of content codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Codings(u16);

impl Codings {
    const ALL: Self = Self((1 << CODINGS.len()) - 1);

    fn bit(name: &[u8]) -> u16 {
        let name = match name {
            _ if name.eq_ignore_ascii_case(b"x-gzip") => &b"gzip"[..],
            _ if name.eq_ignore_ascii_case(b"x-compress") => b"compress",
            other => other,
        };
        CODINGS.iter().position(|known| known.eq_ignore_ascii_case(name)).map_or(0, |at| 1 << at)
    }

    /// The codings acceptable to a request: all without the field, only `identity` if it is empty. `None`: the field
    /// has too many elements.
    pub fn of_request(head: &Head) -> Option<Self> {
        let mut fields = head.all(b"accept-encoding").peekable();
        if fields.peek().is_none() {
            return Some(Self::ALL);
        }
        let (mut yes, mut no, mut rest, mut elements) = (0, 0, None, 0);
        for one in fields.flat_map(accepted) {
            elements += 1;
            if elements > MOST_ELEMENTS {
                return None;
            }
            match (one.name, one.weight) {
                (b"*", weight) => rest = Some(weight > 0),
                (name, 0) => no |= Self::bit(name),
                (name, _) => yes |= Self::bit(name),
            }
        }
        let identity = Self::bit(b"identity");
        let others = match rest {
            Some(true) => Self::ALL.0,
            Some(false) => 0,
            None => identity,
        };
        Some(Self(yes | others & !no))
    }

    /// The codings of a response; `None`: one is unknown.
    pub fn of_response(head: &Head) -> Option<Self> {
        let mut all = 0;
        for name in head.all(b"content-encoding").flat_map(|value| value.split(|byte| *byte == b',')) {
            let name = name.trim_ascii();
            match Self::bit(name) {
                0 if name.is_empty() => {}
                0 => return None,
                bit => all |= bit,
            }
        }
        Some(Self(if all == 0 { Self::bit(b"identity") } else { all }))
    }

    /// Whether it is a subset of others.
    pub fn are_among(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }
}

/// The fields that a response varies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Varies {
    pub coding: bool,
    pub referer: bool,
    pub origin: bool,
}

impl Varies {
    /// Parses the Vary fields of a response; `None`: it varies on other fields.
    pub fn of(head: &Head) -> Option<Self> {
        let mut all = Self::default();
        for name in head.all(b"vary").flat_map(|value| value.split(|byte| *byte == b',')) {
            let name = name.trim_ascii();
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            match () {
                () if is(b"accept-encoding") => all.coding = true,
                () if is(b"referer") => all.referer = true,
                () if is(b"origin") => all.origin = true,
                () if name.is_empty() => {}
                () => return None,
            }
        }
        Some(all)
    }

    /// Whether it varies on any.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

/// The values of these fields in a request, or in the request that a response was stored for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signature {
    /// The codings that the request accepts, or those of the response.
    pub codings: Codings,
    /// A digest of the Referer fields; 0: none.
    pub referer: u128,
    /// A digest of the Origin fields; 0: none.
    pub origin: u128,
}

impl Signature {
    /// Computes the signature of a request. `None`: Accept-Encoding has too many elements.
    pub fn of(head: &Head) -> Option<Self> {
        let joined = |name: &[u8]| {
            if !head.contains(name) {
                return 0;
            }
            let mut digest = Sha256::new();
            for value in head.all(name) {
                digest.update(value);
                digest.update(b"\n");
            }
            let digest = digest.finalize();
            digest.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte))
        };
        Some(Self { codings: Codings::of_request(head)?, referer: joined(b"referer"), origin: joined(b"origin") })
    }

    /// Whether a response with this signature that varies on these fields matches a request.
    pub fn answers(&self, varies: Varies, request: &Self) -> bool {
        (!varies.coding || self.codings.are_among(request.codings))
            && (!varies.referer || self.referer == request.referer)
            && (!varies.origin || self.origin == request.origin)
    }

    /// Whether responses that vary on the same fields replace each other.
    pub fn is_same(&self, varies: Varies, other: &Self) -> bool {
        (!varies.coding || self.codings == other.codings)
            && (!varies.referer || self.referer == other.referer)
            && (!varies.origin || self.origin == other.origin)
    }
}
