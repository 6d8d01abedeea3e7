//! Encodes heads and trailers as frames (RFC 9113, section 8.3). Must never select or change a field.

use super::frame::{FrameHeader, HEADER_LENGTH, Kind, MAX_FRAME_SIZE, flag};
use super::hpack::Writer;
use crate::fields::write;
use crate::h1::{Edits, Output, Overflow};
use crate::http::{Fields, Head};

/// Maximum number of bytes of a block beyond the text of its head: the status, a length, and integer prefixes.
const MARGIN: usize = 96;

/// Encodes the head of a response for a stream, as one HEADERS frame followed by the necessary CONTINUATION frames. Of
/// the edits, the framing and the last field apply.
///
/// # Errors
/// The head does not fit.
pub fn encode_response(stream: u32, head: &Head, edits: &Edits<'_>, out: &mut impl Output) -> Result<(), Overflow> {
    encode(stream, 0, &head.fields, edits.last, out, |writer| response(head, edits, writer))
}

/// Encodes the head of a request for a stream. If its target contains scheme and authority, these become pseudo-headers
/// apart from the path; else its Host is sent unchanged, with the scheme `http` or `https` (RFC 9113, section 8.3.1).
///
/// # Errors
/// The head does not fit.
pub fn encode_request(stream: u32, head: &Head, edits: &Edits<'_>, out: &mut impl Output) -> Result<(), Overflow> {
    encode(stream, head.target().len(), &head.fields, edits.last, out, |writer| request(head, edits, writer))
}

/// Encodes the trailers, which end the stream.
///
/// # Errors
/// The trailers do not fit.
pub fn encode_trailers(stream: u32, trailers: &Fields, out: &mut Vec<u8>) -> Result<(), Overflow> {
    let begin = out.len();
    encode(stream, 0, trailers, None, out, |writer| write::trailers(trailers, writer))?;
    if let Some(flags) = out.get_mut(begin + 4) {
        *flags |= flag::END_STREAM;
    }
    Ok(())
}

/// Compiled once, in this crate, together with the writer.
fn request(head: &Head, edits: &Edits<'_>, writer: &mut Writer<'_>) -> Option<()> {
    write::request(head, edits, writer)
}

/// As [`request`].
fn response(head: &Head, edits: &Edits<'_>, writer: &mut Writer<'_>) -> Option<()> {
    write::response(head, edits, writer)
}

/// Encodes a block with the fields that `fill` writes, `last`, and at most `more` other bytes.
fn encode(
    stream: u32,
    more: usize,
    fields: &Fields,
    last: Option<(&[u8], &[u8])>,
    out: &mut impl Output,
    fill: impl FnOnce(&mut Writer<'_>) -> Option<()>,
) -> Result<(), Overflow> {
    if fields.overflowed() {
        return Err(Overflow);
    }
    let last = last.map_or(0, |(name, value)| name.len() + value.len());
    let most = fields.used() + last + more + 4 * fields.len() + MARGIN;
    let frames = most / MAX_FRAME_SIZE + 1;
    let written = out.write(most + frames * HEADER_LENGTH, |room| {
        let mut writer = Writer::new(room.get_mut(HEADER_LENGTH..)?);
        fill(&mut writer)?;
        let length = writer.length();
        frame(stream, length, room)
    });
    if written { Ok(()) } else { Err(Overflow) }
}

/// Inserts the frame headers before the parts of a block of `length` bytes, which is stored after space for one header.
#[inline]
fn frame(stream: u32, length: usize, room: &mut [u8]) -> Option<usize> {
    if length > MAX_FRAME_SIZE {
        return frames(stream, length, room);
    }
    let header = FrameHeader { length, kind: Kind::Headers, flags: flag::END_HEADERS, stream };
    room.get_mut(..HEADER_LENGTH)?.copy_from_slice(&header.bytes());
    Some(length + HEADER_LENGTH)
}

#[inline(never)]
fn frames(stream: u32, length: usize, room: &mut [u8]) -> Option<usize> {
    let pieces = length.div_ceil(MAX_FRAME_SIZE);
    let end = length + pieces * HEADER_LENGTH;
    // Starting with the last part, each one is moved by the length of the headers before it.
    for piece in (0..pieces).rev() {
        let from = HEADER_LENGTH + piece * MAX_FRAME_SIZE;
        let size = (length - piece * MAX_FRAME_SIZE).min(MAX_FRAME_SIZE);
        let to = from + piece * HEADER_LENGTH;
        if end > room.len() {
            return None;
        }
        room.copy_within(from..from + size, to);
        let kind = if piece == 0 { Kind::Headers } else { Kind::Continuation };
        let flags = if piece + 1 == pieces { flag::END_HEADERS } else { 0 };
        let header = FrameHeader { length: size, kind, flags, stream };
        room.get_mut(to - HEADER_LENGTH..to)?.copy_from_slice(&header.bytes());
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1;
    use crate::h2::Decoder;
    use crate::http::Framing;

    fn write(head: &Head, framing: Framing) -> String {
        let mut out = Vec::new();
        let edits = Edits { framing, last: Some((b"x-last", b"1")), ..Edits::default() };
        encode_response(7, head, &edits, &mut out).unwrap();
        read(&out)
    }

    /// Formats frames and their fields as text.
    fn read(out: &[u8]) -> String {
        let (mut block, mut at, mut text) = (Vec::new(), 0, String::new());
        while at < out.len() {
            let header = FrameHeader::parse(&out[at..]).unwrap();
            assert_eq!(header.stream, 7);
            block.extend_from_slice(&out[at + 9..at + 9 + header.length]);
            at += 9 + header.length;
            text += &format!("{:?} {} ", header.kind, header.flags);
        }
        Decoder::new(0)
            .decode(&block, 100_000, |name, value| {
                let value = if value.len() > 100 {
                    format!("{} bytes", value.len())
                } else {
                    String::from_utf8_lossy(value).into()
                };
                text += &format!("|{}: {value}", String::from_utf8_lossy(name));
            })
            .unwrap();
        text
    }

    #[test]
    fn heads_are_written_without_what_only_http_1_knows() {
        let mut head = Head::new();
        head.set_status(200, b"Fine");
        for (name, value) in [("date", "now"), ("connection", "x"), ("transfer-encoding", "chunked"), ("x-a", "b")] {
            head.append(name.as_bytes(), value.as_bytes());
        }
        head.append(b"content-length", b"7");
        let rows = [
            (200, Framing::Length(5), "Headers 4 |:status: 200|date: now|x-a: b|content-length: 5|x-last: 1"),
            (200, Framing::Chunked, "Headers 4 |:status: 200|date: now|x-a: b|x-last: 1"),
            (304, Framing::None, "Headers 4 |:status: 304|date: now|x-a: b|content-length: 7|x-last: 1"),
            (204, Framing::Length(0), "Headers 4 |:status: 204|date: now|x-a: b|x-last: 1"),
            (418, Framing::UntilClose, "Headers 4 |:status: 418|date: now|x-a: b|x-last: 1"),
        ];
        for (status, framing, expected) in rows {
            head.set_status(status, b"");
            assert_eq!(write(&head, framing), expected);
        }
    }

    /// HTTP/1 requests that are sent to an HTTP/2 server.
    #[test]
    fn requests_are_written_with_what_their_targets_tell() {
        let rows = [
            (
                "GET /x?y HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nCookie: b\r\n\r\n",
                "Headers 4 |:method: GET|:scheme: https|:path: /x?y|host: a|te: trailers|cookie: b",
            ),
            (
                "POST http://q/ HTTP/1.1\r\nHost: q\r\nContent-Length: 3\r\nTE: gzip\r\n\r\n",
                "Headers 4 |:method: POST|:scheme: http|:authority: q|:path: /|content-length: 3",
            ),
            (
                "OPTIONS * HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
                "Headers 4 |:method: OPTIONS|:scheme: https|:path: *|host: a",
            ),
            (
                "PUT ftp://q?z HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n\r\n",
                "Headers 4 |:method: PUT|:scheme: ftp|:authority: q|:path: /?z",
            ),
            (
                "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x, websocket\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                "Headers 4 |:method: CONNECT|:scheme: https|:authority: a|:path: /ws|:protocol: websocket",
            ),
            ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "Headers 4 |:method: CONNECT|:authority: a:443"),
        ];
        for (text, expected) in rows {
            let mut head = Head::new();
            let parsed =
                h1::parse_request(text.as_bytes(), &h1::HeadLimits::default(), &mut h1::Scan::default(), &mut head);
            assert_eq!(parsed, Ok(h1::Parse::Complete { consumed: text.len() }), "{text}");
            let mut out = Vec::new();
            let edits = Edits { framing: head.framing, ..Edits::default() };
            encode_request(7, &head, &edits, &mut out).unwrap();
            assert_eq!(read(&out), expected, "{text}");
        }
    }

    #[test]
    fn trailers_end_a_stream() {
        let mut trailers = Fields::new();
        for (name, value) in [("grpc-status", "0"), ("connection", "close"), ("x", "")] {
            trailers.append(name.as_bytes(), value.as_bytes());
        }
        let mut out = Vec::new();
        encode_trailers(7, &trailers, &mut out).unwrap();
        assert_eq!(read(&out), "Headers 5 |grpc-status: 0|x: ");
    }

    #[test]
    fn long_heads_take_several_frames() {
        let mut head = Head::new();
        head.set_status(200, b"");
        head.append(b"x-a", &[b'v'; 40_000]);
        assert_eq!(
            write(&head, Framing::None),
            "Headers 0 Continuation 0 Continuation 4 |:status: 200|x-a: 40000 bytes|x-last: 1"
        );
        let mut small = base::Buffer::with_capacity(100);
        assert_eq!(encode_response(1, &head, &Edits::default(), &mut small), Err(Overflow));
        assert!(small.is_empty());
    }
}
