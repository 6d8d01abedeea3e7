//! `xxh64`: Yann Collet's 64-bit hash (the xxHash specification, "XXH64").

const PRIMES: [u64; 5] =
    [0x9e37_79b1_85eb_ca87, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0x85eb_ca77_c2b2_ae63, 0x27d4_eb2f_1656_67c5];

/// Turns a word into a lane.
fn mix(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

/// Hashes `bytes` with a seed.
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let [prime1, prime2, prime3, prime4, prime5] = PRIMES;
    let (stripes, rest) = bytes.as_chunks::<32>();
    let mut hash = if stripes.is_empty() {
        seed.wrapping_add(prime5)
    } else {
        let first = seed.wrapping_add(prime1).wrapping_add(prime2);
        let mut lanes = [first, seed.wrapping_add(prime2), seed, seed.wrapping_sub(prime1)];
        for stripe in stripes {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
                *lane = mix(*lane, u64::from_le_bytes(*word));
            }
        }
        let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, turn)| lane.rotate_left(turn));
        let sum = turned.fold(0, u64::wrapping_add);
        lanes.iter().fold(sum, |sum, lane| (sum ^ mix(0, *lane)).wrapping_mul(prime1).wrapping_add(prime4))
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        hash ^= mix(0, u64::from_le_bytes(*word));
        hash = hash.rotate_left(27).wrapping_mul(prime1).wrapping_add(prime4);
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(prime1);
        hash = hash.rotate_left(23).wrapping_mul(prime2).wrapping_add(prime3);
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte).wrapping_mul(prime5)).rotate_left(11).wrapping_mul(prime1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(prime2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(prime3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::xxh64;

    #[test]
    fn known_answers() {
        // The first two are those of the specification.
        let rows: &[(&[u8], u64, u64)] = &[
            (b"", 0, 0xef46_db37_51d8_e999),
            (b"abc", 0, 0x44bc_2cf5_ad77_0999),
            (b"abcdefgabcdefgabcdefgabcdefgabcdefg", 0, 0x5d90_f16f_9542_7835),
            (b"abcdefgabcdefgabcdefgabcdefgabcdefg", 0x9e37_79b1, 0x58d0_f877_b78b_3802),
        ];
        for (bytes, seed, hash) in rows {
            assert_eq!(xxh64(bytes, *seed), *hash, "{}", bytes.escape_ascii());
        }
    }
}
