//! Changing the framing of a body whose first bytes were received before its sink was chosen: bytes that wait are
//! recoded for that connection. Must never touch bytes that are still to be received.

use base::buffer::Buffer;
use wire::h1::{ChunkDecoder, chunk_header, encode_trailers};
use wire::http::Fields;

use super::{Flow, TAILROOM, large_body_buffer};

impl Flow {
    /// Switches the framing of the sink to chunks, or from chunks. Bytes that wait to be written, and those recorded
    /// for another attempt, are recoded; trailers among them are forwarded in the sink's form. To be called before any
    /// of the body is written.
    pub fn set_chunked(&mut self, chunked: bool) {
        if self.chunked == chunked {
            return;
        }
        self.chunked = chunked;
        let end = self.no_more_comes().then(|| self.last.take().unwrap_or_default());
        let recode = |parts: &[&[u8]]| match (chunked, end.as_deref()) {
            (true, end) => (framed(parts, end), Fields::new()),
            (false, _) => unframed(parts),
        };
        let mut trailers = Fields::new();
        if !self.body.is_empty() || !self.tail.is_empty() || end.is_some() {
            (self.body, trailers) = recode(&[self.body.data(), self.tail.data()]);
            self.tail = Buffer::empty();
        }
        if let Some(record) = self.record.take() {
            let (recoded, found) = recode(&[record.data()]);
            if trailers.is_empty() {
                trailers = found;
            }
            let mut kept = rt::buffer();
            // What does not fit cannot be sent again.
            self.record = kept.push(recoded.data()).then_some(kept);
        }
        self.last = (!trailers.is_empty()).then(|| Box::new(trailers));
    }
}

/// The payload of chunks that this program encoded, and the trailers after it.
fn unframed(parts: &[&[u8]]) -> (Buffer, Fields) {
    let (mut bytes, mut trailers) = (parts.concat(), Fields::new());
    let decoded = ChunkDecoder::new().decode_in_place(&mut bytes, &mut trailers);
    debug_assert!(decoded.is_ok(), "chunks of our own");
    let payload = decoded.map_or(0, |decoded| decoded.payload);
    (with_room(&[&bytes[..payload]]), trailers)
}

/// Payload as one chunk, followed by the last chunk and these trailers if the body has ended.
fn framed(parts: &[&[u8]], end: Option<&Fields>) -> Buffer {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut line = [0; 18];
    let (line, behind): (&[u8], &[u8]) =
        if length > 0 { (chunk_header(length as u64, &mut line), b"\r\n") } else { (b"", b"") };
    let mut last = Vec::new();
    if let Some(trailers) = end {
        // Writing to a vector cannot fail.
        let written = encode_trailers(trailers, &mut last);
        debug_assert!(written.is_ok());
    }
    with_room(&[line, &parts.concat(), behind, &last])
}

/// A buffer with free space after the data, as a body is read into.
fn with_room(parts: &[&[u8]]) -> Buffer {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut buffer = large_body_buffer(length + TAILROOM);
    let placed = parts.iter().all(|part| buffer.push(part));
    debug_assert!(placed, "it was made for that");
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_the_form_of_the_sink() {
        let rows: &[(&[&str], bool, &str)] = &[
            (&["abcde", ""], false, "5\r\nabcde\r\n"),
            (&["abc", "de"], false, "5\r\nabcde\r\n"),
            (&["abcde", ""], true, "5\r\nabcde\r\n0\r\n\r\n"),
            (&["", ""], true, "0\r\n\r\n"),
            (&["", ""], false, ""),
        ];
        for (payload, whole, chunks) in rows {
            let parts: Vec<&[u8]> = payload.iter().map(|part| part.as_bytes()).collect();
            let end = whole.then(Fields::new);
            assert_eq!(framed(&parts, end.as_ref()).data(), chunks.as_bytes());
            for cut in 0..=chunks.len() {
                let (front, back) = chunks.as_bytes().split_at(cut);
                assert_eq!(unframed(&[front, back]).0.data(), payload.concat().as_bytes(), "cut at {cut}");
            }
        }
        let trailed = "3\r\nabc\r\n2\r\nde\r\n0\r\nx: y\r\n\r\n";
        let (payload, trailers) = unframed(&[trailed.as_bytes()]);
        assert_eq!((payload.data(), trailers.first(b"x")), (&b"abcde"[..], Some(&b"y"[..])));
        assert_eq!(framed(&[b"abcde"], Some(&trailers)).data(), b"5\r\nabcde\r\n0\r\nx: y\r\n\r\n");
    }
}
