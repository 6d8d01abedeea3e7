//! Dates in persistence cookies: seconds since 1970, divided by four, as five base64 characters. Must never judge them.

use base::base64;

/// Length of a date in characters.
pub(super) const LENGTH: usize = 5;

/// Resolution of a date in seconds.
pub(super) const STEP: u64 = 4;

/// Encodes a time.
pub(super) fn encode(seconds: u64) -> [u8; LENGTH] {
    let steps = seconds / STEP;
    std::array::from_fn(|place| base64::character((steps >> (6 * (LENGTH - 1 - place)) & 63) as u8))
}

/// Decodes the date at the start of a text; `None`: invalid, or 1970.
pub(super) fn decode(text: &[u8]) -> Option<u64> {
    let mut steps = 0;
    for byte in text.get(..LENGTH)? {
        steps = steps << 6 | u64::from(base64::value(*byte)?);
    }
    Some(steps * STEP).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As HAProxy 3.5 encodes them.
    #[test]
    fn dates_are_written_and_read() {
        assert_eq!(&encode(1_795_348_868), b"awLZh");
        for seconds in [4, 252, 256, 1_795_348_868, (1 << 32) - 4] {
            assert_eq!(decode(&encode(seconds)), Some(seconds));
            assert_eq!(decode(&encode(seconds + 3)), Some(seconds));
        }
        let rows: &[(&[u8], Option<u64>)] = &[
            (b"", None),
            (b"awLZ", None),
            (b"awLZ!", None),
            (b"awLZ-", None),
            (b"awLZ_", None),
            (b"awLZhx", Some(1_795_348_868)),
            (b"AAAAA", None),
            (b"/////", Some((1 << 32) - 4)),
            (b"++++/", Some(4_226_793_212)),
        ];
        for (text, expected) in rows {
            assert_eq!(decode(text), *expected, "{}", String::from_utf8_lossy(text));
        }
    }
}
