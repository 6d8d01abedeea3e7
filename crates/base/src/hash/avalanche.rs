//! The avalanche applied after a hash function with `hash-type … avalanche`.

/// Mixes every bit of `hash` into every other: Bob Jenkins' published integer hash of six shifts, then the odd factor 3
/// * 2^30 + 1, found from HAProxy's results.
pub fn avalanche(hash: u32) -> u32 {
    let mut a = hash;
    a = a.wrapping_add(0x7ed5_5d16).wrapping_add(a << 12);
    a = (a ^ 0xc761_c23c) ^ (a >> 19);
    a = a.wrapping_add(0x1656_67b1).wrapping_add(a << 5);
    a = a.wrapping_add(0xd3a2_646c) ^ (a << 9);
    a = a.wrapping_add(0xfd70_46c5).wrapping_add(a << 3);
    a = (a ^ 0xb55a_4f09) ^ (a >> 16);
    a.wrapping_mul(0xc000_0001)
}
