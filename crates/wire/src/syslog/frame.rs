//! Splits a byte stream into messages (RFC 6587): octet counting, or one message per line. Must never buffer a byte.

use std::ops::Range;

/// The first frame of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The range of a message, and the number of bytes consumed.
    Message(Range<usize>, usize),
    /// The frame is incomplete.
    Incomplete,
    /// The stream violates the framing.
    Broken,
}

/// Maximum number of digits of a length.
const DIGITS: usize = 10;

/// Returns the first message of a stream. `most`: the maximum length of a message with its frame, in bytes. `lines`:
/// always use non-transparent framing (`option assume-rfc6587-ntf`); otherwise the first byte determines the framing.
pub fn next(bytes: &[u8], most: usize, lines: bool) -> Frame {
    match bytes.first() {
        None => Frame::Incomplete,
        Some(_) if lines => line(bytes, most),
        Some(b'<') => line(bytes, most),
        Some(b'1'..=b'9') => counted(bytes, most),
        Some(_) => Frame::Broken,
    }
}

/// Non-transparent framing: a newline ends a message.
fn line(bytes: &[u8], most: usize) -> Frame {
    match bytes.iter().take(most).position(|byte| *byte == b'\n') {
        Some(end) => {
            let text = bytes[..end].strip_suffix(b"\r").map_or(end, <[u8]>::len);
            Frame::Message(0..text, end + 1)
        }
        None if bytes.len() < most => Frame::Incomplete,
        None => Frame::Broken,
    }
}

/// Octet counting: `5 hello`.
fn counted(bytes: &[u8], most: usize) -> Frame {
    let digits = bytes.iter().take(DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if digits > DIGITS {
        return Frame::Broken;
    }
    match bytes.get(digits) {
        None => Frame::Incomplete,
        Some(b' ') => {
            let length = bytes[..digits].iter().fold(0_u64, |length, digit| length * 10 + u64::from(digit - b'0'));
            let start = digits + 1;
            match usize::try_from(length).ok().and_then(|length| start.checked_add(length)) {
                Some(end) if end <= bytes.len() && end <= most => Frame::Message(start..end, end),
                Some(end) if end <= most => Frame::Incomplete,
                _ => Frame::Broken,
            }
        }
        Some(_) => Frame::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages, the remaining bytes, and whether the framing is violated there.
    fn messages(mut bytes: &[u8], most: usize, lines: bool) -> (Vec<String>, String, bool) {
        let mut found = Vec::new();
        loop {
            match next(bytes, most, lines) {
                Frame::Message(range, taken) => {
                    found.push(String::from_utf8_lossy(&bytes[range]).into_owned());
                    bytes = &bytes[taken..];
                }
                other => {
                    return (found, String::from_utf8_lossy(bytes).into_owned(), other == Frame::Broken);
                }
            }
        }
    }

    /// Recorded from HAProxy 3.5.
    #[test]
    fn streams_come_apart() {
        let rows: &[(&str, &[&str], &str, bool)] = &[
            ("<1>a\n<2>b\n", &["<1>a", "<2>b"], "", false),
            ("<1>a\r\n<2>b", &["<1>a"], "<2>b", false),
            ("4 <1>a5 <2>bc", &["<1>a", "<2>bc"], "", false),
            ("5 <1>a\n<2>b\n4 <3>c", &["<1>a\n", "<2>b", "<3>c"], "", false),
            ("4", &[], "4", false),
            ("4 <1>", &[], "4 <1>", false),
            ("4x<1>a", &[], "4x<1>a", true),
            ("0 <1>a\n", &[], "0 <1>a\n", true),
            ("04 <1>a", &[], "04 <1>a", true),
            ("99 <1>a", &[], "99 <1>a", true),
            ("99999999999 <1>a", &[], "99999999999 <1>a", true),
            ("18446744073709551616 ", &[], "18446744073709551616 ", true),
            ("hello\n", &[], "hello\n", true),
            ("\n<1>a\n", &[], "\n<1>a\n", true),
            ("<1>aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", &[], "<1>aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", true),
        ];
        for (bytes, expected, rest, broken) in rows {
            let found = messages(bytes.as_bytes(), 20, false);
            assert_eq!(
                found,
                (expected.iter().map(ToString::to_string).collect(), rest.to_string(), *broken),
                "{bytes:?}"
            );
        }
        let found = messages(b"hello\n7 <1>a\n\n<1>b", 20, true);
        assert_eq!(found, (vec!["hello".to_owned(), "7 <1>a".to_owned(), String::new()], "<1>b".to_owned(), false));
    }

    #[test]
    fn where_a_stream_is_cut_does_not_matter() {
        let stream = b"<1>one\n9 <2>two\n\n!4 <3>x<4>four\n";
        let whole = messages(stream, 20, false);
        for cut in 0..stream.len() {
            let (mut found, rest, broken) = messages(&stream[..cut], 20, false);
            assert!(!broken, "{cut}");
            let joined = [rest.as_bytes(), &stream[cut..]].concat();
            let (more, rest, broken) = messages(&joined, 20, false);
            found.extend(more);
            assert_eq!((found, rest, broken), whole, "{cut}");
        }
    }
}
