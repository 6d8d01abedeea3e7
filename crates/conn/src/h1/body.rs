//! A request's body on the client's connection. Owns the proof that its end was read, without which no other request is
//! read there. Must never write to the client.

use std::task::Context;

use base::buffer::Buffer;
use base::moment::Moment;
use wire::h1::{ConnectionLine, Edits, Overflow, Spelling, encode_request};
use wire::http::{Framing, Head, Version};

use super::Server;
use crate::flow::{Flow, FlowError, Moved, Passage, Step, Trailers};
use crate::service::Intake;
use crate::upstream::Upstream;

/// Proof that a request was read to its end: what follows on the connection is the next one. Only this file makes it, from
/// a head that announces no body, or from a body whose end was seen.
#[derive(Debug)]
#[must_use]
pub struct BodyEnd(());

/// How a request's body goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// In chunks where it came in chunks: to a server.
    Kept,
    /// As payload alone: to a service.
    Removed,
}

/// The body of a request whose head was just taken from the client's input: its first byte, if it has any, comes next.
/// There is one for each head, and whatever ends the request takes it.
#[derive(Debug)]
#[must_use]
pub struct UnreadBody {
    framing: Framing,
    /// The client may wait for `100 Continue` before it sends the body, or not send it at all (RFC 9110, section 10.1.1).
    expects: bool,
}

impl UnreadBody {
    /// Takes a parsed head of `length` bytes from the input; its body begins there.
    pub(super) fn after(head: &Head, length: usize, input: &mut Buffer) -> Self {
        input.consume(length);
        let expects = head.expect_continue && head.version() == Version::Http11;
        Self { framing: head.framing, expects }
    }

    /// The end of a request without a body.
    ///
    /// # Errors
    /// It has one.
    pub fn absent(self) -> Result<BodyEnd, Self> {
        if self.framing.has_body() { Err(self) } else { Ok(BodyEnd(())) }
    }

    /// Starts the body's flow with what followed the head. `prepare` is given the flow before, and told whether there is a
    /// body. A client without unread input holds no buffer from here on. Returns how many bytes of the body were here.
    ///
    /// # Errors
    /// What followed the head breaks the chunked coding: where the body ends cannot be known.
    pub fn start(
        self,
        client: &mut Server,
        coding: Coding,
        prepare: impl FnOnce(&mut Flow, bool),
    ) -> Result<(RequestBody, usize), FlowError> {
        let Self { framing, expects } = self;
        let has_body = framing.has_body();
        let mut flow = Flow::idle();
        prepare(&mut flow, has_body);
        let input = if has_body { std::mem::take(&mut client.input) } else { Buffer::empty() };
        let waits = expects && input.is_empty();
        let came = flow.start(input, framing, coding == Coding::Kept && framing == Framing::Chunked)?;
        client.release();
        Ok((RequestBody { flow, has_body, waits }, came))
    }
}

/// The payload at the beginning of a body, of what has come behind its head: at most the first chunk.
pub fn first_payload(framing: Framing, received: &[u8]) -> &[u8] {
    match framing {
        Framing::Length(length) => &received[..received.len().min(usize::try_from(length).unwrap_or(usize::MAX))],
        Framing::Chunked => first_chunk(received),
        Framing::None | Framing::UntilClose => &[],
    }
}

/// What is here of the first chunk of a body.
fn first_chunk(input: &[u8]) -> &[u8] {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return &[] };
    let digits = input[..end].iter().take_while(|byte| byte.is_ascii_hexdigit());
    let size = digits.fold(0_usize, |size, digit| {
        size.saturating_mul(16).saturating_add((*digit as char).to_digit(16).unwrap_or_default() as usize)
    });
    let chunk = &input[end + 1..];
    &chunk[..chunk.len().min(size)]
}

/// How the head of a request is written for a server.
pub struct RequestLine<'s> {
    /// The server is asked to close behind the answer.
    pub says_close: bool,
    /// A field that goes out last.
    pub last: Option<(&'s [u8], &'s [u8])>,
    /// How the names of fields are spelt.
    pub spelling: Option<&'s Spelling>,
}

impl RequestLine<'_> {
    /// Writes the head.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode(&self, request: &Head, out: &mut Buffer) -> Result<(), Overflow> {
        let connection = if request.upgrade {
            ConnectionLine::Upgrade(request.first(b"upgrade").unwrap_or_default())
        } else {
            ConnectionLine::for_request(request, !self.says_close)
        };
        let edits = Edits {
            connection,
            framing: request.framing,
            version: request.version(),
            last: self.last,
            spelling: self.spelling,
        };
        encode_request(request, &edits, out)
    }
}

/// The body of a request that flows from the client's connection to a server.
#[must_use]
pub struct RequestBody {
    flow: Flow,
    has_body: bool,
    /// Nothing of it has come, and the client may wait to be asked for it.
    waits: bool,
}

impl RequestBody {
    /// Moves what can be moved. See [`Flow::poll`]. What was read behind the body's end is the client's input again.
    ///
    /// # Errors
    /// As there.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Server,
        upstream: &mut Upstream<'_>,
        moved: &mut Moved,
    ) -> Result<Step, FlowError> {
        let step = match upstream {
            Upstream::H1(link) => self.flow.poll(cx, &mut client.transport, &mut link.stream, moved)?,
            Upstream::Service(service) => {
                let step = self.flow.poll(cx, &mut client.transport, &mut Intake(&mut **service), moved)?;
                if step == Step::Finished {
                    service.end_request();
                }
                step
            }
        };
        self.finish(client, step);
        Ok(step)
    }

    /// Reads and drops what comes. See [`Flow::poll_drain`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Server,
        moved: &mut Moved,
    ) -> Result<Step, FlowError> {
        let step = self.flow.poll_drain(cx, &mut client.transport, moved)?;
        self.finish(client, step);
        Ok(step)
    }

    /// Only a body's flow took the client's input.
    fn finish(&mut self, client: &mut Server, step: Step) {
        if step == Step::Finished {
            let rest = self.flow.take_rest();
            if !rest.is_empty() {
                client.input = rest;
            }
        }
    }

    /// The client was asked for its body (`100 Continue`).
    pub fn invite(&mut self) {
        self.waits = false;
    }

    /// A client that was not asked for its body may leave it out, so that nothing tells it from the next request.
    pub fn may_end(&self) -> bool {
        self.source_ended() || !self.waits
    }

    /// The request goes out again from its beginning, behind a new head. False: what went out of its body is not here any
    /// more.
    #[must_use]
    pub fn rewind(&mut self) -> bool {
        if self.has_body {
            return self.flow.rewind();
        }
        self.flow.abandon_sink();
        true
    }

    /// The end of the request, if it was seen.
    pub fn end(&mut self, client: &mut Server) -> Option<BodyEnd> {
        if !self.source_ended() {
            return None;
        }
        self.finish(client, Step::Finished);
        Some(BodyEnd(()))
    }

    /// What goes out before the body: the request's head is written here.
    pub fn head_mut(&mut self) -> &mut Buffer {
        self.flow.head_mut()
    }

    /// Whether the end of the body was read.
    pub fn source_ended(&self) -> bool {
        self.flow.source_ended()
    }

    /// Whether the end was read and nothing is left to write.
    pub fn is_finished(&self) -> bool {
        self.flow.is_finished()
    }

    /// Keeps what flows, so that it can be sent again. See [`Flow::record`].
    pub fn record(&mut self) {
        self.flow.record();
    }

    /// Whether all of it that went out is still here.
    pub fn is_recorded(&self) -> bool {
        self.flow.is_recorded()
    }

    /// It is not sent again.
    pub fn forget_record(&mut self) {
        self.flow.forget_record();
    }

    /// The server takes no more: what waited to be written is dropped.
    pub fn abandon_sink(&mut self) {
        self.flow.abandon_sink();
    }

    /// Has the kernel move the rest of the body where it can.
    pub fn splice(&mut self) {
        self.flow.splice();
    }

    /// What waits goes into buffers of its size.
    pub fn shrink(&mut self) {
        self.flow.shrink();
    }

    /// What becomes of trailers.
    pub fn set_trailers(&mut self, trailers: Trailers) {
        self.flow.trailers = trailers;
    }

    /// When it goes on, where a filter holds it back.
    pub fn held_until(&self) -> Option<Moment> {
        self.flow.held_until()
    }

    /// Whether the client's socket wakes readers for large amounts only; see [`RequestBody::lower_mark`].
    pub fn is_bulk(&self) -> bool {
        self.flow.is_bulk()
    }

    /// See [`Flow::lower_mark`].
    pub fn lower_mark(&mut self, client: &mut Server) {
        self.flow.lower_mark(&mut client.transport);
    }
}

impl crate::flow::Filtered for RequestBody {
    fn has_passage(&self) -> bool {
        self.flow.has_passage()
    }

    fn set_passage(&mut self, passage: Box<dyn Passage>) {
        self.flow.set_passage(passage);
    }
}
