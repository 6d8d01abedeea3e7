//! `filter grpc-web`, Weir's own: translates a request of gRPC-Web to gRPC for its server, and the response back
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>): its trailers become the last frame of the body, and with
//! `application/grpc-web-text` the body is Base64. Holds only the trailers and a group of Base64. Must never look into a message.

use base::base64;
use base::buffer::Buffer;
use conn::flow::{FilterOutput, forward, make_output};
use expression::sample::Direction;
use wire::grpc_web::trailers_frame;
use wire::http::{Fields, Framing, Head};

use crate::filter::{Filter, FilterContext};

/// Media types; a suffix names the message format (`+proto`).
const GRPC: &[u8] = b"application/grpc";
const WEB: &[u8] = b"application/grpc-web";
const TEXT: &[u8] = b"application/grpc-web-text";

/// Bytes that are encoded in Base64 at a time: whole groups, which fit a line of the encoder.
const PIECE: usize = 3 * 256;

/// Translates one call. Other requests pass unchanged.
#[derive(Default)]
pub(super) struct GrpcWebFilter {
    /// The request is one of gRPC-Web.
    active: bool,
    /// Its body is Base64.
    text_request: bool,
    /// The client accepts Base64.
    text_answer: bool,
    /// The response is one of gRPC and is translated.
    answers: bool,
    group: Group,
    /// The frame of the trailers, and the number of its bytes already sent.
    last: Vec<u8>,
    out: usize,
}

/// Returns the suffix of a media type that begins with `media`, case-insensitively: empty, or from `+` or `;` on.
fn kind_of<'v>(value: &'v [u8], media: &[u8]) -> Option<&'v [u8]> {
    let (head, rest) = value.split_at_checked(media.len())?;
    let ends = matches!(rest.first(), None | Some(b'+' | b';' | b' '));
    (ends && head.eq_ignore_ascii_case(media)).then_some(rest)
}

/// Whether a list contains a media type.
fn names(list: &[u8], media: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|one| kind_of(one.trim_ascii(), media).is_some())
}

impl GrpcWebFilter {
    fn request(&mut self, head: &mut Head) {
        let Some(kind) = head.fields.first(b"content-type") else { return };
        let text = kind_of(kind, TEXT);
        let Some(rest) = text.or_else(|| kind_of(kind, WEB)) else { return };
        let kind = [GRPC, rest].concat();
        (self.active, self.text_request) = (true, text.is_some());
        let accepts = |media| head.fields.all(b"accept").any(|list| names(list, media));
        self.text_answer = accepts(TEXT) || self.text_request && !accepts(WEB);
        head.fields.replace(b"content-type", &kind);
        // gRPC servers require clients to support trailers.
        head.fields.replace(b"te", b"trailers");
        if self.text_request && matches!(head.framing, Framing::Length(length) if length > 0) {
            head.framing = Framing::Chunked;
        }
    }

    fn answer(&mut self, head: &mut Head) {
        let Some(kind) = head.fields.first(b"content-type") else { return };
        let Some(rest) = kind_of(kind, GRPC) else { return };
        let kind = [if self.text_answer { TEXT } else { WEB }, rest].concat();
        self.answers = true;
        head.fields.replace(b"content-type", &kind);
        head.fields.remove_all(b"trailer");
        if matches!(head.framing, Framing::Length(length) if length > 0) {
            head.framing = Framing::Chunked;
        }
    }

    /// Decodes the available input.
    fn decode(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> FilterOutput {
        make_output(output);
        let most = input.len().min(output.room());
        let mut decoded = Vec::with_capacity(most);
        for byte in &input.data()[..most] {
            if !self.group.push(*byte, &mut decoded) {
                return FilterOutput::Refused;
            }
        }
        input.consume(most);
        // A group decodes to three bytes for four characters; the pending one adds less than it has consumed.
        let fits = output.push(&decoded);
        match (fits, input.is_empty()) {
            (false, _) => FilterOutput::Refused,
            (true, true) if ended && !self.group.is_whole() => FilterOutput::Refused,
            (true, true) => FilterOutput::Through,
            (true, false) => FilterOutput::Again,
        }
    }

    /// Passes the payload, then the frame of the trailers, as Base64 if the client requires it.
    fn translate(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> FilterOutput {
        if self.text_answer {
            make_output(output);
            encode(input, output);
        } else if !input.is_empty() {
            forward(input, output, usize::MAX);
        }
        if !ended || !input.is_empty() {
            return if input.is_empty() { FilterOutput::Through } else { FilterOutput::Again };
        }
        if output.is_empty() && self.out < self.last.len() {
            make_output(output);
        }
        let mut frame = Buffer::with_capacity(self.last.len() - self.out);
        let placed = frame.push(&self.last[self.out..]);
        debug_assert!(placed, "it was made for that");
        if self.text_answer {
            encode(&mut frame, output);
        } else {
            let most = frame.len().min(output.room());
            if output.push(&frame.data()[..most]) {
                frame.consume(most);
            }
        }
        self.out = self.last.len() - frame.len();
        if frame.is_empty() { FilterOutput::Through } else { FilterOutput::Again }
    }
}

/// Encodes as much as the output has space for. Each piece is padded: payload is sent without delay, and clients accept padding.
fn encode(input: &mut Buffer, output: &mut Buffer) {
    let mut line = [0; PIECE / 3 * 4];
    while !input.is_empty() {
        let most = input.len().min(PIECE);
        if output.room() < most.div_ceil(3) * 4 {
            return;
        }
        let mut length = 0;
        base64::encode(&input.data()[..most], |character| {
            line[length] = character;
            length += 1;
        });
        if !output.push(&line[..length]) {
            return;
        }
        input.consume(most);
    }
}

impl Filter for GrpcWebFilter {
    fn head(&mut self, _: &FilterContext, direction: Direction, head: &mut Head) {
        match direction {
            Direction::Request => self.request(head),
            Direction::Response if self.active => self.answer(head),
            Direction::Response => {}
        }
    }

    fn recodes(&self) -> bool {
        self.active
    }

    fn wants(&self, direction: Direction) -> bool {
        match direction {
            Direction::Request => self.text_request,
            Direction::Response => self.answers,
        }
    }

    fn body(
        &mut self,
        _: &FilterContext,
        direction: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> FilterOutput {
        match direction {
            Direction::Request => self.decode(input, output, ended),
            Direction::Response => self.translate(input, output, ended),
        }
    }

    fn trailers(&mut self, direction: Direction, trailers: &mut Option<Fields>) {
        if direction == Direction::Response
            && self.answers
            && let Some(trailers) = trailers.take()
        {
            self.last = trailers_frame(&trailers);
        }
    }
}

/// An incomplete group of Base64 characters. Padding can end any group: clients encode piece by piece.
#[derive(Default)]
struct Group {
    bits: u32,
    characters: u8,
    padding: u8,
}

impl Group {
    /// Adds a character. Returns false if it is not valid at that position.
    fn push(&mut self, character: u8, out: &mut Vec<u8>) -> bool {
        let value = match character {
            b'\r' | b'\n' => return true,
            b'=' if self.characters >= 2 => 0,
            _ => match base64::value(character) {
                Some(value) => value,
                None => return false,
            },
        };
        if character == b'=' {
            self.padding += 1;
        } else if self.padding > 0 {
            return false;
        }
        self.bits = self.bits << 6 | u32::from(value);
        self.characters += 1;
        if self.characters == 4 {
            let bytes = self.bits.to_be_bytes();
            out.extend_from_slice(&bytes[1..4 - usize::from(self.padding)]);
            *self = Self::default();
        }
        true
    }

    /// Whether there is no incomplete group.
    fn is_whole(&self) -> bool {
        self.characters == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &[u8]) -> Option<Vec<u8>> {
        let (mut group, mut out) = (Group::default(), Vec::new());
        let taken = text.iter().all(|byte| group.push(*byte, &mut out));
        (taken && group.is_whole()).then_some(out)
    }

    #[test]
    fn base64_may_be_padded_in_the_middle() {
        let rows: &[(&[u8], Option<&[u8]>)] = &[
            (b"", Some(b"")),
            (b"YWJj", Some(b"abc")),
            (b"YQ==", Some(b"a")),
            (b"YWI=YWJjYQ==", Some(b"ababca")),
            (b"YWJj\r\nYWJj", Some(b"abcabc")),
            (b"+/+/", Some(&[0xfb, 0xff, 0xbf])),
            (b"YWJ", None),
            (b"YQ=a", None),
            (b"====", None),
            (b"Y===", None),
            (b"YW-j", None),
        ];
        for (text, expected) in rows {
            assert_eq!(decoded(text).as_deref(), *expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn what_is_encoded_in_pieces_is_decoded() {
        for length in [0, 1, 2, 3, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 2] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            let (mut input, mut output) = (Buffer::with_capacity(length), Buffer::with_capacity(2 * length + 4));
            assert!(input.push(&bytes));
            encode(&mut input, &mut output);
            assert!(input.is_empty());
            assert_eq!(decoded(output.data()).as_deref(), Some(&*bytes), "{length} bytes");
        }
    }

    #[test]
    fn media_types_end_where_they_end() {
        let rows = [
            ("application/grpc", GRPC, Some("")),
            ("Application/gRPC+proto", GRPC, Some("+proto")),
            ("application/grpc; x=1", GRPC, Some("; x=1")),
            ("application/grpc-web", GRPC, None),
            ("application/grpc-web-text+proto", WEB, None),
            ("application/grpc-web-text+proto", TEXT, Some("+proto")),
            ("application/grp", GRPC, None),
        ];
        for (value, media, expected) in rows {
            assert_eq!(kind_of(value.as_bytes(), media), expected.map(str::as_bytes), "{value}");
        }
        assert!(names(b"*/*, application/grpc-web-text", TEXT) && !names(b"*/*", TEXT));
    }
}
