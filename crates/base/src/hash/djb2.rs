//! `djb2`: Daniel Bernstein's string hash, times 33 plus the byte.

/// Hashes `bytes` (configuration manual, `hash-type`: "djb2").
pub fn djb2(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5_381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}
