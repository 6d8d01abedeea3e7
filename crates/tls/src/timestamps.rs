//! Lists of signed certificate timestamps (RFC 6962, section 3.3). They are parsed to validate a file, and not sent:
//! rustls does not support it. Must never verify a signature.

/// Whether bytes are such a list: at least one length-prefixed timestamp, in a length-prefixed block.
pub fn is_list(bytes: &[u8]) -> bool {
    let Some((mut rest, [])) = vector(bytes) else { return false };
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        match vector(rest) {
            Some((one, behind)) if !one.is_empty() => rest = behind,
            _ => return false,
        }
    }
    true
}

/// Splits off a length-prefixed block; returns its content and the bytes after it.
fn vector(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_fill_their_lengths() {
        let rows: [(&[u8], bool); 8] = [
            (&[0, 3, 0, 1, 9], true),
            (&[0, 7, 0, 1, 9, 0, 2, 9, 9], true),
            (&[0, 0], false),
            (&[0, 2, 0, 0], false),
            (&[0, 3, 0, 1, 9, 9], false),
            (&[0, 3, 0, 2, 9], false),
            (&[0], false),
            (b"-----BEGIN", false),
        ];
        for (bytes, is) in rows {
            assert_eq!(is_list(bytes), is, "{bytes:?}");
        }
    }
}
