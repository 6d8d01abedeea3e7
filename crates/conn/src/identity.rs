//! What tells connections to one server apart: where they come from, where they lead, what they began with. A request
//! may take an idle connection only where all of that is as it would make it itself. Must never know what the bytes of
//! an identity mean.

use crate::ports::SourcePort;

/// What a request needs of a connection, written down as bytes: equal bytes, equal connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl<'a> Identity<'a> {
    /// A connection like all others to its server.
    pub const COMMON: Self = Self { hash: 0, bytes: &[] };

    /// The identity that is written down there.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { hash: hash(bytes), bytes }
    }

    /// Whether a connection with these particulars will do.
    pub fn fits(self, particulars: Option<&Particulars>) -> bool {
        match particulars {
            None => self.bytes.is_empty(),
            // The hash alone could be made to agree.
            Some(particulars) => self.hash == particulars.hash && *self.bytes == *particulars.bytes,
        }
    }

    /// The particulars of a connection that is made for it, and holds that port; `None` where there are none.
    pub fn keep(self, port: Option<SourcePort>) -> Option<Box<Particulars>> {
        if self.bytes.is_empty() && port.is_none() {
            return None;
        }
        Some(Box::new(Particulars { hash: self.hash, bytes: self.bytes.into(), _port: port }))
    }
}

/// What is particular about a connection.
#[derive(Debug)]
pub struct Particulars {
    hash: u64,
    bytes: Box<[u8]>,
    /// The port of its source's range: free again when the connection is closed.
    _port: Option<SourcePort>,
}

impl Particulars {
    /// The identity that it was made for.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// FNV-1a: it only saves comparisons.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_bytes_fit() {
        let kept = |bytes| Identity::new(bytes).keep(None);
        let rows: &[(&[u8], &[u8], bool)] =
            &[(b"", b"", true), (b"a", b"a", true), (b"a", b"b", false), (b"", b"a", false), (b"a", b"", false)];
        for (wanted, made, fits) in rows {
            assert_eq!(Identity::new(wanted).fits(kept(*made).as_deref()), *fits, "{wanted:?} {made:?}");
        }
        assert!(Identity::COMMON.keep(None).is_none());
    }

    #[test]
    fn a_hash_that_agrees_is_not_enough() {
        let particulars = Particulars { hash: hash(b"a"), bytes: (*b"b").into(), _port: None };
        assert!(!Identity::new(b"a").fits(Some(&particulars)));
    }
}
