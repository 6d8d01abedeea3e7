//! Decodes records from arbitrarily fragmented bytes (specification, section 3.3). Buffers the header of one record and
//! the content of `FCGI_END_REQUEST`; everything else is borrowed. Must never copy a body.

use base::Buffer;

use super::{HEADER, REQUEST, VERSION, kind};

/// Length of the content of `FCGI_END_REQUEST` in bytes.
const END_CONTENT: usize = 8;

/// Bytes of that content that are used; the rest is reserved.
const END: usize = 5;

/// The bytes are not a valid record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// The application's status of a request that has ended (specification, section 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolStatus {
    /// `FCGI_REQUEST_COMPLETE`.
    Complete,
    /// `FCGI_CANT_MPX_CONN` or `FCGI_OVERLOADED`: the request was not started.
    Refused,
    /// `FCGI_UNKNOWN_ROLE`, or an undefined number.
    Failed,
}

/// A part of an application's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'d> {
    /// Bytes of standard output.
    Output(&'d [u8]),
    /// The end of standard output.
    OutputEnded,
    /// Bytes of standard error; `whole` marks the last ones of a record.
    Error {
        data: &'d [u8],
        /// The record ends with these bytes.
        whole: bool,
    },
    Ended(ProtocolStatus),
    /// Bytes of `FCGI_GET_VALUES_RESULT`, the application's limits; `whole` marks the last ones. Only from decoders of
    /// several requests.
    Values {
        data: &'d [u8],
        /// The record ends with these bytes.
        whole: bool,
    },
}

/// Fast path: moves the output into `out` if `data` is exactly a complete, successful response: records of output,
/// optionally the end of output, and `FCGI_END_REQUEST` with `FCGI_REQUEST_COMPLETE`. Returns the number of bytes of
/// output, at least 1. Returns `None` if nothing was moved; the caller then uses [`Decoder::next`].
pub fn take_whole(data: &[u8], out: &mut Buffer) -> Option<usize> {
    // The last bytes distinguish a complete response from a part of one.
    let end = data.len().checked_sub(HEADER + END_CONTENT).and_then(|end| data.get(end..))?;
    if end.first_chunk() != Some(&[VERSION, kind::END_REQUEST, 0, 1, 0, END_CONTENT as u8, 0]) {
        return None;
    }
    let before = out.len();
    let taken = take_records(data, out);
    if taken.is_none() {
        out.truncate(before);
    }
    taken
}

fn take_records(mut data: &[u8], out: &mut Buffer) -> Option<usize> {
    let (mut count, mut has_ended) = (0, false);
    loop {
        let (header, behind) = data.split_first_chunk::<HEADER>()?;
        let [VERSION, kind, high, low, content @ .., padding, _] = *header else { return None };
        if u16::from_be_bytes([high, low]) != REQUEST {
            return None;
        }
        let (content, behind) = behind.split_at_checked(u16::from_be_bytes(content).into())?;
        data = behind.get(padding.into()..)?;
        match kind {
            kind::STDOUT if content.is_empty() => has_ended = true,
            kind::STDOUT if !has_ended && content.len() <= out.room() && out.push(content) => count += content.len(),
            kind::END_REQUEST if data.is_empty() && content.get(END - 1) == Some(&0) => {
                return (count > 0).then_some(count);
            }
            _ => return None,
        }
    }
}

/// Decodes the records of one connection.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    header: [u8; HEADER],
    /// Bytes of the header received.
    known: usize,
    /// Bytes of content not yet received.
    content: u16,
    /// Bytes of padding after the content, ignored.
    padding: u8,
    end: [u8; END],
    ended: usize,
    /// Accepts records of every request and management records.
    takes_all: bool,
}

impl Decoder {
    /// Creates a decoder for a connection that carries several requests: [`Decoder::request`] returns the request of a
    /// piece.
    pub fn for_several() -> Self {
        Self { takes_all: true, ..Self::default() }
    }

    /// The request ID of the last record; 0 for management records.
    pub fn request(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The request whose output comes next: its record has started and has content left.
    pub fn output_of(&self) -> Option<u16> {
        (self.known == HEADER && self.content > 0 && self.header[1] == kind::STDOUT).then(|| self.request())
    }

    /// Whether the content of the last piece's record is complete.
    pub fn has_whole_content(&self) -> bool {
        self.content == 0
    }

    /// Whether a record is incomplete.
    pub fn is_inside(&self) -> bool {
        self.known > 0
    }

    /// Consumes bytes of `data`; returns their number and at most one piece. `most` is the maximum number of bytes of
    /// output to take; with 0, neither output nor anything after it is taken. `(0, None)`: more input or more capacity
    /// is needed.
    ///
    /// # Errors
    /// The bytes are not records of this version.
    pub fn next<'d>(&mut self, data: &'d [u8], most: usize) -> Result<(usize, Option<Piece<'d>>), Malformed> {
        let mut used = 0;
        loop {
            let rest = &data[used..];
            if self.known < HEADER {
                used += self.take_header(rest);
                if self.known < HEADER {
                    return if self.known > 0 && self.header[0] != VERSION { Err(Malformed) } else { Ok((used, None)) };
                }
                self.begin()?;
                if self.content == 0 && self.is_ours() && self.header[1] == kind::STDOUT {
                    self.leave_content();
                    return Ok((used, Some(Piece::OutputEnded)));
                }
                continue;
            }
            if self.content > 0 {
                let most = if self.is_ours() && self.header[1] == kind::STDOUT { most } else { usize::MAX };
                let take = rest.len().min(self.content.into()).min(most);
                if take == 0 {
                    return Ok((used, None));
                }
                used += take;
                // At most the remaining content.
                self.content -= take as u16;
                if let Some(piece) = self.piece(&rest[..take]) {
                    return Ok((used, Some(piece)));
                }
                self.leave_content();
                continue;
            }
            let take = rest.len().min(self.padding.into());
            used += take;
            self.padding -= take as u8;
            self.leave_content();
            if self.known == HEADER || used == data.len() {
                return Ok((used, None));
            }
        }
    }

    fn begin(&mut self) -> Result<(), Malformed> {
        if self.header[0] != VERSION {
            return Err(Malformed);
        }
        self.content = u16::from_be_bytes([self.header[4], self.header[5]]);
        self.padding = self.header[6];
        self.ended = 0;
        if self.header[1] == kind::END_REQUEST && self.is_ours() && usize::from(self.content) < END {
            return Err(Malformed);
        }
        Ok(())
    }

    /// Buffers the available bytes of a header; returns their number.
    fn take_header(&mut self, data: &[u8]) -> usize {
        if self.known == 0
            && let Some(header) = data.first_chunk()
        {
            (self.header, self.known) = (*header, HEADER);
            return HEADER;
        }
        let take = data.len().min(HEADER - self.known);
        self.header[self.known..self.known + take].copy_from_slice(&data[..take]);
        self.known += take;
        take
    }

    /// Starts the next record if the current one is complete.
    fn leave_content(&mut self) {
        if self.content == 0 && self.padding == 0 {
            self.known = 0;
        }
    }

    /// Whether the record is to be decoded; records of other requests and management records are ignored.
    fn is_ours(&self) -> bool {
        match self.request() {
            0 => self.takes_all && self.header[1] == kind::GET_VALUES_RESULT,
            number => self.takes_all || number == REQUEST,
        }
    }

    fn piece<'d>(&mut self, data: &'d [u8]) -> Option<Piece<'d>> {
        let whole = self.content == 0;
        let piece = match self.header[1] {
            _ if !self.is_ours() => None,
            kind::STDOUT => Some(Piece::Output(data)),
            kind::STDERR => Some(Piece::Error { data, whole }),
            kind::GET_VALUES_RESULT => Some(Piece::Values { data, whole }),
            kind::END_REQUEST => {
                let take = data.len().min(END - self.ended);
                self.end[self.ended..self.ended + take].copy_from_slice(&data[..take]);
                self.ended += take;
                whole.then(|| {
                    Piece::Ended(match self.end[4] {
                        0 => ProtocolStatus::Complete,
                        1 | 2 => ProtocolStatus::Refused,
                        _ => ProtocolStatus::Failed,
                    })
                })
            }
            _ => None,
        };
        if piece.is_some() {
            self.leave_content();
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes bytes in pieces of `cut`, with capacity for `most` bytes of output at a time, and formats the result.
    fn said(bytes: &[u8], cut: usize, most: usize) -> Result<String, Malformed> {
        let mut decoder = Decoder::default();
        let (mut text, mut output, mut errors) = (String::new(), String::new(), String::new());
        for piece in bytes.chunks(cut.max(1)) {
            let mut rest = piece;
            loop {
                let (used, found) = decoder.next(rest, most)?;
                rest = &rest[used..];
                match found {
                    None if rest.is_empty() || used == 0 => break,
                    None => {}
                    Some(Piece::Output(data)) => {
                        assert!(data.len() <= most);
                        output += std::str::from_utf8(data).unwrap();
                    }
                    Some(Piece::Error { data, whole }) => {
                        errors += std::str::from_utf8(data).unwrap();
                        errors += if whole { "." } else { "" };
                    }
                    Some(Piece::OutputEnded) => text += "out ",
                    Some(Piece::Ended(status)) => text += &format!("{status:?} "),
                    Some(Piece::Values { .. }) => text += "values ",
                }
            }
        }
        Ok(format!("{output}|{errors}|{text}{}", if decoder.is_inside() { "inside" } else { "" }))
    }

    /// The output of a complete response, with the given capacity.
    fn taken(bytes: &[u8], room: usize) -> Option<String> {
        let mut out = Buffer::with_capacity(room + 1);
        assert!(out.push(b"-"));
        let count = take_whole(bytes, &mut out);
        assert_eq!(out.len(), 1 + count.unwrap_or(0), "nothing is moved of a part");
        count.map(|_| String::from_utf8_lossy(&out.data()[1..]).into_owned())
    }

    #[test]
    fn the_usual_answer_is_taken_at_once() {
        const END: &[u8] = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\x01\0\0\0\0";
        let rows: &[(&[&[u8]], Option<&str>)] = &[
            (&[b"\x01\x06\0\x01\0\x02\0\0hi", END], Some("hi")),
            (&[b"\x01\x06\0\x01\0\x02\x01\0hi.\x01\x06\0\x01\0\0\0\0", END], Some("hi")),
            (&[b"\x01\x06\0\x01\0\x01\0\0h\x01\x06\0\x01\0\x01\x02\0i..", END], Some("hi")),
            // Without output, without an end, with another status or a larger end record, and with bytes after it.
            (&[b"\x01\x06\0\x01\0\0\0\0", END], None),
            (&[b"\x01\x06\0\x01\0\x02\0\0hi\x01\x06\0\x01\0\0\0\0"], None),
            (&[b"\x01\x06\0\x01\0\x02\0\0hi\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x02\0\0\0"], None),
            (&[b"\x01\x06\0\x01\0\x02\0\0hi\x01\x03\0\x01\0\x08\x01\0\0\0\0\0\0\0\0\0."], None),
            (&[b"\x01\x06\0\x01\0\x02\0\0hi", END, b"\x01"], None),
            (&[b"\x01\x06\0\x01\0\x02\0\0hi", END, END], None),
            // Output after its end, an error before it, another request, another version.
            (&[b"\x01\x06\0\x01\0\x01\0\0h\x01\x06\0\x01\0\0\0\0\x01\x06\0\x01\0\x01\0\0i", END], None),
            (&[b"\x01\x07\0\x01\0\x02\0\0no\x01\x06\0\x01\0\x02\0\0hi", END], None),
            (&[b"\x01\x06\0\x02\0\x02\0\0hi", END], None),
            (&[b"\x02\x06\0\x01\0\x02\0\0hi", END], None),
        ];
        for (number, (parts, expected)) in rows.iter().enumerate() {
            let bytes = parts.concat();
            assert_eq!(taken(&bytes, 2).as_deref(), *expected, "{number}");
            assert_eq!(taken(&bytes, 1), None, "{number}");
            // The decoder returns the same.
            let Some(expected) = expected else { continue };
            for end in 0..bytes.len() {
                assert_eq!(taken(&bytes[..end], 2), None, "{number} {end}");
            }
            let found = said(&bytes, bytes.len(), 1000).unwrap();
            assert!(found.starts_with(&format!("{expected}||")) && found.ends_with("Complete "), "{number} {found}");
        }
    }

    #[test]
    fn records_are_the_same_however_they_are_cut() {
        let rows: &[(&[u8], &str)] = &[
            (b"", "||"),
            (b"\x01\x06\0\x01\0\x05\x03\0hello...", "hello||"),
            (b"\x01\x06\0\x01\0\x05\0\0hello\x01\x06\0\x01\0\0\0\0", "hello||out "),
            (b"\x01\x06\0\x01\0\0\x02\0..\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0", "||out Complete "),
            (b"\x01\x07\0\x01\0\x03\x01\0bad.\x01\x07\0\x01\0\x02\0\0no\x01\x07\0\x01\0\0\0\0", "|bad.no.|"),
            // Another request's record, and two management records.
            (b"\x01\x06\0\x02\0\x02\0\0hi\x01\x0a\0\0\0\x03\x01\0abc.\x01\x0b\0\0\0\0\0\0", "||"),
            (b"\x01\x03\0\x01\0\x08\0\0\0\0\0\x07\x02\0\0\0", "||Refused "),
            (b"\x01\x03\0\x01\0\x08\0\0\0\0\0\x07\x01\0\0\0", "||Refused "),
            (b"\x01\x03\0\x01\0\x08\0\0\0\0\0\x07\x03\0\0\0", "||Failed "),
            (b"\x01\x03\0\x01\0\x09\0\0\0\0\0\x07\0\0\0\0\0", "||Complete "),
            (b"\x01\x06\0\x01\0\x05\0\0hel", "hel||inside"),
            (b"\x01\x06\0", "||inside"),
            (b"\x01\x06\0\x01\0\x01\x09\0h..", "h||inside"),
        ];
        for (bytes, expected) in rows {
            for cut in 1..=bytes.len().max(1) {
                for most in [1, 2, 1000] {
                    assert_eq!(said(bytes, cut, most).as_deref(), Ok(*expected), "{cut} {most}");
                }
            }
        }
    }

    #[test]
    fn of_several_requests_each_record_says_whose_it_is() {
        let bytes = b"\x01\x0a\0\0\0\x03\x01\0abc.\x01\x06\x01\x02\0\x02\0\0hi\x01\x07\0\x03\0\x01\0\0e\x01\x03\x01\x02\0\x08\0\0\0\0\0\0\0\0\0\0";
        let mut decoder = Decoder::for_several();
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let room = decoder.output_of().map_or(0, |_| 10);
            let (used, piece) = decoder.next(rest, room).unwrap();
            rest = &rest[used..];
            found.extend(piece.map(|piece| (decoder.request(), format!("{piece:?}"))));
        }
        let expected = [
            (0, r"Values { data: [97, 98, 99], whole: true }"),
            (0x102, "Output([104, 105])"),
            (3, "Error { data: [101], whole: true }"),
            (0x102, "Ended(Complete)"),
        ];
        assert_eq!(found, expected.map(|(request, text)| (request, text.to_owned())));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for bytes in
            [&b"\x02"[..], b"HTTP/1.1 200 OK\r\n\r\n", b"\0\x06\0\x01\0\0\0\0", b"\x01\x03\0\x01\0\x04\0\0\0\0\0\0"]
        {
            for cut in 1..=bytes.len() {
                assert_eq!(said(bytes, cut, 10), Err(Malformed), "{cut}");
            }
        }
    }

    #[test]
    fn without_room_nothing_of_the_output_is_taken() {
        let mut decoder = Decoder::default();
        let bytes = b"\x01\x06\0\x01\0\x05\0\0hello";
        assert_eq!(decoder.next(bytes, 0), Ok((8, None)));
        assert_eq!(decoder.next(&bytes[8..], 0), Ok((0, None)));
        assert_eq!(decoder.next(&bytes[8..], 9), Ok((5, Some(Piece::Output(b"hello")))));
    }
}
