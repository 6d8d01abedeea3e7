//! Finds the end of a reply in bytes that arrive in pieces, so that it is decoded once. Must never read a byte again, except those
//! of the line that announces a string.

use super::DEEPEST;
use super::reply::{Element, Malformed, Reader, SHORTEST, Stop};

/// The search for the end of one reply.
#[derive(Debug, Clone, Default)]
pub struct ReplyScan {
    /// Start of the first element that is incomplete.
    at: usize,
    /// Number of bytes from there that contain no end of a line.
    looked: usize,
    /// The smallest length of the reply that is known.
    least: usize,
    /// For each array that has begun, the number of its elements that are missing.
    missing: [usize; DEEPEST],
    depth: usize,
    #[cfg(test)]
    read: usize,
}

impl ReplyScan {
    /// Returns the length of the reply at the start of `bytes`, once it is complete. They begin with those of the call before.
    /// `most` is the maximum length in bytes.
    ///
    /// # Errors
    /// The bytes are not a reply, or its length or depth exceeds the limit.
    pub fn end(&mut self, bytes: &[u8], most: usize) -> Result<Option<usize>, Malformed> {
        while bytes.len() >= self.least {
            let mut reader = Reader::new(bytes, most).from(self.at, self.looked);
            let element = reader.element();
            #[cfg(test)]
            {
                self.read += reader.read;
            }
            match element {
                Ok(element) => {
                    (self.at, self.looked) = (reader.at, 0);
                    self.count(&element)?;
                }
                Err(Stop::Incomplete(least)) => {
                    (self.looked, self.least) = (reader.looked, least);
                    return self.check(least, most).map(|()| None);
                }
                Err(Stop::Malformed) => return Err(Malformed),
            }
            if self.depth == 0 {
                return Ok(Some(self.at));
            }
            self.check(self.at, most)?;
        }
        Ok(None)
    }

    /// Counts an element, and the arrays that are complete with it.
    fn count(&mut self, element: &Element<'_>) -> Result<(), Malformed> {
        if let Some(missing) = self.depth.checked_sub(1).and_then(|last| self.missing.get_mut(last)) {
            *missing = missing.saturating_sub(1);
        }
        if let Element::Array(count) = element {
            *self.missing.get_mut(self.depth).ok_or(Malformed)? = *count;
            self.depth += 1;
        }
        while self.depth > 0 && self.missing[self.depth - 1] == 0 {
            self.depth -= 1;
        }
        Ok(())
    }

    /// Checks that the reply may be as long as it is at least, if `length` is the end of an element.
    fn check(&self, length: usize, most: usize) -> Result<(), Malformed> {
        let missing = self.missing[..self.depth].iter().fold(0_usize, |sum, missing| sum.saturating_add(*missing));
        // The element at which the search has stopped is one of them.
        let after = if length > self.at { missing.saturating_sub(1) } else { missing };
        if length.saturating_add(after.saturating_mul(SHORTEST)) > most { Err(Malformed) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Incomplete, next_reply};
    use super::*;

    const MOST: usize = 200;

    /// Looks for the end of a reply that arrives byte by byte.
    fn scanned(bytes: &[u8], most: usize) -> (Result<Option<usize>, Malformed>, ReplyScan) {
        let mut scan = ReplyScan::default();
        for length in 0..=bytes.len() {
            match scan.end(&bytes[..length], most) {
                Ok(None) => {}
                found => return (found, scan),
            }
        }
        (Ok(None), scan)
    }

    #[test]
    fn the_end_is_that_of_the_decoder() {
        let texts = [
            "+OK\r\n",
            "-ERR no\r\n",
            ":-5\r\n",
            "$5\r\na\r\nbc\r\n",
            "$0\r\n\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "*0\r\n",
            "*2\r\n:1\r\n$1\r\nx\r\n",
            "*3\r\n*2\r\n:1\r\n*0\r\n*0\r\n$-1\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n",
            "*2\r\n*1\r\n*1\r\n*0\r\n:1\r\n",
        ];
        for text in texts {
            let bytes = format!("{text}+next\r\n");
            assert_eq!(scanned(bytes.as_bytes(), MOST).0, Ok(Some(text.len())), "{text:?}");
            assert_eq!(ReplyScan::default().end(bytes.as_bytes(), MOST), Ok(Some(text.len())), "{text:?}");
            assert!(next_reply(text.as_bytes(), MOST).is_ok_and(|decoded| decoded.is_ok()), "{text:?}");
            for shorter in 0..text.len() {
                assert_eq!(scanned(&bytes.as_bytes()[..shorter], MOST).0, Ok(None), "{text:?} {shorter}");
            }
        }
    }

    #[test]
    fn errors_are_those_of_the_decoder() {
        let rows = [
            "?\r\n",
            "\r\n+",
            "+O\rK\r\n",
            ":1x\r\n",
            "$-2\r\n",
            "$201\r\n",
            "$1\r\nxy\r\n",
            "*67\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n",
        ];
        for text in rows {
            assert_eq!(scanned(text.as_bytes(), MOST).0, Err(Malformed), "{text:?}");
            assert_eq!(next_reply(text.as_bytes(), MOST), Err(Malformed), "{text:?}");
        }
        // Earlier than by the decoder, which waits for the shortest elements.
        for (text, least) in [("*3\r\n?\r\n", 13), ("*2\r\n*64\r\n", 10), ("*64\r\n$10\r\n", 197)] {
            assert_eq!(scanned(text.as_bytes(), MOST).0, Err(Malformed), "{text:?}");
            assert_eq!(next_reply(text.as_bytes(), MOST), Ok(Err(Incomplete { least })), "{text:?}");
        }
    }

    /// Replies of the maximum size that arrive byte by byte.
    #[test]
    fn each_byte_is_read_a_bounded_number_of_times() {
        let size = 1 << 20;
        let line = format!("+{}\r\n", "x".repeat(1_000));
        let rows = [
            format!("${}\r\n{}\r\n", size - 20, "x".repeat(size - 20)),
            format!("*{}\r\n{}", size / 5, ":12\r\n".repeat(size / 5)),
            format!("*{}\r\n{}", size / 1_003, line.repeat(size / 1_003)),
            format!("*{}\r\n{}", size / 19, "*2\r\n:1\r\n$5\r\nabcde\r\n".repeat(size / 19)),
            format!("*{}\r\n{}", size / 7, "$1\r\nx\r\n".repeat(size / 7)),
        ];
        for text in rows {
            let most = size + 100;
            let (found, scan) = scanned(text.as_bytes(), most);
            assert_eq!(found, Ok(Some(text.len())));
            assert!(scan.read <= 2 * text.len(), "{} {}", scan.read, text.len());
        }
    }
}
