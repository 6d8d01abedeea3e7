//! Integers with a prefix (RFC 7541, section 5.1). Must never read beyond the input.

/// Reads an integer whose first byte has `prefix` bits for it, and advances `input`. `None` if it is truncated or
/// exceeds 28 bits beyond the prefix.
#[inline]
pub(super) fn read(input: &mut &[u8], prefix: u32) -> Option<usize> {
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

/// Writes an integer; its first byte also contains the bits of `kind`. Returns the number of bytes written; `None` if
/// there is not enough space.
pub(super) fn write(mut value: usize, prefix: u32, kind: u8, room: &mut [u8]) -> Option<usize> {
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
}
