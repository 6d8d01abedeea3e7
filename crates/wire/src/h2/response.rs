//! The head of an answer as frames (RFC 9113, section 8.3.2). Must never write what only HTTP/1 knows.

use super::frame::{FrameHeader, HEADER_LENGTH, Kind, MAX_FRAME_SIZE, flag};
use super::hpack::Writer;
use crate::h1::{Edits, Output, Overflow, write_decimal};
use crate::http::{Framing, Head, Name};

/// What a block takes on top of the text of its head: the status, a length, and what integers need.
const MARGIN: usize = 96;

/// Writes the head of an answer for a stream, as one HEADERS frame and as many CONTINUATION frames as it needs. Of the edits the
/// framing and the last field count.
///
/// # Errors
/// It does not fit.
pub fn encode_response(stream: u32, head: &Head, edits: &Edits<'_>, out: &mut impl Output) -> Result<(), Overflow> {
    if head.fields.overflowed() {
        return Err(Overflow);
    }
    let last = edits.last.map_or(0, |(name, value)| name.len() + value.len());
    let most = head.fields.used() + last + 4 * head.field_count() + MARGIN;
    let frames = most / MAX_FRAME_SIZE + 1;
    let written = out.write(most + frames * HEADER_LENGTH, |room| {
        let mut writer = Writer::new(room.get_mut(HEADER_LENGTH..)?);
        block(head, edits, &mut writer)?;
        let length = writer.length();
        frame(stream, length, room)
    });
    if written { Ok(()) } else { Err(Overflow) }
}

fn block(head: &Head, edits: &Edits<'_>, writer: &mut Writer<'_>) -> Option<()> {
    let status = head.status();
    match status {
        200 => writer.indexed(8)?,
        204 => writer.indexed(9)?,
        206 => writer.indexed(10)?,
        304 => writer.indexed(11)?,
        400 => writer.indexed(12)?,
        404 => writer.indexed(13)?,
        500 => writer.indexed(14)?,
        _ => {
            let digits = [100, 10, 1].map(|unit| b'0' + (status / unit % 10) as u8);
            writer.named(8, &digits)?;
        }
    }
    for field in &head.fields.list {
        let value = head.fields.value_of(field);
        match field.name {
            Name::Connection | Name::KeepAlive | Name::ProxyConnection | Name::TransferEncoding | Name::Upgrade => {}
            // An answer that is not sent is described by the length that it has (HEAD, 304).
            Name::ContentLength if edits.framing == Framing::None && status >= 200 && status != 204 => {
                writer.named(28, value)?;
            }
            Name::ContentLength => {}
            _ => writer.field(head.fields.name_of(field), value)?,
        }
    }
    if let Framing::Length(length) = edits.framing
        && status != 204
    {
        let mut room = [0; 20];
        writer.named(28, write_decimal(length, &mut room))?;
    }
    if let Some((name, value)) = edits.last {
        writer.field(name, value)?;
    }
    Some(())
}

/// Puts the headers of frames before the pieces of a block of `length` bytes, which lies behind room for one.
fn frame(stream: u32, length: usize, room: &mut [u8]) -> Option<usize> {
    let pieces = length.div_ceil(MAX_FRAME_SIZE).max(1);
    let end = length + pieces * HEADER_LENGTH;
    // From the last one, each piece moves by the headers that come before it.
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
    use crate::h2::Decoder;

    fn write(head: &Head, framing: Framing) -> String {
        let mut out = Vec::new();
        let edits = Edits { framing, last: Some((b"x-last", b"1")), ..Edits::default() };
        encode_response(7, head, &edits, &mut out).unwrap();
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
