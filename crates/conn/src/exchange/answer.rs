//! An answer on its way from a server's connection to the client's: its head is read here, and its body flows. Owns the
//! bytes that were read of it. Must never decide what the client gets.

use std::io;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use wire::h1::{self, ConnectionLine, Edits, Overflow, Parse, RequestContext, Scan, Spelling, Violation};
use wire::http::{Fields, Framing, Head, Method, Version};

use super::whole;
use crate::behind::Behind;
use crate::downstream::{Downstream, HeadFormat};
use crate::flow::{BodyFilter, Discard, Flow, FlowError, FlowStep, Moved, Trailers};
use crate::found::{Fault, Found};
use crate::h1::server::{fits, grow, make_room};
use crate::service::Payload;
use crate::upstream::Upstream;

/// What an interim answer may grow by when it is written anew: its reason phrase and the end of its head.
const GROWTH: usize = 256;

/// What reading a server's connection brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// So many bytes.
    Bytes(usize),
    /// The end of the connection, or its failure.
    Closed,
}

/// How an answer is passed on.
#[derive(Debug, Clone, Copy)]
pub struct Onward<'s> {
    /// The client has asked for a head alone, whatever rules have made of its method.
    pub for_head_alone: bool,
    /// The answer opens a tunnel.
    pub tunnel: bool,
    /// The body comes as payload, without any coding: from anything but a connection of HTTP/1.
    pub uncoded: bool,
    /// It comes from a service of the process, which may be left before its end.
    pub served_here: bool,
    /// The server tells the end of an answer without a body apart from its head, and has not done so yet.
    pub ends_apart: bool,
    /// The client's connection may go on, as far as anything but the answer is concerned.
    pub keep_client: bool,
    /// How the names of fields are spelt.
    pub spelling: Option<&'s Spelling>,
}

/// What an answer's head says about its body and both connections.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How the answer's head says that the body ends.
    framing: Framing,
    /// What the head that goes to the client says about the body's end.
    sent: Framing,
    /// The body is passed on in chunks.
    chunked: bool,
    /// How the body ends where it comes from.
    source: Framing,
    /// What the server sends as a body is not for the client.
    bare: bool,
    /// The client's connection goes on.
    pub keep_client: bool,
    /// The server's connection goes on, as far as the answer is concerned.
    pub keep_server: bool,
}

impl Plan {
    /// Whether a body goes to the client.
    pub fn has_body(&self) -> bool {
        self.framing.has_body() && !self.bare
    }

    /// Whether nothing but the end of the client's connection says where the body ends.
    pub fn is_undelimited(&self) -> bool {
        self.sent == Framing::UntilClose && !self.bare
    }

    /// The bytes of the body where they go on as they are.
    pub fn unchanged(&self) -> Option<u64> {
        match self.source {
            _ if self.chunked || self.bare => None,
            Framing::Length(length) => Some(length),
            Framing::None => Some(0),
            Framing::Chunked | Framing::UntilClose => None,
        }
    }

    /// The same where the body does not come as the head says that goes on, because a filter makes another one of it.
    /// `uncoded`: it comes as payload up to an end that is told.
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

/// An answer between two HTTP/1 connections.
pub struct Answer {
    input: Buffer,
    scan: Scan,
    flow: Flow,
    /// Heads that were none, and those that broke rules which an option lets pass.
    glitches: u32,
}

impl Default for Answer {
    fn default() -> Self {
        Self { input: Buffer::empty(), scan: Scan::default(), flow: Flow::idle(), glitches: 0 }
    }
}

impl Answer {
    /// What was read and not used.
    pub fn received(&self) -> &[u8] {
        self.input.data()
    }

    /// What was read behind the head and not used: of a service, payload.
    pub fn behind(&self, upstream: &Upstream<'_>) -> Behind<'_> {
        Behind { data: self.input.data(), coded: upstream.is_coded() }
    }

    /// The bytes that were read and not used, for whoever reads on.
    pub fn input_mut(&mut self) -> &mut Buffer {
        &mut self.input
    }

    /// Reads what there is of heads. Holds no buffer while nothing has come.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>, upstream: &mut Upstream<'_>) -> Poll<Came> {
        if let Upstream::H2(request) = upstream {
            return request.poll_head(cx).map(|found| if found { Came::Bytes(0) } else { Came::Closed });
        }
        if self.input.capacity() == 0 {
            if let Upstream::H1(transport) = upstream
                && transport.poll_readable(cx).is_pending()
            {
                return Poll::Pending;
            }
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
            Poll::Ready(Ok(read)) if read > 0 => Poll::Ready(Came::Bytes(read)),
            Poll::Ready(_) => Poll::Ready(Came::Closed),
        }
    }

    /// Reads what has come behind the head. `None`: there is no room for more, or no more comes; an end or an error shows
    /// again to the next read.
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

    /// Reads more of a body that is to stay here, into a buffer that has room around it for chunk framing; into one of
    /// `large` bytes where that is full. `None` as for [`Answer::poll_more`].
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
    ) -> Found {
        if let Upstream::H2(request) = upstream {
            return request.take_head(method, limits, head);
        }
        let context = RequestContext { head: method == Method::Head, connect: method == Method::Connect };
        match h1::parse_response(self.input.data(), limits, &context, &mut self.scan, head) {
            Ok(Parse::Partial) if self.input.len() < limits.max_head => {
                if self.input.room() == 0 {
                    self.input.compact();
                }
                return Found::Part;
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
                return Found::Invalid(Some(fault.unwrap_or(too_large)));
            }
        }
        if upstream.is_application() {
            if !wire::fcgi::settle(head, method) {
                self.glitches += 1;
                return Found::Invalid(None);
            }
            if head.framing == Framing::Chunked && upstream.application_has_answered() {
                // All of it is here.
                head.framing = Framing::Length(self.input.len() as u64);
                head.append(b"content-length", self.input.len().to_string().as_bytes());
            }
        }
        match head.status() {
            101 => Found::Final,
            100..200 => Found::Interim,
            _ => Found::Final,
        }
    }

    /// Glitches of HTTP/1 since this was called before.
    pub fn take_glitches(&mut self) -> u32 {
        std::mem::take(&mut self.glitches)
    }

    /// Whether one more interim answer is here that fits behind those that wait to be written: one call writes them all.
    pub fn may_collect(&mut self) -> bool {
        let is_interim = |data: &[u8]| matches!(data.get(9..12), Some([b'1', b'0', b'0' | b'2'..=b'9']));
        self.flow.head_pending()
            && is_interim(self.input.data())
            && self.flow.head_mut().room() > self.input.len() + GROWTH
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

    /// Reads what the heads of a request and its answer say about the body and both connections.
    pub fn plan(format: HeadFormat, request: &Head, response: &Head, onward: &Onward<'_>) -> Plan {
        let framing = if onward.tunnel { Framing::None } else { response.framing };
        let modern = request.version() == Version::Http11;
        // A rule has made another request of one for a head alone, or has set a status whose answers have no body: what
        // the server sends is not for the client.
        let bare = framing.has_body() && (onward.for_head_alone || !allows_body(response.status()));
        // The request is over at the server when that says so: only then may its client go on, as its next request could otherwise be
        // served beside it.
        let ends_apart = framing == Framing::None && onward.ends_apart && !onward.tunnel;
        let delimited = match framing {
            Framing::UntilClose => false,
            // HTTP/1.0 knows no chunks: whoever sends or gets them in it cannot be trusted to find the end.
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
            // the client would take what follows on its connection for the body.
            Framing::None if !onward.tunnel && !onward.for_head_alone && allows_body(response.status()) => {
                Framing::Length(0)
            }
            other => other,
        };
        // Whatever a server sends after it has accepted a CONNECT is no message (RFC 9110, section 9.3.6).
        let tunnelled = request.known_method() == Method::Connect && (200..300).contains(&response.status());
        Plan {
            framing,
            sent,
            chunked: framing == Framing::Chunked && modern && !bare && format.has_chunks(),
            bare: bare || ends_apart,
            source: match framing {
                // A service whose payload nobody is to get is not asked for it.
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
        (request, response): (&Head, &Head),
        plan: &Plan,
        onward: &Onward<'_>,
    ) -> Result<(), Overflow> {
        Self::encode_head(format, (request, response), (plan, onward), self.flow.head_mut())
    }

    /// Writes the answer's head for the client.
    ///
    /// # Errors
    /// It does not fit.
    pub fn encode_head(
        format: HeadFormat,
        (request, response): (&Head, &Head),
        (plan, onward): (&Plan, &Onward<'_>),
        out: &mut Buffer,
    ) -> Result<(), Overflow> {
        let version = response.version();
        let connection = match onward.tunnel {
            true if response.status() == 101 => ConnectionLine::Upgrade(response.first(b"upgrade").unwrap_or_default()),
            true => ConnectionLine::Nothing,
            false => ConnectionLine::for_response(request.version(), version, plan.keep_client),
        };
        let edits = Edits { connection, framing: plan.sent, version, spelling: onward.spelling, last: None };
        format.encode(response, &edits, out)
    }

    /// Goes on with an answer of which that is still to be written: of its head, and bytes of its body.
    pub fn go_on(&mut self, head: Buffer, left: u64) {
        self.flow.go_on(head, left);
    }

    /// Starts the body with what came behind the head.
    ///
    /// # Errors
    /// That breaks the chunked coding: the queued head is taken back up to `head` bytes.
    pub fn start(&mut self, plan: &Plan, head: usize) -> Result<(), FlowError> {
        if plan.bare {
            self.flow.set_body_filter(Box::new(Discard));
        }
        let body = std::mem::replace(&mut self.input, Buffer::empty());
        let started = self.flow.start(body, plan.source, plan.chunked);
        if started.is_err() {
            self.flow.head_mut().truncate(head);
        }
        started.map(|_| ())
    }

    /// Starts the body of an answer that nobody gets.
    ///
    /// # Errors
    /// What came behind the head breaks the chunked coding.
    pub fn start_drain(&mut self, framing: Framing) -> Result<(), FlowError> {
        let body = std::mem::replace(&mut self.input, Buffer::empty());
        self.flow.start(body, framing, false).map(|_| ())
    }

    /// Reads the body and drops it. See [`Flow::poll_drain`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>, upstream: &mut Upstream<'_>) -> Result<FlowStep, FlowError> {
        let (flow, mut moved) = (&mut self.flow, Moved::default());
        match upstream {
            Upstream::H1(transport) => flow.poll_drain(cx, &mut **transport, &mut moved),
            Upstream::H2(request) => flow.poll_drain(cx, &mut **request, &mut moved),
            Upstream::Fcgi(connection) => flow.poll_drain(cx, &mut **connection, &mut moved),
            Upstream::FcgiShare(request) => flow.poll_drain(cx, &mut **request, &mut moved),
            Upstream::Service(service) => flow.poll_drain(cx, &mut Payload(&mut **service), &mut moved),
        }
    }

    /// Moves what can be moved. See [`Flow::poll`].
    ///
    /// # Errors
    /// As there.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &mut Upstream<'_>,
        client: &mut Downstream,
        moved: &mut Moved,
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

    /// Hands all of it to the client, where it is here. False: it has to flow.
    fn poll_whole(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &Upstream<'_>,
        client: &mut Downstream,
        moved: &mut Moved,
    ) -> Result<bool, FlowError> {
        let stream = match client {
            Downstream::H1(server) => return whole::send_answer(cx, &mut self.flow, &mut server.transport, moved),
            Downstream::H2(stream) => stream,
        };
        if let Upstream::H2(request) = upstream
            && whole::pass_answer(&mut self.flow, request, stream, moved)
        {
            return Ok(true);
        }
        whole::send_answer(cx, &mut self.flow, &mut **stream, moved)
    }

    fn poll_flow(
        &mut self,
        cx: &mut Context<'_>,
        upstream: &mut Upstream<'_>,
        client: &mut Downstream,
        moved: &mut Moved,
    ) -> Result<FlowStep, FlowError> {
        let flow = &mut self.flow;
        match (upstream, client) {
            (Upstream::H1(transport), Downstream::H1(server)) => {
                flow.poll(cx, &mut **transport, &mut server.transport, moved)
            }
            (Upstream::Service(service), Downstream::H1(server)) => {
                flow.poll(cx, &mut Payload(&mut **service), &mut server.transport, moved)
            }
            (Upstream::H1(transport), Downstream::H2(stream)) => flow.poll(cx, &mut **transport, &mut **stream, moved),
            (Upstream::H2(request), Downstream::H1(server)) => {
                flow.poll(cx, &mut **request, &mut server.transport, moved)
            }
            (Upstream::H2(request), Downstream::H2(stream)) => flow.poll(cx, &mut **request, &mut **stream, moved),
            (Upstream::Fcgi(connection), Downstream::H1(server)) => {
                flow.poll(cx, &mut **connection, &mut server.transport, moved)
            }
            (Upstream::Fcgi(connection), Downstream::H2(stream)) => {
                flow.poll(cx, &mut **connection, &mut **stream, moved)
            }
            (Upstream::FcgiShare(request), Downstream::H1(server)) => {
                flow.poll(cx, &mut **request, &mut server.transport, moved)
            }
            (Upstream::FcgiShare(request), Downstream::H2(stream)) => {
                flow.poll(cx, &mut **request, &mut **stream, moved)
            }
            (Upstream::Service(service), Downstream::H2(stream)) => {
                flow.poll(cx, &mut Payload(&mut **service), &mut **stream, moved)
            }
        }
    }

    /// Writes what is queued. See [`Flow::poll_flush`].
    ///
    /// # Errors
    /// As there.
    pub fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        moved: &mut Moved,
    ) -> Poll<io::Result<()>> {
        match client {
            Downstream::H1(server) => self.flow.poll_flush(cx, &mut server.transport, moved),
            Downstream::H2(stream) => self.flow.poll_flush(cx, &mut **stream, moved),
        }
    }

    /// Bytes of heads that are queued.
    pub fn queued(&self) -> usize {
        self.flow.head_length()
    }

    /// Whether heads are queued.
    pub fn is_queued(&self) -> bool {
        self.flow.head_pending()
    }

    /// The queued head of a tunnel's answer, and what the server has sent behind it.
    pub fn into_tunnel(&mut self) -> (Buffer, Buffer) {
        (self.flow.take_head(), std::mem::take(&mut self.input))
    }

    /// Whether the server has sent more than its answer.
    pub fn has_surplus(&mut self) -> bool {
        !self.flow.take_rest().is_empty()
    }

    /// Whether all of the answer was received: what is left of it is to be sent.
    pub fn has_come(&self) -> bool {
        self.flow.source_ended()
    }

    /// The client's connection ends behind the body.
    pub fn close_behind(&mut self, closes: bool) {
        self.flow.closes = closes;
    }

    /// What becomes of trailers.
    pub fn set_trailers(&mut self, trailers: Trailers) {
        self.flow.trailers = trailers;
    }

    /// Takes the trailers as they were received, of a body that has ended.
    pub fn take_received_trailers(&mut self) -> Option<Box<Fields>> {
        self.flow.take_received_trailers()
    }

    /// Has the kernel move the rest of the body where it can.
    pub fn splice(&mut self) {
        self.flow.splice();
    }

    /// When it goes on, where a filter holds it back.
    pub fn held_until(&self) -> Option<Moment> {
        self.flow.held_until()
    }

    /// Whether the server's socket wakes readers for large amounts only; see [`Answer::lower_mark`].
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
