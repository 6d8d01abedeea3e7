//! Decimal and hexadecimal numbers, appended without allocating. Must never decide which numbers are printed.

/// "00" to "99".
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
    2021222324252627282930313233343536373839\
    4041424344454647484950515253545556575859\
    6061626364656667686970717273747576777879\
    8081828384858687888990919293949596979899";

/// The two digits of `number`, which must be below 100.
fn pair(number: u64) -> [u8; 2] {
    let start = (number as usize % 100) * 2;
    [PAIRS[start], PAIRS[start + 1]]
}

/// Appends `number` in decimal.
pub fn decimal(out: &mut Vec<u8>, mut number: u64) {
    if number < 10 {
        out.push(b'0' + number as u8);
        return;
    }
    let mut digits = [0; 20];
    let mut start = digits.len();
    while number >= 100 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&pair(number % 100));
        number /= 100;
    }
    if number >= 10 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&pair(number));
    } else {
        start -= 1;
        digits[start] = b'0' + number as u8;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends `number` in decimal with its sign.
pub fn signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    decimal(out, number.unsigned_abs());
}

/// Returns two digits, for dates.
pub fn two(number: u32) -> [u8; 2] {
    pair(u64::from(number))
}

/// Appends three digits.
pub fn three(out: &mut Vec<u8>, number: u32) {
    let number = number % 1000;
    out.push(b'0' + (number / 100) as u8);
    out.extend_from_slice(&two(number % 100));
}

/// Appends `number` in upper-case hexadecimal with at least `width` digits.
pub fn hexadecimal(out: &mut Vec<u8>, number: u64, width: usize) {
    let needed = (64 - number.leading_zeros() as usize).div_ceil(4);
    for place in (0..needed.max(width)).rev() {
        let nibble = if place < 16 { (number >> (place * 4)) as u8 & 15 } else { 0 };
        out.push(base::hex::UPPER[usize::from(nibble)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_match_the_standard_library() {
        let edges = [0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 12_345, 1 << 31, 1 << 32, 1 << 63, u64::MAX];
        for number in edges {
            assert_eq!(text(|out| decimal(out, number)), number.to_string());
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(text(|out| signed(out, number)), number.to_string());
        }
        assert_eq!(text(|out| three(out, 7)), "007");
        assert_eq!(text(|out| three(out, 510)), "510");
    }

    #[test]
    fn hexadecimals_are_padded_upper_case() {
        for (number, width, wanted) in [
            (0, 4, "0000"),
            (0xc2da, 4, "C2DA"),
            (0x6b00_4f4c, 4, "6B004F4C"),
            (0x1fe, 2, "1FE"),
            (0, 2, "00"),
            (u64::MAX, 4, "FFFFFFFFFFFFFFFF"),
            (1, 20, "00000000000000000001"),
        ] {
            assert_eq!(text(|out| hexadecimal(out, number, width)), wanted);
        }
    }
}
