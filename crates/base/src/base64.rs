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

/// Returns bytes encoded as base64 with padding.
pub fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    encode(bytes, |byte| text.push(char::from(byte)));
    text
}

/// Returns bytes encoded as base64url without padding.
pub fn encoded_url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity((bytes.len() * 4).div_ceil(3));
    encode_url(bytes, |byte| text.push(char::from(byte)));
    text
}

/// Returns the character of the low six bits of a number.
#[inline]
pub const fn character(number: u8) -> u8 {
    STANDARD[(number & 63) as usize]
}

/// Returns the number that a character of base64 encodes; `None`: not in the alphabet.
#[inline]
pub fn value(character: u8) -> Option<u8> {
    Some(STANDARD_VALUES[usize::from(character)]).filter(|value| *value < 64)
}

/// Decodes base64 in its canonical form: padded at its end alone, with left-over bits of zero. `None`: another text.
pub fn decoded_strictly(text: &[u8]) -> Option<Vec<u8>> {
    decoded(text).filter(|bytes| encoded(bytes).as_bytes() == text)
}

/// Decodes base64url in its canonical form: without padding, with left-over bits of zero. `None`: another text.
pub fn decoded_url_strictly(text: &[u8]) -> Option<Vec<u8>> {
    decoded_url(text).filter(|bytes| encoded_url(bytes).as_bytes() == text)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10, and some that use the last characters of both alphabets.
    #[test]
    fn texts_are_encoded_and_decoded() {
        let rows: &[(&[u8], &str, &str)] = &[
            (b"", "", ""),
            (b"f", "Zg==", "Zg"),
            (b"fo", "Zm8=", "Zm8"),
            (b"foo", "Zm9v", "Zm9v"),
            (b"foob", "Zm9vYg==", "Zm9vYg"),
            (b"fooba", "Zm9vYmE=", "Zm9vYmE"),
            (b"foobar", "Zm9vYmFy", "Zm9vYmFy"),
            (&[0xfb, 0xff], "+/8=", "-_8"),
        ];
        for (bytes, text, url) in rows {
            assert_eq!((encoded(bytes), encoded_url(bytes)), ((*text).to_owned(), (*url).to_owned()));
            for decode in [decoded, decoded_strictly] {
                assert_eq!(decode(text.as_bytes()).as_deref(), Some(*bytes), "{text}");
            }
            for decode in [decoded_url, decoded_url_strictly] {
                assert_eq!(decode(url.as_bytes()).as_deref(), Some(*bytes), "{url}");
            }
        }
    }

    #[test]
    fn other_forms_are_accepted_where_haproxy_does() {
        let rows: &[(&[u8], Option<&[u8]>)] = &[
            (b"Zg==Zg==", Some(b"ff")),
            (b"Zh==", Some(b"f")),
            (b"Zg", None),
            (b"Zg=", None),
            (b"Z===", None),
            (b"Z-==", None),
        ];
        for (text, lenient) in rows {
            assert_eq!(decoded(text).as_deref(), *lenient, "{}", String::from_utf8_lossy(text));
            assert_eq!(decoded_strictly(text), None);
        }
        let rows: &[(&[u8], Option<&[u8]>)] = &[(b"Zh", Some(b"f")), (b"Z=", Some(b"g")), (b"Z", None), (b"Z+", None)];
        for (text, lenient) in rows {
            assert_eq!(decoded_url(text).as_deref(), *lenient, "{}", String::from_utf8_lossy(text));
            assert_eq!(decoded_url_strictly(text), None);
        }
    }

    #[test]
    fn characters_have_values() {
        let known: Vec<u8> = (0..=255).filter(|byte| value(*byte).is_some()).collect();
        assert_eq!(known.len(), 64);
        assert!(known.iter().all(|byte| value(*byte).map(character) == Some(*byte)));
    }
}
