//! A request's body from the client to a server or a service. Must never write to the client.

use std::task::Context;

use base::buffer::Buffer;
use base::moment::Moment;
use wire::http::Framing;

use super::whole;
use crate::downstream::{Downstream, with_client};
use crate::flow::{BodyFilter, Flow, FlowError, FlowProgress, FlowStep, Trailers};
use crate::h1::{BodyEnd, UnreadBody};
use crate::service::Intake;
use crate::upstream::Upstream;

/// The framing of a forwarded request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// In chunks if it was received in chunks: to a server.
    Kept,
    /// As payload only: to a service.
    Removed,
}

/// The body of a request that flows from the client's connection to a server.
#[must_use]
pub struct RequestBody {
    flow: Flow,
    has_body: bool,
    /// Whether it has no length.
    comes_in_chunks: bool,
    /// Whether nothing of it was received, and the client may wait for `100 Continue`.
    waits: bool,
    /// Whether the bytes after the request are no body, and are forwarded if the answer opens a tunnel.
    opens_tunnel: bool,
}

impl RequestBody {
    /// Creates a body that was not started. It is large, and should not be moved afterwards.
    pub fn idle() -> Self {
        Self { flow: Flow::idle(), has_body: false, comes_in_chunks: false, waits: false, opens_tunnel: false }
    }

    /// Starts the body's flow with the bytes received after the head. `prepare` is called before with the flow, and
    /// whether there is a body. From here on a client without unread input holds no buffer. Returns the number of bytes
    /// of the body already received.
    ///
    /// # Errors
    /// The bytes after the head break the chunked coding: the end of the body cannot be found.
    pub fn start(
        &mut self,
        body: UnreadBody,
        client: &mut Downstream,
        coding: Coding,
        prepare: impl FnOnce(&mut Flow, bool),
    ) -> Result<usize, FlowError> {
        let UnreadBody { framing, expects, uncoded } = body;
        self.has_body = framing.has_body();
        prepare(&mut self.flow, self.has_body);
        let input = if self.has_body { client.take_received() } else { Buffer::empty() };
        self.waits = expects && input.is_empty();
        self.comes_in_chunks = framing == Framing::Chunked;
        let source = if uncoded && framing == Framing::Chunked { Framing::UntilClose } else { framing };
        let came = self.flow.start(input, source, coding == Coding::Kept && self.comes_in_chunks)?;
        client.release();
        Ok(came)
    }

    /// Moves as many bytes as possible. See [`Flow::poll`]. Bytes read after the end of the body are returned to the
    /// client's input.
    ///
    /// # Errors
    /// As [`Flow::poll`].
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        upstream: &mut Upstream<'_>,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        if !self.has_body
            && !self.opens_tunnel
            && let Upstream::H2(request) = upstream
            && whole::send_alone(&mut self.flow, request, moved)
        {
            self.finish(client, FlowStep::Finished);
            return Ok(FlowStep::Finished);
        }
        let step = match whole::send_request(cx, &mut self.flow, upstream, moved) {
            Some(sent) => sent?,
            None => self.poll_flow(cx, client, upstream, moved)?,
        };
        if step == FlowStep::Finished && !self.opens_tunnel {
            upstream.complete(self.flow.take_trailers().as_deref());
        }
        self.finish(client, step);
        Ok(step)
    }

    fn poll_flow(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        upstream: &mut Upstream<'_>,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        let flow = &mut self.flow;
        match upstream {
            Upstream::H1(transport) => with_client!(client, end => flow.poll(cx, end, &mut **transport, moved)),
            Upstream::H2(request) => with_client!(client, end => flow.poll(cx, end, &mut **request, moved)),
            Upstream::H3(request) => with_client!(client, end => flow.poll(cx, end, &mut **request, moved)),
            Upstream::Fcgi(connection) => with_client!(client, end => flow.poll(cx, end, &mut **connection, moved)),
            Upstream::FcgiShare(request) => with_client!(client, end => flow.poll(cx, end, &mut **request, moved)),
            Upstream::Service(service) => {
                with_client!(client, end => flow.poll(cx, end, &mut Intake(&mut **service), moved))
            }
        }
    }

    /// Reads and discards the body. See [`Flow::poll_drain`].
    ///
    /// # Errors
    /// As [`Flow::poll_drain`].
    pub fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        let step = with_client!(&mut *client, end => self.flow.poll_drain(cx, end, moved)?);
        self.finish(client, step);
        Ok(step)
    }

    /// Returns bytes read after the body to the client's input: only a body's flow has taken that.
    fn finish(&mut self, client: &mut Downstream, step: FlowStep) {
        if step == FlowStep::Finished
            && let Downstream::H1(server) = client
        {
            let rest = self.flow.take_rest();
            if !rest.is_empty() {
                server.input = rest;
            }
        }
    }

    /// Records that `100 Continue` was sent to the client.
    pub fn invite(&mut self) {
        self.waits = false;
    }

    /// Whether the request may end here. A client that got no `100 Continue` may omit the body, and the bytes that follow
    /// may be the body or its next request.
    pub fn may_end(&self) -> bool {
        self.source_ended() || !self.waits
    }

    /// Sends the request again from its beginning, after a new head. Returns false if the bytes of the body sent before
    /// were not recorded.
    #[must_use]
    pub fn rewind(&mut self) -> bool {
        if self.has_body {
            return self.flow.rewind();
        }
        self.flow.abandon_sink();
        true
    }

    /// The proof that the request was read to its end, if it was.
    pub fn end(&mut self, client: &mut Downstream) -> Option<BodyEnd> {
        if !self.source_ended() {
            return None;
        }
        self.finish(client, FlowStep::Finished);
        Some(BodyEnd::seen())
    }

    /// Sets the framing that the server or service takes: chunks, or payload only. To be called before any of the body
    /// is written.
    pub fn set_coding(&mut self, coding: Coding) {
        let chunked = coding == Coding::Kept && self.comes_in_chunks;
        self.flow.set_chunked(chunked);
    }

    /// Sets the framing in the forwarded head: the body is sent in chunks even if it was received with a length that a
    /// filter changes. To be called before [`RequestBody::set_coding`].
    pub fn go_on_as(&mut self, framing: Framing) {
        self.comes_in_chunks |= self.has_body && framing == Framing::Chunked;
    }

    /// The length of the body if it is known: from its head, or because all of it was received. To be called after its
    /// framing was set.
    pub fn known_length(&self, framing: Framing, client: &Downstream) -> Option<u64> {
        match framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::UntilClose => self.flow.whole_length(client.has_ended()),
        }
    }

    /// Whether the request has a body.
    pub fn has_body(&self) -> bool {
        self.has_body
    }

    /// The buffer of the request's head, which is written before the body.
    pub fn head_mut(&mut self) -> &mut Buffer {
        self.flow.head_mut()
    }

    /// Sets the unsent part of the request's head.
    pub fn set_head(&mut self, head: Buffer) {
        self.flow.set_head(head);
    }

    /// Whether the end of the body was read.
    pub fn source_ended(&self) -> bool {
        self.flow.source_ended()
    }

    /// Whether the end of the body was read and nothing is left to write.
    pub fn is_finished(&self) -> bool {
        self.flow.is_finished()
    }

    /// Records the bytes written, so that they can be sent again. See [`Flow::record`].
    pub fn record(&mut self) {
        self.flow.record();
    }

    /// Whether all bytes written are still recorded.
    pub fn is_recorded(&self) -> bool {
        self.flow.is_recorded()
    }

    /// Drops the recording.
    pub fn forget_record(&mut self) {
        self.flow.forget_record();
    }

    /// Drops the bytes that wait to be written, because the server accepts no more.
    pub fn abandon_sink(&mut self) {
        self.flow.abandon_sink();
    }

    /// Lets the kernel move the rest of the body if possible.
    pub fn splice(&mut self) {
        self.flow.splice();
    }

    /// Moves waiting bytes into buffers of their size.
    pub fn shrink(&mut self) {
        self.flow.shrink();
    }

    /// Marks the request as one for a tunnel: it does not end after its head.
    pub fn open_tunnel(&mut self) {
        self.opens_tunnel = true;
    }

    /// Sets the handling of trailers.
    pub fn set_trailers(&mut self, trailers: Trailers) {
        self.flow.trailers = trailers;
    }

    /// The time until which a filter holds the body back.
    pub fn held_until(&self) -> Option<Moment> {
        self.flow.held_until()
    }

    /// Whether the low-water mark of the client's socket is raised; see [`RequestBody::lower_mark`].
    pub fn is_bulk(&self) -> bool {
        self.flow.is_bulk()
    }

    /// See [`Flow::lower_mark`].
    pub fn lower_mark(&mut self, client: &mut Downstream) {
        if let Some((transport, _)) = client.bytes() {
            self.flow.lower_mark(transport);
        }
    }
}

impl crate::flow::Filtered for RequestBody {
    fn has_passage(&self) -> bool {
        self.flow.has_passage()
    }

    fn set_body_filter(&mut self, filter: Box<dyn BodyFilter>) {
        self.flow.set_body_filter(filter);
    }
}
