//! The subset of ASN.1 in DER (X.690) in which keys are encoded. Must never read beyond the given bytes.

/// `INTEGER`.
pub const INTEGER: u8 = 0x02;
/// `BIT STRING`.
pub const BIT_STRING: u8 = 0x03;
/// `OBJECT IDENTIFIER`.
pub const IDENTIFIER: u8 = 0x06;
/// `SEQUENCE`.
pub const SEQUENCE: u8 = 0x30;
/// The version of a certificate: `[0]`.
pub const EXPLICIT_0: u8 = 0xa0;

/// A sequence of elements.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the front.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Takes the next element's contents, if it has that tag.
    pub fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, rest) = self.0.split_first()?;
        let (length, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(length)?;
        (*found == tag).then(|| {
            self.0 = rest;
            content
        })
    }

    /// Takes the next element's elements, if it is a sequence.
    pub fn sequence(&mut self) -> Option<Self> {
        self.take(SEQUENCE).map(Self)
    }

    /// Takes the whole next element including its header, if it has that tag.
    pub fn whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        let before = self.0;
        self.take(tag)?;
        before.get(..before.len() - self.0.len())
    }

    /// Takes the bytes of the next element, if it is a bit string without unused bits.
    pub fn bits(&mut self) -> Option<&'a [u8]> {
        match self.take(BIT_STRING)? {
            [0, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        return Some((usize::from(*first), rest));
    }
    let count = usize::from(*first & 0x7f);
    if !(1..=4).contains(&count) {
        return None;
    }
    let (digits, rest) = rest.split_at_checked(count)?;
    Some((digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest))
}

/// Appends an element.
pub fn put(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    let digits = (content.len() as u32).to_be_bytes();
    let digits = &digits[digits.iter().position(|digit| *digit != 0).unwrap_or(3)..];
    match digits {
        [short @ ..=0x7f] => out.push(*short),
        digits => {
            out.push(0x80 | digits.len() as u8);
            out.extend_from_slice(digits);
        }
    }
    out.extend_from_slice(content);
}

/// Appends a non-negative number: its digits in base 256, the highest first.
pub fn put_number(out: &mut Vec<u8>, digits: &[u8]) {
    let start = digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len());
    let mut content = Vec::with_capacity(digits.len() + 1);
    if digits.get(start).is_none_or(|digit| *digit >= 0x80) {
        content.push(0);
    }
    content.extend_from_slice(&digits[start..]);
    put(out, INTEGER, &content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let mut out = Vec::new();
            put(&mut out, SEQUENCE, &vec![7; length]);
            assert_eq!(Reader::new(&out).take(SEQUENCE).map(<[u8]>::len), Some(length));
            assert_eq!(Reader::new(&out[..out.len() - 1]).take(SEQUENCE).map(<[u8]>::len), None);
        }
        let mut out = Vec::new();
        put_number(&mut out, &[0, 0, 0x80, 1]);
        put_number(&mut out, &[0]);
        put_number(&mut out, &[5]);
        assert_eq!(out, [2, 3, 0, 0x80, 1, 2, 1, 0, 2, 1, 5]);
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [&[][..], &[0x30], &[0x30, 0x80], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 2, 0], &[0x31, 0]] {
            assert!(Reader::new(bytes).sequence().is_none(), "{bytes:?}");
        }
    }
}
