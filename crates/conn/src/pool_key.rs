//! Keys of idle connections in the pool: source and destination addresses and the bytes that a connection begins with. A
//! request takes an idle connection only if its key is equal. Must never know what the bytes of a key mean.

use crate::ports::SourcePort;

/// What a request needs of a connection, written down as bytes: equal bytes, equal connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolKey<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl<'a> PoolKey<'a> {
    /// A connection like all others to its server.
    pub const COMMON: Self = Self { hash: 0, bytes: &[] };

    /// The key with these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { hash: hash(bytes), bytes }
    }

    /// Whether a connection with that key can be used.
    pub fn fits(self, pool_key: Option<&OwnedPoolKey>) -> bool {
        match pool_key {
            None => self.bytes.is_empty(),
            // The hash alone could be made to agree.
            Some(pool_key) => self.hash == pool_key.hash && *self.bytes == *pool_key.bytes,
        }
    }

    /// The key of a connection that is made for it and holds that source port; `None` for a connection without a key.
    pub fn keep(self, port: Option<SourcePort>) -> Option<Box<OwnedPoolKey>> {
        if self.bytes.is_empty() && port.is_none() {
            return None;
        }
        Some(Box::new(OwnedPoolKey { hash: self.hash, bytes: self.bytes.into(), _port: port }))
    }
}

/// What is particular about a connection.
#[derive(Debug)]
pub struct OwnedPoolKey {
    hash: u64,
    bytes: Box<[u8]>,
    /// The port of its source's range: free again when the connection is closed.
    _port: Option<SourcePort>,
}

impl OwnedPoolKey {
    /// The key that the connection was made for.
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
        let kept = |bytes| PoolKey::new(bytes).keep(None);
        let rows: &[(&[u8], &[u8], bool)] =
            &[(b"", b"", true), (b"a", b"a", true), (b"a", b"b", false), (b"", b"a", false), (b"a", b"", false)];
        for (wanted, made, fits) in rows {
            assert_eq!(PoolKey::new(wanted).fits(kept(*made).as_deref()), *fits, "{wanted:?} {made:?}");
        }
        assert!(PoolKey::COMMON.keep(None).is_none());
    }

    #[test]
    fn a_hash_that_agrees_is_not_enough() {
        let pool_key = OwnedPoolKey { hash: hash(b"a"), bytes: (*b"b").into(), _port: None };
        assert!(!PoolKey::new(b"a").fits(Some(&pool_key)));
    }
}
