//! Encodes a request as records (specification, sections 3.4 and 5). Must never choose a parameter.

use super::{HEADER, MAX_CONTENT, REQUEST, header, kind};
use crate::h1::Overflow;

/// `FCGI_RESPONDER`.
const RESPONDER: u16 = 1;

/// `FCGI_KEEP_CONN`.
const KEEP_CONN: u8 = 1;

/// Names requested by `FCGI_GET_VALUES` (specification, section 4.1).
const VALUES: [&[u8]; 2] = [b"FCGI_MAX_REQS", b"FCGI_MPXS_CONNS"];

/// Writes the start of a request into the free space of a buffer: `FCGI_BEGIN_REQUEST`, one record of parameters that grows with
/// each of them, the end of the parameters and, for requests without a body, the end of the body.
pub struct RequestWriter<'o> {
    room: &'o mut [u8],
    /// The number of bytes written.
    at: usize,
    /// The space did not suffice, or a name or value cannot be encoded.
    full: bool,
}

/// The part of a request in front of its parameters: `FCGI_BEGIN_REQUEST` and the header of their record.
const BEGIN: usize = HEADER + 8 + HEADER;

impl<'o> RequestWriter<'o> {
    /// Starts a request. `keep` sets `FCGI_KEEP_CONN`: the application keeps the connection open.
    pub fn begin(keep: bool, room: &'o mut [u8]) -> Self {
        let [high, low] = RESPONDER.to_be_bytes();
        let flags = if keep { KEEP_CONN } else { 0 };
        let mut writer = Self { room, at: 0, full: false };
        writer.put(&header(kind::BEGIN_REQUEST, REQUEST, 8));
        writer.put(&[high, low, flags, 0, 0, 0, 0, 0]);
        writer.put(&header(kind::PARAMS, REQUEST, 0));
        writer
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.take(bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Takes the next `count` bytes of the free space.
    #[inline]
    fn take(&mut self, count: usize) -> Option<&mut [u8]> {
        let (start, end) = (self.at, self.at + count);
        if self.full || end > self.room.len() {
            self.full = true;
            return None;
        }
        self.at = end;
        self.room.get_mut(start..end)
    }

    /// Appends parameters that were encoded with [`push_parameter`].
    pub fn parameters(&mut self, written: &[u8]) {
        self.put(written);
    }

    /// Appends a parameter.
    pub fn parameter(&mut self, name: &[u8], value: &[u8]) {
        if let Some(place) = self.place(name.len(), value.len()) {
            let (to, rest) = place.split_at_mut(name.len());
            to.copy_from_slice(name);
            rest.copy_from_slice(value);
        }
    }

    /// Appends a parameter whose value is given in two parts.
    pub fn joined(&mut self, name: &[u8], value: [&[u8]; 2]) {
        let [first, second] = value;
        if let Some(place) = self.place(name.len(), first.len() + second.len()) {
            let (to, rest) = place.split_at_mut(name.len());
            to.copy_from_slice(name);
            let (to, rest) = rest.split_at_mut(first.len());
            to.copy_from_slice(first);
            rest.copy_from_slice(second);
        }
    }

    /// Appends a field of the request as a parameter: `HTTP_` and its name in capitals (RFC 3875, section 4.1.18).
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        const FIELD: &[u8] = b"HTTP_";
        if let Some(place) = self.place(FIELD.len() + name.len(), value.len()) {
            let (to, behind) = place.split_at_mut(FIELD.len() + name.len());
            let (prefix, to) = to.split_at_mut(FIELD.len());
            prefix.copy_from_slice(FIELD);
            for (to, byte) in to.iter_mut().zip(name) {
                *to = if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { b'_' };
            }
            behind.copy_from_slice(value);
        }
    }

    /// Reserves space for a name and a value, and writes their length prefixes.
    #[inline]
    fn place(&mut self, name: usize, value: usize) -> Option<&mut [u8]> {
        if name > SHORT || value > SHORT {
            return self.long_place(name, value);
        }
        let (lengths, behind) = self.take(2 + name + value)?.split_first_chunk_mut()?;
        *lengths = [name as u8, value as u8];
        Some(behind)
    }

    /// Slow path of [`Self::place`]: a name or value is long.
    #[cold]
    fn long_place(&mut self, name: usize, value: usize) -> Option<&mut [u8]> {
        let Some(((of_name, first), (of_value, second))) = length_of(name).zip(length_of(value)) else {
            self.full = true;
            return None;
        };
        let (lengths, behind) = self.take(first + second + name + value)?.split_at_mut(first + second);
        lengths[..first].copy_from_slice(&of_name[..first]);
        lengths[first..].copy_from_slice(&of_value[..second]);
        Some(behind)
    }

    /// Ends the parameters, and the body as well unless the request has one. Returns the number of bytes written.
    ///
    /// # Errors
    /// The free space or the capacity of one record was exceeded.
    pub fn end(mut self, has_body: bool) -> Result<usize, Overflow> {
        let length = self.at.checked_sub(BEGIN).ok_or(Overflow)?;
        let length = u16::try_from(length).map_err(|_| Overflow)?;
        self.put(&header(kind::PARAMS, REQUEST, 0));
        if !has_body {
            self.put(&end_of_body(REQUEST));
        }
        let begun = self.room.get_mut(BEGIN - HEADER..BEGIN).filter(|_| !self.full).ok_or(Overflow)?;
        begun.copy_from_slice(&header(kind::PARAMS, REQUEST, length));
        Ok(self.at)
    }
}

/// Length in bytes of the longest name or value whose length is encoded in one byte.
const SHORT: usize = 127;

/// Encodes a parameter that many requests share; writes nothing if it does not fit into a record.
pub fn push_parameter(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let Some(((of_name, first), (of_value, second))) = length_of(name.len()).zip(length_of(value.len())) else {
        return;
    };
    for part in [&of_name[..first], &of_value[..second], name, value] {
        out.extend_from_slice(part);
    }
}

/// Encodes the length of a name or a value: one byte up to 127, else four with the highest bit set. `None` if no record
/// can hold it.
fn length_of(length: usize) -> Option<([u8; 4], usize)> {
    match u8::try_from(length) {
        Ok(short @ 0..=127) => Some(([short, 0, 0, 0], 1)),
        _ if length <= MAX_CONTENT => Some(((length as u32 | 1 << 31).to_be_bytes(), 4)),
        _ => None,
    }
}

/// Decodes the lengths of a name and its value at the start of `data`; returns both and the number of bytes read.
/// `None` if incomplete.
pub(super) fn lengths_of(data: &[u8]) -> Option<(usize, usize, usize)> {
    let mut used = 0;
    let mut length = || match *data.get(used)? {
        short @ 0..=127 => {
            used += 1;
            Some(usize::from(short))
        }
        _ => {
            let bytes: [u8; 4] = data.get(used..used + 4)?.try_into().ok()?;
            used += 4;
            Some((u32::from_be_bytes(bytes) & 0x7fff_ffff) as usize)
        }
    };
    let (name, value) = (length()?, length()?);
    Some((name, value, used))
}

/// Whether a request written by [`RequestWriter`] has `FCGI_KEEP_CONN` set.
pub fn keeps_connection(request: &[u8]) -> bool {
    request.get(HEADER + 2).is_some_and(|flags| flags & KEEP_CONN != 0)
}

/// Whether a request written by [`RequestWriter`] includes the end of the body.
pub fn ends_body(request: &[u8]) -> bool {
    // The end of the body is an empty record: only a header.
    request.ends_with(&end_of_body(REQUEST))
}

/// Changes the request ID of a request written by [`RequestWriter`] and sets `FCGI_KEEP_CONN`, since the connection
/// serves other requests as well.
pub fn share_request(request: &mut [u8], number: u16) {
    let mut at = 0;
    while let Some(header) = request.get_mut(at..at + HEADER) {
        header[2..4].copy_from_slice(&number.to_be_bytes());
        let begins = header[1] == kind::BEGIN_REQUEST;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]])) + usize::from(header[6]);
        if let Some(flags) = request.get_mut(at + HEADER + 2).filter(|_| begins) {
            *flags |= KEEP_CONN;
        }
        at += HEADER + length;
    }
}

/// Returns the header of a record with `length` bytes (at least 1) of a request's body.
pub fn body_record(request: u16, length: u16) -> [u8; HEADER] {
    header(kind::STDIN, request, length)
}

/// Returns the record that ends a request's body.
pub fn end_of_body(request: u16) -> [u8; HEADER] {
    header(kind::STDIN, request, 0)
}

/// Returns `FCGI_ABORT_REQUEST`.
pub fn abort_request(request: u16) -> [u8; HEADER] {
    header(kind::ABORT_REQUEST, request, 0)
}

/// Returns `FCGI_GET_VALUES`, which requests the number of concurrent requests that the application accepts, and
/// whether it multiplexes connections.
pub fn get_values() -> Vec<u8> {
    let mut content = Vec::new();
    for name in VALUES {
        push_parameter(name, b"", &mut content);
    }
    let mut record = header(kind::GET_VALUES, 0, content.len() as u16).to_vec();
    record.append(&mut content);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(keep: bool, has_body: bool, parameters: &[(&str, &str)]) -> Result<Vec<u8>, Overflow> {
        let mut room = vec![0; 1 << 17];
        let mut writer = RequestWriter::begin(keep, &mut room);
        parameters.iter().for_each(|(name, value)| writer.parameter(name.as_bytes(), value.as_bytes()));
        writer.end(has_body).map(|length| room[..length].to_vec())
    }

    #[test]
    fn a_request_is_what_the_specification_writes() {
        let begin = b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0";
        let expected = [
            &begin[..],
            b"\x01\x04\0\x01\0\x0a\0\0\x01\x04ABCDE\x01\0F",
            b"\x01\x04\0\x01\0\0\0\0",
            b"\x01\x05\0\x01\0\0\0\0",
        ];
        let found = request(true, false, &[("A", "BCDE"), ("F", "")]).unwrap();
        assert_eq!(found, expected.concat());
        assert!(keeps_connection(&found) && ends_body(&found));
        let found = request(false, true, &[]).unwrap();
        assert_eq!(found.len(), 32);
        assert!(!keeps_connection(&found) && !ends_body(&found));
    }

    #[test]
    fn lengths_take_one_byte_or_four() {
        for (length, expected) in [(127, &b"\x7f"[..]), (128, b"\x80\0\0\x80"), (65_000, b"\x80\0\xfd\xe8")] {
            let found = request(true, false, &[("A", &"x".repeat(length))]).unwrap();
            assert_eq!(&found[25..25 + expected.len()], expected, "{length}");
        }
        assert_eq!(request(true, false, &[("A", &"x".repeat(70_000))]), Err(Overflow));
        let half = "x".repeat(40_000);
        assert_eq!(request(true, false, &[("A", &half), ("B", &half)]), Err(Overflow));
    }

    #[test]
    fn what_has_no_room_is_told_wherever_it_ends() {
        let written = |room| {
            let mut room = vec![0; room];
            let mut writer = RequestWriter::begin(true, &mut room);
            writer.joined(b"A", [b"b", b"c"]);
            writer.field(b"x-y", b"z");
            writer.end(false).map(|length| room[..length].to_vec())
        };
        let whole = written(64).unwrap();
        assert_eq!(whole[16..40], *b"\x01\x04\0\x01\0\x10\0\0\x01\x02Abc\x08\x01HTTP_X_Yz");
        for room in 0..whole.len() {
            assert_eq!(written(room), Err(Overflow), "{room}");
        }
        assert_eq!(written(whole.len()), Ok(whole));
    }

    #[test]
    fn a_request_gets_another_number_in_every_record() {
        let mut found = request(false, false, &[("A", "BCDE")]).unwrap();
        share_request(&mut found, 0x102);
        let expected = [
            &b"\x01\x01\x01\x02\0\x08\0\0\0\x01\x01\0\0\0\0\0"[..],
            b"\x01\x04\x01\x02\0\x07\0\0\x01\x04ABCDE",
            b"\x01\x04\x01\x02\0\0\0\0",
            b"\x01\x05\x01\x02\0\0\0\0",
        ];
        assert_eq!(found, expected.concat());
        // Bytes that are not a request are left unchanged, whatever length they announce.
        share_request(&mut [1, 1, 0, 1, 0xff, 0xff, 0xff, 0], 2);
        share_request(&mut [], 2);
    }

    #[test]
    fn other_records() {
        assert_eq!(get_values(), *b"\x01\x09\0\0\0\x20\0\0\x0d\0FCGI_MAX_REQS\x0f\0FCGI_MPXS_CONNS");
        assert_eq!(abort_request(1), *b"\x01\x02\0\x01\0\0\0\0");
        assert_eq!(body_record(1, 258), *b"\x01\x05\0\x01\x01\x02\0\0");
    }
}
