//! TCP sessions and tunnels: bytes both ways until both sides have closed. Must never look at the bytes.

use std::task::{Context, Poll};
use std::time::Duration;

use balance::Subject;
use base::buffer::Buffer;
use base::moment::Moment;
use config::spec::{BalanceSpec, Mode};
use conn::carrier::Carrier;
use conn::downstream::Downstream;
use conn::duplex::{Duplex, DuplexStep, Side};
use conn::flow::{FlowError, Moved};
use expression::record::Origin;
use expression::sample::{Bytes, Direction};
use live::Seen;
use policy::program::{Frontend, MuxProtocol, Proxy};
use policy::rule::Rule;
use policy::services::ServiceRow;
use rt::LocalRc;

use crate::orders::{Orders, OwnTimeouts};
use crate::service::ejections;
use crate::session::Session;
use crate::stream::activity::Activity;
use crate::stream::connect::{self, Refusal, Target};
use crate::stream::content::Passed;
use crate::stream::dispatch::splices;
use crate::stream::evaluate::EvalContext;
use crate::stream::http::Client;
use crate::stream::rules::cost;
use crate::stream::task::StreamTask;
use crate::stream::{
    byte_service, conclude, content, filter, http, kernel, metrics, otel, persistence, sticking, tracing,
};
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// How long a side may stay silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SilenceLimits {
    client: Option<Duration>,
    server: Option<Duration>,
    /// Once a direction has ended, for the client's side.
    client_fin: Option<Duration>,
    /// Once a direction has ended, for the server's side.
    server_fin: Option<Duration>,
    /// The server's end is the end of both directions: a tunnel that HTTP has opened.
    ends_with_server: bool,
    /// `option independent-streams` of the frontend.
    independent_client: bool,
    /// The same of the backend.
    independent_server: bool,
}

impl SilenceLimits {
    /// For a tunnel that an HTTP request has opened.
    pub fn of_upgrade(frontend: &Proxy, backend: &Proxy, own: OwnTimeouts) -> Self {
        Self { ends_with_server: true, ..Self::of_session(frontend, backend, own) }
    }

    /// For a session in TCP mode: `timeout tunnel` supersedes the two others where it is set.
    pub fn of_tunnel(frontend: &Proxy, backend: &Proxy) -> Self {
        Self::of_session(frontend, backend, OwnTimeouts::default())
    }

    fn of_session(frontend: &Proxy, backend: &Proxy, own: OwnTimeouts) -> Self {
        let tunnel = own.tunnel.or(backend.timeouts.tunnel);
        let client = tunnel.or(own.client).or(frontend.timeouts.client);
        let server = tunnel.or(own.server).or(backend.timeouts.server);
        Self {
            client,
            server,
            client_fin: frontend.timeouts.client_fin.or(client),
            server_fin: backend.timeouts.server_fin.or(server),
            ends_with_server: false,
            independent_client: frontend.options.independent_streams,
            independent_server: backend.options.independent_streams,
        }
    }
}

/// Where a session in TCP mode went.
enum Way {
    /// To a server, and its end.
    Carried,
    /// Over to HTTP.
    Upgraded,
}

/// Serves a client that came in TCP mode until its connection ends; what it has sent so far is its input. The stream is
/// given back that is to be concluded once the connection is closed.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
pub fn serve<'a>(
    session: &'a LocalRc<StreamTask>,
    client: &'a mut Client,
) -> impl Future<Output = Option<SharedStreamState>> + 'a {
    async move {
        let state = begin(session);
        let inspected = if session.proxy().rules.request_content.is_empty() {
            Ok(false)
        } else {
            inspect(session, client, &state, session.proxy().rules.on_request_bytes()).await
        };
        let ended = match inspected {
            Ok(true) => Ok(Way::Upgraded),
            Ok(false) => {
                let arguments = (session, &mut *client, &state);
                rt::boxed_with(arguments, |(session, client, state)| connect_and_carry(session, client, state)).await
            }
            Err(outcome) => Err(outcome),
        };
        let outcome = match ended {
            // The listening address carries bytes and nothing else.
            Ok(Way::Upgraded) if session.protocol() == Some(MuxProtocol::None) => NO_CONNECTION,
            Ok(Way::Upgraded) => {
                rt::boxed_with((session, client), |(session, client)| http::serve_upgraded(session, client)).await;
                return None;
            }
            Ok(Way::Carried) => Outcome::default(),
            Err(outcome) => {
                if matches!(outcome.phase, Phase::Queue | Phase::Connect) {
                    take_in(client);
                    client.drop_connection();
                }
                outcome
            }
        };
        {
            let state = &mut *state.borrow_mut();
            state.outcome = outcome;
            kernel::part_from_client(session, state);
        }
        Some(state)
    }
}

/// Has a service serve the session.
fn served<'a>(
    session: &'a Session,
    client: &'a mut Client,
    state: &'a SharedStreamState,
    service: Box<ServiceRow>,
) -> rt::Recycled<impl Future<Output = Outcome> + 'a> {
    rt::boxed_with((session, client, state, service), |(session, client, state, service)| async move {
        byte_service::serve(session, client, state, &service).await
    })
}

/// A stream of a connection that carries several is never in TCP mode.
const NO_CONNECTION: Outcome = Outcome::new(Cause::Internal, Phase::Request);

/// Reads what a client has sent that no server gets: its connection would end in a reset because of unread bytes,
/// and not in order.
fn take_in(client: &mut Client) {
    let Some((stream, input)) = client.conn.bytes() else { return };
    if input.capacity() == 0 {
        *input = rt::buffer();
    }
    let _ = stream.try_read(input);
}

/// Begins the stream of a session in TCP mode.
fn begin(session: &StreamTask) -> SharedStreamState {
    let state = session.begin();
    {
        let state = &mut *state.borrow_mut();
        state.number = session.worker.process.number_stream();
        state.timings.start = session.accepted;
        state.status = 0;
        state.start_date = session.accept_date();
        otel::begin(session, state);
    }
    metrics::tcp(session);
    tracing::connection(session, &state.borrow());
    filter::begin(session, &state);
    conclude::log_step(session, &state, Origin::Accept);
    state
}

/// Runs the rules of `proxy` on what the client sends: whether it goes over to HTTP. A session that goes to a service ends here.
fn inspect<'a>(
    session: &'a Session,
    client: &'a mut Client,
    state: &'a SharedStreamState,
    rules: content::OnBytes<'a>,
) -> rt::Recycled<impl Future<Output = Result<bool, Outcome>> + 'a> {
    rt::boxed_with((session, client, state, rules), |(session, client, state, rules)| async move {
        let Client { conn, timer, .. } = &mut *client;
        let (stream, input) = conn.bytes().ok_or(NO_CONNECTION)?;
        let passed = content::request(session, stream, input, timer, state, rules).await;
        if passed.is_err() {
            client.drop_connection();
        }
        match passed? {
            Passed::Goes => Ok(false),
            Passed::Upgraded => Ok(true),
            Passed::Served(service) => Err(served(session, client, state, service).await),
        }
    })
}

/// The hash that the balance chooses a server by. What the client has sent by now is looked at where that counts; nothing
/// is waited for.
fn recognise(session: &Session, state: &SharedStreamState, backend: &Proxy, client: &mut Client) -> Option<u32> {
    let (client, early) = client.conn.bytes()?;
    let backend = backend.backend.as_ref()?;
    let reads = matches!(backend.balance, BalanceSpec::RdpCookie { .. }) || backend.persistence.rdp_cookie.is_some();
    if reads {
        if early.capacity() == 0 {
            *early = rt::buffer();
        }
        // An end or an error shows again at the next read.
        let _ = client.try_read(early);
    }
    let recogniser = backend.recogniser.as_ref()?;
    recogniser.hash(&Subject { source: state.borrow().source(session), request: None, bytes: early.data() })
}

/// The proxy that the switching rules send a session to, or the one where no rule does.
fn switch(session: &Session, state: &SharedStreamState, own: &Frontend, data: &[u8]) -> Option<usize> {
    if !session.worker.rule_costs.is_on()
        && let Some(target) = own.switch_at_once(|proxy| session.worker.proxy_state(proxy).is_open())
    {
        return Some(target);
    }
    let state = state.borrow();
    let bytes = Bytes::new(data, true);
    let view = EvalContext { bytes, ..EvalContext::request(session, &state) };
    cost::switch(&view, own)
}

/// Whether what was evaluated for a session cost more than it may.
fn exhaustion(state: &SharedStreamState) -> Result<(), Outcome> {
    let exhausted = state.borrow().exhausted.take();
    if exhausted { Err(Outcome::new(Cause::Internal, Phase::Request)) } else { Ok(()) }
}

/// The backend of a session, whose rules have let it pass. `None`: it speaks HTTP, and the session goes over to it.
async fn choose_backend<'s>(
    session: &'s Session,
    client: &mut Client,
    state: &SharedStreamState,
) -> Result<Option<&'s Proxy>, Outcome> {
    let frontend = session.proxy();
    let target = frontend.frontend.as_ref().and_then(|own| switch(session, state, own, client.conn.received()));
    exhaustion(state)?;
    let Some(backend) = target.map(|index| session.proxy_at(index)).filter(|proxy| proxy.backend.is_some()) else {
        return Err(Outcome::new(Cause::Server, Phase::Connect));
    };
    state.borrow_mut().choose_backend(backend);
    if backend.mode == Mode::Http {
        return Ok(None);
    }
    if backend.index != frontend.index {
        state.borrow().order(Orders::leave_backend);
    }
    metrics::backend(&session.worker, backend);
    let asks_agents = filter::choose(session, state, backend);
    if backend.index != frontend.index && (asks_agents || !backend.rules.request_content.is_empty()) {
        if let Some(events) = frontend.rules.spoe.as_ref().filter(|events| !events.backend_content.is_empty()) {
            inspect(session, client, state, (&events.backend_content, None)).await?;
        }
        inspect(session, client, state, backend.rules.on_request_bytes()).await?;
    }
    Ok(Some(backend))
}

/// The hash that the balance chooses a server by, by a key of its own where it has one.
fn hash(session: &Session, state: &SharedStreamState, backend: &Proxy, client: &mut Client) -> Option<u32> {
    match backend.backend.as_ref().and_then(|own| Some((own, own.hash_key.as_ref()?))) {
        None => recognise(session, state, backend, client),
        Some((own, key)) => {
            let known = state.borrow();
            let bytes = Bytes::new(client.conn.received(), true);
            connect::hash_of_key(EvalContext { bytes, ..EvalContext::request(session, &known) }, own, key)
        }
    }
}

/// What agents are asked before rules look at what the server sends.
fn asked_before_answers<'s>(frontend: &'s Proxy, backend: &'s Proxy) -> Vec<&'s [Rule]> {
    let differs = frontend.index != backend.index;
    let of_frontend = frontend.rules.spoe.as_ref();
    let of_backend = backend.rules.spoe.as_ref().filter(|_| differs);
    let sessions = [of_frontend, of_backend].into_iter().flatten().map(|events| &*events.server_session);
    let answers = of_frontend.filter(|_| differs).map(|events| &*events.answers);
    sessions.chain(answers).filter(|rules| !rules.is_empty()).collect()
}

async fn connect_and_carry(session: &Session, client: &mut Client, state: &SharedStreamState) -> Result<Way, Outcome> {
    let frontend = session.proxy();
    let Some(backend) = choose_backend(session, client, state).await? else { return Ok(Way::Upgraded) };
    let hash = hash(session, state, backend, client);
    let Client { conn, timer, .. } = client;
    let bound = persistence::bind_session(session, state, backend, conn.received());
    exhaustion(state)?;
    let mut request = connect::Request {
        session,
        state,
        proxy: backend,
        client: &mut *conn,
        waits_for_bytes: true,
        body: None,
        timer,
        prefer: None,
        exclude: None,
        hash,
        bound,
        fresh: true,
        first: true,
        features: state.borrow().features,
    };
    let mut place = None;
    if let Err(begun) = request.begin(None, &mut place) {
        let obtained = rt::boxed(request.obtain(begun)).await;
        place = Some(obtained.map_err(|Refusal { outcome, .. }| outcome)?);
    }
    let Some(Target { slot, mut link }) = place else {
        return Err(Outcome::new(Cause::Internal, Phase::Connect));
    };
    conclude::log_step(session, state, Origin::Connect);
    sticking::remember(session, &state.borrow());
    let client_input = conn.take_received();
    let outcome = match Duplex::new(client_input, Buffer::empty(), Buffer::empty()) {
        Ok(mut duplex) => {
            if splices(frontend, backend, |splice| splice.request) {
                duplex.up.splice();
            }
            if splices(frontend, backend, |splice| splice.response) {
                duplex.down.splice();
            }
            let filters = state.borrow().filters.clone();
            filter::install(filters.as_ref(), Direction::Request, &mut duplex.up, true);
            let mut answers = Ok(true);
            let before = asked_before_answers(frontend, backend);
            if backend.rules.response_content.is_empty() && before.is_empty() {
                // What it sends is not waited for.
                sticking::answer_bytes(session, &state.borrow(), &[]);
            } else {
                let (client, _) = conn.bytes().ok_or(NO_CONNECTION)?;
                let server = link.carrier.transport().ok_or(NO_CONNECTION)?;
                let ends = content::Ends { client, server, timer };
                answers = rt::boxed(content::response(session, ends, &mut duplex, state, (&before, backend))).await;
            }
            filter::install_both(filters.as_ref(), &mut duplex);
            let limits = SilenceLimits::of_tunnel(frontend, backend);
            match answers {
                Ok(true) => carry(duplex, client, &mut link.carrier, &limits, (session, state)).await,
                Ok(false) => Outcome::default(),
                Err(outcome) => outcome,
            }
        }
        Err(_) => Outcome::new(Cause::Internal, Phase::Data),
    };
    kernel::part_from_server(session, &mut state.borrow_mut(), link.carrier.socket());
    drop(link);
    ejections::observe(&session.worker, backend, slot.server(), || {
        let timings = &state.borrow().timings;
        let took = timings.queued.zip(timings.connected).map(|(begun, connected)| connected.saturating_since(begun));
        Seen { took, failed: ejections::is_servers_fault(outcome) }
    });
    state.borrow_mut().attempts.counts = Some(slot.release());
    if outcome == Outcome::default() { Ok(Way::Carried) } else { Err(outcome) }
}

/// The statistics get what went of a tunnel that often, and whenever much went: not with every few bytes.
const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// Carries bytes both ways until both sides have closed, one fails or a limit strikes.
pub async fn carry(
    duplex: Duplex,
    client: &mut Client,
    server: &mut Carrier,
    limits: &SilenceLimits,
    (session, state): (&Session, &SharedStreamState),
) -> Outcome {
    let now = rt::now();
    let mut carriage = Carriage {
        duplex,
        client: &mut client.conn,
        server,
        timer: &mut client.timer,
        limits,
        session,
        state,
        counted: now,
        client_side: Activity::new(now, limits.independent_client),
        server_side: Activity::new(now, limits.independent_server),
    };
    let outcome = std::future::poll_fn(|cx| carriage.poll(cx)).await;
    let (client_ended, is_told) = (carriage.duplex.client_ended(), carriage.duplex.down.is_finished());
    let is_late = outcome.cause == Cause::ClientTimeout && carriage.duplex.writes_to(Side::Client);
    if is_late || (outcome == Outcome::default() && client_ended) {
        client.drop_connection();
    } else if outcome.cause == Cause::Server && !is_told {
        // An orderly end would say that the server has sent everything.
        client.cut_short();
    }
    outcome
}

struct Carriage<'a> {
    duplex: Duplex,
    client: &'a mut Downstream,
    server: &'a mut Carrier,
    timer: &'a mut rt::Timer,
    limits: &'a SilenceLimits,
    session: &'a Session,
    state: &'a SharedStreamState,
    /// When the statistics last got what went.
    counted: Moment,
    client_side: Activity,
    server_side: Activity,
}

impl Carriage<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let (mut up, mut down) = (Moved::default(), Moved::default());
        if self.duplex.held_until().is_some() {
            // While a filter holds bytes back, no timeout runs.
            let now = rt::now();
            self.client_side.reading_resumes(now);
            self.server_side.reading_resumes(now);
        }
        let step = self.duplex.poll_between(cx, self.client, self.server, &mut up, &mut down);
        self.note(up, down);
        match step {
            Ok(DuplexStep::Finished) => Poll::Ready(Outcome::default()),
            Ok(DuplexStep::Exhausted) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(DuplexStep::Waits) if self.limits.ends_with_server && self.duplex.down.is_finished() => {
                Poll::Ready(Outcome::default())
            }
            Ok(DuplexStep::Waits) => self.poll_limits(cx),
            Err((side, error)) => Poll::Ready(blame(side, &error)),
        }
    }

    /// A tunnel is inactive only when both directions are.
    fn note(&mut self, up: Moved, down: Moved) {
        let now = rt::now();
        if let Some(progress) = up.read_progress() {
            self.client_side.reads(now, progress);
        }
        if let Some(progress) = up.write_progress() {
            self.server_side.writes(now, progress);
        }
        if let Some(progress) = down.read_progress() {
            self.server_side.reads(now, progress);
        }
        if let Some(progress) = down.write_progress() {
            self.client_side.writes(now, progress);
        }
        if up != Moved::default() || down != Moved::default() {
            let state = &mut *self.state.borrow_mut();
            state.bytes.sent += up.written as u64;
            state.bytes.received += down.read as u64;
            state.bytes.bytes_in += up.read as u64;
            state.bytes.bytes_out += down.written as u64;
            if now >= self.counted + COUNTED_EVERY {
                self.counted = now;
                metrics::bytes(self.session, state);
            } else {
                metrics::flowing(self.session, state);
            }
            if down.spliced > 0 {
                metrics::spliced(self.session, state, true, down.spliced);
            }
        }
        if up.spliced > 0 {
            metrics::spliced(self.session, &self.state.borrow(), false, up.spliced);
        }
    }

    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let now = rt::now();
            let (client_ended, server_ended) = (self.duplex.client_ended(), self.duplex.server_ended());
            let (client, server) = if client_ended || server_ended {
                // A side that is neither read nor written to has nothing to be late with.
                let client = self.limits.client_fin;
                let server = self.limits.server_fin;
                (
                    client.filter(|_| !client_ended || self.duplex.writes_to(Side::Client)),
                    server.filter(|_| !server_ended || self.duplex.writes_to(Side::Server)),
                )
            } else {
                (self.limits.client, self.limits.server)
            };
            let held = self.duplex.held_until();
            // While Weir itself holds bytes back, no timeout runs.
            let held_until = held.unwrap_or_default();
            let client = client.map(|limit| silence(&self.client_side, client_ended).max(held_until) + limit);
            let server = server.map(|limit| silence(&self.server_side, server_ended).max(held_until) + limit);
            if client.is_some_and(|deadline| now >= deadline) {
                return Poll::Ready(Outcome::new(Cause::ClientTimeout, Phase::Data));
            }
            if server.is_some_and(|deadline| now >= deadline) {
                return Poll::Ready(Outcome::new(Cause::ServerTimeout, Phase::Data));
            }
            if held.is_some_and(|held| now >= held) {
                return self.poll(cx);
            }
            self.timer.arm([client, server, held].into_iter().flatten().min());
            if self.timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// Since when a side of a tunnel is silent. `has_ended`: it sends nothing more.
fn silence(side: &Activity, has_ended: bool) -> Moment {
    if has_ended { side.idle_since() } else { side.silent_since() }
}

/// Who ended a tunnel that failed. `side` is the source of the direction that failed.
fn blame(side: Side, error: &FlowError) -> Outcome {
    let cause = match (side, error) {
        (Side::Client, FlowError::Write(_)) | (Side::Server, FlowError::Read(_)) => Cause::Server,
        (Side::Client, _) | (Side::Server, FlowError::Write(_)) => Cause::Client,
        (Side::Server, _) => Cause::Server,
    };
    Outcome::new(cause, Phase::Data)
}
