//! One attempt to get an answer: writes the request to a server's link, reads the answer and carries it to the client,
//! both directions at once. Owns what is in flight between the two; must never choose a server.

mod head;
mod inspect;
mod limits;
mod response_rules;
mod rival;
mod terms;

pub use response_rules::{expose, finish_rules};
pub use terms::{End, Remains, Terms};

use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use config::spec::RetryOn;
use conn::exchange::{self, RequestBody};
use conn::flow::{FlowError, FlowStep, Moved};
use conn::h1::Violation;
use conn::upstream::Upstream;

use crate::script::Action;
use crate::session::Session;
use crate::stream::activity::Activity;
use crate::stream::client::Client;
use crate::stream::ending::Ending;
use crate::stream::fcgi;
use crate::stream::metrics;
use crate::stream::rules::Progress;
use crate::stream::tracking;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// A source that pauses in the middle of a long body gets its low-water mark back after so long.
const BULK_PAUSE: Duration = Duration::from_millis(2);

/// How far the answer of a service is before its exchange.
pub enum Begun {
    /// Nothing was done.
    Nothing,
    /// The rules have let its head pass.
    Ruled,
    /// A rule has put something in its place.
    Replaced(Box<Ending<'static>>),
    /// It is on its way to a client that stays, whose request has no body.
    Sent {
        /// What is left of its head.
        head: Buffer,
        /// Bytes of its body that are left.
        left: u64,
    },
}

/// Where the request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upload {
    Flowing,
    /// The server does not take the rest, or has answered; what the client still sends is read and dropped.
    Dropped,
    /// The server takes no more, but the request may have to be sent to another one.
    Halted,
    Done,
}

/// Where the answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Awaited,
    Flowing,
    Done,
}

/// One attempt.
pub struct Exchange<'a> {
    session: &'a Session,
    client: &'a mut Client,
    upstream: Upstream<'a>,
    state: &'a SharedStreamState,
    terms: Terms,
    upload: Upload,
    up: &'a mut RequestBody,
    up_step: FlowStep,
    answer: Answer,
    down: exchange::Answer,
    down_step: FlowStep,
    /// The answer's head is there, and rules look at it and at what comes behind it: at most until then.
    inspecting: Option<Moment>,
    /// How far those have come.
    inspected: Progress,
    /// The action of a script that looks at what the answer begins with.
    running: Option<Box<dyn Action>>,
    /// A rule makes the answer wait.
    paused_rules: Option<Box<response_rules::PausedRules>>,
    /// Rules have let the answer's head pass, and it has not begun: a filter of a script waits.
    is_ruled: bool,
    /// The framing of the answer before filters of scripts saw it.
    came_as: wire::http::Framing,
    /// A second attempt runs beside this one.
    race: Option<Box<rival::Race>>,
    /// There may be a whole head in what was received.
    unparsed: bool,
    began: Moment,
    client_side: Activity,
    server_side: Activity,
    /// A byte of an answer came.
    answered: bool,
    /// Interim answers that came.
    interim: u32,
    /// One of them went on to the client.
    interim_sent: bool,
    /// The client closed its direction, and that is no reason to stop.
    half_closed: bool,
    /// The whole request was taken by the server.
    sent: bool,
    /// The server's link may serve another request after this one.
    reusable: bool,
    /// But the server has done too much there that a sound one would not do.
    odd: bool,
    keep_client: bool,
    /// What a rule puts in the place of the server's answer.
    ending: Option<Box<Ending<'static>>>,
}

const fn failed<T>(cause: Cause, phase: Phase, status: u16) -> Result<T, End> {
    Err(End::Failed { outcome: Outcome::new(cause, phase), status, page: status > 0 })
}

/// Whether chunk lines are too long for what they carry.
fn is_endless(error: &FlowError) -> bool {
    matches!(error, FlowError::Malformed(error) if error.violation == Violation::ChunkOverhead)
}

/// Logged with that status, but the connection just ends.
const fn cut<T>(cause: Cause, phase: Phase, status: u16) -> Result<T, End> {
    Err(End::Failed { outcome: Outcome::new(cause, phase), status, page: false })
}

impl<'a> Exchange<'a> {
    /// Starts with the request's flow: its encoded head, and the first bytes of its body.
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
            upload: Upload::Flowing,
            up,
            up_step: FlowStep::Exhausted,
            answer: Answer::Awaited,
            down: exchange::Answer::default(),
            down_step: FlowStep::Exhausted,
            inspecting: None,
            inspected: Progress::default(),
            running: None,
            paused_rules: None,
            is_ruled: false,
            came_as: wire::http::Framing::Length(0),
            race: None,
            unparsed: false,
            began: now,
            client_side: Activity::new(now, terms.independent_client),
            server_side: Activity::new(now, terms.independent_server),
            answered: false,
            interim: 0,
            interim_sent: false,
            half_closed: false,
            sent: false,
            reusable: false,
            odd: false,
            keep_client: !terms.close_client,
            ending: None,
        }
    }

    /// Goes on with an attempt that has sent the request already, and has got this of its answer.
    pub fn resume(&mut self, input: Buffer) {
        (self.upload, self.sent, self.up_step) = (Upload::Done, true, FlowStep::Finished);
        (self.answered, self.unparsed) = (!input.is_empty(), !input.is_empty());
        *self.down.input_mut() = input;
    }

    /// Goes on with an answer of a service from where it is. How the exchange ends, where it does at once.
    pub fn take_up(&mut self, begun: Begun) -> Option<End> {
        self.answered = !matches!(begun, Begun::Nothing);
        match begun {
            Begun::Nothing => {}
            Begun::Ruled => self.is_ruled = true,
            Begun::Replaced(ending) => return Some(self.replace_answer(ending)),
            Begun::Sent { head, left } => {
                (self.upload, self.sent, self.up_step) = (Upload::Done, true, FlowStep::Finished);
                self.down.go_on(head, left);
                self.answer = Answer::Flowing;
            }
        }
        None
    }

    /// Runs to its end, or until a second server is to be asked.
    pub async fn run(&mut self) -> End {
        match std::future::poll_fn(|cx| self.poll(cx)).await {
            // A page in the middle of an interim answer would be taken for a part of that.
            End::Failed { outcome, status, .. } if self.down.is_queued() => {
                End::Failed { outcome, status, page: false }
            }
            end => end,
        }
    }

    /// The answer without a body that has come ends the exchange, and nobody gets it.
    fn end_here(&mut self, keep_server: bool) {
        self.reusable = keep_server && !self.terms.close_server && self.down.received().is_empty();
        self.answer = if self.upload == Upload::Done { Answer::Done } else { Answer::Awaited };
    }

    /// The link may serve another request.
    fn link_is_reusable(&self) -> bool {
        self.reusable && !self.odd && self.sent && self.answer == Answer::Done
    }

    /// The client's connection goes on. Also where it has closed its direction: there may be another request before
    /// the end.
    fn client_goes_on(&self) -> bool {
        self.keep_client && self.upload == Upload::Done
    }

    /// What is left of it once it has ended.
    pub fn remains(&self) -> Remains {
        Remains {
            client_goes_on: self.client_goes_on(),
            link_is_reusable: self.link_is_reusable(),
            nothing_sent: self.answer == Answer::Awaited,
        }
    }

    /// The head of a tunnel's answer, and what the server sent behind it.
    pub fn take_tunnel(&mut self) -> (Buffer, Buffer) {
        self.down.into_tunnel()
    }

    /// What a rule puts in the place of the server's answer.
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
            Ok(None) if self.up_step == FlowStep::Exhausted || self.down_step == FlowStep::Exhausted => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(None) => self.poll_limits(cx),
        }
    }

    /// What has come of standard error goes to the log before the stream's own line.
    fn log_errors(&mut self) {
        if let Some(backend) = &self.session.proxy_at(self.terms.backend).backend {
            fcgi::log_errors(self.session, backend, &mut self.upstream);
        }
    }

    fn advance(&mut self, cx: &mut Context<'_>) -> Result<Option<End>, End> {
        self.advance_upload(cx)?;
        if self.answer == Answer::Awaited && self.advance_head(cx)? {
            return Ok(Some(End::Tunnel));
        }
        if self.answer == Answer::Flowing {
            self.advance_answer(cx)?;
        }
        // An answer may come before the end of the request; the rest goes on, or is at least read: else the client
        // would never see the answer.
        if self.answer == Answer::Done && (self.upload == Upload::Done || !self.keep_client) {
            return Ok(Some(End::Answered));
        }
        Ok(None)
    }

    fn advance_upload(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut moved = Moved::default();
        let result = match self.upload {
            Upload::Done | Upload::Halted => return Ok(()),
            Upload::Flowing => self.up.poll(cx, &mut self.client.conn, &mut self.upstream, &mut moved),
            Upload::Dropped => self.up.poll_drain(cx, &mut self.client.conn, &mut moved),
        };
        if self.up_step == FlowStep::Held {
            // While it was held back, nothing was read.
            self.client_side.reading_resumes(rt::now());
        }
        if moved.read > 0 {
            if let Some(progress) = moved.read_progress() {
                self.client_side.reads(rt::now(), progress);
            }
            let state = &mut *self.state.borrow_mut();
            state.bytes.bytes_in += moved.read as u64;
            metrics::flowing(self.session, state);
        }
        if let Some(progress) = moved.write_progress() {
            self.server_side.writes(rt::now(), progress);
            self.state.borrow_mut().bytes.sent += moved.written as u64;
            if moved.spliced > 0 {
                metrics::spliced(self.session, &self.state.borrow(), false, moved.spliced);
            }
        }
        match result {
            Ok(step) => {
                if step == FlowStep::AwaitsSink && self.up_step != step {
                    // The server's time begins with the wait, however long nothing was to be written.
                    self.server_side.writing_waits(rt::now());
                }
                self.up_step = step;
                if step == FlowStep::Finished {
                    self.sent = self.upload == Upload::Flowing;
                    self.upload = Upload::Done;
                }
                Ok(())
            }
            Err(FlowError::Write(_)) if self.answer == Answer::Done => cut(Cause::Server, Phase::Last, 0),
            Err(FlowError::Write(_)) => {
                // The server takes no more: perhaps it has answered already. That answer decides.
                if self.answer == Answer::Awaited && self.up.is_recorded() && self.terms.retry_on != RetryOn::NONE {
                    (self.upload, self.up_step) = (Upload::Halted, FlowStep::AwaitsSink);
                } else {
                    self.drop_upload();
                }
                Ok(())
            }
            Err(error) => self.upload_failed(&error),
        }
    }

    /// What the client still sends is read for its own sake.
    fn drop_upload(&mut self) {
        self.up.abandon_sink();
        (self.upload, self.up_step) = if self.up.source_ended() {
            (Upload::Done, FlowStep::Finished)
        } else {
            // The client is read from in the next poll, which comes at once: nothing else may wake it any more.
            (Upload::Dropped, FlowStep::Exhausted)
        };
    }

    /// The answer goes to the client: the request is not sent again.
    fn settle(&mut self) {
        self.up.forget_record();
        if self.upload == Upload::Halted {
            self.drop_upload();
        }
    }

    /// Whether the request is to be sent again after this failure.
    fn retries(&self, failure: RetryOn) -> bool {
        self.terms.retry_on.contains(failure)
            && !self.interim_sent
            && (self.up.is_recorded() || !self.terms.has_body)
            && self.budget_allows()
    }

    /// Whether a request that its server has not begun with may be sent again: as one whose connection was refused.
    fn may_begin_again(&self) -> bool {
        let is_whole = !self.terms.has_body || self.up.is_recorded();
        self.terms.may_retry && !self.interim_sent && is_whole && self.budget_allows()
    }

    /// `retry-budget`: what is asked counts, so that it has to be the last question.
    fn budget_allows(&self) -> bool {
        self.session.worker.proxy_state(self.terms.backend).may_retry(rt::now())
    }

    /// It fails like this, without a valid answer, where it is not to be sent again.
    fn fails<T>(&self, failure: RetryOn, cause: Cause, status: u16) -> Result<T, End> {
        if self.retries(failure) { Err(End::Retry { bad_answer: true }) } else { failed(cause, Phase::Headers, status) }
    }

    fn upload_failed(&self, error: &FlowError) -> Result<(), End> {
        if error.is_malformed() {
            tracking::wrong_body(self.session, &self.client.conn, self.state);
        }
        let malformed = error.is_malformed() || matches!(error, FlowError::Refused);
        match self.answer {
            // HAProxy waits for the end of such a line until the client is late, and answers then.
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
        let mut moved = Moved::default();
        let result = self.down.poll(cx, &mut self.upstream, &mut self.client.conn, &mut moved);
        if self.down_step == FlowStep::Held {
            self.server_side.reading_resumes(rt::now());
        }
        if moved.read > 0 {
            if let Some(progress) = moved.read_progress() {
                self.server_side.reads(rt::now(), progress);
            }
            self.state.borrow_mut().bytes.received += moved.read as u64;
        }
        if let Some(progress) = moved.write_progress() {
            self.client_side.writes(rt::now(), progress);
            let state = &mut *self.state.borrow_mut();
            state.bytes.bytes_out += moved.written as u64;
            if moved.spliced > 0 {
                metrics::spliced(self.session, state, true, moved.spliced);
            }
            metrics::flowing(self.session, state);
        }
        match result {
            Ok(step) => {
                if step == FlowStep::AwaitsSink && self.down_step != step {
                    // Likewise the client's.
                    self.client_side.writing_waits(rt::now());
                }
                self.down_step = step;
                if step == FlowStep::Finished {
                    self.answer = Answer::Done;
                    if let Some(trailers) = self.down.take_received_trailers() {
                        self.state.borrow_mut().response.trailers = Some(trailers);
                    }
                    // Bytes behind the answer were not asked for.
                    self.reusable &= !self.down.has_surplus();
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
