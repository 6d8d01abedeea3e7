//! Decimal formatting of numbers. Must never allocate.

/// Writes a number in decimal.
#[inline]
pub(crate) fn write_decimal(number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut at = room.len();
    let mut rest = number;
    loop {
        at -= 1;
        room[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &room[at..];
        }
    }
}
