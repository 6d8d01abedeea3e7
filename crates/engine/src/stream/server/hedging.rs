//! `hedge-requests`, an extension of Weir: a request whose server takes too long is also sent to a second server. Decides which
//! requests qualify, starts the second attempt and reports it. Must never wait, neither for a server nor for a slot.

use std::pin::Pin;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use conn::carrier::RequestFormat;
use conn::exchange::AttemptRank;
use conn::exchange::attempt_rank::look;
use conn::link::Link;
use conn::quota::Reservation;
use conn::transport::Transport;
use conn::upstream::Upstream;
use live::{Hedged, Observation, ProxyState};
use policy::program::{Backend, Proxy, Server};
use policy::rule::SelectedServer;
use tls::Connection;
use wire::http::Method;

use crate::check::Sign;
use crate::connection_preamble::Greeting;
use crate::handshake::is_one_too_many;
use crate::service::ejections;
use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::exchange::plan::encode_head;
use crate::stream::exchange::{End, Exchange};
use crate::stream::record::metrics::{self, Handshake, ServerEvent};
use crate::stream::record::otel;
use crate::stream::server::attempt::ConnectAttempt;
use crate::stream::server::connect::Request;
use crate::stream::server::server_target::Target;
use crate::stream::server::{private_connections, server_multiplex, sticking};
use crate::worker::{SharedStreamState, Slot};
use live::health::Symptom;

/// A request that may be sent to a second server.
pub struct Hedge<'a> {
    pub session: &'a Session,
    pub state: &'a SharedStreamState,
    /// The backend's proxy.
    pub proxy: &'a Proxy,
    /// The backend of that proxy.
    pub backend: &'a Backend,
    /// Hash for load balancing.
    pub hash: Option<u32>,
    /// The request asks servers to close the connection after the response.
    pub says_close: bool,
}

impl Hedge<'_> {
    /// Returns the time at which the request is sent to a second server; `None`: never.
    pub fn due(&self, bound: Option<SelectedServer>) -> Option<Moment> {
        self.backend.limits.hedge?;
        let state = self.state.borrow();
        let request = &state.request;
        let is_safe = matches!(request.known_method(), Method::Get | Method::Head | Method::Options | Method::Trace);
        let is_tied = bound.is_some()
            || private_connections::preference(self.session, self.proxy, self.backend).is_some()
            || private_connections::authenticates(&state);
        if !is_safe || request.framing.has_body() || request.upgrade || is_tied || state.attempts.hedged {
            return None;
        }
        if self.backend.limits.never_retry || state.rules.orders.get().never_retry {
            return None;
        }
        let delay = self.session.worker.proxy_state(self.proxy.index).hedge_delay()?;
        Some(state.timings.queued? + delay)
    }

    fn request<'r>(&'r self, client: &'r mut Client, exclude: usize) -> Request<'r> {
        Request {
            session: self.session,
            state: self.state,
            proxy: self.proxy,
            client: &mut client.conn,
            waits_for_bytes: false,
            body: None,
            timer: &mut client.timer,
            prefer: None,
            exclude: Some(exclude),
            hash: self.hash,
            bound: None,
            fresh: false,
            first: client.served == 0,
            features: self.state.borrow().features,
        }
    }

    /// Sends the request to a second server, if one has a free slot, after the first one took too long. Then continues the
    /// exchange.
    pub async fn race(&self, exchange: &mut Exchange<'_>, current: usize) -> End {
        let rival = self.begin(exchange.client(), current);
        exchange.join(rival);
        exchange.run().await
    }

    fn begin(&self, client: &mut Client, current: usize) -> Option<Box<Rival>> {
        let worker = &self.session.worker;
        let proxy_state = worker.proxy_state(self.proxy.index);
        let mut request = self.request(client, current);
        let Some(slot) = ProxyState::assign_spare(proxy_state.clone(), &request.context(Some(current))) else {
            proxy_state.note_hedge(Hedged::WithoutServer);
            return None;
        };
        if !proxy_state.may_hedge(rt::now()) {
            proxy_state.note_hedge(Hedged::OverBudget);
            return None;
        }
        let server = self.backend.servers.get(slot.server())?;
        let Some((step, head)) = self.step(&mut request, server) else {
            proxy_state.note_hedge(Hedged::WithoutServer);
            return None;
        };
        request.count_server(&slot, true);
        proxy_state.note_hedge(Hedged::Begun);
        self.state.borrow_mut().attempts.hedged = true;
        let was_idle = matches!(step, HedgeState::Idle(_));
        let own = self.state.borrow().rules.orders.get().timeouts;
        let expires = own.connect.or(self.proxy.timeouts.connect).map(|limit| rt::now() + limit);
        let first = request.first;
        let (link, input, connected) = (None, Buffer::empty(), None);
        let handshake = None;
        Some(Box::new(Rival { slot, link, step, head, input, expires, connected, was_idle, first, handshake }))
    }

    /// Takes an idle connection to the server or opens a new one, and encodes the request for it.
    fn step(&self, request: &mut Request<'_>, server: &Server) -> Option<(HedgeState, Buffer)> {
        if server.redirect.is_some() || server.connecting.socks4.is_some() {
            return None;
        }
        let mut head = rt::buffer();
        let plan = request.plan(server).ok()?;
        let step = match request.idle_link(self.backend, server, plan.pool_key()) {
            Some(link) => HedgeState::Idle(link),
            // A second attempt opens no multiplexed connection.
            None if server_multiplex::protocol(server).is_some() => return None,
            None => {
                let place = request.make_room(server).ok()?;
                let launched = request.launch(server, plan).ok()?;
                match server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic()) {
                    // The PROXY header precedes the handshake.
                    Some(tls) => {
                        let most = self.session.generation().program.global.max_tls_connections;
                        let client = launched.begin_tls(tls).filter(|_| !is_one_too_many(most))?;
                        HedgeState::Connecting(Box::new(launched), place, Some(Box::new(client)))
                    }
                    None if head.push(launched.header()) => HedgeState::Connecting(Box::new(launched), place, None),
                    None => return None,
                }
            }
        };
        let format = match &step {
            HedgeState::Idle(link) => link.carrier.request_format(),
            _ => RequestFormat::H1,
        };
        otel::begin_rival(&mut self.state.borrow_mut(), server.index);
        encode_head(self.state, self.proxy, server, format, self.says_close, &mut head).ok()?;
        request
            .count(server, if matches!(step, HedgeState::Idle(_)) { ServerEvent::Reuse } else { ServerEvent::Connect });
        Some((step, head))
    }

    /// Replaces the first server by the second one, which has responded; the first connection is closed.
    pub fn overtake(&self, client: &mut Client, place: &mut Target, won: WinningAttempt) -> Buffer {
        let WinningAttempt { target, input, connected, first_stood, handshake } = won;
        let proxy_state = self.session.worker.proxy_state(self.proxy.index);
        let waited = self.state.borrow().timings.queued.map(|since| rt::now().saturating_since(since));
        proxy_state.note_hedge(Hedged::Won);
        proxy_state.note_latency(|| waited, rt::now());
        let loser = place.slot.server();
        *place = target;
        // The first server's response time is unknown: at least the time waited so far.
        ejections::observe(&self.session.worker, self.proxy, loser, || match first_stood {
            AttemptRank::Awaited | AttemptRank::Good => Observation { took: waited, failed: false },
            AttemptRank::Poor | AttemptRank::Gone => ejections::FAILED,
        });
        count_handshake(self.session, self.proxy, place.slot.server(), handshake);
        let request = self.request(client, loser);
        otel::overtake(self.session, &mut self.state.borrow_mut());
        request.note_server(place.slot.server());
        request.note_connected(&place.link);
        {
            let state = &mut *self.state.borrow_mut();
            state.attempts.hedge_won = true;
            state.timings.connected = connected.or(state.timings.connected);
        }
        sticking::remember(self.session, &self.state.borrow());
        input
    }
}

/// A second attempt that has won.
pub struct WinningAttempt {
    target: Target,
    /// The bytes of its response received so far.
    input: Buffer,
    /// Time at which its connection was established.
    connected: Option<Moment>,
    /// State of the first attempt.
    first_stood: AttemptRank,
    handshake: Option<Handshake>,
}

/// Reports the result of a second attempt that did not win.
pub fn report_loser(session: &Session, backend: usize, rival: &Rival, standing: AttemptRank) {
    let proxy = session.proxy_at(backend);
    let Some(server) = proxy.server(rival.slot.server()) else { return };
    count_handshake(session, proxy, server.index, rival.handshake);
    if !rival.was_idle {
        let sign = if rival.connected.is_some() { Sign::Connected } else { Sign::Ill(Symptom::Connection) };
        crate::check::observe(&session.worker, proxy, server, sign);
    }
    if matches!(standing, AttemptRank::Poor | AttemptRank::Gone) {
        session.worker.proxy_state(backend).note_hedge(Hedged::Failed);
        ejections::observe(&session.worker, proxy, server.index, || ejections::FAILED);
    }
}

fn count_handshake(session: &Session, proxy: &Proxy, server: usize, handshake: Option<Handshake>) {
    if let (Some(handshake), Some(server)) = (handshake, proxy.server(server)) {
        metrics::server_handshake(&session.worker, proxy.index, server.serial, handshake);
    }
}

/// A running second attempt.
pub struct Rival {
    slot: Slot,
    /// Its connection, once established.
    link: Option<Link>,
    step: HedgeState,
    /// Bytes to send: a PROXY header if configured, and the request's head.
    head: Buffer,
    /// The bytes of the response received so far.
    input: Buffer,
    /// Deadline for establishing the connection.
    expires: Option<Moment>,
    connected: Option<Moment>,
    was_idle: bool,
    first: bool,
    /// Result of the TLS handshake, if there was one.
    handshake: Option<Handshake>,
}

/// A connection during its TLS handshake.
struct Securing {
    stream: Transport,
    /// The PROXY header, until it is sent.
    greeting: Option<Greeting>,
    launched: ConnectAttempt,
    place: Option<Reservation>,
}

impl Securing {
    fn new(stream: Transport, launched: ConnectAttempt, place: Option<Reservation>, client: Connection) -> Self {
        let greeting = Some(launched.greeting());
        Self { stream: stream.with_tls(client), greeting, launched, place }
    }

    /// Ready with true when the handshake is complete.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if let Some(greeting) = &mut self.greeting {
            if std::task::ready!(greeting.poll(cx, &mut self.stream, self.launched.header())).is_err() {
                return Poll::Ready(false);
            }
            self.greeting = None;
            self.stream.begin_tls(&[]);
        }
        self.stream.poll_handshake(cx).map(|shaken| shaken.is_ok())
    }
}

enum HedgeState {
    Idle(Link),
    /// With the TLS client side, if the server uses TLS.
    Connecting(Box<ConnectAttempt>, Option<Reservation>, Option<Box<Connection>>),
    Securing(Box<Securing>),
    Writing,
    Reading,
    Failed,
}

impl Rival {
    /// Returns its connection and response after it has won; `None`: it has no connection.
    pub fn into_won(self, first_stood: AttemptRank) -> Option<WinningAttempt> {
        let Self { slot, link, input, connected, handshake, .. } = self;
        Some(WinningAttempt { target: Target { slot, link: link? }, input, connected, first_stood, handshake })
    }

    /// Continues as far as possible without waiting.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> AttemptRank {
        loop {
            match std::mem::replace(&mut self.step, HedgeState::Failed) {
                HedgeState::Failed => return AttemptRank::Gone,
                HedgeState::Idle(link) => self.begin(link),
                HedgeState::Connecting(mut launched, place, tls) => match Pin::new(&mut launched.connecting).poll(cx) {
                    Poll::Pending if self.is_late() => return AttemptRank::Gone,
                    Poll::Pending => {
                        self.step = HedgeState::Connecting(launched, place, tls);
                        return AttemptRank::Awaited;
                    }
                    Poll::Ready(Err(_)) => return AttemptRank::Gone,
                    Poll::Ready(Ok(stream)) => match tls {
                        Some(tls) => {
                            self.step = HedgeState::Securing(Box::new(Securing::new(stream, *launched, place, *tls)))
                        }
                        None => {
                            let ConnectAttempt { pool_key, generation, .. } = *launched;
                            let first = self.first;
                            self.begin(Link { pool_key, generation, first, place, ..Link::new(stream) });
                        }
                    },
                },
                HedgeState::Securing(mut securing) => match securing.poll(cx) {
                    Poll::Pending if self.is_late() => return AttemptRank::Gone,
                    Poll::Pending => {
                        self.step = HedgeState::Securing(securing);
                        return AttemptRank::Awaited;
                    }
                    Poll::Ready(secured) => {
                        let resumed = securing.stream.handshake_info().is_some_and(|state| state.resumed);
                        self.handshake = Some(if secured { Handshake::Made { resumed } } else { Handshake::Failed });
                        if !secured {
                            return AttemptRank::Gone;
                        }
                        let Securing { stream, launched, place, .. } = *securing;
                        let ConnectAttempt { pool_key, generation, .. } = launched;
                        let first = self.first;
                        self.begin(Link { pool_key, generation, first, place, ..Link::new(stream) });
                    }
                },
                HedgeState::Writing => match self.write(cx) {
                    Poll::Ready(true) => self.step = HedgeState::Reading,
                    Poll::Ready(false) => return AttemptRank::Gone,
                    Poll::Pending => {
                        self.step = HedgeState::Writing;
                        return AttemptRank::Awaited;
                    }
                },
                HedgeState::Reading => match self.read(cx) {
                    Poll::Ready(standing) => return standing,
                    Poll::Pending => {
                        self.step = HedgeState::Reading;
                        return AttemptRank::Awaited;
                    }
                },
            }
        }
    }

    /// Returns the time at which it has to be polled at the latest.
    pub fn deadline(&self) -> Option<Moment> {
        self.expires.filter(|_| matches!(self.step, HedgeState::Connecting(..) | HedgeState::Securing(_)))
    }

    fn is_late(&self) -> bool {
        self.expires.is_some_and(|limit| rt::now() >= limit)
    }

    fn begin(&mut self, link: Link) {
        (self.link, self.connected, self.step) = (Some(link), Some(rt::now()), HedgeState::Writing);
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(link) = &mut self.link else { return Poll::Ready(false) };
        let sent = std::task::ready!(Upstream::of(&mut link.carrier).poll_send(cx, &mut self.head));
        self.head = Buffer::empty();
        Poll::Ready(sent.is_ok())
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Poll<AttemptRank> {
        let Some(link) = &mut self.link else { return Poll::Ready(AttemptRank::Gone) };
        look(cx, &mut Upstream::of(&mut link.carrier), &mut self.input, |_| {})
    }
}
