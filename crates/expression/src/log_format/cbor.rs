//! The encoding of CBOR (RFC 8949) in log lines. Must never decode any.

/// Major type of text, for [`measured`].
pub const TEXT: u8 = 0x60;
/// Major type of bytes, for [`measured`].
pub const BYTES: u8 = 0x40;
/// Text in chunks, terminated by [`BREAK`].
pub const CHUNKED_TEXT: u8 = 0x7f;
/// Bytes in chunks, terminated by [`BREAK`].
pub const CHUNKED_BYTES: u8 = 0x5f;
/// An array of indefinite length.
pub const LIST: u8 = 0x9f;
/// A map of indefinite length.
pub const MAP: u8 = 0xbf;
/// Terminates an item of indefinite length.
pub const BREAK: u8 = 0xff;
pub const NULL: u8 = 0xf6;

/// Appends a boolean.
pub fn boolean(out: &mut Vec<u8>, flag: bool) {
    out.push(0xf4 + u8::from(flag));
}

/// Appends an integer in the shortest encoding.
pub fn integer(out: &mut Vec<u8>, number: i64) {
    let (major, argument) = if number < 0 { (0x20, !number as u64) } else { (0, number as u64) };
    let (header, length) = header(major, argument);
    out.extend_from_slice(&header[..length]);
}

/// Appends text or bytes of definite length: the output of `write`.
pub fn measured(out: &mut Vec<u8>, major: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    let length = out.len() - start;
    let (header, size) = header(major, length as u64);
    out.extend_from_slice(&header[..size]);
    out[start..].rotate_right(size);
}

/// Encodes a head; returns the bytes and the number of significant ones.
fn header(major: u8, argument: u64) -> ([u8; 9], usize) {
    let mut bytes = [0; 9];
    let (info, width) = match argument {
        0..=23 => (argument as u8, 0),
        24..=0xff => (24, 1),
        0x100..=0xffff => (25, 2),
        0x1_0000..=0xffff_ffff => (26, 4),
        _ => (27, 8),
    };
    bytes[0] = major | info;
    bytes[1..=width].copy_from_slice(&argument.to_be_bytes()[8 - width..]);
    (bytes, width + 1)
}

/// Converts the bytes from `start` on to hexadecimal digits.
pub fn to_hexadecimal(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    out.resize(start + 2 * length, 0);
    for place in (0..length).rev() {
        let digits = base::hex::upper(out[start + place]);
        out[start + 2 * place..][..2].copy_from_slice(&digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 8949, appendix A.
    #[test]
    fn numbers_and_texts_have_the_shortest_head() {
        for (number, wanted) in [
            (0, "00"),
            (23, "17"),
            (24, "1818"),
            (1000, "1903E8"),
            (1_000_000, "1A000F4240"),
            (1_000_000_000_000, "1B000000E8D4A51000"),
            (-1, "20"),
            (-1000, "3903E7"),
            (i64::MIN, "3B7FFFFFFFFFFFFFFF"),
        ] {
            let mut out = b"x".to_vec();
            integer(&mut out, number);
            to_hexadecimal(&mut out, 1);
            assert_eq!(String::from_utf8(out).unwrap(), format!("x{wanted}"), "{number}");
        }
        let mut out = Vec::new();
        measured(&mut out, TEXT, |out| out.extend_from_slice(b"IETF"));
        measured(&mut out, BYTES, |out| out.extend_from_slice(&[7; 24]));
        assert_eq!(out[..7], *b"\x64IETF\x58\x18");
        assert_eq!(out.len(), 5 + 2 + 24);
    }
}
