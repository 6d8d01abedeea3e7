//! A request's body on its way from the client to a server or a service. Must never write to the client.

use std::task::Context;

use base::buffer::Buffer;
use base::moment::Moment;
use wire::http::Framing;

use super::whole;
use crate::downstream::Downstream;
use crate::flow::{BodyFilter, Flow, FlowError, FlowStep, Moved, Trailers};
use crate::h1::{BodyEnd, UnreadBody};
use crate::service::Intake;
use crate::upstream::Upstream;

/// How a request's body goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// In chunks where it came in chunks: to a server.
    Kept,
    /// As payload alone: to a service.
    Removed,
}

/// The body of a request that flows from the client's connection to a server.
#[must_use]
pub struct RequestBody {
    flow: Flow,
    has_body: bool,
    /// It has no length.
    comes_in_chunks: bool,
    /// Nothing of it has come, and the client may wait to be asked for it.
    waits: bool,
    /// What follows the request is no body, and goes on where the answer says so.
    opens_tunnel: bool,
}

impl RequestBody {
    /// One that has not started: it is large, and stays where it is from here on.
    pub fn idle() -> Self {
        Self { flow: Flow::idle(), has_body: false, comes_in_chunks: false, waits: false, opens_tunnel: false }
    }

    /// Starts the body's flow with what followed the head. `prepare` is given the flow before, and told whether there is a
    /// body. A client without unread input holds no buffer from here on. Returns how many bytes of the body were here.
    ///
    /// # Errors
    /// What followed the head breaks the chunked coding: where the body ends cannot be known.
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

    /// Moves what can be moved. See [`Flow::poll`]. What was read behind the body's end is the client's input again.
    ///
    /// # Errors
    /// As there.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        upstream: &mut Upstream<'_>,
        moved: &mut Moved,
    ) -> Result<FlowStep, FlowError> {
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
        moved: &mut Moved,
    ) -> Result<FlowStep, FlowError> {
        let flow = &mut self.flow;
        match (client, upstream) {
            (Downstream::H1(server), Upstream::H1(transport)) => {
                flow.poll(cx, &mut server.transport, &mut **transport, moved)
            }
            (Downstream::H1(server), Upstream::Service(service)) => {
                flow.poll(cx, &mut server.transport, &mut Intake(&mut **service), moved)
            }
            (Downstream::H2(stream), Upstream::H1(transport)) => flow.poll(cx, &mut **stream, &mut **transport, moved),
            (Downstream::H1(server), Upstream::H2(request)) => {
                flow.poll(cx, &mut server.transport, &mut **request, moved)
            }
            (Downstream::H2(stream), Upstream::H2(request)) => flow.poll(cx, &mut **stream, &mut **request, moved),
            (Downstream::H1(server), Upstream::Fcgi(connection)) => {
                flow.poll(cx, &mut server.transport, &mut **connection, moved)
            }
            (Downstream::H2(stream), Upstream::Fcgi(connection)) => {
                flow.poll(cx, &mut **stream, &mut **connection, moved)
            }
            (Downstream::H1(server), Upstream::FcgiShare(request)) => {
                flow.poll(cx, &mut server.transport, &mut **request, moved)
            }
            (Downstream::H2(stream), Upstream::FcgiShare(request)) => {
                flow.poll(cx, &mut **stream, &mut **request, moved)
            }
            (Downstream::H2(stream), Upstream::Service(service)) => {
                flow.poll(cx, &mut **stream, &mut Intake(&mut **service), moved)
            }
        }
    }

    /// Reads and drops what comes. See [`Flow::poll_drain`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        moved: &mut Moved,
    ) -> Result<FlowStep, FlowError> {
        let step = match &mut *client {
            Downstream::H1(server) => self.flow.poll_drain(cx, &mut server.transport, moved)?,
            Downstream::H2(stream) => self.flow.poll_drain(cx, &mut **stream, moved)?,
        };
        self.finish(client, step);
        Ok(step)
    }

    /// Only a body's flow took the client's input.
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
    pub fn end(&mut self, client: &mut Downstream) -> Option<BodyEnd> {
        if !self.source_ended() {
            return None;
        }
        self.finish(client, FlowStep::Finished);
        Some(BodyEnd::seen())
    }

    /// Has the body go on as who answers takes it: in chunks or as payload alone. Before anything of it goes out.
    pub fn set_coding(&mut self, coding: Coding) {
        let chunked = coding == Coding::Kept && self.comes_in_chunks;
        self.flow.set_chunked(chunked);
    }

    /// How the head that goes on says that the body ends: in chunks also where it came with a length that a filter changes.
    /// Before [`RequestBody::set_coding`].
    pub fn go_on_as(&mut self, framing: Framing) {
        self.comes_in_chunks |= self.has_body && framing == Framing::Chunked;
    }

    /// How long the body is, where that is known: all of it is here, or its head has said it. Once its coding is set.
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

    /// The request asks for a tunnel: it does not end here.
    pub fn open_tunnel(&mut self) {
        self.opens_tunnel = true;
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
