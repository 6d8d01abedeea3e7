//! `xxh32`: Yann Collet's 32-bit hash (the xxHash specification, "XXH32").

const PRIMES: [u32; 5] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1];

/// Hashes `bytes` with a seed.
pub fn xxh32(bytes: &[u8], seed: u32) -> u32 {
    let [prime1, prime2, prime3, prime4, prime5] = PRIMES;
    let (stripes, rest) = bytes.as_chunks::<16>();
    let mut hash = if stripes.is_empty() {
        seed.wrapping_add(prime5)
    } else {
        let first = seed.wrapping_add(prime1).wrapping_add(prime2);
        let mut lanes = [first, seed.wrapping_add(prime2), seed, seed.wrapping_sub(prime1)];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<4>().0) {
                let mixed = lane.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(prime2));
                *lane = mixed.rotate_left(13).wrapping_mul(prime1);
            }
        }
        let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, turn)| lane.rotate_left(turn));
        turned.fold(0, u32::wrapping_add)
    };
    hash = hash.wrapping_add(bytes.len() as u32);
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(prime3));
        hash = hash.rotate_left(17).wrapping_mul(prime4);
    }
    for byte in rest {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(prime5)).rotate_left(11).wrapping_mul(prime1);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(prime2);
    hash = (hash ^ (hash >> 13)).wrapping_mul(prime3);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::xxh32;

    #[test]
    fn known_answers() {
        // The specification's own vectors, then the ring positions of servers in HAProxy 3.5 with `hash-key guid` and
        // `addr`.
        let rows: &[(&[u8], u32)] = &[
            (b"", 0x02cc_5d05),
            (b"abc", 0x32d1_53ff),
            (b"abcdefg", 0x9dd0_93b3),
            (b"abcdefgabcdefgabcdefgabcdefg", 0xa178_07ad),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 0x7f2f_367e),
        ];
        for (bytes, hash) in rows {
            assert_eq!(xxh32(bytes, 0), *hash, "{}", bytes.escape_ascii());
        }
    }
}
