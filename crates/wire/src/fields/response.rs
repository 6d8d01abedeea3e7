//! Builds the head of a response from its fields (RFC 9113, section 8.3.2; RFC 9114, section 4.3.2). Must never accept a byte that
//! would have another meaning in HTTP/1.

use super::SectionVersion;
use super::field::{Capacity, HeaderField, KnownName, Malformed, is_of_connection, is_value, trim};
use crate::h1;
use crate::http::{Framing, Head, Version};

/// Builds the head of a response field by field.
pub struct ResponseReader<'h> {
    head: &'h mut Head,
    capacity: Capacity,
    version: SectionVersion,
    malformed: bool,
    has_fields: bool,
}

impl<'h> ResponseReader<'h> {
    /// Starts with an empty head of HTTP/2; `capacity` limits its fields.
    pub fn new(head: &'h mut Head, capacity: Capacity) -> Self {
        Self::of(SectionVersion::Http2, head, capacity)
    }

    /// Starts with an empty head of a version.
    #[inline]
    pub(crate) fn of(version: SectionVersion, head: &'h mut Head, capacity: Capacity) -> Self {
        head.clear();
        Self { head, capacity, version, malformed: false, has_fields: false }
    }

    /// Adds the next field. Errors are reported at the end.
    pub fn field(&mut self, field: &HeaderField<'_>) {
        if self.malformed || !self.capacity.take_bytes(field.name, field.value) {
            self.malformed = true;
            return;
        }
        let is_fine = if field.is_pseudo() {
            let is_status = match field.known {
                KnownName::Unknown => field.name == b":status",
                known => known == KnownName::Status,
            };
            is_status && !self.has_fields && self.head.status() == 0 && self.status(field.value)
        } else {
            self.has_fields = true;
            self.plain(field)
        };
        self.malformed |= !is_fine;
    }

    /// Parses a status of three digits; 101 is not permitted (RFC 9113, section 8.6; RFC 9114,
    /// section 4.5).
    fn status(&mut self, value: &[u8]) -> bool {
        let [hundreds @ b'1'..=b'9', tens, ones] = *value else { return false };
        if ![tens, ones].iter().all(u8::is_ascii_digit) || value == b"101" {
            return false;
        }
        let digit = |byte: u8| u16::from(byte - b'0');
        self.head.set_status(100 * digit(hundreds) + 10 * digit(tens) + digit(ones), b"");
        true
    }

    #[inline]
    fn plain(&mut self, field: &HeaderField<'_>) -> bool {
        let (known, mut value) = (field.known_name(), field.value);
        let mut is_valid = field.is_valid;
        if !is_valid {
            value = trim(value);
            is_valid = field.has_valid_name() && is_value(value);
        }
        let is_fine = self.capacity.take_field() && is_valid && !is_of_connection(known);
        if is_fine {
            self.head.fields.append_checked(known, field.name, value);
        }
        is_fine
    }

    /// Completes the head. `alone`: the stream ends with it. The framing is that of a response to any method except
    /// HEAD.
    ///
    /// # Errors
    /// The head is malformed or too large.
    pub fn finish(&mut self, alone: bool) -> Result<(), Malformed> {
        let head = &mut *self.head;
        if self.malformed || head.status() == 0 || head.fields.overflowed() {
            return Err(Malformed);
        }
        head.set_version(Version::Http11, self.version.text());
        let is_interim = head.status() < 200;
        if is_interim && alone {
            return Err(Malformed);
        }
        let length = h1::content_length(&mut head.fields).map_err(|_| Malformed)?;
        head.framing = match (head.status(), length) {
            (..200 | 204 | 304, _) => Framing::None,
            (_, Some(length)) => Framing::Length(length),
            (_, None) if alone => Framing::Length(0),
            // The end of the stream ends the body; HTTP/1 sends it in chunks.
            (_, None) => Framing::Chunked,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The HTTP/1 head of a response whose fields are given as lines.
    fn read(lines: &str, alone: bool) -> Result<String, Malformed> {
        let mut head = Head::new();
        let mut reader = ResponseReader::new(&mut head, Capacity { bytes: 1000, fields: 20 });
        for line in lines.lines() {
            let (name, value) = line.split_at(1 + line[1..].find(": ").unwrap());
            reader.field(&HeaderField::new(name.as_bytes(), &value.as_bytes()[2..]));
        }
        reader.finish(alone)?;
        let mut text = Vec::new();
        let edits = h1::Edits { framing: head.framing, ..h1::Edits::default() };
        h1::encode_response(&head, &edits, &mut text).unwrap();
        Ok(String::from_utf8(text).unwrap().replace("\r\n", "|"))
    }

    #[test]
    fn answers_become_those_of_http_1() {
        let rows = [
            (":status: 200\nx-a: 1", false, "HTTP/1.1 200 OK|x-a: 1|transfer-encoding: chunked||"),
            (":status: 200\nx-a: 1", true, "HTTP/1.1 200 OK|x-a: 1|content-length: 0||"),
            (":status: 404\ncontent-length: 3", false, "HTTP/1.1 404 Not Found|content-length: 3||"),
            (":status: 200\ncontent-length: 3\ncontent-length: 3", false, "HTTP/1.1 200 OK|content-length: 3||"),
            (":status: 103\nlink: </a>", false, "HTTP/1.1 103 Informational|link: </a>||"),
            (":status: 304\ncontent-length: 7", true, "HTTP/1.1 304 Not Modified|content-length: 7||"),
            (
                ":status: 299\nset-cookie: a\nset-cookie: b",
                true,
                "HTTP/1.1 299 Success|set-cookie: a|set-cookie: b|content-length: 0||",
            ),
        ];
        for (lines, alone, expected) in rows {
            assert_eq!(read(lines, alone).as_deref(), Ok(expected), "{lines}");
        }
    }

    #[test]
    fn the_version_is_recorded() {
        for (version, text) in [(SectionVersion::Http2, b"HTTP/2.0"), (SectionVersion::Http3, b"HTTP/3.0")] {
            let mut head = Head::new();
            let mut reader = ResponseReader::of(version, &mut head, Capacity { bytes: 100, fields: 2 });
            reader.field(&HeaderField::new(b":status", b"200"));
            reader.finish(true).unwrap();
            assert_eq!(head.version_text(), text);
        }
    }

    /// Responses that HTTP/1 clients would split or misinterpret, and those that RFC 9113 calls malformed.
    #[test]
    fn malformed_answers_are_refused() {
        let long = format!(":status: 200\nx: {}", "v".repeat(1000));
        let many = format!(":status: 200\n{}", "x: 1\n".repeat(21));
        let rows = [
            "x-a: 1",
            ":status: 101",
            ":status: 20",
            ":status: 2000",
            ":status: +20",
            ":status: 099",
            ":status: 200\n:status: 200",
            "x-a: 1\n:status: 200",
            ":status: 200\n:path: /",
            ":status: 200\nconnection: close",
            ":status: 200\ntransfer-encoding: chunked",
            ":status: 200\nX-a: 1",
            ":status: 200\nx-a: 1\r2",
            ":status: 200\nx-a: 1\r",
            &many,
            ":status: 200\nx a: 1",
            ":status: 200\ncontent-length: 1\ncontent-length: 2",
            ":status: 200\ncontent-length: -1",
            ":status: 100",
            &long,
        ];
        for lines in rows {
            assert_eq!(read(lines, true), Err(Malformed), "{lines:?}");
        }
    }
}
