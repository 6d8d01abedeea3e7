//! Responses from a cache: a stored response in full, a range of it, or 304 Not Modified. Must never change the stored
//! response.

use std::io::IoSlice;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use conn::service::{Failed, Service};
use live::cache::Object;
use wire::date::parse_http_date;
use wire::http::{Framing, Head, Method};

use crate::stream::cache::freshness::seconds;

/// Responds to a request with a stored response.
pub(in crate::stream) struct StoredResponse {
    object: Arc<Object>,
    /// Index of the next piece, and offset in it.
    piece: usize,
    at: usize,
    /// Bytes left to send.
    left: u64,
    /// Whether Range requests are supported.
    ranges: bool,
}

/// The requested range of a stored response, or an unsatisfiable one.
enum Part {
    Range(u64, u64),
    None,
}

impl StoredResponse {
    /// Creates a response. `ranges`: Range requests are supported.
    pub(super) fn new(object: Arc<Object>, ranges: bool) -> Self {
        let left = object.length;
        Self { object, piece: 0, at: 0, left, ranges }
    }

    /// Returns the number of body bytes left to send.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the single range of a request (RFC 9110, section 14.2): first and last byte. `None`: the whole response is sent.
    fn part(&self, request: &Head) -> Option<Part> {
        let own = &self.object.head;
        let mut fields = request.all(b"range");
        let (Some(value), None) = (fields.next(), fields.next()) else { return None };
        if !self.ranges || request.known_method() != Method::Get || own.status() != 200 {
            return None;
        }
        if let Some(condition) = request.first(b"if-range") {
            let is_same = |name: &[u8]| own.first(name) == Some(condition);
            if condition.starts_with(b"W/") || !is_same(b"etag") && !is_same(b"last-modified") {
                return None;
            }
        }
        let text = std::str::from_utf8(value).ok()?.trim();
        let (unit, range) = text.split_once('=')?;
        let (first, last) = range.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        let number = |text: &str| if text.is_empty() { Some(None) } else { seconds(text.as_bytes()).map(Some) };
        let length = self.object.length;
        Some(match (number(first)?, number(last)?) {
            (Some(first), None) if first < length => Part::Range(first, length - 1),
            (Some(first), Some(last)) if first > last => return None,
            (Some(first), Some(last)) if first < length => Part::Range(first, last.min(length - 1)),
            (None, Some(count)) if count > 0 && length > 0 => Part::Range(length - count.min(length), length - 1),
            (None, None) => return None,
            _ => Part::None,
        })
    }

    /// Seeks to a byte of the body.
    fn seek(&mut self, first: u64, last: u64) {
        let mut skipped = usize::try_from(first).unwrap_or(usize::MAX);
        while let Some(piece) = self.object.body.get(self.piece).filter(|piece| piece.len() <= skipped) {
            skipped -= piece.len();
            self.piece += 1;
        }
        (self.at, self.left) = (skipped, last - first + 1);
    }

    /// Whether the client already has this response (RFC 9110, section 13.2.2).
    fn is_known(&self, request: &Head) -> bool {
        let own = &self.object.head;
        // Conditions apply only to requests that would succeed without them (RFC 9110, section 13.2.1).
        if own.status() >= 300 {
            return false;
        }
        if request.contains(b"if-none-match") {
            let etag = own.first(b"etag").map(opaque);
            let mut listed = request.all(b"if-none-match").flat_map(entity_tags);
            return listed.any(|one| one == b"*" || etag.is_some_and(|etag| opaque(one) == etag));
        }
        let since = request.first(b"if-modified-since").and_then(parse_http_date);
        since.is_some_and(|since| self.object.modified <= since)
    }
}

/// Returns an entity tag without the weakness prefix.
fn opaque(etag: &[u8]) -> &[u8] {
    etag.strip_prefix(b"W/").unwrap_or(etag)
}

/// Returns the elements of If-None-Match, split at commas outside of quotes.
fn entity_tags(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let divides = move |byte: &u8| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    };
    value.split(divides).map(<[u8]>::trim_ascii)
}

impl StoredResponse {
    /// Builds the head of the response to a request.
    pub(super) fn head(&mut self, request: &Head, answer: &mut Head) {
        let object = &self.object;
        let own = &object.head;
        let known = self.is_known(request);
        let part = if known { None } else { self.part(request) };
        if let Some(part) = part {
            let length = object.length;
            let own = Arc::clone(object);
            answer.copy_from(&own.head);
            let range = match part {
                Part::Range(first, last) => {
                    answer.set_status(206, b"Partial Content");
                    answer.frame_with_length(last - first + 1);
                    self.seek(first, last);
                    format!("bytes {first}-{last}/{length}")
                }
                Part::None => {
                    answer.set_status(416, b"Range Not Satisfiable");
                    answer.frame_with_length(0);
                    self.left = 0;
                    format!("bytes */{length}")
                }
            };
            answer.append(b"content-range", range.as_bytes());
            answer.append_number("age", own.age(rt::now()));
            return;
        }
        answer.copy_from(own);
        if known {
            answer.set_status(304, b"Not Modified");
            answer.framing = Framing::None;
        } else {
            answer.framing = if object.chunked { Framing::Chunked } else { Framing::Length(object.length) };
        }
        answer.append_number("age", object.age(rt::now()));
    }

    /// Fills slices with the next bytes of the body; returns their number.
    pub(super) fn lend<'s>(&'s self, into: &mut [IoSlice<'s>]) -> usize {
        let (mut left, mut at, mut count) = (self.left, self.at, 0);
        for (piece, slot) in self.object.body.iter().skip(self.piece).zip(into) {
            let rest = &piece[at..];
            let length = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if length == 0 {
                break;
            }
            *slot = IoSlice::new(&rest[..length]);
            (left, at, count) = (left - length as u64, 0, count + 1);
        }
        count
    }

    /// Advances by body bytes that were sent.
    pub(super) fn skip(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count as u64);
        self.at += count;
        while let Some(piece) = self.object.body.get(self.piece).filter(|piece| piece.len() <= self.at) {
            self.at -= piece.len();
            self.piece += 1;
        }
    }
}

impl Service for StoredResponse {
    fn poll_head(&mut self, _: &mut Context<'_>, request: &Head, answer: &mut Head) -> Poll<Result<(), Failed>> {
        self.head(request, answer);
        Poll::Ready(Ok(()))
    }

    fn poll_data(&mut self, _: &mut Context<'_>, out: &mut Buffer) -> Poll<Result<usize, Failed>> {
        let Some(piece) = self.object.body.get(self.piece).filter(|_| self.left > 0) else { return Poll::Ready(Ok(0)) };
        let rest = &piece[self.at..];
        let length = rest.len().min(out.room()).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if !out.push(&rest[..length]) {
            return Poll::Ready(Err(Failed));
        }
        self.skip(length);
        Poll::Ready(Ok(length))
    }

    fn can_lend(&self) -> bool {
        true
    }

    fn slices<'s>(&'s self, into: &mut [IoSlice<'s>]) -> usize {
        self.lend(into)
    }

    fn advance(&mut self, count: usize) {
        self.skip(count);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::moment::Moment;
    use live::cache::Lifetime;

    use super::*;
    use crate::stream::cache::freshness::tests::response;

    type Row<'r, T> = (&'r [(&'r str, &'r str)], T);

    #[test]
    fn what_a_client_has_is_told_by_tag_or_date() {
        const DATE: &str = "Tue, 24 Nov 2026 18:00:00 GMT";
        let mut object = Object::new(
            response(&[("etag", "\"e, f\"")]),
            Lifetime { stored: Moment::ZERO, age: 0, left: Duration::from_secs(1) },
        );
        object.modified = parse_http_date(DATE.as_bytes()).unwrap();
        let stored = StoredResponse::new(Arc::new(object), false);
        let rows: &[Row<'_, bool>] = &[
            (&[], false),
            (&[("if-none-match", "\"e, f\"")], true),
            (&[("if-none-match", "W/\"e, f\"")], true),
            (&[("if-none-match", "\"x\", \"e, f\"")], true),
            (&[("if-none-match", "\"x\""), ("if-none-match", "\"e, f\"")], true),
            (&[("if-none-match", "*")], true),
            (&[("if-none-match", "e, f")], false),
            (&[("if-none-match", "\"x\"")], false),
            (&[("if-modified-since", DATE)], true),
            (&[("if-modified-since", "Tue, 24 Nov 2026 17:59:59 GMT")], false),
            (&[("if-modified-since", "Tue, 24 Nov 2027 17:59:59 GMT")], true),
            (&[("if-modified-since", "x")], false),
            (&[("if-none-match", "\"x\""), ("if-modified-since", DATE)], false),
        ];
        for (fields, expected) in rows {
            assert_eq!(stored.is_known(&response(fields)), *expected, "{fields:?}");
        }
    }
}
