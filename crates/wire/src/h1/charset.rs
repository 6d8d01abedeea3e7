//! Character classes of HTTP/1, and copying of text up to the first byte outside of a class, sixteen bytes at a time.

use super::block::{self, Block};

/// Lower-case form of each token character (RFC 9110 section 5.6.2), zero for every other byte.
pub(super) static TOKEN_LOWER: [u8; 256] = token_lower();

/// Bytes that HAProxy 3.5 accepts in an authority or a Host field: anything but controls, space, `#`, `,`, `/`, `?`,
/// `@`, `[`, `\`, `]` and bytes from 0x7f on. Brackets are checked separately.
static HOST: [bool; 256] = host();

const fn token_lower() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let is_token = (byte as u8).is_ascii_alphanumeric()
            || matches!(
                byte as u8,
                b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
            );
        if is_token {
            table[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

const fn host() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = !matches!(byte as u8, b'#' | b',' | b'/' | b'?' | b'@' | b'[' | b'\\' | b']');
        byte += 1;
    }
    table
}

#[inline]
pub(super) fn is_token(byte: u8) -> bool {
    TOKEN_LOWER[byte as usize] != 0
}

#[inline]
pub(super) fn is_host(byte: u8) -> bool {
    HOST[byte as usize]
}

/// Whether every byte of a text satisfies [`is_host`]. Blocks of letters, digits, dots, dashes and colons are checked at once.
#[inline]
pub(super) fn is_host_text(mut text: &[u8]) -> bool {
    loop {
        let length = Block::first(text).plain_host();
        if length >= text.len() {
            return true;
        }
        if length < block::SIZE && !is_host(text[length]) {
            return false;
        }
        text = &text[length + usize::from(length < block::SIZE)..];
    }
}

#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Whether a byte is permitted in a target: visible ASCII except `#`. `accept-unsafe-violations-in-http-request` adds
/// `#` and bytes from 0x80 on.
#[inline]
pub(super) fn is_target(byte: u8, accept_unsafe: bool) -> bool {
    match byte {
        0x21..=0x7e => byte != b'#' || accept_unsafe,
        0x80.. => accept_unsafe,
        _ => false,
    }
}

/// Returns `text` without leading and trailing spaces and tabs.
#[inline]
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_blank(*last)
    {
        text = rest;
    }
    text
}

/// Copies a field value up to the first control character or the end of either slice; returns the number of bytes
/// copied.
#[inline]
pub(super) fn copy_value(from: &[u8], to: &mut [u8]) -> usize {
    copy_until(from, to, Block::control)
}

/// Copies a target up to the first byte that [`is_target`] rejects by default; returns the number of bytes copied.
#[inline]
pub(super) fn copy_target(from: &[u8], to: &mut [u8]) -> usize {
    copy_until(from, to, Block::no_target)
}

/// Copies text up to the first byte at which `stop` ends a block; NUL has to be one.
#[inline]
fn copy_until(from: &[u8], to: &mut [u8], stop: impl Fn(Block) -> usize) -> usize {
    let mut count = 0;
    while let (Some(source), Some(target)) =
        (from[count..].first_chunk::<{ block::SIZE }>(), to[count..].first_chunk_mut::<{ block::SIZE }>())
    {
        *target = *source;
        let length = stop(Block::new(source));
        count += length;
        if length < block::SIZE {
            return count;
        }
    }
    count + copy_rest(&from[count..], &mut to[count..], stop)
}

/// Copies the last bytes of a text, or up to the end of the room.
#[inline(never)]
fn copy_rest(from: &[u8], to: &mut [u8], stop: impl Fn(Block) -> usize) -> usize {
    let mut count = 0;
    while count < from.len() && count < to.len() {
        let (rest, room) = (&from[count..], &mut to[count..]);
        let length = stop(Block::first(rest)).min(rest.len()).min(room.len());
        room[..length].copy_from_slice(&rest[..length]);
        count += length;
        if length < block::SIZE {
            break;
        }
    }
    count
}

/// Copies a field name in lower case up to the first byte that is not a token character; returns the number of bytes
/// copied.
pub(super) fn copy_name(from: &[u8], to: &mut [u8]) -> usize {
    let mut count = 0;
    for (source, target) in from.iter().zip(to) {
        let lower = TOKEN_LOWER[*source as usize];
        if lower == 0 {
            break;
        }
        *target = lower;
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(from: &[u8], room: usize, stop: impl Fn(u8) -> bool) -> usize {
        from.iter().take(room).take_while(|byte| !stop(**byte)).count()
    }

    #[test]
    fn copies_stop_at_every_byte_that_may_not_pass_and_at_no_other() {
        for length in 0..36 {
            for at in 0..length {
                for byte in (0..=255).step_by(if length < 20 { 1 } else { 7 }) {
                    let mut text = vec![b'a'; length];
                    text[at] = byte;
                    for room in [length, length + 3, length.saturating_sub(2)] {
                        let mut to = vec![0; room];
                        let count = copy_value(&text, &mut to);
                        assert_eq!(count, model(&text, room, |byte| byte < 0x20), "value {byte:#x} at {at}");
                        assert_eq!(to[..count], text[..count]);
                        let count = copy_target(&text, &mut to);
                        assert_eq!(count, model(&text, room, |byte| !is_target(byte, false)), "target {byte:#x}");
                        assert_eq!(to[..count], text[..count]);
                        let count = copy_name(&text, &mut to);
                        assert_eq!(count, model(&text, room, |byte| !is_token(byte)), "name {byte:#x} at {at}");
                        assert_eq!(to[..count], text[..count].to_ascii_lowercase());
                    }
                }
            }
        }
    }

    #[test]
    fn texts_of_hosts_are_judged_byte_by_byte() {
        for length in 1..20 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'-'; length];
                    text[at] = byte;
                    assert_eq!(is_host_text(&text), is_host(byte), "{byte:#x} at {at} of {length}");
                }
            }
        }
        assert!(is_host_text(b""));
    }

    #[test]
    fn two_stops_in_one_word() {
        let mut to = [0; 16];
        assert_eq!(copy_target(b"ab#\x7fcdefgh", &mut to), 2);
        assert_eq!(copy_target(b"ab\xff#cdefgh", &mut to), 2);
        assert_eq!(copy_value(b"abc\n\0defgh", &mut to), 3);
    }

    #[test]
    fn trims_both_sides() {
        assert_eq!(trim(b" \ta b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
        assert_eq!(trim(b"\x0ba"), b"\x0ba");
    }
}
