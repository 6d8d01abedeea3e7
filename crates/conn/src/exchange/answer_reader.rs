//! The heads of an answer as they arrive. Owns the bytes that were read of it and not consumed. Must never decide which
//! answer the client gets.

use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h1::{self, Parse, RequestContext, Scan, Violation};
use wire::http::{Framing, Head, Method};

use crate::answer_head_kind::{AnswerHeadKind, Fault};
use crate::buffered_body::BufferedBody;
use crate::h1::server::{fits, grow, make_room};
use crate::upstream::Upstream;

/// The result of reading from a server's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The number of bytes read.
    Bytes(usize),
    /// The end of the connection, or its failure.
    Closed,
}

/// Reads the heads of an answer.
#[derive(Default)]
pub struct AnswerReader {
    input: Buffer,
    scan: Scan,
    /// The number of invalid heads, and of heads that violate rules relaxed by an option.
    glitches: u32,
}

impl AnswerReader {
    /// The bytes read and not consumed.
    pub fn received(&self) -> &[u8] {
        self.input.data()
    }

    /// The bytes read after the head and not consumed; of a service, payload.
    pub fn behind(&self, upstream: &Upstream<'_>) -> BufferedBody<'_> {
        BufferedBody { data: self.input.data(), coded: upstream.is_coded() }
    }

    /// The buffer of the bytes read and not consumed, for code that continues to read.
    pub fn input_mut(&mut self) -> &mut Buffer {
        &mut self.input
    }

    /// Reads available bytes of heads. Holds no buffer until some were received.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>, upstream: &mut Upstream<'_>) -> Poll<ReadOutcome> {
        let found = match upstream {
            Upstream::H2(request) => Some(request.poll_head(cx)),
            Upstream::H3(request) => Some(request.poll_head(cx)),
            _ => None,
        };
        if let Some(found) = found {
            return found.map(|found| if found { ReadOutcome::Bytes(0) } else { ReadOutcome::Closed });
        }
        if self.input.capacity() == 0 {
            std::task::ready!(upstream.poll_readable(cx));
            if rt::poll_memory(cx, rt::Stage::Underway).is_pending() {
                return Poll::Pending;
            }
            self.input = rt::buffer();
        }
        match upstream.poll_read(cx, &mut self.input) {
            Poll::Pending => {
                if self.input.is_empty() {
                    self.input = Buffer::empty();
                }
                Poll::Pending
            }
            Poll::Ready(Ok(read)) if read > 0 => Poll::Ready(ReadOutcome::Bytes(read)),
            Poll::Ready(_) => Poll::Ready(ReadOutcome::Closed),
        }
    }

    /// Reads bytes after the head. `None`: there is no free space, or no more bytes follow; the next read returns an
    /// end or an error again.
    pub fn poll_more(&mut self, cx: &mut Context<'_>, upstream: &mut Upstream<'_>) -> Poll<Option<usize>> {
        if self.input.capacity() == 0 {
            self.input = rt::buffer();
        }
        if self.input.room() == 0 {
            self.input.compact();
        }
        if self.input.room() == 0 {
            return Poll::Ready(None);
        }
        self.poll_behind(cx, upstream)
    }

    /// Reads more of a body that is buffered here, into a buffer with space around it for chunk framing; into one of
    /// `large` bytes when that is full. `None` as for [`Answer::poll_more`].
    pub fn poll_buffer(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &mut Upstream<'_>,
        large: &mut Option<usize>,
    ) -> Poll<Option<usize>> {
        if self.input.capacity() == 0 || self.input.room() == 0 && self.input.capacity() <= rt::buffer_size() {
            make_room(&mut self.input);
        }
        if self.input.room() == 0 && !grow(&mut self.input, large) {
            return Poll::Ready(None);
        }
        self.poll_behind(cx, upstream)
    }

    fn poll_behind(&mut self, cx: &mut Context<'_>, upstream: &mut Upstream<'_>) -> Poll<Option<usize>> {
        let read = upstream.poll_read(cx, &mut self.input);
        if self.input.is_empty() {
            self.input = Buffer::empty();
        }
        read.map(|read| read.ok().filter(|bytes| *bytes > 0))
    }

    /// Parses one head. `method` is that of the request.
    pub fn parse(
        &mut self,
        upstream: &Upstream<'_>,
        method: Method,
        limits: &h1::HeadLimits,
        head: &mut Head,
    ) -> AnswerHeadKind {
        match upstream {
            Upstream::H2(request) => return request.take_head(method, limits, head),
            Upstream::H3(request) => return request.take_head(method, limits, head),
            _ => {}
        }
        let context = RequestContext { head: method == Method::Head, connect: method == Method::Connect };
        match h1::parse_response(self.input.data(), limits, &context, &mut self.scan, head) {
            Ok(Parse::Partial) if self.input.len() < limits.max_head => {
                if self.input.room() == 0 {
                    self.input.compact();
                }
                return AnswerHeadKind::Part;
            }
            Ok(Parse::Complete { consumed }) if fits(head, consumed, limits.max_head) => {
                let data = &self.input.data()[..consumed];
                if limits.accept_unsafe && h1::is_unsafe_response(data, limits, &context) {
                    self.glitches += 1;
                }
                self.input.consume(consumed);
                self.scan = Scan::default();
            }
            wrong => {
                self.glitches += 1;
                let too_large = Fault { reason: Violation::HeadTooLarge.text(), position: self.input.len() };
                let fault = wrong.err().map(|error| Fault { reason: error.reason(), position: error.position });
                return AnswerHeadKind::Invalid(Some(fault.unwrap_or(too_large)));
            }
        }
        if upstream.is_application() {
            if !wire::fcgi::apply_cgi_fields(head, method) {
                self.glitches += 1;
                return AnswerHeadKind::Invalid(None);
            }
            if head.framing == Framing::Chunked && upstream.application_has_answered() {
                // All of it was received.
                head.framing = Framing::Length(self.input.len() as u64);
                head.append(b"content-length", self.input.len().to_string().as_bytes());
            }
        }
        match head.status() {
            101 => AnswerHeadKind::Final,
            100..200 => AnswerHeadKind::Interim,
            _ => AnswerHeadKind::Final,
        }
    }

    /// Takes the number of HTTP/1 glitches since the last call.
    pub fn take_glitches(&mut self) -> u32 {
        std::mem::take(&mut self.glitches)
    }

    /// Whether there are HTTP/1 glitches that were not taken.
    pub fn has_glitches(&self) -> bool {
        self.glitches > 0
    }

    /// Takes the bytes read and not consumed.
    pub fn take_received(&mut self) -> Buffer {
        std::mem::take(&mut self.input)
    }
}
