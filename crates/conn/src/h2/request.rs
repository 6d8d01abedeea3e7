//! One request on a server's connection, as seen by the task that forwards it: the answer's heads, its payload, its
//! trailers. Must never know how frames are read and written.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use wire::h1::HeadLimits;
use wire::http::{Fields, Framing, Head, Method};

use super::control::Requests;
use super::handle::Handle;
use super::stream_half::Arrival;
use crate::answer_head_kind::AnswerHeadKind;
use crate::flow::{ByteSink, ByteSource};
use crate::h1::server::fits;
use crate::server_info::About;

/// Whether a request asks for another protocol on its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extension {
    None,
    /// It may be sent if the server supports extended CONNECT.
    Asked,
    /// It cannot be expressed in HTTP/2.
    Impossible,
}

pub struct Request {
    handle: Handle,
    requests: Requests,
    /// Whether the answer was read to its end.
    answered: Cell<bool>,
    /// Bytes of its payload not received yet, if its head contains a length.
    left: Cell<Option<u64>>,
    /// The connection's counter of reads when the request began.
    heard: u64,
    /// Whether it asks for another protocol.
    extension: Extension,
}

impl Request {
    pub(super) fn new(requests: Requests, key: u32) -> Self {
        let heard = requests.0.state.borrow().heard;
        let handle = Handle::new(Rc::clone(&requests.0.state), key, None);
        Self { handle, requests, answered: Cell::new(false), left: Cell::new(None), heard, extension: Extension::None }
    }

    /// The connection that carries it.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Begins another request in place of this one, which was answered whole. Returns false if none can begin.
    pub fn renew(&mut self) -> bool {
        // This one is released first.
        let key = {
            let mut state = self.requests.0.state.borrow_mut();
            state.leave(self.handle.stream(), self.handle.rest.get());
            state.begin_request()
        };
        let Some(key) = key else { return false };
        *self = Self::new(self.requests.clone(), key);
        true
    }

    /// Marks the request as one for another protocol on its stream (RFC 8441). `is_possible`: false with a body, which
    /// extended CONNECT cannot carry.
    pub fn extend(&mut self, is_possible: bool) {
        self.extension = if is_possible { Extension::Asked } else { Extension::Impossible };
    }

    /// Whether the server supports such a request; pending until its settings are known.
    fn poll_extended(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.requests.0.state.borrow_mut();
        match state.peer_extends.map(|extends| extends && self.extension == Extension::Asked) {
            Some(true) => Poll::Ready(Ok(())),
            Some(false) => {
                state.refuse_request(self.handle.stream());
                Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
            }
            None => {
                let Some(half) = state.half(self.handle.stream()).filter(|half| !half.failed) else {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                };
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
        self.handle.poll_readable(cx)
    }

    /// Marks the request as completely written, with trailers if there are some.
    pub fn complete(&self, trailers: Option<&Fields>) {
        self.handle.end(trailers);
    }

    /// Whether the server has signalled that it has not begun the request.
    pub fn is_refused(&self) -> bool {
        self.handle.with(|half| half.refused).unwrap_or(false)
    }

    /// Ready with whether a head of the answer was received; otherwise the stream has ended without one.
    pub fn poll_head(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let found = self.handle.with(|half| {
            let found = half.arrival != Arrival::Nothing;
            if !found && !half.failed && !half.ended {
                half.wait(cx);
                return Poll::Pending;
            }
            Poll::Ready(found)
        });
        found.unwrap_or(Poll::Ready(false))
    }

    /// The status of the first head received.
    pub fn status(&self) -> Option<u16> {
        self.handle.with(|half| (half.arrival != Arrival::Nothing).then(|| half.head.status())).flatten()
    }

    /// Takes one head of the answer.
    pub fn take_head(&self, method: Method, limits: &HeadLimits, head: &mut Head) -> AnswerHeadKind {
        let taken = self.handle.with(|half| match half.arrival {
            Arrival::Nothing => Arrival::Nothing,
            _ => half.take_head(head),
        });
        let (length, alone) = match taken {
            Some(Arrival::Here { length, alone }) => (length, alone),
            Some(Arrival::Refused { .. }) => return AnswerHeadKind::Invalid(None),
            Some(Arrival::Nothing) | None => return AnswerHeadKind::Part,
        };
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
            Framing::Length(length) if self.announce(length) => self.left.set(Some(length)),
            Framing::Length(_) => return AnswerHeadKind::Invalid(None),
            _ => {}
        }
        if alone || is_empty {
            self.note_answered();
        } else if self.left.get() == Some(0) {
            self.note_payload(0);
        }
        AnswerHeadKind::Final
    }

    /// Sets the length of the answer's payload. Returns false if it contradicts the payload received.
    fn announce(&self, length: u64) -> bool {
        let fits = self.handle.with(|half| {
            let missing = length.checked_sub(half.payload().len() as u64);
            half.announced = missing.filter(|_| !half.ended);
            missing.is_some_and(|missing| missing == 0 || !half.ended)
        });
        fits.unwrap_or(true)
    }

    /// Whether the answer has ended, and all its payload was taken.
    pub fn has_ended(&self) -> bool {
        self.handle.with(|half| half.ended && half.payload().is_empty()).unwrap_or(true)
    }

    /// The handle of its stream.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Accounts for payload that was taken.
    pub(super) fn note_payload(&self, bytes: usize) {
        let left = self.left.get().map(|left| left.saturating_sub(bytes as u64));
        self.left.set(left);
        if left == Some(0) {
            self.note_answered();
        }
    }

    /// Records that the whole answer was received, except for the end of its stream.
    pub(super) fn note_answered(&self) {
        self.handle.rest.set(Some(0));
        if !self.answered.replace(true) {
            let answers = &self.requests.0.answers;
            answers.set(answers.get().saturating_add(1));
        }
    }
}

impl Drop for Request {
    /// If nothing was received on the connection since this request began, the connection may be dead: it takes no
    /// other requests.
    fn drop(&mut self) {
        let waited = self.handle.with(|half| !half.has_head && !half.failed).unwrap_or(false);
        let mut state = self.requests.0.state.borrow_mut();
        if waited && state.heard == self.heard {
            state.closing = true;
        }
    }
}

impl ByteSource for Request {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let read = self.handle.poll_read(cx, buffer);
        match read {
            Poll::Ready(Ok(0)) => self.note_answered(),
            Poll::Ready(Ok(length)) => self.note_payload(length),
            _ => {}
        }
        read
    }

    fn completes(&mut self) -> bool {
        self.handle.completes()
    }

    fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.handle.take_trailers()
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
        if self.extension != Extension::None && !head.is_empty() {
            std::task::ready!(self.poll_extended(cx))?;
        }
        self.handle.poll_write(cx, head, body)
    }
}
