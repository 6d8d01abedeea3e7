//! `crc32c`: the checksum of SCTP and of the PROXY protocol (RFC 9260 appendix A, reflected polynomial 0x82F63B78).

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { (remainder >> 1) ^ 0x82f6_3b78 } else { remainder >> 1 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

/// Hashes `bytes` (configuration manual, converter `crc32c`).
pub fn crc32c(bytes: &[u8]) -> u32 {
    extend_crc32c(0, bytes)
}

/// Extends the hash `sum` by `bytes`.
pub fn extend_crc32c(sum: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!sum, |sum, byte| (sum >> 8) ^ TABLE[usize::from(sum as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_the_standards_examples() {
        for (bytes, expected) in
            [(&[0; 32][..], 0x8a91_36aa), (&[0xff; 32], 0x62a8_ab43), (b"123456789", 0xe306_9283), (b"", 0)]
        {
            assert_eq!(crc32c(bytes), expected);
            for middle in 0..=bytes.len() {
                assert_eq!(extend_crc32c(crc32c(&bytes[..middle]), &bytes[middle..]), expected);
            }
        }
    }
}
