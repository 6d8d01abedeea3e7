//! Integers of variable length (RFC 9000, section 16).

/// The largest integer.
pub(super) const MAX: u64 = (1 << 62) - 1;

/// Reads an integer and advances the input. `None`: it is incomplete.
pub(super) fn take(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    let length = 1 << (first >> 6);
    let bytes = input.get(..length)?;
    let value = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    *input = &input[length..];
    Some(value & (MAX >> (62 - (8 * length as u32 - 2))))
}

/// Appends an integer in its shortest form. Larger ones than [`MAX`] become that.
pub(super) fn push(value: u64, out: &mut Vec<u8>) {
    let value = value.min(MAX);
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Returns an integer below 16,384 in two bytes.
pub(super) fn two_bytes(value: usize) -> [u8; 2] {
    (u16::try_from(value).unwrap_or(0x3fff) & 0x3fff | 0x4000).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_survive_and_incomplete_ones_wait() {
        for (value, length) in
            [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), ((1 << 30) - 1, 4), (1 << 30, 8), (MAX, 8)]
        {
            let mut bytes = Vec::new();
            push(value, &mut bytes);
            assert_eq!(bytes.len(), length, "{value}");
            for end in 0..length {
                assert_eq!(take(&mut &bytes[..end]), None);
            }
            bytes.push(7);
            let mut input = &bytes[..];
            assert_eq!((take(&mut input), input), (Some(value), &[7][..]));
        }
        assert_eq!(take(&mut &[0x40, 5][..]), Some(5));
        assert_eq!(take(&mut &two_bytes(16_352)[..]), Some(16_352));
    }
}
