//! Decodes replies from bytes that arrive in pieces. Must never wait for more bytes than a reply may have.

use super::DEEPEST;

/// Maximum length of a line, in bytes, without its end: a type, and a number or a text.
const LONGEST_LINE: usize = 1_024;

/// A reply, or an element of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A status, such as `OK`.
    Simple(&'a [u8]),
    /// An error: a code in upper case, and a text.
    Error(&'a [u8]),
    Integer(i64),
    /// A string of any bytes.
    Bulk(&'a [u8]),
    /// A string or an array that does not exist.
    Nil,
    Array(Vec<Reply<'a>>),
}

impl Reply<'_> {
    /// Returns the code of an error, such as `NOSCRIPT`.
    pub fn error_code(&self) -> Option<&[u8]> {
        let Self::Error(text) = self else { return None };
        text.split(|byte| *byte == b' ').next()
    }
}

/// The bytes of a reply that have not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incomplete {
    /// The smallest length of the whole reply, in bytes. It exceeds what has arrived: decoding again before that is useless.
    pub least: usize,
}

/// The bytes are not a reply, or it exceeds a limit. Nothing after it can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The result of decoding.
pub type Next<'a> = Result<Result<(Reply<'a>, usize), Incomplete>, Malformed>;

/// Decodes the reply at the start of `bytes`. Returns it and its length. `most` is its maximum length in bytes.
///
/// # Errors
/// The bytes are not a reply, or its length or depth exceeds the limit.
pub fn next_reply(bytes: &[u8], most: usize) -> Next<'_> {
    let mut reader = Reader::new(bytes, most);
    match reader.reply(DEEPEST) {
        Ok(reply) => Ok(Ok((reply, reader.at))),
        Err(Stop::Incomplete(least)) if least <= most => Ok(Err(Incomplete { least })),
        Err(Stop::Incomplete(_) | Stop::Malformed) => Err(Malformed),
    }
}

/// Length of the shortest reply: `+`, and the end of the line.
pub(super) const SHORTEST: usize = 3;

/// Why decoding has stopped.
pub(super) enum Stop {
    /// The reply has this number of bytes at least.
    Incomplete(usize),
    Malformed,
}

/// An element of a reply.
pub(super) enum Element<'a> {
    Whole(Reply<'a>),
    /// The beginning of an array with that number of elements.
    Array(usize),
}

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Start of the next element.
    pub(super) at: usize,
    /// Number of bytes from there that contain no end of a line.
    pub(super) looked: usize,
    most: usize,
    /// Number of bytes that were compared with the end of a line.
    #[cfg(test)]
    pub(super) read: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], most: usize) -> Self {
        Self {
            bytes,
            at: 0,
            looked: 0,
            most,
            #[cfg(test)]
            read: 0,
        }
    }

    /// Continues at an element of which that number of bytes contains no end of a line.
    pub(super) fn from(self, at: usize, looked: usize) -> Self {
        Self { at, looked, ..self }
    }

    /// Decodes a reply that contains arrays of that depth at most.
    fn reply(&mut self, depth: usize) -> Result<Reply<'a>, Stop> {
        match self.element()? {
            Element::Whole(reply) => Ok(reply),
            Element::Array(count) => self.array(count, depth),
        }
    }

    /// Decodes an element. After an incomplete one, the position is its start, or the start of a string.
    pub(super) fn element(&mut self) -> Result<Element<'a>, Stop> {
        let (kind, line) = self.line()?;
        Ok(Element::Whole(match kind {
            b'+' => Reply::Simple(line),
            b'-' => Reply::Error(line),
            b':' => Reply::Integer(number(line)?),
            b'$' => match self.length(line)? {
                Some(length) => Reply::Bulk(self.take(length)?),
                None => Reply::Nil,
            },
            b'*' => match self.length(line)? {
                Some(count) => return Ok(Element::Array(count)),
                None => Reply::Nil,
            },
            _ => return Err(Stop::Malformed),
        }))
    }

    fn array(&mut self, count: usize, depth: usize) -> Result<Reply<'a>, Stop> {
        let depth = depth.checked_sub(1).ok_or(Stop::Malformed)?;
        let least = count.saturating_mul(SHORTEST).saturating_add(self.at);
        if least > self.bytes.len() {
            // Memory is reserved for elements that have arrived.
            return Err(Stop::Incomplete(least));
        }
        let mut elements = Vec::with_capacity(count);
        for left in (0..count).rev() {
            let element = self.reply(depth).map_err(|stop| match stop {
                Stop::Incomplete(least) => Stop::Incomplete(least.saturating_add(left * SHORTEST)),
                Stop::Malformed => Stop::Malformed,
            })?;
            elements.push(element);
        }
        Ok(Reply::Array(elements))
    }

    /// Takes a line: its first byte, and the rest without its end.
    fn line(&mut self) -> Result<(u8, &'a [u8]), Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let within = &rest[..rest.len().min(LONGEST_LINE + 1)];
        let found = within.iter().skip(self.looked).position(|byte| *byte == b'\r');
        let looked = found.map_or(within.len(), |found| found + self.looked);
        #[cfg(test)]
        {
            self.read += looked + 1 - self.looked;
        }
        self.looked = looked;
        let Some(end) = found.map(|_| looked) else {
            // A line has its first byte and two at its end.
            let missing = if rest.is_empty() { 3 } else { 2 };
            return Err(if rest.len() > LONGEST_LINE { Stop::Malformed } else { self.missing(missing) });
        };
        match rest.get(end + 1) {
            None => return Err(self.missing(1)),
            Some(b'\n') => {}
            Some(_) => return Err(Stop::Malformed),
        }
        (self.at, self.looked) = (self.at + end + 2, 0);
        if self.at > self.most {
            return Err(Stop::Malformed);
        }
        let (kind, line) = rest[..end].split_first().ok_or(Stop::Malformed)?;
        Ok((*kind, line))
    }

    /// Takes a string and the end of its line.
    fn take(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let end = self.at.saturating_add(length);
        let whole = end.saturating_add(2);
        if whole > self.bytes.len() {
            return Err(Stop::Incomplete(whole));
        }
        let string = &self.bytes[self.at..end];
        if self.bytes[end..whole] != *b"\r\n" || whole > self.most {
            return Err(Stop::Malformed);
        }
        self.at = whole;
        Ok(string)
    }

    /// Returns the number in a line that announces a string or an array. `None`: there is none (`-1`).
    fn length(&self, line: &[u8]) -> Result<Option<usize>, Stop> {
        match number(line)? {
            -1 => Ok(None),
            length => {
                usize::try_from(length).ok().filter(|length| *length <= self.most).map(Some).ok_or(Stop::Malformed)
            }
        }
    }

    fn missing(&self, count: usize) -> Stop {
        Stop::Incomplete(self.bytes.len().saturating_add(count))
    }
}

/// Parses a decimal number of 64 bits.
fn number(digits: &[u8]) -> Result<i64, Stop> {
    let is_decimal = digits.strip_prefix(b"-").unwrap_or(digits).iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_decimal);
    text.and_then(|text| text.parse().ok()).ok_or(Stop::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 200;

    fn whole(bytes: &[u8]) -> Next<'_> {
        next_reply(bytes, MOST)
    }

    #[test]
    fn replies_have_their_kind() {
        use Reply::*;
        let rows: Vec<(&str, Reply<'_>)> = vec![
            ("+OK\r\n", Simple(b"OK")),
            ("+\r\n", Simple(b"")),
            ("-NOSCRIPT No matching script\r\n", Error(b"NOSCRIPT No matching script")),
            (":0\r\n", Integer(0)),
            (":-9223372036854775808\r\n", Integer(i64::MIN)),
            ("$5\r\na\r\nbc\r\n", Bulk(b"a\r\nbc")),
            ("$0\r\n\r\n", Bulk(b"")),
            ("$-1\r\n", Nil),
            ("*-1\r\n", Nil),
            ("*0\r\n", Array(vec![])),
            ("*2\r\n:1\r\n$1\r\nx\r\n", Array(vec![Integer(1), Bulk(b"x")])),
            ("*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", Array(vec![Array(vec![Array(vec![Array(vec![Integer(7)])])])])),
        ];
        for (text, expected) in rows {
            let bytes = format!("{text}+next\r\n");
            assert_eq!(whole(bytes.as_bytes()), Ok(Ok((expected, text.len()))), "{text:?}");
            for shorter in 0..text.len() {
                let Ok(Err(Incomplete { least })) = whole(&text.as_bytes()[..shorter]) else {
                    panic!("{text:?} {shorter}")
                };
                assert!(shorter < least && least <= text.len(), "{text:?} {shorter} {least}");
            }
        }
    }

    #[test]
    fn the_length_of_what_is_announced_is_known() {
        let rows = [
            ("", 3),
            ("$10\r\n", 17),
            ("*3\r\n", 13),
            ("*3\r\n$10\r\n", 13),
            ("*3\r\n$10\r\nabcd", 27),
            ("*2\r\n:1\r\n", 10),
            ("+OK\r", 5),
        ];
        for (text, least) in rows {
            assert_eq!(whole(text.as_bytes()), Ok(Err(Incomplete { least })), "{text:?}");
        }
    }

    #[test]
    fn limits_and_errors() {
        let long = format!("+{}", "x".repeat(LONGEST_LINE + 1));
        let rows = [
            "?\r\n",
            "\r\n",
            "+O\rK\r\n",
            ":\r\n",
            ":1x\r\n",
            ":+1\r\n",
            ":9223372036854775808\r\n",
            "$-2\r\n",
            "$201\r\n",
            "$190\r\n*",
            "$1\r\nxy\r\n",
            "$18446744073709551616\r\n",
            "*201\r\n",
            "*100\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n",
            &long,
        ];
        for text in rows {
            let limit = if text.starts_with("$190") { 190 } else { MOST };
            assert_eq!(next_reply(text.as_bytes(), limit), Err(Malformed), "{text:?}");
        }
        assert_eq!(next_reply(b"+0123456\r\n", 10), Ok(Ok((Reply::Simple(b"0123456"), 10))));
        assert_eq!(next_reply(b"+0123456\r\n", 9), Err(Malformed));
        assert_eq!(next_reply(b"$1\r\nx\r\n", 6), Err(Malformed));
    }

    #[test]
    fn errors_have_a_code() {
        assert_eq!(Reply::Error(b"NOSCRIPT No matching script").error_code(), Some(&b"NOSCRIPT"[..]));
        assert_eq!(Reply::Error(b"ERR").error_code(), Some(&b"ERR"[..]));
        assert_eq!(Reply::Simple(b"ERR no").error_code(), None);
    }
}
