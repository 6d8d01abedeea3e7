//! Counters for the statistics: events of connections, requests and servers, counted when they happen or when the stream ends.
//! Must never decide anything, and never wait.

use live::Counts as Loads;
use live::counters::{ObjectCounters, ProxyCounters, WorkerCounters};
use live::trace::events;
use policy::program::{Proxy, Server};

use crate::session::Session;
use crate::stream::record::{tracing, tracking};
use crate::stream_state::{Cause, Flow, Phase, StreamState};
use crate::worker::Worker;

impl Worker {
    fn all(&self) -> impl Iterator<Item = &WorkerCounters> {
        self.process.counters.workers.iter().map(|counters| &**counters)
    }

    fn proxies(&self, index: usize) -> impl Iterator<Item = &ProxyCounters> {
        self.all().map(move |worker| &worker.proxies[index])
    }
}

/// Counts an accepted connection.
pub fn connection(session: &Session) {
    let worker = &session.worker;
    let (counters, now, index) = (session.counters(), rt::now(), session.frontend);
    let process = &worker.counters().process;
    process.connections.increment();
    process.connection_rate.add(now, 1, || worker.all().map(|worker| &worker.process.connection_rate));
    let front = &counters.front;
    front.connections.increment();
    front.most_sessions.note(u64::from(worker.process.live.proxies[index].feconn()));
    front.connection_rate.add(now, 1, || worker.proxies(index).map(|proxy| &proxy.front.connection_rate));
    if let Some(bind) = counters.binds.get(session.bind_index()) {
        bind.connections.increment();
        bind.begun.increment();
        if session.proxy().frontend.as_ref().is_some_and(|front| front.reception.socket_stats) {
            let running =
                worker.process.counters.of(|worker| worker.proxies[index].binds.get(session.bind_index())).running();
            bind.most_sessions.note(running);
        }
    }
}

/// Counts a connection, or its session, that a rule has rejected.
pub fn denied(session: &Session, before_session: bool) {
    let what = if before_session { "connection denied" } else { "session denied" };
    tracing::session(session, &events::SESSION_ERR, what);
    let proxy = session.counters();
    for counters in [Some(&proxy.front), proxy.binds.get(session.bind_index())].into_iter().flatten() {
        (if before_session { &counters.denied_connections } else { &counters.denied_sessions }).increment();
    }
}

/// Counts a connection whose rules exceeded their evaluation cost limit.
pub fn exhausted(session: &Session) {
    let proxy = session.counters();
    for counters in [Some(&proxy.front), proxy.binds.get(session.bind_index())].into_iter().flatten() {
        counters.internal_errors.increment();
    }
}

/// Counts a session, which begins after the handshakes that its `bind` line requires.
pub fn session(session: &Session) {
    tracing::session(session, &events::SESSION_NEW, "new session");
    let worker = &session.worker;
    let (counters, now, index) = (session.counters(), rt::now(), session.frontend);
    worker.counters().process.session_rate.add(now, 1, || worker.all().map(|worker| &worker.process.session_rate));
    let front = &counters.front;
    front.sessions.increment();
    front.session_rate.add(now, 1, || worker.proxies(index).map(|proxy| &proxy.front.session_rate));
    if let Some(bind) = counters.binds.get(session.bind_index()) {
        bind.sessions.increment();
    }
}

/// Counts the end of a session.
pub fn session_ended(session: &Session) {
    tracing::session(session, &events::SESSION_END, "session ended");
    if let Some(bind) = session.counters().binds.get(session.bind_index()) {
        bind.ended.increment();
    }
}

/// Counts a request, valid or not.
pub fn request(session: &Session) {
    session.worker.counters().process.requests.increment();
    upgraded(session);
}

/// Counts a request of a stream that began in TCP mode, which the process has already counted.
pub fn upgraded(session: &Session) {
    let worker = &session.worker;
    let (front, index) = (&session.counters().front, session.frontend);
    front.requests.increment();
    if session.has_several() {
        front.protocol.streams.subtract(1);
    }
    front.request_rate.add(rt::now(), 1, || worker.proxies(index).map(|proxy| &proxy.front.request_rate));
}

/// Counts a monitoring request that was answered with that status.
pub fn monitored(session: &Session, status: u16) {
    let front = &session.counters().front;
    front.intercepted.increment();
    front.answers[usize::from(status) / 100].increment();
}

/// Counts a session in TCP mode as a request of the process.
pub fn tcp(session: &Session) {
    session.worker.counters().process.requests.increment();
}

/// Counts a session of the backend that was chosen.
pub fn backend(worker: &Worker, proxy: &Proxy) {
    let (index, now) = (proxy.index, rt::now());
    let back = worker.counters().proxies[index].back();
    back.sessions.increment();
    back.most_sessions.note(1);
    let known = || worker.proxies(index).filter_map(|proxy| proxy.known_back());
    back.session_rate.add(now, 1, || known().map(|back| &back.session_rate));
}

/// Counts a request that was assigned to a server. `entered` includes this request; `balanced`: the server was chosen by load
/// balancing.
pub fn server(worker: &Worker, proxy: &Proxy, server: &Server, entered: Loads, balanced: bool) {
    let counters = worker.counters();
    let (counters, back) = (counters.server(server.serial), counters.proxies[proxy.index].back());
    if balanced {
        counters.balanced.increment();
        back.balanced.increment();
    }
    counters.most_sessions.note(u64::from(entered.srv_conn));
    back.most_sessions.note(u64::from(entered.beconn));
    back.note_session(rt::now());
}

/// Counts a queued request. `server`: its server, if it has one, and the length of that queue; `waiting`: length of the
/// backend's queue; `sessions`: sessions of the backend, queued ones included; `balanced`: the server was chosen by load
/// balancing.
pub fn queued(
    worker: &Worker,
    proxy: &Proxy,
    server: Option<(&Server, u32)>,
    balanced: bool,
    waiting: u32,
    sessions: u32,
) {
    let back = worker.counters().proxies[proxy.index].back();
    back.most_queued.note(u64::from(waiting));
    back.most_sessions.note(u64::from(sessions));
    if let Some((server, waiting)) = server {
        let counters = worker.counters().server(server.serial);
        counters.most_queued.note(u64::from(waiting));
        if balanced {
            counters.balanced.increment();
            back.balanced.increment();
        }
    }
}

/// Result of a TLS handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// It succeeded.
    Made {
        /// It has resumed an earlier session.
        resumed: bool,
    },
    /// It failed.
    Failed,
}

impl Handshake {
    fn count(self, counters: &ObjectCounters) {
        match self {
            Self::Made { resumed: false } => &counters.tls_sessions,
            Self::Made { resumed: true } => &counters.tls_resumed,
            Self::Failed => &counters.tls_failed,
        }
        .increment();
    }
}

/// Counts a TLS handshake with a client.
pub fn client_handshake(session: &Session, handshake: Handshake) {
    let (worker, counters, now) = (&session.worker, session.counters(), rt::now());
    handshake.count(&counters.front);
    if let Some(bind) = counters.binds.get(session.bind_index()) {
        handshake.count(bind);
    }
    let process = &worker.counters().process;
    process.tls_connections.increment();
    process.tls_rate.add(now, 1, || worker.all().map(|worker| &worker.process.tls_rate));
    if handshake == (Handshake::Made { resumed: false }) {
        process.front_key_rate.add(now, 1, || worker.all().map(|worker| &worker.process.front_key_rate));
    }
}

/// Counts a TLS handshake with a server.
pub fn server_handshake(worker: &Worker, proxy: usize, server: usize, handshake: Handshake) {
    let counters = worker.counters();
    handshake.count(counters.proxies[proxy].back());
    handshake.count(counters.server(server));
    let process = &counters.process;
    process.tls_connections.increment();
    if handshake == (Handshake::Made { resumed: false }) {
        process.back_key_rate.add(rt::now(), 1, || worker.all().map(|worker| &worker.process.back_key_rate));
    }
}

/// An event during the attempts to reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEvent {
    /// A connection attempt begins.
    Connect,
    /// An idle connection is reused.
    Reuse,
    /// The server is tried again.
    Retry,
    /// Another server is tried.
    Redispatch,
    /// The request has failed for lack of a connection.
    Failure,
    /// The response was invalid or missing, and the request is sent again.
    BadAnswer,
    /// An agent has disconnected without an answer.
    AgentLeft,
    /// The wait for an agent was abandoned.
    AgentAbandoned,
}

/// Counts a session of a server: an idle connection is reused, or a new one is being established. A connection that the system
/// refuses at once (there is no such UNIX socket) is not counted, as in HAProxy.
#[inline]
pub fn server_session(worker: &Worker, server: &Server) {
    session_of(worker, server, worker.counters().server(server.serial));
}

#[inline]
fn session_of(worker: &Worker, server: &Server, counters: &ObjectCounters) {
    counters.sessions.increment();
    let now = rt::now();
    counters.note_session(now);
    let known = || worker.all().filter_map(|worker| worker.known_server(server.serial));
    counters.session_rate.add(now, 1, || known().map(|counters| &counters.session_rate));
}

/// Counts an event for the server and its backend.
#[inline]
pub fn step(worker: &Worker, proxy: &Proxy, server: Option<&Server>, step: ServerEvent) {
    let counters = worker.counters();
    let own = server.map(|server| counters.server(server.serial));
    if let (Some(server), Some(own), ServerEvent::Reuse) = (server, own, step) {
        session_of(worker, server, own);
    }
    let count = |counters: &ObjectCounters| {
        match step {
            ServerEvent::Connect => &counters.connects,
            ServerEvent::Reuse => &counters.reuses,
            ServerEvent::Retry => &counters.retries,
            ServerEvent::Redispatch => &counters.redispatches,
            ServerEvent::Failure => &counters.connect_errors,
            ServerEvent::BadAnswer => &counters.response_errors,
            ServerEvent::AgentLeft => &counters.server_aborts,
            ServerEvent::AgentAbandoned => &counters.client_aborts,
        }
        .increment();
    };
    count(counters.proxies[proxy.index].back());
    own.into_iter().for_each(count);
}

/// The counters to which a stream is added.
struct Parties<'a> {
    front: &'a ObjectCounters,
    bind: Option<&'a ObjectCounters>,
    back: Option<&'a ObjectCounters>,
    server: Option<&'a ObjectCounters>,
}

impl<'a> Parties<'a> {
    fn of(session: &'a Session, state: &StreamState) -> Self {
        let worker = &session.worker;
        let (counters, proxy) = (worker.counters(), session.counters());
        let server = state.route.backend.zip(state.route.server).and_then(|(backend, server)| {
            let backend = session.proxy_at(backend).backend.as_ref()?;
            backend.servers.get(server).map(|server| counters.server(server.serial))
        });
        Self {
            front: &proxy.front,
            bind: proxy.binds.get(session.bind_index()),
            back: state.route.backend.map(|backend| counters.proxies[backend].back()),
            server,
        }
    }

    /// Updates all of them.
    #[inline]
    fn each(&self, count: impl Fn(&'a ObjectCounters)) {
        count(self.front);
        // Every request does this: a loop over the others would cost more.
        if let Some(bind) = self.bind {
            count(bind);
        }
        if let Some(back) = self.back {
            count(back);
        }
        if let Some(server) = self.server {
            count(server);
        }
    }

    fn behind(&self) -> impl Iterator<Item = &'a ObjectCounters> {
        [self.back, self.server].into_iter().flatten()
    }
}

/// Adds the bytes since the last call, so that the counters of a long stream are updated while it runs.
pub fn bytes(session: &Session, state: &mut StreamState) {
    add_bytes(session, &Parties::of(session, state), state);
    tracking::bytes(session, state);
}

#[inline]
fn add_bytes(session: &Session, parties: &Parties<'_>, state: &mut StreamState) {
    let now = state.flow();
    let Flow { bytes_in, sent, received, bytes_out } = now.since(&state.accounting.counted);
    if bytes_in == 0 && sent == 0 && received == 0 && bytes_out == 0 {
        return;
    }
    state.accounting.counted = now;
    if session.has_several() {
        // HTTP/1 counters are computed by subtraction: these sums contain bytes of HTTP/1 and HTTP/2.
        parties.front.protocol.received.subtract(bytes_in);
        parties.front.protocol.sent.subtract(bytes_out);
    }
    if let (Some(back), true) = (parties.back, state.attempts.link.is_some_and(|link| link.protocol.major > 1)) {
        back.protocol.received.subtract(received);
        back.protocol.sent.subtract(sent);
    }
    parties.each(|counters| {
        counters.bytes_in.add(bytes_in);
        counters.sent.add(sent);
        counters.received.add(received);
        counters.bytes_out.add(bytes_out);
    });
    let worker = &session.worker;
    let process = &worker.counters().process;
    let written = sent + bytes_out;
    process.bytes_out.add(written);
    let units = (written + 16) / 32;
    process.bytes_out_rate.add(rt::now(), units, || worker.all().map(|worker| &worker.process.bytes_out_rate));
}

/// Adds the bytes of a message in progress, if they are many: a large message is counted before its end.
#[inline]
pub fn flowing(session: &Session, state: &mut StreamState) {
    const WORTH_COUNTING: u64 = 64 * 1024;
    let (now, counted) = (&state.accounting.bytes, &state.accounting.counted);
    if now.bytes_in - counted.bytes_in + now.bytes_out - counted.bytes_out >= WORTH_COUNTING {
        bytes(session, state);
    }
}

/// Adds body bytes that were moved by the kernel: a request's from the client to the server, a response's from the server to
/// the client.
pub fn spliced(session: &Session, state: &StreamState, answer: bool, bytes: usize) {
    let bytes = bytes as u64;
    let parties = Parties::of(session, state);
    let (from, to) = if answer { (parties.back, Some(parties.front)) } else { (Some(parties.front), parties.back) };
    if let Some(from) = from {
        from.spliced_in.add(bytes);
    }
    if let Some(to) = to {
        to.spliced_out.add(bytes);
    }
    session.worker.counters().process.spliced_out.add(bytes);
}

/// Counts the end of a stream.
pub fn stream(session: &Session, state: &mut StreamState) {
    let parties = Parties::of(session, state);
    add_bytes(session, &parties, state);
    if state.outcome.cause != Cause::Normal {
        let in_frontend = state.route.backend.is_none_or(|backend| backend == session.frontend);
        outcome(&parties, state, in_frontend);
    }
    answer(&parties, state);
    if let (Some(back), true) = (parties.back, state.route.server.is_some()) {
        times(back, parties.server, state);
    }
    if parties.front.latency.get().is_some() {
        latency(&parties, state);
    }
}

/// Adds the response time, for the dashboard.
fn latency(parties: &Parties<'_>, state: &StreamState) {
    let (now, timings) = (rt::now(), &state.timings);
    let Some(begin) = timings.first_byte.or(timings.connected.map(|_| timings.start)) else { return };
    let took = timings.response.or(timings.connected).unwrap_or(now).saturating_since(begin);
    for counters in [Some(parties.front), parties.back, parties.server].into_iter().flatten() {
        if let Some(latencies) = counters.latency.get() {
            latencies.add(took, now);
        }
    }
}

/// Counts an interim response of a server.
pub fn interim(session: &Session, state: &StreamState) {
    if let Some(server) = Parties::of(session, state).server {
        server.answers[1].increment();
    }
}

/// Adds bytes of a request that were read after its log line was written: they count for the protocol only.
pub fn dropped(session: &Session, bytes: usize) {
    session.counters().front.protocol.received.add(bytes as u64);
}

/// Counts data that was not a request: its bytes, and those of the answer, count for the protocol only. A connection that ended
/// without a byte is not a stream of it, and is counted as unused.
#[cold]
pub fn no_request(session: &Session, state: &StreamState, received: usize, sent: usize) {
    let counters = session.counters();
    let protocol = &counters.front.protocol;
    if !session.has_several() {
        protocol.received.add(received as u64);
        protocol.sent.add(sent as u64);
        if received == 0 && state.accounting.bytes.bytes_in == 0 {
            protocol.streams.subtract(1);
            // One that began in TCP mode has no status.
            counters.unused_connections.add(u64::from(state.answer.status > 0));
        }
    }
    session.worker.counters().process.bytes_out.add(sent as u64);
}

/// Counts a change of a head that did not fit.
#[cold]
pub fn failed_rewrite(session: &Session, state: &StreamState) {
    Parties::of(session, state).each(|counters| counters.failed_rewrites.increment());
}

/// Counts the class of the response's status; for the server, the status that it has sent, before rules.
#[inline]
fn answer(parties: &Parties<'_>, state: &StreamState) {
    let class_of = |status: i32| match status {
        100..600 => status as usize / 100,
        _ => 0,
    };
    // Status 0: the client got no response.
    if state.answer.status != 0 {
        let class = class_of(state.answer.status);
        parties.front.answers[class].increment();
        if let Some(back) = parties.back {
            back.answers[class].increment();
        }
    }
    let of_server = state.answer.server_status.map_or(state.answer.status, i32::from);
    if let (Some(server), Some(_)) = (parties.server, state.timings.response)
        && of_server != 0
    {
        server.answers[class_of(of_server)].increment();
    }
}

/// Adds glitches of a server's HTTP/1 connection.
#[cold]
pub fn server_glitches(session: &Session, backend: usize, glitches: u32) {
    session.worker.counters().proxies[backend].serving().http2.glitches.add(u64::from(glitches));
}

/// Counts a failed stream by its cause. `in_frontend`: it was in no other proxy.
#[cold]
fn outcome(parties: &Parties<'_>, state: &StreamState, in_frontend: bool) {
    let (cause, phase) = (state.outcome.cause, state.outcome.phase);
    match (cause, phase) {
        (Cause::Normal, _) => {}
        (Cause::Internal, _) => parties.each(|counters| counters.internal_errors.increment()),
        _ if state.rules.failed => parties.each(|counters| counters.internal_errors.increment()),
        (_, Phase::Request | Phase::Tarpit) if state.rules.denied => {
            let back = parties.back.filter(|_| state.info.has_request);
            for counters in [Some(parties.front), parties.bind, back].into_iter().flatten() {
                counters.denied_requests.increment();
            }
        }
        (_, _) if state.rules.denied => parties.each(|counters| counters.denied_responses.increment()),
        // A response by a rule is not an error.
        (Cause::Local, Phase::Request) => parties.front.intercepted.add(u64::from(in_frontend)),
        (_, Phase::Request) | (Cause::Invalid, _) => {
            for counters in [Some(parties.front), parties.bind].into_iter().flatten() {
                counters.request_errors.increment();
            }
        }
        // A client that disconnects before there is a connection has not aborted a transfer.
        (Cause::Client, Phase::Connect) => {}
        (Cause::Client | Cause::ClientTimeout, _) => {
            parties.behind().for_each(|counters| counters.client_aborts.increment());
        }
        (Cause::Server | Cause::ServerTimeout, Phase::Headers)
        | (Cause::Proxy | Cause::Refused, Phase::Headers | Phase::Data) => {
            parties.behind().for_each(|counters| counters.response_errors.increment());
        }
        (Cause::Server | Cause::ServerTimeout, Phase::Data | Phase::Last) => {
            for counters in parties.behind() {
                counters.server_aborts.increment();
                counters.response_errors.increment();
            }
        }
        _ => {}
    }
}

/// Adds the times, in milliseconds, as they are logged.
#[inline]
fn times(back: &ObjectCounters, server: Option<&ObjectCounters>, state: &StreamState) {
    let values = state.timings.averaged(rt::now());
    let add = |counters: &ObjectCounters| {
        counters.times.add(values);
        counters.longest.iter().zip(values).for_each(|(longest, value)| longest.note(value));
    };
    add(back);
    if let Some(server) = server {
        add(server);
    }
}
