//! Hexadecimal digits of bytes (RFC 4648, section 8), in upper or lower case. Must never decide where they are stored.

/// The digits in upper case.
pub const UPPER: &[u8; 16] = b"0123456789ABCDEF";
/// The digits in lower case.
pub const LOWER: &[u8; 16] = b"0123456789abcdef";

/// Returns the two digits of a byte in upper case.
#[inline]
pub const fn upper(byte: u8) -> [u8; 2] {
    [UPPER[(byte >> 4) as usize], UPPER[(byte & 15) as usize]]
}

/// Returns the two digits of a byte in lower case.
#[inline]
pub const fn lower(byte: u8) -> [u8; 2] {
    [LOWER[(byte >> 4) as usize], LOWER[(byte & 15) as usize]]
}

/// Returns the value of a digit of either case; `None`: not a digit.
#[inline]
pub const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Returns the byte of two digits; `None`: one is not a digit.
#[inline]
pub fn byte([high, low]: [u8; 2]) -> Option<u8> {
    Some(digit(high)? << 4 | digit(low)?)
}

/// Encodes bytes in upper case.
pub fn encode_upper(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| upper(*byte)).map(char::from).collect()
}

/// Encodes bytes in lower case.
pub fn encode_lower(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| lower(*byte)).map(char::from).collect()
}

/// Decodes pairs of digits of either case; `None` for other characters, or an odd number of digits.
pub fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| byte(*pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_digits_are_bytes() {
        for (digits, expected) in
            [("", Some(&b""[..])), ("00fFA9", Some(&[0, 255, 0xa9][..])), ("0", None), ("0g", None), (" 00", None)]
        {
            assert_eq!(decode(digits.as_bytes()).as_deref(), expected, "{digits}");
        }
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for byte in 0..=255 {
            assert_eq!(digit(byte).map(u32::from), char::from(byte).to_digit(16));
            assert_eq!(encode_upper(&[byte]), format!("{byte:02X}"));
            assert_eq!(encode_lower(&[byte]), format!("{byte:02x}"));
            assert_eq!(decode(&upper(byte)), Some(vec![byte]));
        }
    }
}
