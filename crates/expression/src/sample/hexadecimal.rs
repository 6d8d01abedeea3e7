//! Decodes hexadecimal digits. Must never skip other characters.

/// Decodes pairs of digits; `None` for other characters, or an odd number of digits.
pub fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_digits_are_bytes() {
        for (digits, expected) in
            [("", Some(&b""[..])), ("00fFA9", Some(&[0, 255, 0xa9][..])), ("0", None), ("0g", None), (" 00", None)]
        {
            assert_eq!(unhex(digits.as_bytes()).as_deref(), expected, "{digits}");
        }
    }
}
