//! `$2a$`, `$2b$` and `$2y$`: Blowfish with an expensive key schedule (Provos and Mazières 1999). Must never judge its
//! result.

use blowfish::Blowfish;

const DIGITS: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Significant bytes of a password, including the terminating zero.
const LONGEST: usize = 72;

/// The cost that a hidden password says: the logarithm of its rounds.
pub(super) fn cost(text: &str) -> Option<u32> {
    text.get(4..6)?.parse().ok().filter(|cost| (4..=31).contains(cost))
}

/// Hides a password with the salt and the cost of a hidden one.
pub(super) fn crypt(password: &[u8], like: &str) -> Option<String> {
    let (start, salt) = (like.get(..7)?, like.get(7..29)?);
    let cost = cost(like)?;
    if like.as_bytes()[3] != b'$' || like.as_bytes()[6] != b'$' {
        return None;
    }
    let salt: [u8; 16] = decode(salt.as_bytes())?.try_into().ok()?;
    let mut key = password[..password.len().min(LONGEST)].to_vec();
    if key.len() < LONGEST {
        key.push(0);
    }
    let mut state: Blowfish = Blowfish::bc_init_state();
    state.salted_expand_key(&salt, &key);
    for _ in 0..1_u64 << cost {
        state.bc_expand_key(&key);
        state.bc_expand_key(&salt);
    }
    let mut out = start.to_owned();
    encode(&mut out, &salt);
    let mut hidden = Vec::with_capacity(24);
    for pair in [[0x4f72_7068, 0x6561_6e42], [0x6568_6f6c, 0x6465_7253], [0x6372_7944, 0x6f75_6274]] {
        let coded = (0..64).fold(pair, |pair, _| state.bc_encrypt(pair));
        hidden.extend(coded.iter().flat_map(|half| half.to_be_bytes()));
    }
    encode(&mut out, &hidden[..23]);
    Some(out)
}

fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16);
    for group in digits.chunks(4) {
        let mut bits = 0;
        for byte in group {
            bits = bits << 6 | DIGITS.iter().position(|digit| digit == byte)? as u32;
        }
        let bits = (bits << (6 * (4 - group.len()))).to_be_bytes();
        bytes.extend_from_slice(&bits[1..group.len()]);
    }
    Some(bytes)
}

fn encode(out: &mut String, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for at in 0..=group.len() {
            out.push(char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
}
