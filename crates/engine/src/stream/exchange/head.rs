//! The answer's head: receives, validates, evaluates and encodes it, and derives the reuse of both connections.
//! Forwards interim responses. Must never touch a body.

use std::task::{Context, Poll};

use config::spec::RetryOn;
use conn::exchange::{Answer as AnswerFlow, AnswerHeadKind, AnswerReader, ForwardTerms, Heads, ReadOutcome};
use conn::flow::{FlowProgress, FlowStep};
use conn::glitches::GlitchLimits;
use conn::h1::HeadLimits;
use conn::h3::Unshaken;
use conn::service;
use conn::upstream::Upstream;
use expression::sample::{ConnectionError, Direction, LinkFacts};
use policy::program::Features;
use wire::http::{Method, Version};

use super::response_rules::ResponseVerdict;
use super::{Answer, End, Exchange, Upload, cut, failed};

use crate::filter::HeadRefused;
use crate::session::Session;
use crate::stream::cache::{self, validation};
use crate::stream::exchange::plan::trailers;
use crate::stream::exchange::{answer_timeouts, fcgi, filter, websocket};
use crate::stream::record::{capture_errors, metrics, tracing};
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::server::server_multiplex::protocol_of;
use crate::stream::server::{early_data, observe};
use crate::stream::stages;
use crate::stream_state::{Cause, EarlyRequest, Phase, StreamState};

/// Maximum number of heads that are read before other tasks run.
const HEADS_IN_A_TURN: usize = 256;

/// Maximum number of interim responses per request: a server that sends more never answers.
const MOST_INTERIM: u32 = 1000;

/// Features that may add filters to a stream.
const FILTERED: Features = Features::FILTERS.with(Features::RULES);

/// Features that may change an answer's head before it is forwarded.
const JUDGED: Features = Features::RESPONSE_RULES.with(Features::PERSISTENCE);

/// Features that may change timeouts once the head of an answer is known.
const TIMED: Features = Features::RULES.with(Features::STREAM_TIMEOUT);

/// Whether the server's answer turns both connections into a tunnel.
fn opens_tunnel(state: &StreamState) -> bool {
    let status = state.answer.server_status.unwrap_or_else(|| state.response.status());
    let connect = state.request.known_method() == Method::Connect && (200..300).contains(&status);
    connect || (status == 101 && state.request.upgrade)
}

/// Parses one head of an answer, into the state of its stream.
pub(super) fn parse(
    session: &Session,
    upstream: &Upstream<'_>,
    state: &mut StreamState,
    reader: &mut AnswerReader,
    limits: &HeadLimits,
) -> AnswerHeadKind {
    let found = reader.parse(upstream, state.request.known_method(), limits, &mut state.response);
    if found == AnswerHeadKind::Final && upstream.is_application() {
        fcgi::date(&session.worker, &mut state.response);
        tracing::application_answered(session, state);
    }
    found
}

impl Exchange<'_> {
    /// Reads the answer's head. True: it opens a tunnel.
    pub(super) fn advance_head(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        self.reply.step = FlowStep::AwaitsSource;
        if self.rules.inspecting.is_some() || self.rules.paused.is_some() || self.rules.is_ruled {
            return self.inspect_and_begin(cx);
        }
        if let Upstream::Service(service) = &mut self.upstream {
            let polled = {
                // A script that answers may access the state of its stream.
                let mut response = std::mem::take(&mut self.state.borrow_mut().response);
                let polled = service::poll_head(&mut **service, cx, &self.state.borrow().request, &mut response);
                self.state.borrow_mut().response = response;
                polled
            };
            match polled {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(progress)) => {
                    self.reply.has_begun = true;
                    self.server_side.reads(rt::now(), progress);
                }
                Poll::Ready(Err(_)) => return failed(Cause::Internal, Phase::Headers, 500),
            }
            return self.inspect_and_begin(cx);
        }
        for _ in 0..HEADS_IN_A_TURN {
            if !self.reply.unparsed || !self.reply.message.may_collect() {
                if self.reply.message.is_queued() {
                    self.flush_interim(cx)?;
                }
                // Nothing more is read while the client does not accept the pending output.
                if self.reply.message.is_queued() || (!self.reply.unparsed && !self.read_head(cx)?) {
                    return Ok(false);
                }
            }
            let found = match self.parse_head() {
                Ok(found) => found,
                Err(end) => {
                    self.flush_interim(cx)?;
                    return Err(end);
                }
            };
            match found {
                AnswerHeadKind::Part | AnswerHeadKind::Invalid(_) => self.reply.unparsed = false,
                AnswerHeadKind::Interim => self.reply.unparsed = !self.reply.message.reader.received().is_empty(),
                AnswerHeadKind::Final => return self.inspect_and_begin(cx),
            }
        }
        self.reply.step = FlowStep::Exhausted;
        Ok(false)
    }

    /// Begins the answer once the rules on its bytes have let it pass. True: it opens a tunnel.
    fn inspect_and_begin(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if !self.rules.is_ruled {
            if self.rules.paused.is_none() {
                if self.terms.features.have(Features::RESPONSE_RULES) && !self.inspect(cx)? {
                    return Ok(false);
                }
                self.meet_answer()?;
            }
            let ruled = if self.terms.features.have(JUDGED) { self.rule(cx) } else { ResponseVerdict::Passes };
            match ruled {
                ResponseVerdict::Passes => {}
                ResponseVerdict::Ends(ending) => return Err(self.replace_answer(ending)),
                ResponseVerdict::Waits => return Ok(false),
                ResponseVerdict::Late => return failed(Cause::ServerTimeout, Phase::Headers, 504),
            }
        }
        if self.terms.features.have(FILTERED) && !self.pass_scripts(cx)? {
            return Ok(false);
        }
        let tunnel = self.begin_answer()?;
        stages::answer_begun(self.session, self.state, self.reply.message.queued());
        Ok(tunnel)
    }

    /// Runs the filters of scripts on the answer's head. False: one of them is pending.
    fn pass_scripts(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let filters = self.state.borrow().filters.clone();
        let Some(filters) = filters.filter(|filters| filter::are_scripted(Some(filters))) else { return Ok(true) };
        if !self.rules.is_ruled {
            self.rules.came_as = self.state.borrow().response.framing;
        }
        let polled = filter::poll_head(cx, &filters, self.state, Direction::Response);
        self.rules.is_ruled = polled.is_pending();
        match polled {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(HeadRefused::Refused)) => failed(Cause::Refused, Phase::Headers, 502),
            Poll::Ready(Err(HeadRefused::Ended(None))) => failed(Cause::Local, Phase::Headers, 502),
            Poll::Ready(Err(HeadRefused::Ended(Some((status, text))))) => {
                Err(self.replace_answer(Box::new(Ending::given(Phase::Headers, status, text))))
            }
        }
    }

    /// Reads available bytes. False: there are none at present.
    fn read_head(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        match self.reply.message.reader.poll_receive(cx, &mut self.upstream) {
            Poll::Pending => Ok(false),
            Poll::Ready(ReadOutcome::Bytes(read)) => {
                self.reply.has_begun = true;
                self.state.borrow_mut().accounting.bytes.received += read as u64;
                Ok(true)
            }
            Poll::Ready(ReadOutcome::Closed) => self.server_gone(),
        }
    }

    /// Records the result of a handshake during which the request was sent as early data.
    fn meet_handshake(&self, state: &mut StreamState) {
        if state.attempts.early != EarlyRequest::Sent || state.attempts.server_tls.is_some() {
            return;
        }
        if self.upstream.is_shared() {
            // The shared connection counts it.
            state.attempts.server_tls = self.upstream.handshake_info().cloned();
            return;
        }
        let found = self.upstream.handshake_info();
        let handshake = match found.filter(|found| found.failure.is_none()) {
            Some(found) => metrics::Handshake::Made { resumed: found.resumed },
            None => metrics::Handshake::Failed,
        };
        state.attempts.server_tls = found.cloned();
        let proxy = self.session.proxy_at(self.terms.backend);
        let servers = proxy.backend.as_ref().map(|backend| &backend.servers);
        if let Some(server) = servers.zip(state.route.server).and_then(|(servers, server)| servers.get(server)) {
            metrics::server_handshake(&self.session.worker, proxy.index, server.serial, handshake);
        }
    }

    fn note_refusal(&self) {
        let state = &mut *self.state.borrow_mut();
        let proxy = self.session.proxy_at(self.terms.backend);
        let server = state.route.server.and_then(|server| proxy.server(server));
        early_data::note_refusal(state, server);
    }

    /// Whether the request was sent as early data that the server has rejected, and may be sent again for that reason.
    fn is_rejected_early_data(&self) -> bool {
        let attempts = &self.state.borrow().attempts;
        let is_connected = attempts.server_tls.as_ref().is_some_and(|info| info.failure.is_none());
        attempts.early == EarlyRequest::Sent && is_connected && self.retries(RetryOn::EARLY_DATA_REJECTED)
    }

    /// Whether the server's statement that it has not processed the request can be forwarded to the client: no server
    /// has processed it before.
    fn passes_refusal(&self) -> bool {
        let backend = self.session.proxy_at(self.terms.backend).backend.as_ref();
        let was_begun = self.state.borrow().attempts.retries > 0
            && backend.is_none_or(|backend| backend.limits.retry_on.keeps_request());
        !was_begun && !self.reply.interim_sent
    }

    /// Whether a server rejects a request as early data with 425 (Too Early), and it is to be sent again after the
    /// handshake. If the client has not sent it as early data, the status must not be forwarded (RFC 8470, section
    /// 5.2).
    fn is_too_early(&self, state: &mut StreamState, status: u16) -> bool {
        let is = status == 425
            && state.attempts.early == EarlyRequest::Sent
            && !state.request.contains(b"early-data")
            && self.retries(RetryOn::EARLY_DATA_REJECTED);
        if is {
            state.attempts.early = EarlyRequest::Refused;
        }
        is
    }

    /// Handles the end of the server's link before the end of the answer's head.
    pub(super) fn server_gone(&mut self) -> Result<bool, End> {
        self.meet_handshake(&mut self.state.borrow_mut());
        let unshaken = self.upstream.unshaken();
        if unshaken.is_some() {
            self.state.borrow_mut().timings.connected = None;
        }
        if self.upstream.is_refused() && (self.may_begin_again() || self.is_rejected_early_data()) {
            self.note_refusal();
            return Err(End::Retry { bad_answer: unshaken.is_none() });
        }
        if let Some(unshaken) = unshaken {
            return self.fails_to_connect(unshaken);
        }
        if self.upstream.is_refused() && self.passes_refusal() && self.client.conn.refuse() {
            return cut(Cause::Server, Phase::Headers, 502);
        }
        if !self.reply.message.reader.received().is_empty() {
            return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502);
        }
        if !self.reply.has_begun && self.retries(RetryOn::EMPTY_RESPONSE) {
            return Err(End::Retry { bad_answer: true });
        }
        match (self.reply.has_begun, self.terms.reused, self.terms.replayable) {
            (true, ..) => failed(Cause::Server, Phase::Headers, 502),
            (false, true, true) => Err(End::Replay),
            (false, true, false) => Err(End::Silent),
            (false, false, _) => failed(Cause::Server, Phase::Headers, 502),
        }
    }

    /// Fails because the handshake did not end, as an attempt to connect that has failed.
    #[cold]
    fn fails_to_connect(&self, unshaken: Unshaken) -> Result<bool, End> {
        let (cause, error) = match unshaken {
            Unshaken::Failed => (Cause::Server, ConnectionError::TLS_HANDSHAKE),
            Unshaken::Expired => (Cause::ServerTimeout, ConnectionError::TLS_TIMEOUT),
        };
        let state = &mut *self.state.borrow_mut();
        state.attempts.link = Some(LinkFacts { error, ..LinkFacts::default() });
        let proxy = self.session.proxy_at(self.terms.backend);
        let server = state.route.server.and_then(|server| proxy.server(server));
        metrics::step(&self.session.worker, proxy, server, metrics::ServerEvent::Failure);
        failed(cause, Phase::Connect, 503)
    }

    /// Writes pending interim responses.
    #[cold]
    fn flush_interim(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if !self.reply.message.is_queued() {
            return Ok(());
        }
        let mut moved = FlowProgress::default();
        let flushed = self.reply.message.poll_flush(cx, &mut self.client.conn, &mut moved);
        if let Some(progress) = moved.write_progress() {
            self.client_side.writes(rt::now(), progress);
            self.state.borrow_mut().accounting.bytes.bytes_out += moved.written as u64;
        }
        match flushed {
            Poll::Ready(Err(_)) => cut(Cause::Client, Phase::Data, 400),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Parses one head, and forwards it if it is an interim response.
    fn parse_head(&mut self) -> Result<AnswerHeadKind, End> {
        let state = &mut *self.state.borrow_mut();
        let found = match self.reply.parsed.take() {
            Some(parsed) => parsed,
            None => {
                let reader = &mut self.reply.message.reader;
                parse(self.session, &self.upstream, state, reader, &self.terms.limits)
            }
        };
        if let Some(progress) = found.progress() {
            self.server_side.reads(rt::now(), progress);
        }
        let kills = self.note_link(state, 0);
        match found {
            _ if kills => return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502),
            AnswerHeadKind::Invalid(fault) => {
                if let Some(fault) = fault {
                    capture_errors::response(self.session, state, fault, self.reply.message.reader.received());
                    tracing::bad_answer(self.session, state, self.upstream.is_application());
                }
                return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502);
            }
            AnswerHeadKind::Interim => {}
            AnswerHeadKind::Final if state.request.upgrade => return self.judge_upgrade(state),
            found => return Ok(found),
        }
        self.reply.interim += 1;
        if self.reply.interim > MOST_INTERIM {
            return failed(Cause::Proxy, Phase::Headers, 502);
        }
        // HTTP/1.0 has no interim responses.
        if state.request.version() == Version::Http11 {
            let spelling = self.session.proxy().http.client_spelling.as_deref();
            if self.reply.message.queue_interim(self.client.conn.head_format(), &state.response, spelling).is_err() {
                return failed(Cause::Proxy, Phase::Headers, 502);
            }
            self.reply.interim_sent = true;
            if state.response.status() == 100 {
                self.request.body.invite();
            }
        }
        state.response.clear();
        metrics::interim(self.session, state);
        Ok(AnswerHeadKind::Interim)
    }

    /// Records the glitches and the protocol state of the server's connection, with `more` glitches in addition.
    /// Returns whether the connection is to be closed immediately because of its glitches.
    pub(super) fn note_link(&mut self, state: &mut StreamState, more: u32) -> bool {
        let Some(link) = &mut state.attempts.link else { return false };
        if let Some(shared) = self.upstream.shared() {
            link.protocol = protocol_of(shared);
            return false;
        }
        let more = self.reply.message.reader.take_glitches() + more;
        if more == 0 {
            return false;
        }
        link.protocol.glitches = link.protocol.glitches.saturating_add(more);
        metrics::server_glitches(self.session, self.terms.backend, more);
        let global = &self.session.generation().program.global.glitches;
        let limits = GlitchLimits { threshold: global.http1_servers, usage: global.usage };
        self.odd |= limits.leaves(link.protocol.glitches);
        limits.kills(link.protocol.glitches)
    }

    /// Validates the answer to an upgrade request, for any HTTP version.
    fn judge_upgrade(&self, state: &mut StreamState) -> Result<AnswerHeadKind, End> {
        let is_stream = self.upstream.is_stream();
        match state.response.status() {
            200..300 if is_stream => websocket::complete(&state.request, &mut state.response),
            // As in HAProxy: the rest of the request would be taken for data after the protocol switch.
            101 if self.request.progress != Upload::Done => return failed(Cause::Proxy, Phase::Headers, 502),
            101 => {
                let client_judges = self.client.conn.is_connection();
                let accepts_unsafe = self.terms.limits.accept_unsafe;
                if !accepts_unsafe && !websocket::is_accepted(&state.request, &state.response, client_judges) {
                    return failed(Cause::Proxy, Phase::Headers, 502);
                }
            }
            _ => {}
        }
        Ok(AnswerHeadKind::Final)
    }

    /// Processes an answer before its rules run: retries, cache validation, health and statistics.
    fn meet_answer(&mut self) -> Result<(), End> {
        let state = &mut *self.state.borrow_mut();
        let status = state.response.status();
        self.meet_handshake(state);
        if self.is_too_early(state, status) {
            return Err(End::Retry { bad_answer: false });
        }
        if state.attempts.is_observed {
            observe::answer(self.session, state, status);
        }
        if self.terms.retry_on.keeps_request() && self.retries(RetryOn::status(status)) {
            return Err(End::Retry { bad_answer: false });
        }
        if self.terms.features.have(Features::RULES) && cache::has_fallback(self.session, state, status) {
            return failed(Cause::Server, Phase::Headers, status);
        }
        if validation::is_confirmed(state, status) {
            let keeps = state.response.version() == Version::Http11 && !state.response.connection.close;
            self.end_here(keeps);
            return Err(End::Validated);
        }
        if status == 101 && !opens_tunnel(state) {
            return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502);
        }
        stages::answer_received(self.session, state, status);
        Ok(())
    }

    /// Marks the answer as the last one of the client's connection.
    #[cold]
    fn begin_last(&mut self, undelimited: bool) {
        self.reply.message.close_behind(self.request.progress == Upload::Done);
        if undelimited {
            self.client.begin_undelimited();
        }
    }

    /// Replaces the server's answer by that of a rule, or by none.
    pub(in crate::stream) fn replace_answer(&mut self, ending: Box<Ending<'static>>) -> End {
        if let AnswerTiming::Silent(hops) = ending.manner {
            // If the system does not permit a silent drop, the connection is closed anyway.
            self.client.forget(hops);
            let state = &mut *self.state.borrow_mut();
            state.answer.status = state.answer.server_status.map_or(state.answer.status, i32::from);
        }
        let (outcome, status) = (ending.outcome, ending.status);
        if ending.manner == AnswerTiming::Never && outcome.cause == Cause::Local {
            // A script has ended it: it has no status, as in HAProxy.
            self.state.borrow_mut().answer.status = 0;
        }
        // The log must not contain the server's answer in place of the client's.
        let state = &mut *self.state.borrow_mut();
        state.response.clear();
        state.answer.compression = None;
        self.ending = Some(ending);
        End::Failed { outcome, status, page: status > 0 }
    }

    /// Whether anything follows the head of the answer, even if only the end of the stream. Payload that an application
    /// sends after a head without a body is read, so that its connection can be reused.
    fn ends_apart(&self) -> bool {
        !self.reply.message.reader.received().is_empty() || self.upstream.ends_apart()
    }

    /// Encodes the answer's head and starts its body. True: it opens a tunnel.
    fn begin_answer(&mut self) -> Result<bool, End> {
        let state = &mut *self.state.borrow_mut();
        let tunnel = opens_tunnel(state);
        let filters = if self.terms.features.have(FILTERED) { state.filters.clone() } else { None };
        let is_scripted = filter::are_scripted(filters.as_ref());
        let came = if is_scripted { self.rules.came_as } else { state.response.framing };
        if let Some(filters) = filters.as_ref().filter(|_| !is_scripted) {
            filter::response_head(filters, &mut state.response);
        }
        let served_here = self.upstream.is_service();
        if self.terms.features.have(TIMED) {
            answer_timeouts::apply(self.session, &mut self.terms, state, came, served_here);
        }
        let status = state.response.status();
        state.answer.status = i32::from(status);
        tracing::answered(self.session, state);
        let http = &self.session.proxy().http;
        // A client that got no 100 (Continue) may omit its body. A server has decided that itself.
        let body_is_sure = !served_here || self.request.body.may_end();
        let onward = ForwardTerms {
            for_head_alone: state.wants_head_alone(),
            tunnel,
            uncoded: !self.upstream.is_coded(),
            served_here,
            ends_apart: !self.upstream.is_coded() && !served_here && self.ends_apart(),
            keep_client: self.keep_client && body_is_sure && !self.session.is_leaving(),
            spelling: http.client_spelling.as_deref(),
        };
        let format = self.client.conn.head_format();
        let mut plan = AnswerFlow::plan(format, &state.request, &state.response, &onward);
        if state.response.framing != came {
            plan = plan.coming_as(came, onward.uncoded);
        }
        self.keep_client = plan.keep_client;
        self.reusable = plan.keep_server && !self.terms.close_server;
        let interim = self.reply.message.queued();
        let heads = Heads { request: &state.request, response: &state.response };
        if self.reply.message.queue_head(format, heads, &plan, &onward).is_err() {
            return failed(Cause::Refused, Phase::Headers, 502);
        }
        if served_here {
            // There was no head on the wire: the encoded head counts as received from the service.
            state.accounting.bytes.received += self.reply.message.queued().saturating_sub(interim) as u64;
        }
        if tunnel {
            self.settle();
            return Ok(true);
        }
        self.reply.message.set_trailers(trailers(http.drop_response_trailers, http.client_spelling.as_ref()));
        if filters.is_some() {
            // Response rules may have limited the client's further upload.
            filter::install(filters.as_ref(), Direction::Response, &mut self.reply.message, plan.has_body());
            if self.request.progress == Upload::Flowing {
                filter::install(filters.as_ref(), Direction::Request, self.request.body, true);
            }
        }
        if self.reply.message.start(&plan, interim).is_err() {
            state.timings.response = None;
            return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502);
        }
        self.settle();
        if !self.keep_client {
            self.begin_last(plan.is_undelimited());
        }
        if self.terms.splice_response {
            self.reply.message.splice();
        }
        self.reply.progress = Answer::Flowing;
        Ok(false)
    }
}
