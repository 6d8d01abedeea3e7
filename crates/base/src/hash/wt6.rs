//! `wt6`: HAProxy's own hash, two words that are swapped and rotated depending on the data.

/// Hashes `bytes` (configuration manual, `hash-type`: "wt6"). The manual does not define the function; the rows in the
/// tests of this folder are results of HAProxy itself.
pub fn wt6(bytes: &[u8]) -> u32 {
    let (mut left, mut right) = (0xa53c_965a_u32, 0x5ca6_953a_u32);
    let (mut left_turn, mut right_turn) = (18, 6);
    for &byte in bytes {
        let mixed_left = !(left ^ u32::from(byte));
        let mixed_right = !right.wrapping_add(u32::from(byte));
        left = mixed_right.rotate_left(right_turn);
        right = mixed_left.rotate_left(left_turn);
        let turns = ((left >> 16) ^ right) & 0xffff;
        (right_turn, left_turn) = (turns & 31, turns >> 11);
    }
    left ^ right
}
