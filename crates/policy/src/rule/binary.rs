//! Header fields in the binary format of `req.hdrs_bin`: length-prefixed names and values, terminated by an empty name
//! and value (SPOE.txt, section 3.1). Must never read beyond the input.

pub type Field<'a> = (&'a [u8], &'a [u8]);

/// A parser of names and values.
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// The input is truncated, or its lengths are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncated;

impl<'a> Reader<'a> {
    /// Creates a parser of a text.
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// Returns the next length-prefixed text.
    ///
    /// # Errors
    /// The text is truncated.
    pub fn text(&mut self) -> Result<&'a [u8], Truncated> {
        let length = usize::try_from(self.length()?).map_err(|_| Truncated)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(Truncated)?;
        self.rest = rest;
        Ok(text)
    }

    /// Returns the next name and value; `None` at the end.
    ///
    /// # Errors
    /// The field is truncated, or has a value without a name.
    pub fn field(&mut self) -> Result<Option<Field<'a>>, Truncated> {
        let (name, value) = (self.text()?, self.text()?);
        match (name, value) {
            (b"", b"") => Ok(None),
            (b"", _) => Err(Truncated),
            field => Ok(Some(field)),
        }
    }

    fn byte(&mut self) -> Result<u64, Truncated> {
        let (first, rest) = self.rest.split_first().ok_or(Truncated)?;
        self.rest = rest;
        Ok(u64::from(*first))
    }

    /// Reads an integer: up to 239 in one byte; else four bits in it, and seven bits in each following byte, lowest
    /// first.
    fn length(&mut self) -> Result<u64, Truncated> {
        let mut number = self.byte()?;
        if number < 240 {
            return Ok(number);
        }
        let mut shift = 4;
        loop {
            let byte = self.byte()?;
            // A number that does not fit exceeds the length of any text.
            number = byte.checked_shl(shift).and_then(|more| number.checked_add(more)).ok_or(Truncated)?;
            if byte < 128 {
                return Ok(number);
            }
            shift += 7;
            if shift > 32 {
                return Err(Truncated);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        // The bytes, and the length that they encode.
        let rows: &[(&[u8], Result<u64, Truncated>)] = &[
            (&[0], Ok(0)),
            (&[239], Ok(239)),
            (&[240, 0], Ok(240)),
            (&[255, 0], Ok(255)),
            (&[240, 1], Ok(256)),
            (&[255, 127], Ok(2287)),
            (&[240, 128, 0], Ok(2288)),
            (&[255, 255, 127], Ok(264_431)),
            (&[], Err(Truncated)),
            (&[240], Err(Truncated)),
            (&[240, 128], Err(Truncated)),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255, 0], Err(Truncated)),
        ];
        for (bytes, wanted) in rows {
            assert_eq!(Reader::new(bytes).length(), *wanted, "{bytes:?}");
        }
    }

    #[test]
    fn fields() {
        let all = |bytes: &[u8]| -> Result<Vec<(String, String)>, Truncated> {
            let mut reader = Reader::new(bytes);
            let mut found = Vec::new();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            while let Some((name, value)) = reader.field()? {
                found.push((text(name), text(value)));
            }
            Ok(found)
        };
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(all(b"\0\0"), Ok(vec![]));
        assert_eq!(all(b"\x03x-b\x01v\x01e\0\0\0left"), Ok(vec![field("x-b", "v"), field("e", "")]));
        for broken in [&b""[..], b"\0", b"\x03x-b\x01v", b"\x03x-", b"\x01a\x05v", b"\0\x01v\0\0"] {
            assert_eq!(all(broken), Err(Truncated), "{broken:?}");
        }
    }
}
