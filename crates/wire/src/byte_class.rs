//! Byte classification of text, eight bytes at a time. Must never change text.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Nonzero if a byte is below `limit` (at most 128).
#[inline]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS
}

/// Nonzero if a byte is equal to `byte`.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// Sets the high bit of each byte that is a lower-case letter or a dash. Exact.
#[inline]
fn small_letters_and_dashes(word: u64) -> u64 {
    let low = word & !HIGHS;
    let from_a = low + ONES * u64::from(0x80 - b'a');
    let past_z = low + ONES * u64::from(0x80 - b'z' - 1);
    let differs = low ^ (ONES * u64::from(b'-'));
    let dashes = !(differs + !HIGHS);
    ((from_a & !past_z) | dashes) & !word & HIGHS
}

/// Whether `holds` is true for all words of eight bytes that cover the text. Words may overlap, and those of a short
/// text repeat its bytes, but they contain no other bytes.
#[inline]
fn all(text: &[u8], holds: impl Fn(u64) -> bool) -> bool {
    if let Some(last) = text.last_chunk::<8>() {
        let (chunks, _) = text.as_chunks::<8>();
        return chunks.iter().all(|chunk| holds(u64::from_le_bytes(*chunk))) && holds(u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        return holds(u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32);
    }
    let [first, .., last] = *text else { return text.first().is_none_or(|byte| holds(ONES * u64::from(*byte))) };
    let middle = text[text.len() / 2];
    holds((ONES * u64::from(first)) & 0xffff | u64::from(middle) << 16 | (ONES * u64::from(last)) << 24)
}

/// Sets the high bit of each byte that is one of two ASCII bytes or between them. Exact.
#[inline]
fn within(word: u64, first: u8, last: u8) -> u64 {
    let low = word & !HIGHS;
    let from_first = low + ONES * u64::from(0x80 - first);
    let past_last = low + ONES * u64::from(0x7f - last);
    from_first & !past_last & !word & HIGHS
}

/// The number of bytes of a text before the first one that is no letter, digit, dot or dash.
#[inline]
fn host_name_length(text: &[u8]) -> usize {
    let (chunks, rest) = text.as_chunks::<8>();
    let mut length = 0;
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk);
        let plain = within(word, b'a', b'z') | within(word, b'0', b'9') | within(word, b'-', b'.');
        let other = !(plain | within(word, b'A', b'Z')) & HIGHS;
        if other != 0 {
            return length + other.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    length + rest.iter().take_while(|byte| is_plain(byte)).count()
}

/// Whether an authority is the name or the IPv4 address of a host, with a port or without one, and the port is no
/// default port: there is nothing to normalize.
#[inline]
pub(crate) fn is_plain_authority(text: &[u8]) -> bool {
    let (name, port) = text.split_at(host_name_length(text));
    let is_fine = match port {
        [] => true,
        [b':', b'8', b'0'] | [b':', b'4', b'4', b'3'] | [b':'] => false,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_fine && !name.is_empty()
}

/// Whether a text contains CR, LF or NUL.
#[inline]
pub(crate) fn has_line_end(text: &[u8]) -> bool {
    // Few texts contain a control character at all.
    let may = !all(text, |word| below(word, b'\r' + 1) == 0);
    may && text.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}

/// Whether a text has no control character except tabs.
#[inline]
pub(crate) fn is_printable(text: &[u8]) -> bool {
    let may_stand = |byte: &u8| *byte >= b' ' && *byte != 0x7f || *byte == b'\t';
    all(text, |word| below(word, b' ') | equal(word, 0x7f) == 0) || text.iter().all(may_stand)
}

/// Whether a text consists of lower-case letters and dashes.
#[inline]
pub(crate) fn is_small(text: &[u8]) -> bool {
    all(text, |word| small_letters_and_dashes(word) == HIGHS)
}

/// Whether a text consists of visible ASCII characters except `#`.
#[inline]
pub(crate) fn is_visible(text: &[u8]) -> bool {
    all(text, |word| below(word, b'!') | equal(word, b'#') | equal(word, 0x7f) | (word & HIGHS) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_counts() {
        for length in 0..28 {
            for at in 0..length {
                for byte in 0..=255_u8 {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    let is_end = matches!(byte, b'\r' | b'\n' | 0);
                    assert_eq!(has_line_end(&text), is_end, "{byte:#x} at {at} of {length}");
                    let prints = byte == b'\t' || byte >= 0x20 && byte != 0x7f;
                    assert_eq!(is_printable(&text), prints, "{byte:#x} at {at} of {length}");
                    assert_eq!(is_small(&text), byte.is_ascii_lowercase() || byte == b'-', "{byte:#x} at {at}");
                    assert_eq!(is_visible(&text), byte.is_ascii_graphic() && byte != b'#', "{byte:#x} at {at}");
                }
            }
        }
        assert!(!has_line_end(b"") && is_printable(b"") && is_small(b"") && is_visible(b""));
    }

    #[test]
    fn plain_authorities_need_no_change() {
        for text in ["a", "a.example", "A-9.example.org", "127.0.0.1:8080", "a:8", "www.example.com:65535", "a:0080"] {
            assert!(is_plain_authority(text.as_bytes()), "{text}");
        }
        for text in ["", ":8080", "a:", "a:80", "a:443", "a:b", "a:1:2", "[::1]", "a_b", "user@a", "a b", "a/", "a%41"]
        {
            assert!(!is_plain_authority(text.as_bytes()), "{text}");
        }
        for length in 1..20 {
            for at in 0..length {
                for byte in (0..=255_u8).filter(|byte| *byte != b':') {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
                    assert_eq!(is_plain_authority(&text), is_plain, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn two_bytes_of_one_word_do_not_hide_each_other() {
        for first in 0..=255_u8 {
            for second in 0..=255_u8 {
                let text = [b'a', first, second, b'a', b'a', b'a', b'a', b'a'];
                let of_both = |holds: fn(u8) -> bool| holds(first) && holds(second);
                assert_eq!(has_line_end(&text), !of_both(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
                assert_eq!(is_small(&text), of_both(|byte| byte.is_ascii_lowercase() || byte == b'-'));
                assert_eq!(is_visible(&text), of_both(|byte| byte.is_ascii_graphic() && byte != b'#'));
                let prints = |byte: u8| byte == b'\t' || byte >= 0x20 && byte != 0x7f;
                assert_eq!(is_printable(&text), of_both(prints));
            }
        }
    }
}
