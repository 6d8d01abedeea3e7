//! The part of a ClientHello captured for samples (`tune.ssl.capture-buffer-size`): its lists, concatenated, up to the
//! size of the buffer. Must never keep more.

use wire::client_hello::{ClientHello, extension};
use xxhash_rust::xxh64::xxh64;

/// The lists of a ClientHello, each as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Cipher suites, two bytes each.
    Ciphers,
    /// Types of extensions, two bytes each.
    Extensions,
    /// `supported_groups`, two bytes each.
    Groups,
    /// `ec_point_formats`, one byte each.
    PointFormats,
    /// `supported_versions`, two bytes each.
    Versions,
    /// `signature_algorithms`, two bytes each.
    SignatureAlgorithms,
}

/// The captured data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capture {
    /// The version in the ClientHello.
    pub version: u16,
    /// XXH64 of all cipher suites.
    pub hash: u64,
    bytes: Box<[u8]>,
    /// The end of each list in `bytes`.
    ends: [usize; 6],
}

impl Capture {
    /// Captures at most `size` bytes of the lists.
    pub(crate) fn of(version: u16, hello: &ClientHello<'_>, size: usize) -> Self {
        let mut bytes = Vec::new();
        let mut keep = |list: &mut dyn Iterator<Item = u8>| {
            let room = size - bytes.len();
            bytes.extend(list.take(room));
            bytes.len()
        };
        let ends = [
            keep(&mut hello.ciphers.iter().copied()),
            keep(&mut hello.extension_types().flatten()),
            keep(&mut hello.numbers(extension::SUPPORTED_GROUPS).unwrap_or_default().iter().copied()),
            keep(&mut hello.bytes(extension::EC_POINT_FORMATS).unwrap_or_default().iter().copied()),
            keep(&mut hello.bytes(extension::SUPPORTED_VERSIONS).unwrap_or_default().iter().copied()),
            keep(&mut hello.numbers(extension::SIGNATURE_ALGORITHMS).unwrap_or_default().iter().copied()),
        ];
        Self { version, hash: xxh64(hello.ciphers, 0), bytes: bytes.into(), ends }
    }

    /// Returns the captured part of a list.
    pub fn list(&self, list: List) -> &[u8] {
        let place = list as usize;
        let begin = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(begin..self.ends[place]).unwrap_or_default()
    }
}

/// Whether a two-byte value is reserved as GREASE (RFC 8701).
pub fn is_grease(pair: [u8; 2]) -> bool {
    pair[0] == pair[1] && pair[0] & 0x0f == 0x0a
}

/// Removes the pairs for which [`is_grease`] is true; an incomplete pair at the end is kept.
pub fn without_grease(list: &[u8]) -> Vec<u8> {
    let pairs = list.chunks(2).filter(|pair| !matches!(**pair, [one, two] if is_grease([one, two])));
    pairs.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::client_hello::Hello;

    fn message() -> Vec<u8> {
        let extensions: &[u8] =
            b"\x0a\x0a\0\0\0\x0a\0\x06\0\x04\0\x1d\x1a\x1a\0\x0b\0\x02\x01\0\0\x2b\0\x05\x04\x03\x04\x03\x03\
            \0\x0d\0\x04\0\x02\x04\x03";
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 4, 0x2a, 0x2a, 0xc0, 0x2f, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut message = vec![1, 0, 0, body.len() as u8];
        message.extend(body);
        message
    }

    #[test]
    fn lists_share_the_buffer_in_their_order() {
        let message = message();
        let hello = Hello::of(&message).and_then(|hello| hello.client()).unwrap();
        let lists = [
            (List::Ciphers, &b"\x2a\x2a\xc0\x2f"[..]),
            (List::Extensions, b"\x0a\x0a\0\x0a\0\x0b\0\x2b\0\x0d"),
            (List::Groups, b"\0\x1d\x1a\x1a"),
            (List::PointFormats, b"\0"),
            (List::Versions, b"\x03\x04\x03\x03"),
            (List::SignatureAlgorithms, b"\x04\x03"),
        ];
        let all = lists.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>().concat();
        for size in 0..all.len() + 2 {
            let capture = Capture::of(0x0303, &hello, size);
            assert_eq!(capture.hash, xxh64(b"\x2a\x2a\xc0\x2f", 0));
            let mut left = size;
            for (list, bytes) in lists {
                let kept = bytes.len().min(left);
                assert_eq!(capture.list(list), &bytes[..kept], "{list:?} of {size}");
                left -= kept;
            }
        }
    }

    #[test]
    fn reserved_numbers_are_left_out() {
        let rows: &[(&[u8], &[u8])] = &[
            (b"", b""),
            (b"\x0a\x0a\x13\x01\xfa\xfa", b"\x13\x01"),
            (b"\x0a\x1a\x0b\x0b\x0a", b"\x0a\x1a\x0b\x0b\x0a"),
        ];
        for (list, expected) in rows {
            assert_eq!(without_grease(list), *expected);
        }
    }
}
