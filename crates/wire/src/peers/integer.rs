//! Variable-length integers of one to ten bytes. Must never accept a number of more than 64 bits.

use super::Malformed;

/// Maximum length of an encoded integer in bytes.
pub const LONGEST: usize = 10;

/// Appends an encoded integer.
pub fn encode(out: &mut Vec<u8>, number: u64) {
    if number < 240 {
        out.push(number as u8);
        return;
    }
    out.push(number as u8 | 240);
    let mut rest = (number - 240) >> 4;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest = (rest - 128) >> 7;
    }
    out.push(rest as u8);
}

/// Decodes the integer at the start of `bytes`; returns it and the number of bytes consumed, or `None` if it is
/// incomplete.
///
/// # Errors
/// The integer exceeds 64 bits.
pub fn decode(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let Some(first) = bytes.first() else { return Ok(None) };
    let mut number = u64::from(*first);
    if number < 240 {
        return Ok(Some((number, 1)));
    }
    let mut shift = 4;
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        let more = u64::from(*byte).checked_shl(shift).filter(|more| more >> shift == u64::from(*byte));
        number = more.and_then(|more| number.checked_add(more)).ok_or(Malformed::Integer)?;
        if *byte < 128 {
            return Ok(Some((number, at + 1)));
        }
        if at + 1 == LONGEST {
            return Err(Malformed::Integer);
        }
        shift += 7;
    }
    Ok(None)
}

/// Consumes an integer from bytes that are complete.
pub(super) fn take(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let (number, length) = decode(bytes)?.ok_or(Malformed::Length)?;
    *bytes = &bytes[length..];
    Ok(number)
}

/// Consumes an integer of at most 32 bits.
pub(super) fn take_u32(bytes: &mut &[u8]) -> Result<u32, Malformed> {
    u32::try_from(take(bytes)?).map_err(|_| Malformed::Value)
}

/// Consumes `length` bytes.
pub(super) fn take_bytes<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(length).map_err(|_| Malformed::Length)?;
    let (taken, rest) = bytes.split_at_checked(length).ok_or(Malformed::Length)?;
    *bytes = rest;
    Ok(taken)
}

/// Consumes a big-endian number of four bytes.
pub(super) fn take_word(bytes: &mut &[u8]) -> Result<u32, Malformed> {
    let taken = take_bytes(bytes, 4)?;
    Ok(u32::from_be_bytes([taken[0], taken[1], taken[2], taken[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_coded_as_haproxy_codes_them() {
        let rows: [(u64, &[u8]); 8] = [
            (0, &[0]),
            (239, &[239]),
            (240, &[240, 0]),
            (500, &[0xf4, 0x10]),
            (2_287, &[0xff, 0x7f]),
            (2_288, &[0xf0, 0x80, 0]),
            (100_000, &[0xf0, 0xdb, 0x2f]),
            (25_175_616, &[0xf0, 0xd5, 0x83, 0x5f]),
        ];
        for (number, bytes) in rows {
            let mut out = Vec::new();
            encode(&mut out, number);
            assert_eq!(out, bytes, "{number}");
            assert_eq!(decode(&out), Ok(Some((number, bytes.len()))));
            for shorter in 0..bytes.len() {
                assert_eq!(decode(&bytes[..shorter]), Ok(None), "{number}");
            }
        }
    }

    #[test]
    fn the_largest_number_fits_and_nothing_larger_does() {
        let mut out = Vec::new();
        encode(&mut out, u64::MAX);
        assert_eq!((out.len(), decode(&out)), (LONGEST, Ok(Some((u64::MAX, LONGEST)))));
        assert_eq!(decode(&[0xff; 11]), Err(Malformed::Integer));
        assert_eq!(decode(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 127]), Err(Malformed::Integer));
    }
}
