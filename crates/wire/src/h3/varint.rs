//! Variable-length integers (RFC 9000, section 16). Must never read beyond the input.

/// The largest value.
pub const MAX: u64 = (1 << 62) - 1;

/// The length of the longest encoding in bytes.
pub const LONGEST: usize = 8;

/// Reads an integer and advances `input`; `None`, without advancing, if it is truncated.
#[inline]
pub fn read(input: &mut &[u8]) -> Option<u64> {
    let (value, rest) = match **input {
        [first @ 0..0x40, ref rest @ ..] => (u64::from(first), rest),
        [first @ 0x40..0x80, second, ref rest @ ..] => (u64::from(u16::from_be_bytes([first & 0x3f, second])), rest),
        [first @ 0x80..=0xff, ..] => return read_long(input, first),
        _ => return None,
    };
    *input = rest;
    Some(value)
}

/// Reads an integer of four or eight bytes.
fn read_long(input: &mut &[u8], first: u8) -> Option<u64> {
    let (bytes, rest) = input.split_at_checked(if first < 0xc0 { 4 } else { LONGEST })?;
    *input = rest;
    Some(bytes.iter().skip(1).fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

/// Returns the length of the shortest encoding in bytes.
#[inline]
pub fn length(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => LONGEST,
    }
}

/// Writes the shortest encoding of an integer, at most [`MAX`]. Returns its length; `None` if there is not enough space.
#[inline]
pub fn write(value: u64, room: &mut [u8]) -> Option<usize> {
    write_in(length(value), value, room)
}

/// Writes an integer in a given number of bytes, which must be 1, 2, 4 or 8 and hold it. Returns the number; `None` if
/// there is not enough space.
#[inline]
pub(super) fn write_in(length: usize, value: u64, room: &mut [u8]) -> Option<usize> {
    debug_assert!(value <= MAX && length >= self::length(value));
    let bytes = (value << (8 * (LONGEST - length))).to_be_bytes();
    let place = room.get_mut(..length)?;
    place.copy_from_slice(&bytes[..length]);
    // 1, 2, 4 and 8 bytes are numbers 0 to 3 in the two highest bits.
    place[0] |= (length.trailing_zeros() as u8) << 6;
    Some(length)
}

/// Appends the shortest encoding of an integer, at most [`MAX`].
pub(super) fn push(value: u64, out: &mut Vec<u8>) {
    let mut room = [0; LONGEST];
    let length = write(value, &mut room).unwrap_or_default();
    out.extend_from_slice(&room[..length]);
}

/// Reads an integer from input that arrives in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VarintReader {
    value: u64,
    /// The bytes that are missing; 0 before the first one.
    missing: u8,
}

impl VarintReader {
    /// Continues, and advances `input`. `None`: all input is consumed, and more is necessary.
    #[inline]
    pub(super) fn read(&mut self, input: &mut &[u8]) -> Option<u64> {
        let whole = if self.missing == 0 { read(input) } else { None };
        whole.or_else(|| self.read_piece(input))
    }

    #[cold]
    fn read_piece(&mut self, input: &mut &[u8]) -> Option<u64> {
        if self.missing == 0 {
            let (first, rest) = input.split_first()?;
            *input = rest;
            *self = Self { value: u64::from(first & 0x3f), missing: (1 << (first >> 6)) - 1 };
        }
        while self.missing > 0 {
            let (byte, rest) = input.split_first()?;
            *input = rest;
            self.value = self.value << 8 | u64::from(*byte);
            self.missing -= 1;
        }
        Some(self.value)
    }

    /// Whether an integer is read in part.
    pub(super) fn is_partial(&self) -> bool {
        self.missing > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 9000, appendix A.1.
    #[test]
    fn integers_of_the_rfc() {
        let rows: &[(u64, &[u8])] = &[
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ];
        for (value, bytes) in rows {
            let mut room = [0; LONGEST];
            assert_eq!((write(*value, &mut room), &room[..bytes.len()]), (Some(bytes.len()), *bytes));
            let mut input = *bytes;
            assert_eq!((read(&mut input), input), (Some(*value), &[][..]));
            for end in 0..bytes.len() {
                let mut cut = &bytes[..end];
                assert_eq!((read(&mut cut), cut.len()), (None, end));
                assert_eq!(write(*value, &mut room[..end]), None);
            }
        }
        // Longer encodings than necessary are valid.
        assert_eq!(read(&mut &[0x40, 0x25][..]), Some(37));
        assert_eq!(read(&mut &[0xc0, 0, 0, 0, 0, 0, 0, 1][..]), Some(1));
        assert_eq!(read(&mut &[0xff; 8][..]), Some(MAX));
    }

    proptest! {
        #[test]
        fn integers_come_back_from_any_pieces(value in 0..=MAX, shift in 0_u32..62, cut in 0_usize..9) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            push(value, &mut bytes);
            prop_assert_eq!(bytes.len(), length(value));
            bytes.push(7);
            let (first, second) = bytes.split_at(cut.min(bytes.len() - 1));
            let (mut first, mut second) = (first, second);
            let mut reader = VarintReader::default();
            let begun = reader.read(&mut first);
            let whole = begun.or_else(|| reader.read(&mut second));
            prop_assert_eq!((whole, first.len() + second.len()), (Some(value), 1));
            prop_assert!(!reader.is_partial());
        }
    }
}
