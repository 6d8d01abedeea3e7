//! The answer's head: read, judged, written anew, and what it says about both connections. Interim answers go on on the
//! way. Must never touch a body.

use std::task::{Context, Poll};

use base::buffer::Buffer;
use config::spec::RetryOn;
use conn::flow::{Discard, Moved, Step};
use policy::sample::Direction;
use wire::h1::{self, ConnectionLine, Edits, Parse, RequestContext, Scan};
use wire::http::{Framing, Method, Version};

use super::ruling::Ruled;
use super::{Answer, End, Exchange, Upload, cut, failed};

use crate::facts::{Cause, Facts, Phase};
use crate::stream::answer::{Ending, Manner};
use crate::stream::conclude;
use crate::stream::dispatch::trailers;
use crate::stream::filter;
use crate::stream::observing;
use crate::stream::request::fits;
use crate::stream::sticking;
use crate::stream::{tally, tracking};

/// Heads that are read before other connections are served.
const HEADS_IN_A_TURN: usize = 256;

/// Interim answers of one request: a server that sends more of them never answers.
const MOST_INTERIM: u32 = 1000;

/// What an interim answer may grow by when it is written anew: its reason phrase and the end of its head.
const GROWTH: usize = 256;

/// What was found in what came.
enum Found {
    /// A part of a head.
    Part,
    /// An interim answer, which goes on.
    Interim,
    /// The answer.
    Answer,
}

/// Whether the server's answer makes a tunnel of both connections.
fn opens_tunnel(facts: &Facts) -> bool {
    let status = facts.server_status.unwrap_or_else(|| facts.response.status());
    let connect = facts.request.known_method() == Method::Connect && (200..300).contains(&status);
    connect || (status == 101 && facts.request.upgrade)
}

impl Exchange<'_> {
    /// Reads the answer's head. True: it opens a tunnel.
    pub(super) fn advance_head(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        self.down_step = Step::AwaitsSource;
        if self.inspecting.is_some() || self.ruling.is_some() {
            return self.inspect_and_begin(cx);
        }
        for _ in 0..HEADS_IN_A_TURN {
            if !self.may_collect() {
                self.flush_interim(cx)?;
                // Nothing more is read for a client that does not take what there is.
                if self.down.head_pending() || (!self.unparsed && !self.read_head(cx)?) {
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
                Found::Part => self.unparsed = false,
                Found::Interim => self.unparsed = !self.input.is_empty(),
                Found::Answer => return self.inspect_and_begin(cx),
            }
        }
        self.down_step = Step::Exhausted;
        Ok(false)
    }

    /// Whether one more interim answer is here that fits behind those that wait to be written: one call writes them all.
    fn may_collect(&mut self) -> bool {
        let is_interim = |data: &[u8]| matches!(data.get(9..12), Some([b'1', b'0', b'0' | b'2'..=b'9']));
        self.unparsed
            && self.down.head_pending()
            && is_interim(self.input.data())
            && self.down.head_mut().room() > self.input.len() + GROWTH
    }

    /// Begins the answer once the rules on its bytes let it pass.
    fn inspect_and_begin(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.ruling.is_none() {
            if !self.inspect(cx)? {
                return Ok(false);
            }
            self.meet_answer()?;
        }
        match self.rule(cx) {
            Ruled::Passes => {}
            Ruled::Ends(ending) => return Err(self.replace_answer(ending)),
            Ruled::Waits => return Ok(false),
            Ruled::Late => return failed(Cause::ServerTimeout, Phase::Headers, 504),
        }
        let tunnel = self.begin_answer()?;
        conclude::log_answer(self.session, self.facts, self.down.head_length());
        Ok(tunnel)
    }

    /// Reads what there is. False: nothing for now.
    fn read_head(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.input.capacity() == 0 {
            if rt::poll_memory(cx, rt::Stage::Underway).is_pending() {
                return Ok(false);
            }
            self.input = rt::buffer();
        }
        match self.link.stream.poll_read(cx, &mut self.input) {
            Poll::Pending => {
                if self.input.is_empty() {
                    self.input = Buffer::empty();
                }
                Ok(false)
            }
            Poll::Ready(Ok(read)) if read > 0 => {
                self.answered = true;
                self.server_side.reads(rt::now());
                self.facts.borrow_mut().received += read as u64;
                Ok(true)
            }
            Poll::Ready(_) => self.server_gone(),
        }
    }

    /// The server's link ended before its answer's head did.
    pub(super) fn server_gone(&self) -> Result<bool, End> {
        if !self.input.is_empty() {
            return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502);
        }
        if !self.answered && self.retries(RetryOn::EMPTY_RESPONSE) {
            return Err(End::Retry { bad_answer: true });
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
            self.client_side.writes(rt::now());
            self.facts.borrow_mut().bytes_out += moved.written as u64;
        }
        match flushed {
            Poll::Ready(Err(_)) => cut(Cause::Client, Phase::Data, 400),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Parses one head; that of an interim answer goes on.
    fn parse_head(&mut self) -> Result<Found, End> {
        let facts = &mut *self.facts.borrow_mut();
        let method = facts.request.known_method();
        let context = RequestContext { head: method == Method::Head, connect: method == Method::Connect };
        let limits = &self.terms.limits;
        let parsed = h1::parse_response(self.input.data(), limits, &context, &mut self.scan, &mut facts.response);
        match parsed {
            Ok(Parse::Partial) if self.input.len() < limits.max_head => {
                if self.input.room() == 0 {
                    self.input.compact();
                }
                return Ok(Found::Part);
            }
            Ok(Parse::Complete { consumed }) if fits(&facts.response, consumed, limits.max_head) => {
                self.input.consume(consumed);
                self.scan = Scan::default();
            }
            _ => return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502),
        }
        let status = facts.response.status();
        if !(100..200).contains(&status) || status == 101 {
            return Ok(Found::Answer);
        }
        self.interim += 1;
        if self.interim > MOST_INTERIM {
            return failed(Cause::Proxy, Phase::Headers, 502);
        }
        // HTTP/1.0 knows no interim answers.
        if facts.request.version() == Version::Http11 {
            let spelling = self.session.proxy().http.client_spelling.as_deref();
            let edits = Edits { spelling, ..Edits::interim() };
            if h1::encode_response(&facts.response, &edits, self.down.head_mut()).is_err() {
                return failed(Cause::Proxy, Phase::Headers, 502);
            }
            self.interim_sent = true;
            if status == 100 {
                self.up.invite();
            }
        }
        facts.response.clear();
        tally::interim(self.session, facts);
        Ok(Found::Interim)
    }

    /// Takes notice of an answer before rules look at it.
    fn meet_answer(&mut self) -> Result<(), End> {
        let facts = &mut *self.facts.borrow_mut();
        let status = facts.response.status();
        observing::answer(self.session, facts, status);
        if self.terms.retry_on.keeps_request() && self.retries(RetryOn::status(status)) {
            return Err(End::Retry { bad_answer: false });
        }
        if status == 101 && !opens_tunnel(facts) {
            return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502);
        }
        facts.timings.response = Some(rt::now());
        facts.server_status = Some(status);
        tracking::answer(self.session, facts, status);
        sticking::answer(self.session, facts);
        if let Some(plan) = self.session.proxy().frontend.as_ref().and_then(|frontend| frontend.captures.as_ref()) {
            facts.captures.borrow_mut().take_response(plan, &facts.response);
        }
        Ok(())
    }

    /// What the rules put in an answer's place, or that there is none.
    pub(super) fn replace_answer(&mut self, ending: Box<Ending<'static>>) -> End {
        if let Manner::Silent(hops) = ending.manner {
            // What the system does not let happen quietly happens all the same.
            let _ = self.client.stream.forget(hops);
            let facts = &mut *self.facts.borrow_mut();
            facts.status = facts.server_status.map_or(facts.status, i32::from);
        }
        let (outcome, status) = (ending.outcome, ending.status);
        // The log must not take the server's answer for the one that the client gets.
        self.facts.borrow_mut().response.clear();
        self.ending = Some(ending);
        End::Failed { outcome, status, page: status > 0 }
    }

    /// Encodes the answer's head and starts its body. True: it opens a tunnel.
    fn begin_answer(&mut self) -> Result<bool, End> {
        let facts = &mut *self.facts.borrow_mut();
        let tunnel = opens_tunnel(facts);
        let filters = facts.filters.clone();
        if let Some(filters) = &filters {
            filter::response_head(filters, &mut facts.response);
        }
        let own = facts.orders.get().timeouts;
        self.terms.client = own.client.or(self.terms.client);
        self.terms.server = own.server.or(self.terms.server);
        let status = facts.response.status();
        facts.status = i32::from(status);
        let framing = if tunnel { Framing::None } else { facts.response.framing };
        let modern = facts.request.version() == Version::Http11;
        // A rule has made another request of one for a head alone, or has set a status whose answers have no body: what
        // the server sends is not for the client.
        let bare = framing.has_body() && (facts.wants_head_alone() || matches!(status, 204 | 304));
        let chunked = framing == Framing::Chunked && modern && !bare;
        let delimited = match framing {
            Framing::UntilClose => false,
            // HTTP/1.0 knows no chunks: whoever sends or gets them in it cannot be trusted to find the end.
            Framing::Chunked => modern && facts.response.version() == Version::Http11,
            Framing::None | Framing::Length(_) => true,
        } || bare;
        let closes = facts.response.asks_to_close();
        self.keep_client &= delimited && !tunnel && !closes && !self.session.is_leaving();
        let kept = match facts.response.version() {
            Version::Http11 => !facts.response.connection.close,
            Version::Http10 => facts.response.connection.keep_alive && !facts.response.connection.close,
        };
        self.reusable = kept && !self.terms.close_server && framing != Framing::UntilClose && !tunnel;
        let upgrade = if status == 101 { facts.response.first(b"upgrade").unwrap_or_default() } else { &[] };
        let version = facts.response.version();
        let connection = match tunnel {
            true if status == 101 => ConnectionLine::Upgrade(upgrade),
            true => ConnectionLine::Nothing,
            false => ConnectionLine::for_response(facts.request.version(), version, self.keep_client),
        };
        let sent = match framing {
            Framing::Chunked if !modern => Framing::UntilClose,
            other => other,
        };
        let http = &self.session.proxy().http;
        let edits = Edits { connection, framing: sent, version, spelling: http.client_spelling.as_deref(), last: None };
        let interim = self.down.head_mut().len();
        if h1::encode_response(&facts.response, &edits, self.down.head_mut()).is_err() {
            return failed(Cause::Proxy, Phase::Headers, 502);
        }
        if tunnel {
            self.settle();
            return Ok(true);
        }
        self.down.trailers = trailers(http.drop_response_trailers, http.client_spelling.as_ref());
        if filters.is_some() {
            // Rules on the answer may have limited what the client still sends.
            filter::install(filters.as_ref(), Direction::Response, &mut self.down, framing.has_body() && !bare);
            if self.upload == Upload::Flowing {
                filter::install(filters.as_ref(), Direction::Request, self.up, true);
            }
        }
        if bare {
            self.down.set_passage(Box::new(Discard));
        }
        let body = std::mem::replace(&mut self.input, Buffer::empty());
        if self.down.start(body, framing, chunked).is_err() {
            self.down.head_mut().truncate(interim);
            facts.timings.response = None;
            return self.fails(RetryOn::JUNK_RESPONSE, Cause::Proxy, 502);
        }
        self.settle();
        self.down.closes = !self.keep_client && self.upload == Upload::Done;
        if self.terms.splice_response {
            self.down.splice();
        }
        self.answer = Answer::Flowing;
        Ok(false)
    }
}
