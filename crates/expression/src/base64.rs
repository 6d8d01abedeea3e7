//! Base64 and base64url (RFC 4648, sections 4 and 5). Must never decide where the bytes are stored.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The value of each character; 64 and more: the character is not in the alphabet.
const fn values(alphabet: &[u8; 64]) -> [u8; 256] {
    let mut values = [0xff; 256];
    let mut index = 0;
    while index < 64 {
        values[alphabet[index] as usize] = index as u8;
        index += 1;
    }
    values
}

static STANDARD_VALUES: [u8; 256] = values(STANDARD);
static URL_SAFE_VALUES: [u8; 256] = values(URL_SAFE);

/// Encodes bytes as base64 with padding, one character per call of `put`.
pub fn encode(bytes: &[u8], put: impl FnMut(u8)) {
    encode_in(bytes, STANDARD, true, put);
}

/// Encodes bytes as base64url without padding, one character per call of `put`.
pub fn encode_url(bytes: &[u8], put: impl FnMut(u8)) {
    encode_in(bytes, URL_SAFE, false, put);
}

fn encode_in(bytes: &[u8], alphabet: &[u8; 64], padded: bool, mut put: impl FnMut(u8)) {
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            if index <= chunk.len() {
                put(alphabet[(bits >> (18 - 6 * index) & 63) as usize]);
            } else if padded {
                put(b'=');
            }
        }
    }
}

/// Decodes base64 into a new vector.
pub fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    decode(bytes, |bytes| decoded.extend_from_slice(bytes))?;
    Some(decoded)
}

/// Decodes base64, a few bytes per call of `take`. Padding may end every group of four characters; left-over bits are
/// ignored. `None`: not base64.
pub fn decode(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Option<()> {
    let (chunks, []) = bytes.as_chunks::<4>() else {
        return None;
    };
    for chunk in chunks {
        let padding = chunk.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 {
            return None;
        }
        let mut bits = 0_u32;
        for byte in &chunk[..4 - padding] {
            let value = STANDARD_VALUES[usize::from(*byte)];
            bits = bits << 6 | u32::from((value < 64).then_some(value)?);
        }
        let bits = (bits << (6 * padding)).to_be_bytes();
        take(&bits[1..4 - padding]);
    }
    Some(())
}

/// Decodes base64url into a new vector.
pub fn decoded_url(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3 + 2);
    decode_url(bytes, |bytes| decoded.extend_from_slice(bytes))?;
    Some(decoded)
}

/// Decodes base64url without padding, a few bytes per call of `take`. A `=` counts as 63, as in HAProxy. `None`: not
/// base64url.
pub fn decode_url(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Option<()> {
    if bytes.len() % 4 == 1 {
        return None;
    }
    for chunk in bytes.chunks(4) {
        let mut bits = 0;
        for byte in chunk {
            let value = if *byte == b'=' { 63 } else { URL_SAFE_VALUES[usize::from(*byte)] };
            bits = bits << 6 | u32::from((value < 64).then_some(value)?);
        }
        let bits = (bits << (6 * (4 - chunk.len()))).to_be_bytes();
        take(&bits[1..chunk.len()]);
    }
    Some(())
}
