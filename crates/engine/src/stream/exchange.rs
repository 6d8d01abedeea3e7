//! One attempt to get an answer: writes the request to a server's link, reads the answer and carries it to the client,
//! both directions at once. Owns what is in flight between the two; must never choose a server.

use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::flow::{Flow, FlowError, Moved, Step};
use conn::link::Link;
use rt::net::Hangup;
use wire::h1::{self, ConnectionLine, Edits, Parse, RequestContext, Scan};
use wire::http::{Framing, Method, Version};

use crate::facts::{Cause, Outcome, Phase};
use crate::session::Session;
use crate::stream::http::Client;
use crate::stream::request::fits;
use crate::worker::SharedFacts;

/// A client that waits is registered with the poller after so long: most answers come sooner.
pub const WATCH_AFTER: Duration = Duration::from_millis(5);

/// A source that pauses in the middle of a long body gets its low-water mark back after so long.
const BULK_PAUSE: Duration = Duration::from_millis(2);

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The answer went to the client.
    Answered,
    /// The connection is a tunnel from here on; the head of the answer is not sent yet.
    Tunnel,
    /// The reused link died before a byte of the answer: the request goes to a fresh one.
    Replay,
    /// It failed.
    Failed {
        /// How it is logged.
        outcome: Outcome,
        /// The status in the log when nothing of an answer was sent.
        status: u16,
        /// The client gets that status' page, if it got nothing of an answer.
        page: bool,
    },
    /// The reused link died before a byte of the answer, and the request must not be sent twice: the client's
    /// connection ends without a word, so that the client decides.
    Silent,
}

/// What the exchange needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// `timeout client`.
    pub client: Option<Duration>,
    /// `timeout server`.
    pub server: Option<Duration>,
    /// `option splice-response` or `splice-auto`, of either side.
    pub splice_response: bool,
    /// `option abortonclose`.
    pub abort_on_close: bool,
    /// The client's connection ends behind this answer.
    pub close_client: bool,
    /// We asked the server to close behind this answer.
    pub close_server: bool,
    /// The link was used before.
    pub reused: bool,
    /// The request may be sent a second time.
    pub replayable: bool,
    /// Limits of a response's head.
    pub limits: h1::Limits,
}

/// Where the request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upload {
    Flowing,
    /// The server does not take the rest, or has answered; what the client still sends is read and dropped.
    Dropped,
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
    link: &'a mut Link,
    facts: &'a SharedFacts,
    terms: Terms,
    upload: Upload,
    up: Flow,
    up_step: Step,
    answer: Answer,
    down: Flow,
    down_step: Step,
    input: Buffer,
    scan: Scan,
    began: Moment,
    client_active: Moment,
    server_active: Moment,
    /// A byte of an answer came.
    answered: bool,
    /// The client closed its direction, and that is no reason to stop.
    half_closed: bool,
    /// The whole request was taken by the server.
    sent: bool,
    /// The server's link may serve another request after this one.
    reusable: bool,
    keep_client: bool,
}

const fn failed<T>(cause: Cause, phase: Phase, status: u16) -> Result<T, End> {
    Err(End::Failed { outcome: Outcome::new(cause, phase), status, page: status > 0 })
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
        link: &'a mut Link,
        facts: &'a SharedFacts,
        terms: Terms,
        up: Flow,
    ) -> Self {
        let now = rt::now();
        Self {
            session,
            client,
            link,
            facts,
            terms,
            upload: Upload::Flowing,
            up,
            up_step: Step::Exhausted,
            answer: Answer::Awaited,
            down: Flow::idle(),
            down_step: Step::Exhausted,
            input: Buffer::empty(),
            scan: Scan::default(),
            began: now,
            client_active: now,
            server_active: now,
            answered: false,
            half_closed: false,
            sent: false,
            reusable: false,
            keep_client: !terms.close_client,
        }
    }

    /// Runs to its end.
    pub async fn run(&mut self) -> End {
        match std::future::poll_fn(|cx| self.poll(cx)).await {
            // A page in the middle of an interim answer would be taken for a part of that.
            End::Failed { outcome, status, .. } if self.down.head_pending() => {
                End::Failed { outcome, status, page: false }
            }
            end => end,
        }
    }

    /// The link may serve another request.
    pub fn link_is_reusable(&self) -> bool {
        self.reusable && self.sent && self.answer == Answer::Done
    }

    /// The client's connection goes on. Also where it has closed its direction: there may be another request before
    /// the end.
    pub fn client_goes_on(&self) -> bool {
        self.keep_client && self.upload == Upload::Done
    }

    /// Nothing of the final answer was sent to the client.
    pub fn nothing_sent(&self) -> bool {
        self.answer == Answer::Awaited
    }

    /// A byte of the answer came over the link.
    pub fn server_answered(&self) -> bool {
        self.answered
    }

    /// The request's flow: what is left of it must be read if the client's connection is to go on.
    pub fn into_upload(self) -> Flow {
        self.up
    }

    /// The head of a tunnel's answer, and what the server sent behind it.
    pub fn into_tunnel(mut self) -> (Buffer, Buffer) {
        (self.down.take_head(), self.input)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.advance(cx) {
            Ok(Some(end)) | Err(end) => Poll::Ready(end),
            Ok(None) if self.up_step == Step::Exhausted || self.down_step == Step::Exhausted => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(None) => self.poll_limits(cx),
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
            Upload::Done => return Ok(()),
            Upload::Flowing => self.up.poll(cx, &mut self.client.stream, &mut self.link.stream, &mut moved),
            Upload::Dropped => self.up.poll_drain(cx, &mut self.client.stream, &mut moved),
        };
        if moved.read > 0 {
            self.client_active = rt::now();
            self.facts.borrow_mut().bytes_in += moved.read as u64;
        }
        if moved.written > 0 {
            self.server_active = rt::now();
        }
        match result {
            Ok(step) => {
                self.up_step = step;
                if step == Step::Finished {
                    self.sent = self.upload == Upload::Flowing;
                    self.upload = Upload::Done;
                    // Only a body's flow took the client's input.
                    let rest = self.up.take_rest();
                    if !rest.is_empty() {
                        self.client.input = rest;
                    }
                }
                Ok(())
            }
            Err(FlowError::Write(_)) if self.answer == Answer::Done => cut(Cause::Server, Phase::Last, 0),
            Err(FlowError::Write(_)) => {
                // The server takes no more: perhaps it has answered already. That answer decides.
                self.upload = Upload::Dropped;
                self.up.abandon_sink();
                if self.up.source_ended() {
                    self.upload = Upload::Done;
                }
                self.up_step = Step::AwaitsSource;
                Ok(())
            }
            Err(error) => self.upload_failed(&error),
        }
    }

    fn upload_failed(&self, error: &FlowError) -> Result<(), End> {
        let malformed = matches!(error, FlowError::Malformed(_));
        match self.answer {
            Answer::Awaited if malformed => cut(Cause::Proxy, Phase::Headers, 400),
            Answer::Awaited => cut(Cause::Client, Phase::Headers, 400),
            Answer::Flowing if malformed => failed(Cause::Proxy, Phase::Data, 0),
            Answer::Flowing => failed(Cause::Client, Phase::Data, 0),
            Answer::Done => failed(Cause::Client, Phase::Last, 0),
        }
    }

    /// Reads the answer's head. True: it opens a tunnel.
    fn advance_head(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        self.down_step = Step::AwaitsSource;
        self.flush_interim(cx)?;
        loop {
            if self.input.capacity() == 0 {
                self.input = rt::buffer();
            }
            match self.link.stream.poll_read(cx, &mut self.input) {
                Poll::Pending => {
                    if self.input.is_empty() {
                        self.input = Buffer::empty();
                    }
                    return Ok(false);
                }
                Poll::Ready(Ok(read)) if read > 0 => {
                    self.answered = true;
                    self.server_active = rt::now();
                    if self.parse_heads()? {
                        return self.begin_answer();
                    }
                    self.flush_interim(cx)?;
                }
                Poll::Ready(_) => return self.server_gone(),
            }
        }
    }

    /// The server's link ended before its answer's head did.
    fn server_gone(&self) -> Result<bool, End> {
        if !self.input.is_empty() {
            return failed(Cause::Proxy, Phase::Headers, 502);
        }
        match (self.answered, self.terms.reused, self.terms.replayable) {
            (true, ..) => failed(Cause::Server, Phase::Headers, 502),
            (false, true, true) => Err(End::Replay),
            (false, true, false) => Err(End::Silent),
            (false, false, _) => failed(Cause::Server, Phase::Headers, 502),
        }
    }

    /// Writes what there is of interim answers.
    fn flush_interim(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if !self.down.head_pending() {
            return Ok(());
        }
        let mut moved = Moved::default();
        let flushed = self.down.poll_flush(cx, &mut self.client.stream, &mut moved);
        if moved.written > 0 {
            self.client_active = rt::now();
            self.facts.borrow_mut().bytes_out += moved.written as u64;
        }
        match flushed {
            Poll::Ready(Err(_)) => cut(Cause::Client, Phase::Data, 400),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Parses what is there; interim answers go on. True: the final head is complete.
    fn parse_heads(&mut self) -> Result<bool, End> {
        let facts = &mut *self.facts.borrow_mut();
        let method = facts.request.known_method();
        let context = RequestContext { head: method == Method::Head, connect: method == Method::Connect };
        loop {
            let parsed = h1::parse_response(
                self.input.data(),
                &self.terms.limits,
                &context,
                &mut self.scan,
                &mut facts.response,
            );
            match parsed {
                Err(_) => return failed(Cause::Proxy, Phase::Headers, 502),
                Ok(Parse::Partial) => {
                    if self.input.len() >= self.terms.limits.max_head {
                        return failed(Cause::Proxy, Phase::Headers, 502);
                    }
                    if self.input.room() == 0 {
                        self.input.compact();
                    }
                    return Ok(false);
                }
                Ok(Parse::Complete { consumed }) if !fits(&facts.response, consumed, self.terms.limits.max_head) => {
                    return failed(Cause::Proxy, Phase::Headers, 502);
                }
                Ok(Parse::Complete { consumed }) => {
                    self.input.consume(consumed);
                    self.scan = Scan::default();
                    let status = facts.response.status();
                    if !(100..200).contains(&status) || status == 101 {
                        return Ok(true);
                    }
                    // HTTP/1.0 knows no interim answers.
                    if facts.request.version() == Version::Http11 {
                        let edits = Edits {
                            framing: Framing::None,
                            connection: ConnectionLine::Nothing,
                            version: Version::Http11,
                        };
                        if h1::encode_response(&facts.response, &edits, self.down.head_mut()).is_err() {
                            return failed(Cause::Proxy, Phase::Headers, 502);
                        }
                    }
                    facts.response.clear();
                    if self.input.is_empty() {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Encodes the answer's head and starts its body. True: it opens a tunnel.
    fn begin_answer(&mut self) -> Result<bool, End> {
        let facts = &mut *self.facts.borrow_mut();
        let status = facts.response.status();
        facts.timings.response = Some(rt::now());
        facts.status = i32::from(status);
        let connect = facts.request.known_method() == Method::Connect && (200..300).contains(&status);
        let tunnel = connect || (status == 101 && facts.request.upgrade);
        if status == 101 && !tunnel {
            facts.timings.response = None;
            return failed(Cause::Proxy, Phase::Headers, 502);
        }
        let framing = if tunnel { Framing::None } else { facts.response.framing };
        let modern = facts.request.version() == Version::Http11;
        let chunked = framing == Framing::Chunked && modern;
        let delimited = match framing {
            Framing::UntilClose => false,
            // HTTP/1.0 knows no chunks: whoever sends or gets them in it cannot be trusted to find the end.
            Framing::Chunked => modern && facts.response.version() == Version::Http11,
            Framing::None | Framing::Length(_) => true,
        };
        self.keep_client &= delimited && !tunnel && !self.session.is_stopping();
        let kept = match facts.response.version() {
            Version::Http11 => !facts.response.connection.close,
            Version::Http10 => facts.response.connection.keep_alive && !facts.response.connection.close,
        };
        self.reusable = kept && !self.terms.close_server && framing != Framing::UntilClose && !tunnel;
        let upgrade = facts.response.first(b"upgrade").unwrap_or_default().to_vec();
        let version = facts.response.version();
        let both_modern = modern && version == Version::Http11;
        let connection = match (tunnel, self.keep_client) {
            (true, _) if status == 101 => ConnectionLine::Upgrade(&upgrade),
            (true, _) => ConnectionLine::Nothing,
            (false, true) if both_modern => ConnectionLine::Nothing,
            (false, true) => ConnectionLine::KeepAlive,
            (false, false) if version == Version::Http10 => ConnectionLine::Nothing,
            (false, false) => ConnectionLine::Close,
        };
        let sent = if framing == Framing::Chunked && !modern { Framing::UntilClose } else { framing };
        let edits = Edits { connection, framing: sent, version };
        let interim = self.down.head_mut().len();
        if h1::encode_response(&facts.response, &edits, self.down.head_mut()).is_err() {
            return failed(Cause::Proxy, Phase::Headers, 502);
        }
        if tunnel {
            return Ok(true);
        }
        self.down.closes = !self.keep_client && self.upload == Upload::Done;
        let body = std::mem::replace(&mut self.input, Buffer::empty());
        if self.down.start(body, framing, chunked).is_err() {
            self.down.head_mut().truncate(interim);
            facts.timings.response = None;
            return failed(Cause::Proxy, Phase::Headers, 502);
        }
        if self.terms.splice_response {
            self.down.splice();
        }
        self.answer = Answer::Flowing;
        Ok(false)
    }

    fn advance_answer(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut moved = Moved::default();
        let result = self.down.poll(cx, &mut self.link.stream, &mut self.client.stream, &mut moved);
        if moved.read > 0 {
            self.server_active = rt::now();
        }
        if moved.written > 0 {
            self.client_active = rt::now();
            self.facts.borrow_mut().bytes_out += moved.written as u64;
        }
        match result {
            Ok(step) => {
                self.down_step = step;
                if step == Step::Finished {
                    self.answer = Answer::Done;
                    // Bytes behind the answer were not asked for.
                    self.reusable &= self.down.take_rest().is_empty();
                }
                Ok(())
            }
            Err(FlowError::Malformed(_)) => failed(Cause::Proxy, Phase::Data, 0),
            Err(FlowError::Write(_)) => failed(Cause::Client, Phase::Data, 0),
            Err(FlowError::Read(_) | FlowError::Truncated) => failed(Cause::Server, Phase::Data, 0),
        }
    }

    /// Looks at the client and at the time; arms the timer for what comes next.
    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let now = rt::now();
            let mut next: Option<Moment> = None;
            let mut until = |moment: Moment| next = Some(next.map_or(moment, |next| next.min(moment)));
            if let Some(limit) = self.terms.client
                && self.waits_for_client()
            {
                let deadline = self.client_active + limit;
                if now >= deadline {
                    return Poll::Ready(self.client_expired());
                }
                until(deadline);
            }
            if let Some(limit) = self.terms.server
                && self.waits_for_server()
            {
                let deadline = self.server_active + limit;
                if now >= deadline {
                    return Poll::Ready(self.server_expired());
                }
                until(deadline);
            }
            if self.down.is_bulk() {
                let deadline = self.server_active + BULK_PAUSE;
                if now >= deadline {
                    self.down.lower_mark(&mut self.link.stream);
                    return self.poll(cx);
                }
                until(deadline);
            }
            if self.up.is_bulk() {
                let deadline = self.client_active + BULK_PAUSE;
                if now >= deadline {
                    self.up.lower_mark(&mut self.client.stream);
                    return self.poll(cx);
                }
                until(deadline);
            }
            if self.answer != Answer::Done && !self.half_closed {
                let watch = self.began + WATCH_AFTER;
                if now >= watch || self.client.stream.is_registered() {
                    if let Poll::Ready(hangup) = self.client.stream.poll_hangup(cx)
                        && let Some(end) = self.client_gone(hangup)
                    {
                        return Poll::Ready(end);
                    }
                } else {
                    until(watch);
                }
            }
            self.client.timer.arm(next);
            if self.client.timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn waits_for_client(&self) -> bool {
        let reads = self.upload != Upload::Done && self.up_step == Step::AwaitsSource;
        let writes = match self.answer {
            Answer::Awaited => self.down.head_pending(),
            Answer::Flowing => self.down_step == Step::AwaitsSink,
            Answer::Done => false,
        };
        reads || writes
    }

    fn waits_for_server(&self) -> bool {
        let writes = self.upload == Upload::Flowing && self.up_step == Step::AwaitsSink;
        let reads = match self.answer {
            Answer::Awaited => self.upload != Upload::Flowing,
            Answer::Flowing => self.down_step == Step::AwaitsSource,
            Answer::Done => false,
        };
        writes || reads
    }

    fn client_expired(&self) -> End {
        let (phase, status) = match self.answer {
            Answer::Awaited => (Phase::Headers, 400),
            Answer::Flowing => (Phase::Data, 0),
            Answer::Done => (Phase::Last, 0),
        };
        End::Failed { outcome: Outcome::new(Cause::ClientTimeout, phase), status, page: status > 0 }
    }

    fn server_expired(&self) -> End {
        let (phase, status) = match self.answer {
            Answer::Awaited => (Phase::Headers, 504),
            Answer::Flowing | Answer::Done => (Phase::Data, 0),
        };
        End::Failed { outcome: Outcome::new(Cause::ServerTimeout, phase), status, page: status > 0 }
    }

    /// The client closed its direction or is gone altogether.
    fn client_gone(&mut self, hangup: Hangup) -> Option<End> {
        let awaited = self.answer == Answer::Awaited;
        let phase = match hangup {
            // A request whose body is not complete is cut short; its flow tells.
            Hangup::PeerClosed if self.upload == Upload::Flowing => return None,
            Hangup::PeerClosed if !self.terms.abort_on_close => {
                self.half_closed = true;
                return None;
            }
            Hangup::PeerClosed if awaited => Phase::Headers,
            Hangup::PeerClosed | Hangup::Error => Phase::Data,
        };
        let status = if awaited { 400 } else { 0 };
        Some(End::Failed { outcome: Outcome::new(Cause::Client, phase), status, page: status > 0 })
    }
}
