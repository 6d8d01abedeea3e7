//! Sizes in blocks. Must never know what they are of.

/// Size of a block in bytes, the unit of sizes.
pub(super) const BLOCK: u64 = 1_024;
/// Size of an entry in bytes in addition to its head and its body.
const OVERHEAD: u64 = 256;
/// The number of blocks for that many bytes.
pub(super) fn blocks(bytes: u64) -> u32 {
    u32::try_from((bytes + OVERHEAD).div_ceil(BLOCK)).unwrap_or(u32::MAX)
}
