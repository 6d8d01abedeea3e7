//! An answer from a server's connection to the client's: its head is forwarded here, and its body flows. Must never decide
//! which answer the client gets.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use wire::h1::{ConnectionLine, Edits, Overflow, Spelling};
use wire::http::{Fields, Framing, Head, Method, Version};

use super::answer_reader::AnswerReader;
use super::whole;
use crate::downstream::{Downstream, HeadFormat, with_client};
use crate::flow::{BodyFilter, Discard, Flow, FlowError, FlowProgress, FlowStep, Trailers};
use crate::service::Payload;
use crate::upstream::Upstream;

/// The most bytes by which an interim answer may grow when it is encoded again: its reason phrase and the end of its
/// head.
const GROWTH: usize = 256;

/// How an answer is forwarded.
#[derive(Debug, Clone, Copy)]
pub struct ForwardTerms<'s> {
    /// Whether the client's method was HEAD, even if rules have changed it.
    pub for_head_alone: bool,
    /// Whether the answer opens a tunnel.
    pub tunnel: bool,
    /// Whether the body is received as payload, without any coding: from anything but a connection of HTTP/1.
    pub uncoded: bool,
    /// Whether it comes from a service of the process, which may be dropped before its end.
    pub served_here: bool,
    /// Whether the server signals the end of an answer without a body separately from its head, and has not done so
    /// yet.
    pub ends_apart: bool,
    /// Whether the client's connection may be kept, apart from conditions of the answer.
    pub keep_client: bool,
    /// The spelling of field names.
    pub spelling: Option<&'s Spelling>,
}

/// The heads of an exchange.
#[derive(Debug, Clone, Copy)]
pub struct Heads<'h> {
    /// That of the request.
    pub request: &'h Head,
    /// That of its answer.
    pub response: &'h Head,
}

/// Decisions about an answer's body and both connections, made from its head.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The framing in the answer's head.
    framing: Framing,
    /// The framing in the head sent to the client.
    sent: Framing,
    /// Whether the body is forwarded in chunks.
    chunked: bool,
    /// The framing of the body at its source.
    source: Framing,
    /// Whether a body sent by the server is discarded.
    bare: bool,
    /// Whether the client's connection is kept.
    pub keep_client: bool,
    /// Whether the server's connection is kept, apart from conditions of the request.
    pub keep_server: bool,
}

impl Plan {
    /// Whether a body is sent to the client.
    pub fn has_body(&self) -> bool {
        self.framing.has_body() && !self.bare
    }

    /// Whether the body is delimited only by the end of the client's connection.
    pub fn is_undelimited(&self) -> bool {
        self.sent == Framing::UntilClose && !self.bare
    }

    /// The length of the body, if it is forwarded unchanged and has one.
    pub fn unchanged(&self) -> Option<u64> {
        match self.source {
            _ if self.chunked || self.bare => None,
            Framing::Length(length) => Some(length),
            Framing::None => Some(0),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// The plan for a body whose framing at the source differs from that in the head sent, because a filter changes the
    /// body. `uncoded`: it is received as payload with a separate end.
    #[must_use]
    pub fn coming_as(mut self, came: Framing, uncoded: bool) -> Self {
        if self.source != Framing::None {
            self.source = if uncoded && came.has_body() { Framing::UntilClose } else { came };
        }
        self.keep_server &= came != Framing::UntilClose || uncoded;
        self
    }
}

/// Whether final answers with that status may have a body (RFC 9112, section 6.3, item 1).
fn allows_body(status: u16) -> bool {
    !matches!(status, 204 | 304)
}

pub struct Answer {
    /// Its heads, and the bytes read and not consumed.
    pub reader: AnswerReader,
    flow: Flow,
}

impl Default for Answer {
    fn default() -> Self {
        Self { reader: AnswerReader::default(), flow: Flow::idle() }
    }
}

impl Answer {
    /// Whether another interim answer was received that fits after those waiting to be written: one call writes them
    /// all.
    pub fn may_collect(&mut self) -> bool {
        let is_interim = |data: &[u8]| matches!(data.get(9..12), Some([b'1', b'0', b'0' | b'2'..=b'9']));
        self.flow.head_pending()
            && is_interim(self.reader.received())
            && self.flow.head_mut().room() > self.reader.received().len() + GROWTH
    }

    /// Queues an interim answer for the client.
    ///
    /// # Errors
    /// It does not fit.
    pub fn queue_interim(
        &mut self,
        format: HeadFormat,
        head: &Head,
        spelling: Option<&Spelling>,
    ) -> Result<(), Overflow> {
        let edits = Edits { spelling, ..Edits::interim() };
        format.encode(head, &edits, self.flow.head_mut())
    }

    /// Plans the body and both connections from the heads of a request and its answer.
    pub fn plan(format: HeadFormat, request: &Head, response: &Head, onward: &ForwardTerms<'_>) -> Plan {
        let framing = if onward.tunnel { Framing::None } else { response.framing };
        let modern = request.version() == Version::Http11;
        // A rule has made another request of a HEAD request, or has set a status whose answers have no body: the body
        // that the server sends is not forwarded.
        let bare = framing.has_body() && (onward.for_head_alone || !allows_body(response.status()));
        // The request has ended at the server only when the server signals that: the client's connection is kept until
        // then, as its next request could otherwise be served at the same time.
        let ends_apart = framing == Framing::None && onward.ends_apart && !onward.tunnel;
        let delimited = match framing {
            Framing::UntilClose => false,
            // HTTP/1.0 has no chunked coding: a peer that sends or receives chunks in it may not find the end.
            Framing::Chunked => modern && response.version() == Version::Http11,
            Framing::None | Framing::Length(_) => true,
        } || bare;
        let kept = match response.version() {
            Version::Http11 => !response.connection.close,
            Version::Http10 => response.connection.keep_alive && !response.connection.close,
        };
        let sent = match framing {
            Framing::Chunked if !modern => Framing::UntilClose,
            // A rule has made this answer one with a body (another method, another status), and the server sends none:
            // the client would take the next bytes on its connection for the body.
            Framing::None if !onward.tunnel && !onward.for_head_alone && allows_body(response.status()) => {
                Framing::Length(0)
            }
            other => other,
        };
        // Bytes that a server sends after it has accepted a CONNECT are no message (RFC 9110, section 9.3.6).
        let tunnelled = request.known_method() == Method::Connect && (200..300).contains(&response.status());
        Plan {
            framing,
            sent,
            chunked: framing == Framing::Chunked && modern && !bare && format.has_chunks(),
            bare: bare || ends_apart,
            source: match framing {
                // A service is not polled for payload that is discarded.
                _ if onward.served_here && bare => Framing::None,
                _ if ends_apart || (bare && onward.uncoded) => Framing::UntilClose,
                Framing::Chunked if onward.uncoded => Framing::UntilClose,
                other => other,
            },
            keep_client: onward.keep_client && delimited && !onward.tunnel && !response.asks_to_close(),
            keep_server: kept && framing != Framing::UntilClose && !onward.tunnel && !tunnelled,
        }
    }

    /// Queues the answer's head for the client.
    ///
    /// # Errors
    /// It does not fit.
    pub fn queue_head(
        &mut self,
        format: HeadFormat,
        heads: Heads<'_>,
        plan: &Plan,
        onward: &ForwardTerms<'_>,
    ) -> Result<(), Overflow> {
        Self::encode_head(format, heads, plan, onward, self.flow.head_mut())
    }

    /// Writes the answer's head for the client.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode_head(
        format: HeadFormat,
        heads: Heads<'_>,
        plan: &Plan,
        onward: &ForwardTerms<'_>,
        out: &mut Buffer,
    ) -> Result<(), Overflow> {
        let Heads { request, response } = heads;
        let version = response.version();
        let connection = match onward.tunnel {
            true if response.status() == 101 => ConnectionLine::Upgrade(response.first(b"upgrade").unwrap_or_default()),
            true => ConnectionLine::Nothing,
            false => ConnectionLine::for_response(request.version(), version, plan.keep_client),
        };
        let edits = Edits { connection, framing: plan.sent, version, spelling: onward.spelling, last: None };
        format.encode(response, &edits, out)
    }

    /// Continues an answer that was written in part: with the rest of its head, and `left` bytes of its body.
    pub fn go_on(&mut self, head: Buffer, left: u64) {
        self.flow.go_on(head, left);
    }

    /// Continues an answer that was received whole and written in part: with the rest of its head and of its body.
    pub fn go_on_with(&mut self, head: Buffer, body: Buffer) {
        self.flow.go_on_with(head, body);
    }

    /// Starts the body with the bytes received after the head.
    ///
    /// # Errors
    /// These bytes break the chunked coding: the queued head is truncated to `head` bytes.
    pub fn start(&mut self, plan: &Plan, head: usize) -> Result<(), FlowError> {
        if plan.bare {
            self.flow.set_body_filter(Box::new(Discard));
        }
        let body = self.reader.take_received();
        let started = self.flow.start(body, plan.source, plan.chunked);
        if started.is_err() {
            self.flow.head_mut().truncate(head);
        }
        started.map(|_| ())
    }

    /// Starts the body of an answer that is discarded.
    ///
    /// # Errors
    /// The bytes received after the head break the chunked coding.
    pub fn start_drain(&mut self, framing: Framing) -> Result<(), FlowError> {
        let body = self.reader.take_received();
        self.flow.start(body, framing, false).map(|_| ())
    }

    /// Reads and discards the body. See [`Flow::poll_drain`].
    ///
    /// # Errors
    /// As [`Flow::poll_drain`].
    pub fn poll_drain(&mut self, cx: &mut Context<'_>, upstream: &mut Upstream<'_>) -> Result<FlowStep, FlowError> {
        let (flow, mut moved) = (&mut self.flow, FlowProgress::default());
        match upstream {
            Upstream::H1(transport) => flow.poll_drain(cx, &mut **transport, &mut moved),
            Upstream::H2(request) => flow.poll_drain(cx, &mut **request, &mut moved),
            Upstream::H3(request) => flow.poll_drain(cx, &mut **request, &mut moved),
            Upstream::Fcgi(connection) => flow.poll_drain(cx, &mut **connection, &mut moved),
            Upstream::FcgiShare(request) => flow.poll_drain(cx, &mut **request, &mut moved),
            Upstream::Service(service) => flow.poll_drain(cx, &mut Payload(&mut **service), &mut moved),
        }
    }

    /// Moves as many bytes as possible. See [`Flow::poll`].
    ///
    /// # Errors
    /// As [`Flow::poll`].
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &mut Upstream<'_>,
        client: &mut Downstream,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        let step = match self.poll_whole(cx, upstream, client, moved)? {
            true => FlowStep::Finished,
            false => self.poll_flow(cx, upstream, client, moved)?,
        };
        if step == FlowStep::Finished {
            client.complete(self.flow.take_trailers().as_deref());
        }
        Ok(step)
    }

    /// Hands a complete answer to the client in one step. Returns false if it has to flow.
    fn poll_whole(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &Upstream<'_>,
        client: &mut Downstream,
        moved: &mut FlowProgress,
    ) -> Result<bool, FlowError> {
        let stream = match client {
            Downstream::H1(server) => return whole::send_answer(cx, &mut self.flow, &mut server.transport, moved),
            Downstream::H2(stream) => stream,
            Downstream::H3(stream) => return whole::send_answer(cx, &mut self.flow, stream, moved),
        };
        if let Upstream::H2(request) = upstream
            && whole::pass_answer(&mut self.flow, request, stream, moved)
        {
            return Ok(true);
        }
        whole::send_answer(cx, &mut self.flow, stream, moved)
    }

    fn poll_flow(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &mut Upstream<'_>,
        client: &mut Downstream,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        let flow = &mut self.flow;
        match upstream {
            Upstream::H1(transport) => with_client!(client, end => flow.poll(cx, &mut **transport, end, moved)),
            Upstream::H2(request) => with_client!(client, end => flow.poll(cx, &mut **request, end, moved)),
            Upstream::H3(request) => with_client!(client, end => flow.poll(cx, &mut **request, end, moved)),
            Upstream::Fcgi(connection) => with_client!(client, end => flow.poll(cx, &mut **connection, end, moved)),
            Upstream::FcgiShare(request) => with_client!(client, end => flow.poll(cx, &mut **request, end, moved)),
            Upstream::Service(service) => {
                with_client!(client, end => flow.poll(cx, &mut Payload(&mut **service), end, moved))
            }
        }
    }

    /// Writes the queued bytes. See [`Flow::poll_flush`].
    ///
    /// # Errors
    /// As [`Flow::poll_flush`].
    pub fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        moved: &mut FlowProgress,
    ) -> Poll<io::Result<()>> {
        with_client!(client, end => self.flow.poll_flush(cx, end, moved))
    }

    /// The number of bytes of queued heads.
    pub fn queued(&self) -> usize {
        self.flow.head_length()
    }

    /// Whether heads are queued.
    pub fn is_queued(&self) -> bool {
        self.flow.head_pending()
    }

    /// Takes the queued head of a tunnel's answer, and the bytes that the server has sent after it.
    pub fn into_tunnel(&mut self) -> (Buffer, Buffer) {
        (self.flow.take_head(), self.reader.take_received())
    }

    /// Whether the server has sent bytes after its answer.
    pub fn has_surplus(&mut self) -> bool {
        !self.flow.take_rest().is_empty()
    }

    /// Whether the whole answer was received, so that the rest is only to be sent.
    pub fn has_come(&self) -> bool {
        self.flow.source_ended()
    }

    /// Sets whether the client's connection is closed after the body.
    pub fn close_behind(&mut self, closes: bool) {
        self.flow.closes = closes;
    }

    /// Sets the handling of trailers.
    pub fn set_trailers(&mut self, trailers: Trailers) {
        self.flow.trailers = trailers;
    }

    /// Takes the trailers of a body that has ended, as received.
    pub fn take_received_trailers(&mut self) -> Option<Box<Fields>> {
        self.flow.take_received_trailers()
    }

    /// Lets the kernel move the rest of the body if possible.
    pub fn splice(&mut self) {
        self.flow.splice();
    }

    /// The time until which a filter holds the body back.
    pub fn held_until(&self) -> Option<Moment> {
        self.flow.held_until()
    }

    /// Whether the low-water mark of the server's socket is raised; see [`Answer::lower_mark`].
    pub fn is_bulk(&self) -> bool {
        self.flow.is_bulk()
    }

    /// See [`Flow::lower_mark`].
    pub fn lower_mark(&mut self, upstream: &mut Upstream<'_>) {
        if let Upstream::H1(transport) = upstream {
            self.flow.lower_mark(&mut **transport);
        }
    }
}

impl crate::flow::Filtered for Answer {
    fn has_passage(&self) -> bool {
        self.flow.has_passage()
    }

    fn set_body_filter(&mut self, filter: Box<dyn BodyFilter>) {
        self.flow.set_body_filter(filter);
    }
}
