//! Keys of idle connections in the pool: source and destination addresses and the bytes that a connection begins with. A
//! request takes an idle connection only if its key is equal. Must never know what the bytes of a key mean.

use crate::ports::SourcePort;

/// The connection that a request needs, encoded as bytes: connections with equal bytes are interchangeable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolKey<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl<'a> PoolKey<'a> {
    /// The key of a connection that every request to its server may use.
    pub const COMMON: Self = Self { hash: 0, bytes: &[] };

    /// Creates the key with these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { hash: hash(bytes), bytes }
    }

    /// Whether a connection with that key can be used.
    pub fn fits(self, pool_key: Option<&OwnedPoolKey>) -> bool {
        match pool_key {
            None => self.bytes.is_empty(),
            // Hashes alone could be made to collide.
            Some(pool_key) => self.hash == pool_key.hash && *self.bytes == *pool_key.bytes,
        }
    }

    /// Returns the key to store with a new connection that holds that source port; `None`: it needs no key.
    pub fn keep(self, port: Option<SourcePort>) -> Option<Box<OwnedPoolKey>> {
        if self.bytes.is_empty() && port.is_none() {
            return None;
        }
        Some(Box::new(OwnedPoolKey { hash: self.hash, bytes: self.bytes.into(), _port: port }))
    }
}

/// The key of a connection, owned.
#[derive(Debug)]
pub struct OwnedPoolKey {
    hash: u64,
    bytes: Box<[u8]>,
    /// The port of the source's range, which is released when the connection is closed.
    _port: Option<SourcePort>,
}

impl OwnedPoolKey {
    /// The key that the connection was opened for.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// FNV-1a; it only saves comparisons.
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
