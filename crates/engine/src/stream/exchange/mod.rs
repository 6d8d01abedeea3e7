//! One attempt to get an answer: writes the request to a server's link, reads the answer and forwards it to the client,
//! in both directions concurrently. Owns the data in flight between the two; must never choose a server.

mod answer_timeouts;
mod begun;
pub mod dispatch;
pub mod fcgi;
pub mod filter;
mod forward;
mod head;
mod hedged_exchange;
mod inspect;
mod limits;
pub(super) mod mirror;
pub mod plan;
mod response_rules;
pub(super) mod service_exchange;
pub(super) mod side_connection;
pub(super) mod started_service;
mod straight;
mod terms;
pub(super) mod websocket;

pub use response_rules::{expose, finish_rules};
pub use terms::{End, ExchangeResult, Terms};

use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use config::spec::RetryOn;
use conn::exchange::{self, AnswerHeadKind, RequestBody};
use conn::flow::{FlowError, FlowProgress, FlowStep};
use conn::h1::Violation;
use conn::upstream::Upstream;

use begun::{Begun, PartlySent, Step};

use crate::script::Action;
use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::client::activity::Activity;
use crate::stream::client::tunnel::Tunnelled;
use crate::stream::record::{metrics, tracking};
use crate::stream::reply::ending::Ending;
use crate::stream::request::rules::Progress;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Time without a read after which the low-water mark of a source is lowered again in the middle of a long body.
const BULK_PAUSE: Duration = Duration::from_millis(2);

/// Progress of a service's answer before its exchange.
pub enum ServiceProgress {
    /// Not started.
    Nothing,
    /// The rules have let its head pass.
    Ruled,
    /// A rule has replaced it.
    Replaced(Box<Ending<'static>>),
    /// It is being sent to a client that keeps its connection, and whose request has no body.
    Sent {
        /// The unsent part of its head.
        head: Buffer,
        /// Number of unsent bytes of its body.
        left: u64,
    },
}

/// State of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upload {
    Flowing,
    /// The server does not accept the rest, or has answered; further input of the client is read and discarded.
    Dropped,
    /// The server accepts no more, but the request may have to be sent to another one.
    Halted,
    Done,
}

/// State of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Awaited,
    Flowing,
    Done,
}

/// The request of an exchange.
struct Sending<'a> {
    progress: Upload,
    body: &'a mut RequestBody,
    step: FlowStep,
    /// The server has received the whole request.
    is_sent: bool,
    /// The client has closed its sending direction, and the exchange continues.
    half_closed: bool,
}

/// The answer of an exchange.
struct Receiving {
    progress: Answer,
    message: exchange::Answer,
    step: FlowStep,
    /// A byte of an answer was received.
    has_begun: bool,
    /// The received bytes may contain a whole head.
    unparsed: bool,
    /// A head that was parsed on the straight path.
    parsed: Option<AnswerHeadKind>,
    /// Number of interim responses received.
    interim: u32,
    /// One of them was forwarded to the client.
    interim_sent: bool,
}

/// The rules on the answer of an exchange.
struct AnswerRules {
    /// Set while rules inspect the answer's head and the bytes after it: the deadline of the inspection.
    inspecting: Option<Moment>,
    /// Progress of these rules.
    inspected: Progress,
    /// The script action that inspects the first bytes of the answer.
    running: Option<Box<dyn Action>>,
    /// Set while a rule delays the answer.
    paused: Option<Box<response_rules::PausedRules>>,
    /// The rules have let the answer's head pass, but it has not begun: a script's filter is pending.
    is_ruled: bool,
    /// The framing of the answer before scripts' filters saw it.
    came_as: wire::http::Framing,
}

/// An exchange with a server: one attempt of a request.
pub struct Exchange<'a> {
    session: &'a Session,
    client: &'a mut Client,
    upstream: Upstream<'a>,
    state: &'a SharedStreamState,
    terms: Terms,
    request: Sending<'a>,
    reply: Receiving,
    rules: AnswerRules,
    /// A second attempt runs concurrently with this one.
    race: Option<Box<hedged_exchange::Race>>,
    began: Moment,
    client_side: Activity,
    server_side: Activity,
    /// The server's link may serve another request after this one.
    reusable: bool,
    /// The server has exceeded the limit of glitches: its link is not reused.
    odd: bool,
    keep_client: bool,
    /// The answer by which a rule replaces the server's.
    ending: Option<Box<Ending<'static>>>,
}

const fn failed<T>(cause: Cause, phase: Phase, status: u16) -> Result<T, End> {
    Err(End::Failed { outcome: Outcome::new(cause, phase), status, page: status > 0 })
}

/// Whether chunk lines are too long in relation to their payload.
fn is_endless(error: &FlowError) -> bool {
    matches!(error, FlowError::Malformed(error) if error.violation == Violation::ChunkOverhead)
}

/// Fails with that status in the log, but closes the connection without an answer.
const fn cut<T>(cause: Cause, phase: Phase, status: u16) -> Result<T, End> {
    Err(End::Failed { outcome: Outcome::new(cause, phase), status, page: false })
}

impl<'a> Exchange<'a> {
    /// Creates an exchange. The request's flow contains its encoded head and the first bytes of its body.
    pub fn new(
        session: &'a Session,
        client: &'a mut Client,
        upstream: Upstream<'a>,
        state: &'a SharedStreamState,
        terms: Terms,
        up: &'a mut RequestBody,
    ) -> Self {
        let now = rt::now();
        Self {
            session,
            client,
            upstream,
            state,
            terms,
            request: Sending {
                progress: Upload::Flowing,
                body: up,
                step: FlowStep::Exhausted,
                is_sent: false,
                half_closed: false,
            },
            reply: Receiving {
                progress: Answer::Awaited,
                message: exchange::Answer::default(),
                step: FlowStep::Exhausted,
                has_begun: false,
                unparsed: false,
                parsed: None,
                interim: 0,
                interim_sent: false,
            },
            rules: AnswerRules {
                inspecting: None,
                inspected: Progress::default(),
                running: None,
                paused: None,
                is_ruled: false,
                came_as: wire::http::Framing::Length(0),
            },
            race: None,
            began: now,
            client_side: Activity::new(now, terms.independent_client),
            server_side: Activity::new(now, terms.independent_server),
            reusable: false,
            odd: false,
            keep_client: !terms.close_client,
            ending: None,
        }
    }

    /// Continues an exchange that has left the straight path.
    fn go_on(&mut self, Begun { since, step }: Begun) {
        self.began = since;
        self.client_side = Activity::new(since, self.terms.independent_client);
        self.server_side = Activity::new(since, self.terms.independent_server);
        match step {
            Step::Sending(head) => return self.request.body.set_head(head),
            Step::Awaiting(reader, parsed) => {
                (self.reply.has_begun, self.reply.unparsed) = (parsed.is_some(), parsed.is_some());
                (self.reply.message.reader, self.reply.parsed) = (reader, parsed);
            }
            Step::Answering(PartlySent { head, body, keep_client, reusable }) => {
                self.reply.message.go_on_with(head, body);
                self.reply.message.close_behind(!keep_client);
                (self.reply.has_begun, self.reply.progress) = (true, Answer::Flowing);
                (self.keep_client, self.reusable) = (keep_client, reusable);
            }
        }
        self.mark_sent();
    }

    /// Marks the request as sent to its end.
    fn mark_sent(&mut self) {
        (self.request.progress, self.request.is_sent, self.request.step) = (Upload::Done, true, FlowStep::Finished);
    }

    /// Continues with an attempt that has sent the request already, and has received `input` of its answer.
    pub fn resume(&mut self, input: Buffer) {
        self.mark_sent();
        (self.reply.has_begun, self.reply.unparsed) = (!input.is_empty(), !input.is_empty());
        *self.reply.message.reader.input_mut() = input;
    }

    /// Continues with the answer of a service from its current state. Returns the result of the exchange if it ends
    /// immediately.
    pub fn take_up(&mut self, begun: ServiceProgress) -> Option<End> {
        self.reply.has_begun = !matches!(begun, ServiceProgress::Nothing);
        match begun {
            ServiceProgress::Nothing => {}
            ServiceProgress::Ruled => self.rules.is_ruled = true,
            ServiceProgress::Replaced(ending) => return Some(self.replace_answer(ending)),
            ServiceProgress::Sent { head, left } => {
                self.mark_sent();
                self.reply.message.go_on(head, left);
                self.reply.progress = Answer::Flowing;
            }
        }
        None
    }

    /// Runs the exchange to its end, or until a second server is to be asked.
    pub async fn run(&mut self) -> End {
        match std::future::poll_fn(|cx| self.poll(cx)).await {
            // An error page in the middle of an interim response would be taken for a part of that.
            End::Failed { outcome, status, .. } if self.reply.message.is_queued() => {
                End::Failed { outcome, status, page: false }
            }
            end => end,
        }
    }

    /// Ends the exchange with an answer without a body, which is not forwarded.
    fn end_here(&mut self, keep_server: bool) {
        self.reusable = keep_server && !self.terms.close_server && self.reply.message.reader.received().is_empty();
        self.reply.progress = if self.request.progress == Upload::Done { Answer::Done } else { Answer::Awaited };
    }

    /// Whether the link may serve another request.
    fn link_is_reusable(&self) -> bool {
        self.reusable && !self.odd && self.request.is_sent && self.reply.progress == Answer::Done
    }

    /// Whether the client's connection continues, even if the client has closed its sending direction: there may be
    /// another request before the end.
    fn client_goes_on(&self) -> bool {
        self.keep_client && self.request.progress == Upload::Done
    }

    /// Returns the state of both connections after the exchange.
    pub fn remains(&self) -> ExchangeResult {
        ExchangeResult {
            client_goes_on: self.client_goes_on(),
            client_drains: self.keep_client && self.request.progress != Upload::Done,
            link_is_reusable: self.link_is_reusable(),
            nothing_sent: self.reply.progress == Answer::Awaited,
        }
    }

    /// Takes the head of the answer that opened a tunnel, and the bytes that the server sent after it.
    pub fn take_tunnel(&mut self) -> Tunnelled {
        let (head, input) = self.reply.message.into_tunnel();
        Tunnelled { head, input }
    }

    /// Takes the answer by which a rule replaces the server's.
    pub fn take_ending(&mut self) -> Option<Box<Ending<'static>>> {
        self.ending.take()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.race.is_some()
            && let Some(polled) = self.poll_race(cx)
        {
            return polled;
        }
        let advanced = self.advance(cx);
        if self.terms.logs_errors {
            self.log_errors();
        }
        match advanced {
            Ok(Some(end)) | Err(end) => Poll::Ready(end),
            Ok(None) if self.request.step == FlowStep::Exhausted || self.reply.step == FlowStep::Exhausted => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(None) => self.poll_limits(cx),
        }
    }

    /// Logs the received part of the standard error stream before the stream's own line.
    fn log_errors(&mut self) {
        if let Some(backend) = &self.session.proxy_at(self.terms.backend).backend {
            fcgi::log_errors(self.session, backend, &mut self.upstream);
        }
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Result<Option<End>, End> {
        self.advance_upload(cx)?;
        if self.reply.progress == Answer::Awaited && self.advance_head(cx)? {
            return Ok(Some(End::Tunnel));
        }
        if self.reply.progress == Answer::Flowing {
            self.advance_answer(cx)?;
        }
        // The answer may be complete before the request. The rest of the request is forwarded, or at least read:
        // otherwise the client would never see the answer.
        if self.reply.progress == Answer::Done
            && (self.request.progress == Upload::Done || !self.keep_client || self.has_left_server(cx)?)
        {
            return Ok(Some(End::Answered));
        }
        Ok(None)
    }

    /// Whether the server, which has answered, needs no more of the request: its slot and its connection are not held until the
    /// client has sent the rest.
    #[cold]
    fn has_left_server(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        match self.request.progress {
            Upload::Flowing if self.request.step == FlowStep::AwaitsSource => match self.upstream.poll_stopped(cx) {
                Poll::Pending => Ok(false),
                Poll::Ready(Ok(())) => Ok(true),
                Poll::Ready(Err(_)) => cut(Cause::Server, Phase::Last, 0),
            },
            Upload::Dropped => Ok(!self.upstream.is_service()),
            Upload::Flowing | Upload::Halted | Upload::Done => Ok(false),
        }
    }

    fn advance_upload(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut moved = FlowProgress::default();
        let result = match self.request.progress {
            Upload::Done | Upload::Halted => return Ok(()),
            Upload::Flowing => self.request.body.poll(cx, &mut self.client.conn, &mut self.upstream, &mut moved),
            Upload::Dropped => self.request.body.poll_drain(cx, &mut self.client.conn, &mut moved),
        };
        if self.request.step == FlowStep::Held {
            // Nothing was read while a filter held the flow back.
            self.client_side.reading_resumes(rt::now());
        }
        if moved.read > 0 {
            if let Some(progress) = moved.read_progress() {
                self.client_side.reads(rt::now(), progress);
            }
            let state = &mut *self.state.borrow_mut();
            state.accounting.bytes.bytes_in += moved.read as u64;
            metrics::flowing(self.session, state);
        }
        if let Some(progress) = moved.write_progress() {
            self.server_side.writes(rt::now(), progress);
            self.state.borrow_mut().accounting.bytes.sent += moved.written as u64;
            if moved.spliced > 0 {
                metrics::spliced(self.session, &self.state.borrow(), false, moved.spliced);
            }
        }
        match result {
            Ok(step) => {
                if step == FlowStep::AwaitsSink && self.request.step != step {
                    // The server's timeout runs from the start of the wait, regardless of how long there was nothing to
                    // write.
                    self.server_side.writing_waits(rt::now());
                }
                self.request.step = step;
                if step == FlowStep::Finished {
                    self.request.is_sent = self.request.progress == Upload::Flowing;
                    self.request.progress = Upload::Done;
                }
                Ok(())
            }
            Err(FlowError::Write(_)) if self.reply.progress == Answer::Done => match self.upstream.poll_stopped(cx) {
                // The server has answered and needs no more of the request.
                Poll::Ready(Ok(())) => {
                    self.drop_upload();
                    Ok(())
                }
                _ => cut(Cause::Server, Phase::Last, 0),
            },
            Err(FlowError::Write(_)) => {
                // The server accepts no more; it may have answered already. Its answer decides.
                if self.reply.progress == Answer::Awaited
                    && self.request.body.is_recorded()
                    && self.terms.retry_on != RetryOn::NONE
                {
                    (self.request.progress, self.request.step) = (Upload::Halted, FlowStep::AwaitsSink);
                } else {
                    self.drop_upload();
                }
                Ok(())
            }
            Err(error) => self.upload_failed(&error),
        }
    }

    /// Reads and discards further input of the client.
    fn drop_upload(&mut self) {
        self.request.body.abandon_sink();
        (self.request.progress, self.request.step) = if self.request.body.source_ended() {
            (Upload::Done, FlowStep::Finished)
        } else {
            // The client is read in the next poll, which follows immediately: nothing else may wake the task.
            (Upload::Dropped, FlowStep::Exhausted)
        };
    }

    /// Commits to this answer: the request is not sent again.
    fn settle(&mut self) {
        self.request.body.forget_record();
        if self.request.progress == Upload::Halted {
            self.drop_upload();
        }
    }

    /// Whether the request is to be sent again after this failure.
    fn retries(&self, failure: RetryOn) -> bool {
        self.terms.retry_on.contains(failure)
            && !self.reply.interim_sent
            && (self.request.body.is_recorded() || !self.terms.has_body)
            && self.budget_allows()
    }

    /// Whether a request that its server has not processed may be sent again, under the same conditions as after a
    /// refused connection.
    fn may_begin_again(&self) -> bool {
        let is_whole = !self.terms.has_body || self.request.body.is_recorded();
        self.terms.may_retry && !self.reply.interim_sent && is_whole && self.budget_allows()
    }

    /// Whether `retry-budget` permits another attempt. The call counts as one, so that it has to be the last condition.
    fn budget_allows(&self) -> bool {
        self.session.worker.proxy_state(self.terms.backend).may_retry(rt::now())
    }

    /// Fails without a valid answer, or requests a retry if that is configured for this failure.
    fn fails<T>(&self, failure: RetryOn, cause: Cause, status: u16) -> Result<T, End> {
        if self.retries(failure) { Err(End::Retry { bad_answer: true }) } else { failed(cause, Phase::Headers, status) }
    }

    fn upload_failed(&self, error: &FlowError) -> Result<(), End> {
        if error.is_malformed() {
            tracking::wrong_body(self.session, &self.client.conn, self.state);
        }
        let malformed = error.is_malformed() || matches!(error, FlowError::Refused);
        match self.reply.progress {
            // HAProxy waits for the end of such a line until the client's timeout, and answers then.
            Answer::Awaited if is_endless(error) || matches!(error, FlowError::Refused) => {
                failed(Cause::Invalid, Phase::Headers, 400)
            }
            Answer::Awaited if malformed => cut(Cause::Invalid, Phase::Headers, 400),
            Answer::Awaited => cut(Cause::Client, Phase::Headers, 400),
            Answer::Flowing if malformed => failed(Cause::Invalid, Phase::Data, 0),
            Answer::Flowing => failed(Cause::Client, Phase::Data, 0),
            Answer::Done if malformed => failed(Cause::Invalid, Phase::Last, 0),
            Answer::Done => failed(Cause::Client, Phase::Last, 0),
        }
    }

    fn advance_answer(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut moved = FlowProgress::default();
        let result = self.reply.message.poll(cx, &mut self.upstream, &mut self.client.conn, &mut moved);
        if self.reply.step == FlowStep::Held {
            self.server_side.reading_resumes(rt::now());
        }
        if moved.read > 0 {
            if let Some(progress) = moved.read_progress() {
                self.server_side.reads(rt::now(), progress);
            }
            self.state.borrow_mut().accounting.bytes.received += moved.read as u64;
        }
        if let Some(progress) = moved.write_progress() {
            self.client_side.writes(rt::now(), progress);
            let state = &mut *self.state.borrow_mut();
            state.accounting.bytes.bytes_out += moved.written as u64;
            if moved.spliced > 0 {
                metrics::spliced(self.session, state, true, moved.spliced);
            }
            metrics::flowing(self.session, state);
        }
        match result {
            Ok(step) => {
                if step == FlowStep::AwaitsSink && self.reply.step != step {
                    // Likewise for the client's timeout.
                    self.client_side.writing_waits(rt::now());
                }
                self.reply.step = step;
                if step == FlowStep::Finished {
                    self.reply.progress = Answer::Done;
                    if let Some(trailers) = self.reply.message.take_received_trailers() {
                        self.state.borrow_mut().response.trailers = Some(trailers);
                    }
                    // Bytes after the answer were not requested.
                    self.reusable &= !self.reply.message.has_surplus();
                }
                Ok(())
            }
            Err(FlowError::Refused) => failed(Cause::Refused, Phase::Data, 0),
            Err(error) if error.is_malformed() => {
                let state = self.state;
                self.note_link(&mut state.borrow_mut(), 1);
                failed(Cause::Proxy, Phase::Data, 0)
            }
            Err(FlowError::Write(_)) => failed(Cause::Client, self.flowing_phase(), 0),
            Err(FlowError::Read(_) | FlowError::Truncated | FlowError::Malformed(_)) => {
                failed(Cause::Server, Phase::Data, 0)
            }
        }
    }
}
