//! The stick table entries that sessions and streams track: start, counting and end of tracking. Must never wait, and must
//! never decide the outcome of a message.

use std::cell::RefCell;
use std::net::SocketAddr;

use config::spec::{DataKind, TableKeySpec};
use conn::downstream::Downstream;
use conn::glitches::GlitchLimits;
use expression::sample::{Context, Direction, ProtocolFacts};
use live::table::{EntryMut, Pinned, TableHandle, TableKey, Tracked, Tracking};
use policy::program::{Filter, ProgramContext};
use policy::rule::{StickChange, Track};
use wire::http::Method;

use crate::filter::RulePosition;
use crate::session::Session;
use crate::stream::record::tracked::find;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::{Cause, Phase, StreamState};

/// Result of a rule that tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackResult {
    /// The entry is tracked, or there is nothing to track.
    Done,
    /// The key may become available with more data.
    Later,
}

/// Applies a `track-sc` rule: tracks the entry of a key, unless an entry is tracked under that number. Tracking ends with the
/// stream if `of_stream` is set, otherwise with the session.
pub fn begin(view: &EvalContext<'_>, context: &Context<'_>, track: &Track, of_stream: bool) -> TrackResult {
    if begin_of_client(view, track, of_stream) || is_taken(view.session, view.state, track.number) {
        return TrackResult::Done;
    }
    let Some(table) = view.session.worker.table(track.table) else { return TrackResult::Done };
    let value = track.key.evaluate(context);
    let Some(key) = value.and_then(|value| TableKey::of_sample(table.plan.key, context, value)) else {
        return if context.incomplete.get() { TrackResult::Later } else { TrackResult::Done };
    };
    add(view, track.number, table, &key, of_stream);
    TrackResult::Done
}

/// Like [`begin`], for a key that is the client's IPv4 address, without evaluating an expression. Returns false if the rule is
/// not of that kind.
pub fn begin_of_client(view: &EvalContext<'_>, track: &Track, of_stream: bool) -> bool {
    let Some(SocketAddr::V4(client)) = view.state.client(view.session).filter(|_| track.of_client) else {
        return false;
    };
    let Some(table) = view.session.worker.table(track.table) else { return false };
    if table.plan.key != TableKeySpec::Ipv4 {
        return false;
    }
    if !is_taken(view.session, view.state, track.number) {
        add(view, track.number, table, &TableKey::ipv4(*client.ip()), of_stream);
    }
    true
}

/// Tracks the entry of a key under a free number.
fn add(view: &EvalContext<'_>, number: u8, table: &TableHandle, key: &TableKey<'_>, of_stream: bool) {
    let EvalContext { session, state, .. } = *view;
    let counted = of_stream && state.accounting.tracked.request_counted;
    let tracked = Tracked::new(table, key, rt::now(), |entry| {
        if counted {
            count_request(entry);
        }
        if let Some(status) = state.answer.server_status.filter(|_| view.direction == Direction::Response) {
            count_status(session, entry, status);
        }
    });
    if let Some(tracked) = tracked {
        let tracking = if of_stream { &state.accounting.tracking } else { session.tracking() };
        tracking.borrow_mut().add(number, tracked);
    }
}

fn is_taken(session: &Session, state: &StreamState, number: u8) -> bool {
    state.accounting.tracking.borrow().get(number).is_some()
        || session.known_tracking().is_some_and(|tracking| tracking.borrow().get(number).is_some())
}

/// Applies a rule that changes a tracked entry.
pub fn change(view: &EvalContext<'_>, context: &Context<'_>, change: &StickChange) {
    let Some(amount) = change.amount(context) else { return };
    if let Some(tracked) = find(view.session, view.state, change.number) {
        change.perform(context, &tracked, amount);
    }
}

/// Returns the entry of a shared bandwidth limit, if the limit is shared.
pub fn share(session: &Session, context: &Context<'_>, filter: RulePosition) -> Option<Pinned> {
    let Filter::SharedBandwidth(limit) = context.proxy(filter.proxy)?.filters.list.get(filter.index)? else {
        return None;
    };
    let table = session.worker.table(limit.table)?;
    let value = limit.key.evaluate(context)?;
    let key = TableKey::of_sample(table.plan.key, context, value)?;
    Pinned::new(table, &key, context.now)
}

/// Changes all entries that the stream and its session track.
fn each(session: &Session, state: &StreamState, mut change: impl FnMut(&mut EntryMut<'_>)) {
    let now = rt::now();
    state.accounting.tracking.borrow().each(now, |entry, _| change(entry));
    if let Some(tracking) = session.known_tracking() {
        tracking.borrow().each(now, |entry, _| change(entry));
    }
}

/// Whether neither the stream nor its session tracks an entry.
#[inline]
fn is_idle(session: &Session, state: &StreamState) -> bool {
    state.accounting.tracking.borrow().is_empty()
        && session.known_tracking().is_none_or(|tracking| tracking.borrow().is_empty())
}

/// Counts a session.
pub fn session(session: &Session) {
    if let Some(tracking) = session.known_tracking() {
        tracking.borrow().each(rt::now(), |entry, _| {
            entry.add(DataKind::SessCnt, 0, 1);
            entry.add(DataKind::SessRate, 0, 1);
        });
    }
}

/// Counts a request, valid or not.
pub fn request(session: &Session, state: &mut StreamState) {
    if !std::mem::replace(&mut state.accounting.tracked.request_counted, true) && !is_idle(session, state) {
        each(session, state, count_request);
    }
}

/// Counts an invalid request as an error.
pub fn wrong_request(session: &Session, state: &StreamState) {
    if !is_idle(session, state) {
        each(session, state, count_error);
    }
}

/// Counts heads of a multiplexed connection that became no stream: `errors` of them, of which `requests` count as requests.
#[cold]
pub fn wrong_heads(session: &Session, requests: u32, errors: u32) {
    if let Some(tracking) = session.known_tracking() {
        tracking.borrow().each(rt::now(), |entry, _| {
            entry.add(DataKind::HttpReqCnt, 0, requests.into());
            entry.add(DataKind::HttpReqRate, 0, requests.into());
            entry.add(DataKind::HttpErrCnt, 0, errors.into());
            entry.add(DataKind::HttpErrRate, 0, errors.into());
        });
    }
}

/// Records an invalid request body: an error, which is counted when the stream ends. Multiplexed connections count glitches
/// themselves.
#[cold]
pub fn wrong_body(session: &Session, client: &Downstream, state: &RefCell<StreamState>) {
    state.borrow_mut().accounting.tracked.blamed = true;
    if client.is_connection() {
        glitches(session, 1);
    }
}

/// Counts a server's response by its status.
pub fn answer(session: &Session, state: &StreamState, status: u16) {
    if !is_idle(session, state) {
        each(session, state, |entry| count_status(session, entry, status));
    }
}

impl Session {
    /// Returns the state of its protocol.
    pub fn protocol_facts(&self) -> ProtocolFacts {
        self.facts.get().map(|facts| facts.protocol.get()).unwrap_or_default()
    }

    /// Sets the state of its protocol.
    pub fn note_protocol(&self, state: ProtocolFacts) {
        self.facts().protocol.set(state);
    }

    /// Whether its connection is multiplexed.
    pub fn has_several(&self) -> bool {
        self.facts.get().is_some_and(|facts| facts.protocol.get().major > 1)
    }
}

/// Adds glitches of a session's client, to the session and its tracked entries.
#[cold]
pub fn glitches(session: &Session, glitches: u32) {
    let known = session.protocol_facts();
    session.note_protocol(ProtocolFacts { glitches: known.glitches.saturating_add(glitches), ..known });
    let counters = session.counters();
    let all = if known.major == 3 { &counters.front_quic.used().glitches } else { &counters.front_http2.glitches };
    all.add(u64::from(glitches));
    if let Some(tracking) = session.known_tracking() {
        tracking.borrow().each(rt::now(), |entry, _| {
            entry.add(DataKind::GlitchCnt, 0, glitches.into());
            entry.add(DataKind::GlitchRate, 0, glitches.into());
        });
    }
}

/// Returns the glitch limits for clients of HTTP/1.
fn limits(session: &Session) -> GlitchLimits {
    let limits = &session.generation().program.global.glitches;
    GlitchLimits { threshold: limits.http1_clients, usage: limits.usage }
}

/// Whether an HTTP/1 connection has to be closed after the current response, because of its client's glitches.
pub fn exceeds_glitches(session: &Session) -> bool {
    let protocol = session.protocol_facts();
    protocol.major == 1 && protocol.glitches > 0 && limits(session).leaves(protocol.glitches)
}

/// Whether an HTTP/1 connection has to be closed at once, because of its client's glitches.
#[cold]
pub fn reaches_glitch_limit(session: &Session) -> bool {
    limits(session).kills(session.protocol_facts().glitches)
}

fn count_request(entry: &mut EntryMut<'_>) {
    entry.add(DataKind::HttpReqCnt, 0, 1);
    entry.add(DataKind::HttpReqRate, 0, 1);
}

fn count_error(entry: &mut EntryMut<'_>) {
    entry.add(DataKind::HttpErrCnt, 0, 1);
    entry.add(DataKind::HttpErrRate, 0, 1);
}

fn count_failure(entry: &mut EntryMut<'_>) {
    entry.add(DataKind::HttpFailCnt, 0, 1);
    entry.add(DataKind::HttpFailRate, 0, 1);
}

/// Classifies a server's status by `http-err-codes` and `http-fail-codes`; it may be in both.
fn count_status(session: &Session, entry: &mut EntryMut<'_>, status: u16) {
    let http = &session.generation().program.global.http;
    if http.err_codes.contains(status) {
        count_error(entry);
    }
    if http.fail_codes.contains(status) {
        count_failure(entry);
    }
}

/// Bytes of a stream that are not counted yet, and its result.
#[derive(Debug, Clone, Copy, Default)]
struct Uncounted {
    read: u64,
    written: u64,
    error: bool,
    failure: bool,
}

impl Uncounted {
    fn bytes(state: &mut StreamState) -> Self {
        let (read, written) = (
            state.accounting.bytes.bytes_in - state.accounting.tracked.tracked_in,
            state.accounting.bytes.received - state.accounting.tracked.tracked_out,
        );
        (state.accounting.tracked.tracked_in, state.accounting.tracked.tracked_out) =
            (state.accounting.bytes.bytes_in, state.accounting.bytes.received);
        Self { read, written, ..Self::default() }
    }

    fn is_nothing(&self) -> bool {
        self.read == 0 && self.written == 0 && !self.error && !self.failure
    }

    /// Adds to an entry. `factor`: number of bytes that count as one event of a byte rate.
    fn add(&self, entry: &mut EntryMut<'_>, factor: u32) {
        if self.read > 0 {
            entry.add_bytes(DataKind::BytesInCnt, DataKind::BytesInRate, self.read, factor);
        }
        if self.written > 0 {
            entry.add_bytes(DataKind::BytesOutCnt, DataKind::BytesOutRate, self.written, factor);
        }
        if self.error {
            count_error(entry);
        }
        if self.failure {
            count_failure(entry);
        }
    }
}

/// Adds the bytes since the last call, so that the entries of a long stream are updated while it runs.
pub fn bytes(session: &Session, state: &mut StreamState) {
    if is_idle(session, state) {
        return;
    }
    let rest = Uncounted::bytes(state);
    if !rest.is_nothing() {
        settle_all(&state.accounting.tracking.borrow(), rest);
        settle_session(session, rest);
    }
}

/// Counts the rest of a stream that has ended, and its result. Its log line can still read the entries.
pub fn count_end(session: &Session, state: &mut StreamState) {
    if is_idle(session, state) {
        return;
    }
    let rest = uncounted(session, state);
    settle_all(&state.accounting.tracking.borrow(), rest);
    settle_session(session, rest);
}

/// Like [`count_end`], and ends the stream's tracking.
pub fn conclude(session: &Session, state: &mut StreamState) {
    if is_idle(session, state) {
        return;
    }
    let rest = uncounted(session, state);
    state.accounting.tracking.get_mut().end(rt::now(), |entry, factor| rest.add(entry, factor));
    settle_session(session, rest);
}

#[inline]
fn settle_session(session: &Session, rest: Uncounted) {
    if let Some(tracking) = session.known_tracking() {
        settle_all(&tracking.borrow(), rest);
    }
}

fn settle_all(tracking: &Tracking, rest: Uncounted) {
    tracking.each(rt::now(), |entry, table| rest.add(entry, table.plan.byte_rate_factor));
}

fn uncounted(session: &Session, state: &mut StreamState) -> Uncounted {
    let failure = has_failed(session, state);
    Uncounted { error: state.accounting.tracked.blamed, failure, ..Uncounted::bytes(state) }
}

/// Whether its server has failed and that is not counted yet: there was no response, or it was invalid or truncated. Per
/// response, only one failure is counted, its status included.
fn has_failed(session: &Session, state: &StreamState) -> bool {
    let outcome = state.outcome;
    let of_server = matches!(outcome.cause, Cause::Server | Cause::ServerTimeout | Cause::Proxy);
    let counted = |status| session.generation().program.global.http.fail_codes.contains(status);
    let is_new = match (outcome.phase, state.answer.server_status) {
        (Phase::Headers, Some(status)) if outcome.cause == Cause::ServerTimeout => !counted(status),
        (Phase::Headers, _) => state.timings.response.is_none(),
        (Phase::Data, Some(status)) => {
            let tunnel = status == 101 || state.request.known_method() == Method::Connect;
            state.route.server.is_some() && !tunnel && !counted(status)
        }
        _ => false,
    };
    of_server && is_new && !state.rules.denied && !state.accounting.tracked.failure_counted
}

/// Counts a response of the proxy itself before its rules read the entries. An authentication challenge is counted at the end.
pub fn own_answer(session: &Session, state: &mut StreamState) {
    if is_idle(session, state) {
        return;
    }
    if state.rules.denied && std::mem::take(&mut state.accounting.tracked.blamed) {
        each(session, state, count_error);
    }
    if has_failed(session, state) {
        state.accounting.tracked.failure_counted = true;
        each(session, state, count_failure);
    }
}

/// Ends tracking.
pub fn end(tracking: &mut Tracking) {
    if !tracking.is_empty() {
        tracking.end(rt::now(), |_, _| {});
    }
}
