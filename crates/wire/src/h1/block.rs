//! Sixteen bytes of text, classified at once by vector instructions. It must never know the syntax that the classes belong to.

use wide::u8x16;

/// Bytes of a block.
pub(super) const SIZE: usize = 16;

/// Sixteen bytes in a vector register.
#[derive(Clone, Copy)]
pub(super) struct Block(u8x16);

impl Block {
    #[inline]
    pub(super) fn new(bytes: &[u8; SIZE]) -> Block {
        Block(u8x16::new(*bytes))
    }

    /// Returns the first block of a text. The bytes that a short text lacks are zero, a control character.
    #[inline]
    pub(super) fn first(text: &[u8]) -> Block {
        match text.first_chunk() {
            Some(bytes) => Block::new(bytes),
            None => Block::new(&padded(text)),
        }
    }

    /// Returns the letters in lower case, and the position of the first byte that is no letter, digit or dash.
    #[inline]
    pub(super) fn plain_name(self) -> ([u8; SIZE], usize) {
        let capitals = self.within(b'A', b'Z');
        let lower = Block(self.0 | (capitals & u8x16::splat(0x20)));
        let plain = lower.within(b'a', b'z') | lower.within(b'0', b'9') | lower.equal(b'-');
        (lower.0.to_array(), first_of(!plain))
    }

    /// Returns the position of the first byte that is no letter, digit, dot, dash or colon.
    #[inline]
    pub(super) fn plain_host(self) -> usize {
        let lower = Block(self.0 | u8x16::splat(0x20));
        first_of(!(lower.within(b'a', b'z') | self.within(b'0', b':') | self.within(b'-', b'.')))
    }

    /// Returns the position of the first byte below 0x20.
    #[inline]
    pub(super) fn control(self) -> usize {
        first_of(self.within(0, 0x1f))
    }

    /// Returns the position of the first byte that is not visible ASCII, or is `#`.
    #[inline]
    pub(super) fn no_target(self) -> usize {
        first_of(!self.within(b'!', b'~') | self.equal(b'#'))
    }

    /// Sets all bits of each byte from `first` to `last`.
    #[inline]
    fn within(self, first: u8, last: u8) -> u8x16 {
        let above = self.0 - u8x16::splat(first);
        above.min(u8x16::splat(last - first)).simd_eq(above)
    }

    /// Sets all bits of each byte that is `byte`.
    #[inline]
    fn equal(self, byte: u8) -> u8x16 {
        self.0.simd_eq(u8x16::splat(byte))
    }
}

/// Returns the position of the first byte of ones, or the number of bytes.
#[inline]
fn first_of(found: u8x16) -> usize {
    (found.to_bitmask() | 1 << SIZE).trailing_zeros() as usize
}

#[inline(never)]
fn padded(text: &[u8]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_every_byte_at_every_position() {
        for at in 0..SIZE {
            for byte in 0..=255_u8 {
                let mut bytes = *b"aZ-09mMnN-12bByY";
                bytes[at] = byte;
                let block = Block::first(&bytes);
                let place = |stops: bool| if stops { at } else { SIZE };
                let is_plain = byte.is_ascii_alphanumeric() || byte == b'-';
                assert_eq!(block.plain_name(), (bytes.to_ascii_lowercase().try_into().unwrap(), place(!is_plain)));
                assert_eq!(block.plain_host(), place(!is_plain && byte != b'.' && byte != b':'), "{byte:#x} at {at}");
                assert_eq!(block.control(), place(byte < 0x20), "{byte:#x} at {at}");
                assert_eq!(block.no_target(), place(!byte.is_ascii_graphic() || byte == b'#'), "{byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn of_several_bytes_the_first_one_counts() {
        let block = Block::first(b"abc\r\n\0\x7f#:/ \xff\x80@[`");
        assert_eq!((block.control(), block.plain_name().1, block.no_target()), (3, 3, 3));
        let block = Block::first(b"ab:c\x7f\0\r\n#:/ \xff\x80@[");
        assert_eq!((block.control(), block.plain_name().1, block.no_target()), (5, 2, 4));
    }

    #[test]
    fn a_short_text_ends_with_control_characters() {
        for length in 0..20 {
            assert_eq!(Block::first(&vec![b'x'; length]).control(), length.min(SIZE));
        }
    }
}
