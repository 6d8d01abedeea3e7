//! One request on a server's connection, as seen by the task that forwards it: the answer's heads, its payload, its
//! trailers. Must never know how frames are read and written.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h1::HeadLimits;
use wire::http::{Fields, Framing, Head, Method};

use super::cell::{Extension, StreamCell};
use super::control::Requests;
use super::handle::Handle;
use super::stream_half::{Arrival, Half};
use crate::answer_head_kind::AnswerHeadKind;
use crate::flow::{ByteSink, ByteSource};
use crate::h1::server::fits;
use crate::server_info::About;

/// A request as seen by the task that sends it.
pub struct Request {
    requests: Requests,
    cell: Rc<StreamCell>,
}

impl Request {
    pub(super) fn new(requests: Requests, cell: Rc<StreamCell>) -> Self {
        Self { requests, cell }
    }

    /// The handle of its stream.
    #[inline]
    pub(super) fn handle(&self) -> Handle<'_> {
        Handle { state: &self.requests.0.state, cell: &self.cell }
    }

    /// The connection that carries it.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Begins another request in place of this one, which was answered whole. Returns false if none can begin.
    pub fn renew(&mut self) -> bool {
        // This one is released first.
        let mut state = self.requests.0.state.borrow_mut();
        state.leave(&self.cell);
        let Some(cell) = state.begin_request() else { return false };
        self.cell = cell;
        true
    }

    /// Marks the request as one for another protocol on its stream (RFC 8441). `is_possible`: false with a body, which
    /// extended CONNECT cannot carry.
    pub fn extend(&mut self, is_possible: bool) {
        self.cell.extension.set(if is_possible { Extension::Asked } else { Extension::Impossible });
    }

    /// Whether the server supports such a request; pending until its settings are known.
    fn poll_extended(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.requests.0.state.borrow_mut();
        match state.peer.extends.map(|extends| extends && self.cell.extension.get() == Extension::Asked) {
            Some(true) => Poll::Ready(Ok(())),
            Some(false) => {
                state.refuse_request(self.cell.number.get());
                Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
            }
            None => {
                let mut half = self.cell.half();
                if half.failed {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                half.wait(cx);
                Poll::Pending
            }
        }
    }

    /// Properties of the connection.
    pub fn about(&self) -> &About {
        &self.requests.0.about
    }

    /// Ready when a read returns something.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.handle().poll_readable(cx)
    }

    /// Marks the request as completely written, with trailers if there are some.
    pub fn complete(&self, trailers: Option<&Fields>) {
        self.handle().end(trailers);
    }

    /// Ready when the server has reset the stream, or the connection has ended.
    pub fn poll_stopped(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut half = self.cell.half();
        if half.failed {
            return Poll::Ready(());
        }
        half.wait(cx);
        Poll::Pending
    }

    /// Whether the server has signalled that it has not begun the request.
    pub fn is_refused(&self) -> bool {
        self.cell.half().refused
    }

    /// Ready with whether a head of the answer was received; otherwise the stream has ended without one.
    pub fn poll_head(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut half = self.cell.half();
        let found = half.arrival != Arrival::Nothing;
        if !found && !half.failed && !half.ended {
            half.wait(cx);
            return Poll::Pending;
        }
        Poll::Ready(found)
    }

    /// The status of the first head received.
    pub fn status(&self) -> Option<u16> {
        let half = self.cell.half();
        (half.arrival != Arrival::Nothing).then(|| half.head.status())
    }

    /// Takes one head of the answer.
    pub fn take_head(&self, method: Method, limits: &HeadLimits, head: &mut Head) -> AnswerHeadKind {
        let half = &mut *self.cell.half();
        if half.arrival == Arrival::Nothing {
            return AnswerHeadKind::Part;
        }
        let Arrival::Here { length, alone } = half.take_head(head) else { return AnswerHeadKind::Invalid(None) };
        if !fits(head, length, limits.max_head) || head.field_count() >= limits.max_fields {
            return AnswerHeadKind::Invalid(None);
        }
        if head.status() < 200 {
            return AnswerHeadKind::Interim;
        }
        let is_empty = method == Method::Head || head.framing == Framing::None;
        match head.framing {
            _ if is_empty => head.framing = Framing::None,
            // The missing payload will never be received.
            Framing::Length(1..) if alone => return AnswerHeadKind::Invalid(None),
            Framing::Length(length) if announce(half, length) => self.cell.left.set(Some(length)),
            Framing::Length(_) => return AnswerHeadKind::Invalid(None),
            _ => {}
        }
        if alone || is_empty {
            self.note_answered();
        } else if self.cell.left.get() == Some(0) {
            self.note_payload(0);
        }
        AnswerHeadKind::Final
    }

    /// Whether the answer has ended, and all its payload was taken.
    pub fn has_ended(&self) -> bool {
        let half = self.cell.half();
        half.ended && half.payload().is_empty()
    }

    /// Writes the head of a request without a body, and completes the request. `None`: it has to be written in steps.
    #[inline]
    pub(crate) fn write_alone(&self, head: &mut Buffer) -> Option<usize> {
        if self.cell.extension.get() != Extension::None {
            return None;
        }
        self.handle().write_alone(head)
    }

    /// Accounts for payload that was taken.
    pub(super) fn note_payload(&self, bytes: usize) {
        let left = self.cell.left.get().map(|left| left.saturating_sub(bytes as u64));
        self.cell.left.set(left);
        if left == Some(0) {
            self.note_answered();
        }
    }

    /// Records that the whole answer was received, except for the end of its stream.
    pub(super) fn note_answered(&self) {
        self.cell.rest.set(Some(0));
        if !self.cell.answered.replace(true) {
            let answers = &self.requests.0.answers;
            answers.set(answers.get().saturating_add(1));
        }
    }
}

/// Sets the length of the answer's payload. Returns false if it contradicts the payload received.
fn announce(half: &mut Half, length: u64) -> bool {
    let missing = length.checked_sub(half.payload().len() as u64);
    half.incoming.announced = missing.filter(|_| !half.ended);
    missing.is_some_and(|missing| missing == 0 || !half.ended)
}

impl Drop for Request {
    /// Releases the stream. If nothing was received on the connection since this request began, the connection may be
    /// dead: it takes no other requests.
    fn drop(&mut self) {
        let mut state = self.requests.0.state.borrow_mut();
        let is_unheard = state.life.heard == self.cell.heard.get();
        if is_unheard && !self.cell.half().has_head && !self.cell.half().failed {
            state.closing.begun = true;
        }
        state.leave(&self.cell);
    }
}

impl ByteSource for Request {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let read = self.handle().poll_read(cx, buffer);
        match read {
            Poll::Ready(Ok(0)) => self.note_answered(),
            Poll::Ready(Ok(length)) => self.note_payload(length),
            _ => {}
        }
        read
    }

    fn completes(&mut self) -> bool {
        self.handle().completes()
    }

    fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.handle().take_trailers()
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
}
