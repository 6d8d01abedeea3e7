//! Integers with a prefix (RFC 7541, section 5.1; RFC 9204, section 4.1.1). Must never read beyond the input.

/// Reads an integer whose first byte has `prefix` bits for it, and advances `input`. `None` if it is truncated or
/// exceeds 28 bits beyond the prefix.
#[inline]
pub(crate) fn read(input: &mut &[u8], prefix: u32) -> Option<usize> {
    let (first, rest) = input.split_first()?;
    let most = (1_usize << prefix) - 1;
    let value = usize::from(*first) & most;
    *input = rest;
    if value == most { read_rest(input, value) } else { Some(value) }
}

/// Reads the rest of an integer that does not fit its first byte.
#[inline(never)]
fn read_rest(input: &mut &[u8], mut value: usize) -> Option<usize> {
    // Four bytes hold 28 bits, more than any valid length or index.
    for shift in [0, 7, 14, 21] {
        let (byte, rest) = input.split_first()?;
        *input = rest;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The number of bits of the largest integer that HTTP/3 uses: that of a stream ID.
const WIDEST: u32 = 62;

/// An integer that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntegerError {
    /// The input ends within it.
    Truncated,
    /// It exceeds 62 bits, or its encoding is longer than the longest one of 62 bits.
    TooLarge,
}

/// Reads an integer of at most 62 bits whose first byte has `prefix` bits for it, and advances `input`
/// (RFC 9204, section 4.1.1).
///
/// # Errors
/// It is truncated, in which case `input` is not advanced, or too large.
#[inline]
pub(crate) fn read_wide(input: &mut &[u8], prefix: u32) -> Result<u64, IntegerError> {
    let (first, rest) = input.split_first().ok_or(IntegerError::Truncated)?;
    let most = (1_u64 << prefix) - 1;
    let value = u64::from(*first) & most;
    if value < most {
        *input = rest;
        return Ok(value);
    }
    read_wide_rest(input, value)
}

/// Reads an integer that does not fit its first byte.
#[inline(never)]
fn read_wide_rest(input: &mut &[u8], mut value: u64) -> Result<u64, IntegerError> {
    let mut rest = input.get(1..).unwrap_or_default();
    // Nine bytes hold 63 bits.
    for shift in (0..=56).step_by(7) {
        let (byte, next) = rest.split_first().ok_or(IntegerError::Truncated)?;
        rest = next;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            *input = rest;
            return if value >> WIDEST == 0 { Ok(value) } else { Err(IntegerError::TooLarge) };
        }
    }
    Err(IntegerError::TooLarge)
}

/// Appends an integer; its first byte also contains the bits of `kind`.
pub(crate) fn push(value: u64, prefix: u32, kind: u8, out: &mut Vec<u8>) {
    let most = (1_u64 << prefix) - 1;
    if value < most {
        return out.push(kind | value as u8);
    }
    out.push(kind | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Writes an integer; its first byte also contains the bits of `kind`. Returns the number of bytes written; `None` if
/// there is not enough space.
pub(crate) fn write(mut value: usize, prefix: u32, kind: u8, room: &mut [u8]) -> Option<usize> {
    let most = (1_usize << prefix) - 1;
    if value < most {
        *room.first_mut()? = kind | value as u8;
        return Some(1);
    }
    *room.first_mut()? = kind | most as u8;
    value -= most;
    let mut at = 1;
    while value >= 0x80 {
        *room.get_mut(at)? = 0x80 | (value & 0x7f) as u8;
        value >>= 7;
        at += 1;
    }
    *room.get_mut(at)? = value as u8;
    Some(at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 7541, appendix C.1.
    #[test]
    fn integers_come_and_go() {
        let rows: &[(usize, u32, &[u8])] =
            &[(10, 5, &[10]), (1337, 5, &[31, 154, 10]), (42, 8, &[42]), (31, 5, &[31, 0]), (127, 7, &[127, 0])];
        for (value, prefix, bytes) in rows {
            let mut room = [0; 8];
            assert_eq!(write(*value, *prefix, 0, &mut room), Some(bytes.len()), "{value}");
            assert_eq!(&room[..bytes.len()], *bytes);
            let mut input = *bytes;
            assert_eq!((read(&mut input, *prefix), input), (Some(*value), &[][..]));
        }
        for cut in [&[][..], &[31], &[31, 154], &[31, 255, 255, 255, 255, 1]] {
            assert_eq!(read(&mut &cut[..], 5), None, "{cut:?}");
        }
        assert_eq!(write(1337, 5, 0, &mut [0; 2]), None);
    }

    #[test]
    fn integers_have_62_bits() {
        let largest = [0x1f, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f];
        let mut input = &largest[..];
        assert_eq!((read_wide(&mut input, 5), input), (Ok((1 << 62) - 1), &[][..]));
        let rows: &[(&[u8], IntegerError)] = &[
            (&[], IntegerError::Truncated),
            (&[0x1f], IntegerError::Truncated),
            (&largest[..9], IntegerError::Truncated),
            // One more, and the largest number of ten bytes.
            (&[0x1f, 0xe1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f], IntegerError::TooLarge),
            (&[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], IntegerError::TooLarge),
            // Zeros without an end.
            (&[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], IntegerError::TooLarge),
        ];
        for (bytes, error) in rows {
            let mut input = *bytes;
            assert_eq!(read_wide(&mut input, 5), Err(*error), "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn wide_integers_come_back(value in 0_u64..1 << 62, shift in 0_u32..62, prefix in 3_u32..=8) {
            let (value, mut out) = (value >> shift, Vec::new());
            push(value, prefix, 0, &mut out);
            let mut input = &out[..];
            prop_assert_eq!((read_wide(&mut input, prefix), input.len()), (Ok(value), 0));
            for end in 0..out.len() {
                let mut cut = &out[..end];
                prop_assert_eq!((read_wide(&mut cut, prefix), cut.len()), (Err(IntegerError::Truncated), end));
            }
            if value < 1 << 28 {
                let mut room = [0; 8];
                let length = write(value as usize, prefix, 0, &mut room);
                prop_assert_eq!(length.map(|length| &room[..length]), Some(&out[..]));
                prop_assert_eq!(read(&mut &out[..], prefix), Some(value as usize));
            }
        }
    }
}
