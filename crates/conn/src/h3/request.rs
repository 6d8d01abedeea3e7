//! One request on a server's connection, as seen by the task that forwards it: the answer's heads, its payload, its
//! trailers. Must never know how frames are read and written.

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h1::HeadLimits;
use wire::http::{Fields, Framing, Head, Method};

use super::cell::{Arrival, Half, StreamCell};
use super::handle::Handle;
use super::reading::Reading;
use super::server::Requests;
use super::state::Departing;
use crate::answer_head_kind::AnswerHeadKind;
use crate::flow::{ByteSink, ByteSource};
use crate::h1::server::fits;
use crate::h2::Extension;
use crate::server_info::About;

/// A request as seen by the task that sends it.
pub struct Request {
    requests: Requests,
    cell: Rc<StreamCell>,
}

impl Requests {
    /// Begins a request; `None`: the maximum is in progress, or the connection is about to end.
    pub fn begin(&self) -> Option<Request> {
        let cell = self.open_stream()?;
        Some(Request { requests: self.clone(), cell })
    }
}

impl Request {
    /// The handle of its stream.
    #[inline]
    fn handle(&self) -> Handle<'_> {
        Handle { shared: self.requests.shared(), cell: &self.cell }
    }

    /// The connection that carries it.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Properties of the connection.
    pub fn about(&self) -> &About {
        self.requests.about()
    }

    /// Begins another request in place of this one, which was answered whole. Returns false if none can begin.
    pub fn renew(&mut self) -> bool {
        // This one is released first.
        self.release();
        let Some(cell) = self.requests.open_stream() else { return false };
        self.cell = cell;
        true
    }

    /// Marks the request as one for another protocol on its stream (RFC 9220). `is_possible`: false with a body, which
    /// extended CONNECT cannot carry.
    pub fn extend(&mut self, is_possible: bool) {
        self.cell.extension.set(if is_possible { Extension::Asked } else { Extension::Impossible });
    }

    /// Marks the request as one for a WebTransport session.
    pub fn begin_session(&mut self) {
        let begun = self.requests.shared().begin_session(self.cell.id);
        self.cell.extension.set(if begun == Some(true) { Extension::Asked } else { Extension::Impossible });
    }

    /// The number of its stream.
    pub(super) fn number(&self) -> u64 {
        self.cell.id.number()
    }

    /// Whether the server accepts the request as what it is.
    fn is_possible(&self, server: &Departing) -> Option<bool> {
        let is_possible = server.extends? && self.cell.extension.get() == Extension::Asked;
        Some(is_possible && (server.takes_sessions || !self.requests.shared().has_session(self.cell.id)))
    }

    /// Whether the server supports such a request; pending until its settings are known.
    fn poll_extended(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let server = self.requests.shared().state.borrow().server;
        match self.is_possible(&server) {
            Some(true) => Poll::Ready(Ok(())),
            Some(false) => {
                self.cell.refused.set(true);
                self.cell.half().fail();
                Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
            }
            None => {
                let half = &mut *self.cell.half();
                if half.has_failed() {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                half.wait(cx);
                Poll::Pending
            }
        }
    }

    /// Marks the request as completely written, with trailers if there are some.
    pub fn complete(&self, trailers: Option<&Fields>) {
        self.handle().end(trailers);
    }

    /// Ready when the server needs no more of the request, or the stream has failed.
    pub fn poll_stopped(&self, cx: &mut Context<'_>) -> Poll<()> {
        let half = &mut *self.cell.half();
        if self.cell.stopped.get() || half.has_failed() {
            return Poll::Ready(());
        }
        half.wait(cx);
        Poll::Pending
    }

    /// Whether the server has signalled that it has not begun the request.
    pub fn is_refused(&self) -> bool {
        self.cell.refused.get()
    }

    /// Ready with whether a head of the answer was received; otherwise the stream has ended without one.
    pub fn poll_head(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let half = &mut *self.cell.half();
        if half.arrival != Arrival::Nothing {
            return Poll::Ready(true);
        }
        match self.requests.shared().read_head(&self.cell, half) {
            Reading::Head => Poll::Ready(true),
            Reading::Ended | Reading::Failed | Reading::Payload | Reading::Session(_) => {
                Poll::Ready(half.arrival != Arrival::Nothing)
            }
            Reading::Blocked => {
                half.wait(cx);
                Poll::Pending
            }
        }
    }

    /// The status of the first head received.
    pub fn status(&self) -> Option<u16> {
        let half = self.cell.half();
        (half.arrival != Arrival::Nothing).then(|| half.head.status())
    }

    /// Takes one head of the answer.
    pub fn take_head(&self, method: Method, limits: &HeadLimits, head: &mut Head) -> AnswerHeadKind {
        let half = &mut *self.cell.half();
        let length = match half.take_head(head) {
            Arrival::Nothing => return AnswerHeadKind::Part,
            Arrival::Refused { .. } => return AnswerHeadKind::Invalid(None),
            Arrival::Here { length } => length,
        };
        if !fits(head, length, limits.max_head) || head.field_count() >= limits.max_fields {
            return AnswerHeadKind::Invalid(None);
        }
        if head.status() < 200 {
            return AnswerHeadKind::Interim;
        }
        let is_tunnel = method == Method::Connect || self.cell.extension.get() == Extension::Asked;
        if is_tunnel && head.status() < 300 {
            half.reader.become_tunnel();
            return AnswerHeadKind::Final;
        }
        let is_empty = method == Method::Head || head.framing == Framing::None;
        let alone = half.ended;
        match head.framing {
            _ if is_empty => head.framing = Framing::None,
            // The missing payload will never be received.
            Framing::Length(1..) if alone => return AnswerHeadKind::Invalid(None),
            Framing::Length(length) => half.announced = Some(length),
            Framing::Chunked if alone => head.framing = Framing::Length(0),
            _ => {}
        }
        if alone || is_empty || half.announced == Some(0) {
            self.note_answered();
        }
        AnswerHeadKind::Final
    }

    /// Whether the answer has ended, and all its payload was taken.
    pub fn has_ended(&self) -> bool {
        let half = self.cell.half();
        half.ended && half.payload.is_empty()
    }

    /// Releases the stream. The end of an answer that was received whole is mostly there.
    fn release(&self) {
        let shared = self.requests.shared();
        if self.cell.answered.get() {
            shared.read_payload(&self.cell, &mut self.cell.half());
        }
        shared.release(&self.cell);
    }

    /// Whether the last byte of the payload that the answer's head announces was taken.
    fn is_complete(half: &Half) -> bool {
        half.announced == Some(0) && half.payload.is_empty()
    }

    /// Records that the whole answer was received, except for the end of its stream.
    fn note_answered(&self) {
        if !self.cell.answered.replace(true) {
            self.requests.note_answer();
        }
    }
}

impl Drop for Request {
    /// Releases the stream. If nothing was received on the connection since this request began, the connection may be
    /// dead: it takes no other requests.
    fn drop(&mut self) {
        let shared = self.requests.shared();
        let is_unheard = shared.link.heard() == self.cell.heard.get();
        let is_unanswered = {
            let half = self.cell.half();
            !half.has_head && !half.has_failed()
        };
        if is_unheard && is_unanswered {
            shared.state.borrow_mut().server.is_closing = true;
        }
        self.release();
    }
}

impl ByteSource for Request {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let read = self.handle().poll_read(cx, buffer);
        let has_ended = match read {
            Poll::Ready(Ok(0)) => true,
            Poll::Ready(Ok(_)) => Self::is_complete(&self.cell.half()),
            _ => false,
        };
        if has_ended {
            self.note_answered();
        }
        read
    }

    fn completes(&mut self) -> bool {
        self.cell.completes.take()
    }

    fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.cell.half().trailers.take()
    }
}

impl ByteSink for Request {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        if self.cell.extension.get() != Extension::None && !head.is_empty() {
            std::task::ready!(self.poll_extended(cx))?;
        }
        self.handle().poll_write(cx, head, body)
    }

    fn poll_write_slices(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>], _: bool) -> Poll<io::Result<usize>> {
        self.handle().poll_write_slices(cx, slices)
    }

    fn takes_slices(&self) -> bool {
        true
    }

    fn parts_heads(&self) -> bool {
        true
    }

    fn keeps_buffers(&self) -> bool {
        true
    }
}
