//! From a backend to a connected server: load balancing, the queue, idle links, connection attempts. Must never read or
//! write a message.

use std::task::{Context, Poll};
use std::time::Duration;

use base::moment::Moment;
use config::spec::{HttpReuse, Mode, RetryOn};
use conn::downstream::Downstream;
use conn::exchange::RequestBody;
use conn::link::Link;
use conn::pool_key::PoolKey;
use conn::quota::Reservation;
use conn::worker_links::ShareTerms;
use expression::Expression;
use expression::record::Endpoint;
use expression::sample::{ConnectionError, LinkFacts, ProtocolFacts, Type, cast};
use live::health::Symptom;
use live::trace::events;
use live::{Assignment, Local, PickContext, Preference, Priority, ProxyState, QueueTicket};
use policy::program::{Backend, Features, Proxy, Redispatch, Server};
use policy::rule::SelectedServer;
use rt::net::{Address, Hangup};
use wire::http::Method;

use crate::check::{Sign, observe, trace};
use crate::orders::Orders;
use crate::service::ejections;
use crate::session::Session;
use crate::stream::client::activity::WATCH_AFTER;
use crate::stream::client::client_limit::QueuedStream;
use crate::stream::record::metrics::{self, ServerEvent};
use crate::stream::record::otel;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::server::attempt::Attempt;
use crate::stream::server::server_target::{REDIRECT, Refusal, Target};
use crate::stream::server::{early_data, private_connections, redirect, server_multiplex};
use crate::stream_state::socket_handle::Kernel;
use crate::stream_state::{Cause, Phase, StreamState};
use crate::worker::{SharedStreamState, Slot, Worker};

/// Maximum delay before the same server is tried again.
const TURNAROUND: Duration = Duration::from_secs(1);

/// Context of a request that needs a server.
pub struct Request<'a> {
    /// The session.
    pub session: &'a Session,
    /// Its stream.
    pub state: &'a SharedStreamState,
    /// The backend's proxy.
    pub proxy: &'a Proxy,
    /// The client's connection: watched, never read.
    pub client: &'a mut Downstream,
    /// TCP mode: a client that closes its sending direction without having sent anything gets no server.
    pub waits_for_bytes: bool,
    /// The flow of the request's body.
    pub body: Option<&'a mut RequestBody>,
    /// The session's timer.
    pub timer: &'a mut rt::Timer,
    /// The preferred server.
    pub prefer: Option<Preference>,
    /// The server to avoid: it failed.
    pub exclude: Option<usize>,
    /// Hash for load balancing.
    pub hash: Option<u32>,
    /// The server to which the request is bound (persistence).
    pub bound: Option<SelectedServer>,
    /// Only a new connection may be used.
    pub fresh: bool,
    /// The session's first request.
    pub first: bool,
    /// The optional features of frontend and backend.
    pub features: Features,
}

/// How far [`Request::begin`] got without waiting, if it did not complete.
pub enum PendingRequest {
    /// A slot of a server was obtained.
    Slot(Slot),
    /// The result of load balancing is not a slot.
    Assigned(Assignment<Local>),
    /// Memory is scarce: the request waits for memory first, with the slot that it holds.
    Waits(Option<Slot>),
    /// Too many uploads of the client's address are in progress: the request waits for its turn.
    Crowded(QueuedStream),
}

impl Request<'_> {
    /// Handles the common case without waiting: gets a slot of a server with free capacity and an idle link to it, and
    /// stores them in `place`. `held` is the slot of an earlier attempt.
    ///
    /// # Errors
    /// The request has to wait or to connect: [`Request::obtain`] continues from there.
    pub fn begin(&mut self, held: Option<Slot>, place: &mut Option<Target>) -> Result<(), PendingRequest> {
        if held.is_none() && self.exclude.is_none() {
            self.session.worker.proxy_state(self.proxy.index).note_request(rt::now());
        }
        if rt::memory_is_critical() {
            return Err(PendingRequest::Waits(held));
        }
        if self.client.is_uploading() {
            self.enter_crowd()?;
        }
        let slot = match held {
            Some(slot) => slot,
            None => match self.choose(self.exclude) {
                Assignment::Slot(slot) => {
                    self.count_server(&slot, self.binding(self.exclude).is_none());
                    slot
                }
                other => return Err(PendingRequest::Assigned(other)),
            },
        };
        let server =
            self.proxy.backend.as_ref().and_then(|backend| Some((backend, backend.servers.get(slot.server())?)));
        if let Some((backend, server)) = server
            && self.exclude.is_none()
            && server.redirect.is_none()
            && !server.connecting.varies
            && server.connecting.name.is_none()
            && !self.orders().is_some_and(|orders| orders.marks_server())
            && self.special_protocol(server).is_none()
            && let Some(link) = self.idle_link(backend, server, PoolKey::COMMON)
        {
            self.note_server(slot.server());
            self.count(server, ServerEvent::Reuse);
            self.note_connected(&link);
            *place = Some(Target { slot, link });
            return Ok(());
        }
        Err(PendingRequest::Slot(slot))
    }

    /// Gets a server and a link to it, without waiting if possible, otherwise by [`Request::obtain`].
    ///
    /// # Errors
    /// The refusal that is logged and sent to the client.
    pub async fn place(&mut self) -> Result<Target, Refusal> {
        let mut place = None;
        match self.begin(None, &mut place) {
            Ok(()) => place.ok_or(Refusal::new(Cause::Internal, Phase::Connect, 500)),
            Err(begun) => rt::boxed(self.obtain(begun)).await,
        }
    }

    /// Gets a server and a link to it: waits in the queue, takes an idle link or connects, retries and redispatches as
    /// configured.
    ///
    /// # Errors
    /// The refusal that is logged and sent to the client.
    pub async fn obtain(&mut self, begun: PendingRequest) -> Result<Target, Refusal> {
        let Some(backend) = &self.proxy.backend else { return Err(Refusal::new(Cause::Server, Phase::Connect, 503)) };
        let mut exclude = self.exclude;
        let mut begun = Some(begun);
        loop {
            let slot = match begun.take() {
                Some(PendingRequest::Slot(slot)) => slot,
                Some(PendingRequest::Waits(held)) => {
                    self.wait_for_memory().await?;
                    begun = held.map(PendingRequest::Slot);
                    continue;
                }
                Some(PendingRequest::Crowded(turn)) => {
                    self.wait_for_turn(turn).await?;
                    continue;
                }
                Some(PendingRequest::Assigned(assignment)) => self.settle(assignment, exclude).await?,
                None => self.settle(self.choose(exclude), exclude).await?,
            };
            if exclude.is_some_and(|left| left != slot.server()) {
                self.state.borrow_mut().attempts.redispatched = true;
            }
            self.note_server(slot.server());
            let server = &backend.servers[slot.server()];
            let attempt = match self.link_to(backend, server).await {
                Ok(attempt) => attempt,
                Err(refusal) => return Err(self.give_up(slot, refusal)),
            };
            let (cause, pauses) = match attempt {
                Attempt::Connected(link) => {
                    self.note_connected(&link);
                    return Ok(Target { slot, link });
                }
                Attempt::Gone => return Err(self.give_up(slot, Refusal::new(Cause::Client, Phase::Connect, -1))),
                // As in HAProxy: a UNIX socket refuses immediately, and retries follow without a pause.
                Attempt::Refused => {
                    (Cause::Server, !self.session.worker.process.outgoing.is_behind_unix_socket(server))
                }
                Attempt::Unable => (Cause::Server, false),
                Attempt::Expired => (Cause::ServerTimeout, false),
            };
            otel::fail_attempt(self.session, self.state, cause);
            self.sign(server, Sign::Ill(Symptom::Connection));
            if !matches!(attempt, Attempt::Unable) {
                ejections::observe(&self.session.worker, self.proxy, slot.server(), || ejections::FAILED);
            }
            let retry = self.state.borrow().attempts.retries + 1;
            if retry > retries(backend, &self.state.borrow())
                || !backend.limits.retry_on.contains(RetryOn::CONN_FAILURE)
                || !self.session.worker.proxy_state(self.proxy.index).may_retry(rt::now())
            {
                self.count(server, ServerEvent::Failure);
                return Err(self.give_up(slot, Refusal::new(cause, Phase::Connect, 503)));
            }
            self.state.borrow_mut().attempts.retries = retry;
            if goes_elsewhere(backend, &self.state.borrow(), self.bound) {
                self.count(server, ServerEvent::Redispatch);
                exclude = Some(slot.server());
                drop(slot);
            } else {
                self.count(server, ServerEvent::Retry);
                if let Err(refusal) = self.turn_around(pauses).await {
                    return Err(self.give_up(slot, refusal));
                }
                begun = Some(PendingRequest::Slot(slot));
            }
        }
    }

    /// Takes an idle link to the server, or attempts to connect. The error is final.
    async fn link_to(&mut self, backend: &Backend, server: &Server) -> Result<Attempt, Refusal> {
        if server.redirect.is_some() && self.may_be_redirected() {
            return Err(Refusal::new(Cause::Local, Phase::Connect, REDIRECT));
        }
        if server.is_reversed() {
            return rt::boxed(self.reversed_link(server)).await;
        }
        let Ok(plan) = self.plan(server) else { return Err(Refusal::new(Cause::Internal, Phase::Connect, 500)) };
        let special = self.special_protocol(server);
        if special.is_none()
            && let Some(link) = self.idle_link(backend, server, plan.pool_key())
        {
            self.count(server, ServerEvent::Reuse);
            return Ok(Attempt::Connected(link));
        }
        // No connection to a server is made for a client that has already reset its own.
        if self.client.is_reset() {
            return Ok(Attempt::Gone);
        }
        let Ok(place) = self.make_room(server) else { return Ok(Attempt::Unable) };
        self.count(server, ServerEvent::Connect);
        if server.connecting.quic.is_some() {
            return Ok(rt::boxed(self.connect_quic(backend, server, plan, special, place)).await);
        }
        let mut attempt = self.connect(server, plan, special).await;
        if let Attempt::Connected(link) = &mut attempt {
            self.sign(server, Sign::Connected);
            link.place = place;
            link.first = self.first;
            link.private |= private_connections::authenticates(&self.state.borrow());
        }
        let Attempt::Connected(link) = attempt else { return Ok(attempt) };
        Ok(match server_multiplex::protocol_on(server, special, &link) {
            Some(protocol) if self.proxy.mode == Mode::Http => {
                self.begin_multiplexed(backend, server, protocol, link).await
            }
            _ => match server_multiplex::shared_app(backend, server).filter(|_| !link.private) {
                None => {
                    if backend.fcgi.is_some() {
                        let worker = &self.session.worker;
                        trace(worker, self.proxy, server, &events::FCONN_NEW, String::new);
                    }
                    Attempt::Connected(server_multiplex::speak_fcgi(backend, server, link, true))
                }
                Some(app) => server_multiplex::open_fcgi(self.session, self.proxy.index, server, app, link)
                    .map_or(Attempt::Unable, Attempt::Connected),
            },
        })
    }

    /// Whether `redir` applies to the request. The client's method counts, even if rules have changed it: the client
    /// repeats its own request.
    fn may_be_redirected(&self) -> bool {
        let state = self.state.borrow();
        let safe = matches!(state.client_method(), Method::Get | Method::Head);
        self.proxy.mode == Mode::Http && safe && redirect::path(state.request.target()).is_some()
    }

    /// Releases the slot before the log reports the load.
    fn give_up(&self, slot: Slot, refusal: Refusal) -> Refusal {
        self.state.borrow_mut().attempts.counts = Some(slot.release());
        refusal
    }

    pub(super) fn note_server(&self, server: usize) {
        let state = &mut *self.state.borrow_mut();
        state.route.server = Some(server);
        let chosen = self.proxy.backend.as_ref().and_then(|backend| backend.servers.get(server));
        state.attempts.is_observed = chosen.is_some_and(Server::is_observed);
        otel::begin_attempt(self.session, state, server);
        state.route.persistence.meet(state.route.server);
        state.timings.queued.get_or_insert(rt::now());
    }

    pub(super) fn note_connected(&self, link: &Link) {
        let state = &mut *self.state.borrow_mut();
        let protocol = match link.carrier.shared() {
            None => ProtocolFacts { glitches: link.glitches, ..ProtocolFacts::default() },
            Some(shared) => server_multiplex::protocol_of(shared),
        };
        state.attempts.link = Some(LinkFacts { answers: link.answers, error: ConnectionError::NONE, protocol });
        state.attempts.server_tls = link.carrier.handshake_info().cloned();
        early_data::note(state, state.attempts.server_tls.is_none() && link.carrier.is_early());
        state.attempts.server_kernel = Kernel::Ask(link.carrier.socket());
        state.timings.connected = Some(rt::now());
        if self.features.have(Features::RESPONSE_RULES.with(Features::SOURCE_LOG)) {
            state.attempts.backend_source = match link.carrier.local_address() {
                Ok(Address::Inet(address)) => Endpoint::Inet(address),
                Ok(_) => Endpoint::Unix(0),
                Err(_) => Endpoint::Absent,
            };
        }
    }

    pub(super) fn sign(&self, server: &Server, sign: Sign) {
        observe(&self.session.worker, self.proxy, server, sign);
    }

    pub(super) fn count(&self, server: &Server, step: ServerEvent) {
        metrics::step(&self.session.worker, self.proxy, Some(server), step);
    }

    pub(super) fn count_server(&self, slot: &Slot, balanced: bool) {
        let server = self.proxy.backend.as_ref().and_then(|backend| backend.servers.get(slot.server()));
        if let Some(server) = server {
            metrics::server(&self.session.worker, self.proxy, server, slot.entered(), balanced);
        }
    }

    fn count_queued(&self, ticket: &QueueTicket<Local>, balanced: bool) {
        let proxy_state = self.session.worker.proxy_state(self.proxy.index);
        let server = ticket.server();
        self.state.borrow_mut().route.persistence.meet(server);
        let (waiting, at_server) = proxy_state.queued(server);
        let server = self.proxy.backend.as_ref().zip(server).and_then(|(backend, server)| backend.servers.get(server));
        let sessions = proxy_state.counts(None).beconn;
        let server = server.map(|server| (server, at_server));
        metrics::queued(&self.session.worker, self.proxy, server, balanced, waiting, sessions);
    }

    /// Returns the server to which the request is bound, without load balancing.
    fn binding(&self, exclude: Option<usize>) -> Option<SelectedServer> {
        self.bound.filter(|bound| exclude.is_none() || bound.stays)
    }

    /// Returns the inputs of the server selection.
    pub(super) fn context(&self, exclude: Option<usize>) -> PickContext {
        // After a failure there, the preference no longer applies: the request goes where there is capacity.
        let prefer = self.prefer.filter(|_| exclude.is_none());
        let bound = self.binding(exclude);
        let (class, offset) = self.orders().map_or((0, 0), |orders| (orders.class, orders.offset));
        PickContext {
            hash: self.hash,
            random: rt::random(),
            exclude,
            server: bound.map(|bound| bound.server),
            forced: bound.is_some_and(|bound| bound.forced),
            prefer,
            priority: Priority { class, offset, now: rt::now() },
        }
    }

    /// Returns what rules have set for the stream; `None`: there are no rules.
    #[inline]
    fn orders(&self) -> Option<Orders> {
        self.features.have(Features::RULES).then(|| self.state.borrow().rules.orders.get())
    }

    /// Selects a server by load balancing.
    fn choose(&self, exclude: Option<usize>) -> Assignment<Local> {
        let proxy_state = self.session.worker.proxy_state(self.proxy.index);
        ProxyState::assign_with(proxy_state.clone(), &self.context(exclude))
    }

    /// Gets a slot of the selected server, and waits in the queue if all are in use.
    async fn settle(&mut self, mut assignment: Assignment<Local>, exclude: Option<usize>) -> Result<Slot, Refusal> {
        if matches!(assignment, Assignment::QueueFull) && self.may_leave() {
            let left = self.bound.take().map(|bound| bound.server);
            let servers = self.proxy.backend.as_ref().map(|backend| &backend.servers);
            if let Some(left) = left.zip(servers).and_then(|(left, servers)| servers.get(left)) {
                self.count(left, ServerEvent::Redispatch);
                self.state.borrow_mut().attempts.redispatched = true;
            }
            assignment = self.choose(exclude);
        }
        match assignment {
            Assignment::Slot(slot) => {
                self.count_server(&slot, self.binding(exclude).is_none());
                Ok(slot)
            }
            Assignment::Queued(ticket) => {
                self.count_queued(&ticket, self.binding(exclude).is_none());
                self.wait_in_queue(ticket).await
            }
            Assignment::Unavailable => {
                self.state.borrow_mut().route.persistence.meet(None);
                metrics::step(&self.session.worker, self.proxy, None, ServerEvent::Failure);
                Err(Refusal::new(Cause::Server, Phase::Connect, 503))
            }
            Assignment::QueueFull => {
                let proxy_state = self.session.worker.proxy_state(self.proxy.index);
                self.state.borrow_mut().route.server = proxy_state.bound_server(&self.context(exclude));
                Err(Refusal::new(Cause::Server, Phase::Queue, 503))
            }
        }
    }

    /// Whether a request that is bound to a server with a full queue may go to another one.
    fn may_leave(&self) -> bool {
        let redispatches = self.proxy.backend.as_ref().is_some_and(|own| own.redispatch != Redispatch::Never);
        redispatches && self.bound.is_some_and(|bound| !bound.stays)
    }

    async fn wait_in_queue(&mut self, mut ticket: QueueTicket<Local>) -> Result<Slot, Refusal> {
        if let Some(body) = &mut self.body {
            body.shrink();
        }
        let own = self.state.borrow().rules.orders.get().timeouts;
        let deadline = own.queue.or(self.proxy.timeouts.queued()).map(|limit| rt::now() + limit);
        let waited = self.wait(deadline, |cx| ticket.poll_granted(cx)).await;
        let positions = ticket.positions();
        {
            let state = &mut *self.state.borrow_mut();
            state.attempts.server_queue = positions.server;
            state.attempts.backend_queue = positions.backend;
            state.timings.queued = Some(rt::now());
        }
        match waited {
            WaitResult::Done(slot) => {
                self.count_server(&slot, false);
                Ok(slot)
            }
            WaitResult::Expired => {
                let server = ticket.server();
                self.state.borrow_mut().route.server = server;
                let servers = self.proxy.backend.as_ref().map(|backend| &backend.servers);
                let server = servers.zip(server).and_then(|(servers, server)| servers.get(server));
                metrics::step(&self.session.worker, self.proxy, server, ServerEvent::Failure);
                Err(Refusal::new(Cause::ServerTimeout, Phase::Queue, 503))
            }
            WaitResult::Gone => {
                self.state.borrow_mut().route.server = ticket.server();
                Err(Refusal::new(Cause::Client, Phase::Queue, -1))
            }
        }
    }

    /// Takes an idle link that this request may use (`http-reuse`).
    pub(super) fn idle_link(&mut self, backend: &Backend, server: &Server, wanted: PoolKey<'_>) -> Option<Link> {
        if self.proxy.mode != Mode::Http || self.fresh {
            return None;
        }
        let pool = &self.session.worker.process.pool;
        let stays = |link: &Link| link.is(wanted) && link.generation == pool.generation(server.serial);
        let own = private_connections::take(self.session, server.serial, stays);
        if own.is_some() {
            return own;
        }
        let proven = match backend.http_reuse {
            HttpReuse::Never => return None,
            HttpReuse::Safe if self.first => return None,
            HttpReuse::Aggressive if self.first => true,
            HttpReuse::Safe | HttpReuse::Aggressive | HttpReuse::Always => false,
        };
        let worker = &self.session.worker;
        let may_share: &dyn Fn(bool) -> bool = &|is_early| {
            !private_connections::authenticates(&self.state.borrow()) && (!is_early || self.may_be_early(server))
        };
        let link = worker.links.take(&worker.process.pool, server.serial, ShareTerms { proven, may_share }, wanted);
        link.map(|link| server_multiplex::speak_fcgi(backend, server, link, false))
    }

    pub(super) fn make_room(&self, server: &Server) -> Result<Option<Reservation>, ()> {
        make_room(&self.session.worker, self.proxy, server)
    }

    /// Whether the client has sent anything, if that is required: a client that closes its sending direction without
    /// having sent anything needs no server.
    fn has_asked(&mut self) -> bool {
        !self.waits_for_bytes || self.client.has_sent()
    }

    /// Pauses before the same server is tried again.
    async fn turn_around(&mut self, pauses: bool) -> Result<(), Refusal> {
        if !pauses {
            // Retries without a pause must not monopolize the worker.
            rt::yield_now().await;
            return Ok(());
        }
        let own = self.state.borrow().rules.orders.get().timeouts;
        let pause = own.connect.or(self.proxy.timeouts.connect).map_or(TURNAROUND, |limit| limit.min(TURNAROUND));
        match self.wait(Some(rt::now() + pause), |_| Poll::<()>::Pending).await {
            WaitResult::Gone => Err(Refusal::new(Cause::Client, Phase::Connect, -1)),
            WaitResult::Done(()) | WaitResult::Expired => Ok(()),
        }
    }

    /// Waits for `ready`, the deadline, or the client's disconnection.
    pub(in crate::stream) async fn wait<T>(
        &mut self,
        deadline: Option<Moment>,
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> WaitResult<T> {
        let watch = rt::now() + WATCH_AFTER;
        let abort_on_close = self.proxy.backend.as_ref().is_some_and(|backend| backend.abortonclose);
        let mut watching = true;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(value) = ready(cx) {
                return Poll::Ready(WaitResult::Done(value));
            }
            loop {
                let now = rt::now();
                if deadline.is_some_and(|deadline| now >= deadline) {
                    return Poll::Ready(WaitResult::Expired);
                }
                let mut next = deadline;
                if watching {
                    if now >= watch || self.client.is_watched() {
                        match self.client.poll_closed(cx) {
                            Poll::Ready(Hangup::PeerClosed) if !abort_on_close && self.has_asked() => watching = false,
                            Poll::Ready(_) => return Poll::Ready(WaitResult::Gone),
                            Poll::Pending => {}
                        }
                    } else {
                        next = Some(next.map_or(watch, |next| next.min(watch)));
                    }
                }
                self.timer.arm(next);
                if self.timer.poll_expired(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

/// Enforces a server's `maxconn` on its connections, including idle ones: closes an idle one if necessary. The error:
/// there are as many connections as `strict-maxconn` permits, and all are in use.
pub(in crate::stream) fn make_room(worker: &Worker, proxy: &Proxy, server: &Server) -> Result<Option<Reservation>, ()> {
    let Some(maxconn) = server.maxconn else { return Ok(None) };
    let pool = &worker.process.pool;
    let served = worker.process.live.proxies[proxy.index].counts(Some(server.index)).srv_conn as usize;
    if pool.idle(server.serial) + served > maxconn as usize {
        worker.links.evict(pool, server.serial);
    }
    if !server.strict_maxconn {
        return Ok(None);
    }
    // The limit may have been changed at runtime. A dynamic limit (`minconn`) is temporarily below `maxconn`.
    let now = worker.process.live.proxies[proxy.index].load(server.index).map_or(maxconn, |load| load.0.limit);
    let most = if server.minconn.is_some() { now.max(maxconn) } else { now };
    pool.reserve(server.serial, most as usize).map(Some).ok_or(())
}

/// Whether a retry goes to another server: as `option redispatch` says, and immediately if no hash would select the
/// same server again.
pub fn goes_elsewhere(backend: &Backend, state: &StreamState, bound: Option<SelectedServer>) -> bool {
    let tied = backend.recogniser.is_some() || bound.is_some();
    let at_once = !tied && backend.redispatch != Redispatch::Never;
    let stays = backend.servers.len() < 2 || bound.is_some_and(|bound| bound.stays);
    !stays && (at_once || backend.redispatch.applies(state.attempts.retries, retries(backend, state)))
}

/// Returns the maximum number of retries.
fn retries(backend: &Backend, state: &StreamState) -> u32 {
    state.rules.orders.get().retries.unwrap_or(backend.retries)
}

/// Returns the hash of the key that `balance hash` evaluates for a request.
pub fn hash_of_key(view: EvalContext<'_>, backend: &Backend, key: &Expression) -> Option<u32> {
    let recogniser = backend.recogniser.as_ref()?;
    view.lend(|context| {
        let value = key.evaluate(context)?;
        let value = cast(value.kind(), Type::Bin)?(context, value)?;
        Some(recogniser.of_key(value.bytes()?))
    })
}

/// Result of a wait.
pub(in crate::stream) enum WaitResult<T> {
    /// Completed with this value.
    Done(T),
    /// The deadline has expired.
    Expired,
    /// The client has disconnected.
    Gone,
}
