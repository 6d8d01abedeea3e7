//! `crc32`: the checksum of Ethernet, gzip and PNG (reflected polynomial 0xEDB88320).

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { (remainder >> 1) ^ 0xedb8_8320 } else { remainder >> 1 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

/// Hashes `bytes` (configuration manual, `hash-type`: "crc32").
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| (sum >> 8) ^ TABLE[usize::from(sum as u8 ^ byte)])
}
