//! `sdbm`: the hash of the public-domain database library of that name.

/// Hashes `bytes` (configuration manual, `hash-type`: "sdbm").
pub fn sdbm(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |hash: u32, byte| hash.wrapping_mul(65_599).wrapping_add(u32::from(*byte)))
}
