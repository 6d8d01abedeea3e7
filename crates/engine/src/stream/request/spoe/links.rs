//! A worker's connections to SPOE agents: which requests use which connection, and the tasks that open connections and transfer
//! frames. Must never choose a server.

use std::future::Future as _;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::Moment;
use conn::spop::{Claim, Connection, Requests, Terms};
use conn::transport::{self, Transport};
use live::health::Symptom;
use live::trace::{Level, Subject, events};
use policy::program::{Proxy, Server, ServerTls, SpoeAgent};
use rt::net::Address;
use tls::{Connection as TlsConnection, asked_name};
use wire::spop::Status;

use crate::check::{Sign, observe, trace};
use crate::connection_preamble::Greeting;
use crate::generation::Generation;
use crate::handshake::is_one_too_many;
use crate::outgoing::fixed_address;
use crate::service::streamless_context;
use crate::stream::record::metrics::{self, Handshake, ServerEvent};
use crate::worker::Worker;
use crate::worker::agents::{AgentLink, AgentLinks};

/// The server that was chosen for a request.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) generation: &'a Arc<Generation>,
    pub(super) agent: &'a Arc<SpoeAgent>,
    pub(super) proxy: &'a Proxy,
    pub(super) server: &'a Server,
}

impl AgentLinks {
    /// Claims capacity on a connection to a server: on an open one if possible, else on a new one.
    pub(super) fn claim(&self, worker: &Rc<Worker>, to: Destination<'_>) -> Claim {
        if let Some(requests) = self.find(to) {
            let event = if requests.is_open() { ServerEvent::Reuse } else { ServerEvent::Connect };
            metrics::step(worker, to.proxy, Some(to.server), event);
            if event == ServerEvent::Connect {
                metrics::server_session(worker, to.server);
            }
            return requests.claim();
        }
        metrics::step(worker, to.proxy, Some(to.server), ServerEvent::Connect);
        metrics::server_session(worker, to.server);
        let terms = self.terms(to);
        let requests = Requests::new(&terms);
        let link = AgentLink { agent: Arc::clone(to.agent), server: to.server.serial, requests: requests.clone() };
        self.links.borrow_mut().push(link);
        let claim = requests.claim();
        let (generation, proxy, server) = (Arc::clone(to.generation), to.proxy.index, to.server.index);
        let carried = carry(Rc::clone(worker), generation, proxy, server, requests, terms);
        rt::spawn(rt::Class::Normal, rt::NO_TAG, carried);
        claim
    }

    fn find(&self, to: Destination<'_>) -> Option<Requests> {
        let links = &mut *self.links.borrow_mut();
        links.retain(|link| !link.requests.is_closed());
        let own = links.iter().filter(|link| link.server == to.server.serial && Arc::ptr_eq(&link.agent, to.agent));
        let free = || own.clone().filter(|link| link.requests.has_capacity());
        let open = free().find(|link| link.requests.is_open()).or_else(|| free().next());
        open.map(|link| link.requests.clone())
    }

    fn terms(&self, to: Destination<'_>) -> Terms {
        Terms {
            max_frame_size: to.agent.max_frame_size,
            pipelining: to.agent.pipelining,
            engine_id: self.identifier(to.agent),
            max_total: to.server.max_reuse.map_or(u32::MAX, |most| most.saturating_add(1)),
            greeting: to.proxy.timeouts.connect.or(to.proxy.timeouts.server).map(|limit| rt::now() + limit),
            silence: to.proxy.timeouts.server,
            idle: to.server.pool_purge_delay,
        }
    }

    /// Returns the engine ID of an agent section on this worker: random, in the form of a UUID (RFC 9562, section 5.4).
    fn identifier(&self, agent: &Arc<SpoeAgent>) -> Box<str> {
        let mut known = self.identifiers.borrow_mut();
        if let Some((_, identifier)) = known.iter().find(|(own, _)| Arc::ptr_eq(own, agent)) {
            return identifier.clone();
        }
        known.retain(|(own, _)| Arc::strong_count(own) > 1);
        let (high, low) = (rt::random(), rt::random());
        let identifier: Box<str> = format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
        .into();
        known.push((Arc::clone(agent), identifier.clone()));
        identifier
    }
}

/// Opens a connection and transfers its frames until it ends.
async fn carry(
    worker: Rc<Worker>,
    generation: Arc<Generation>,
    proxy: usize,
    server: usize,
    requests: Requests,
    terms: Terms,
) {
    let opened = {
        let proxy = generation.proxy(proxy);
        let Some(server) = proxy.server(server) else { return requests.fail(Status::IO) };
        let opened = open(&worker, &generation, proxy, server).await;
        let event = if opened.is_some() { &events::SPOP_CONN_NEW } else { &events::SPOP_CONN_ERR };
        trace(&worker, proxy, server, event, String::new);
        opened
    };
    // Idle connections outlive their generation, and must not keep it alive.
    drop(generation);
    let Some(transport) = opened else { return requests.fail(Status::IO) };
    let mut connection = Connection::new(transport, requests, terms, rt::now());
    let mut timer = rt::Timer::new();
    std::future::poll_fn(|cx| {
        loop {
            if connection.poll(cx, rt::now()).is_ready() {
                return Poll::Ready(());
            }
            timer.arm(connection.deadline());
            if timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
            if connection.expire(rt::now()) {
                return Poll::Ready(());
            }
        }
    })
    .await;
    let text = || ("SPOP connection terminated".to_owned(), String::new());
    worker.trace(&events::SPOP_CONN_END, Level::User, Subject::default, text);
}

/// Connects to a server, with the preamble that its line configures. `None`: no connection.
async fn open(worker: &Rc<Worker>, generation: &Generation, proxy: &Proxy, server: &Server) -> Option<Transport> {
    let deadline = proxy.timeouts.connect.map(|limit| rt::now() + limit);
    let mut timer = rt::Timer::new();
    timer.arm(deadline);
    let mut opening = Box::pin(establish(worker, generation, proxy, server));
    let opened = std::future::poll_fn(|cx| match opening.as_mut().poll(cx) {
        Poll::Pending => timer.poll_expired(cx).map(|()| None),
        ready => ready,
    })
    .await;
    let sign = if opened.is_some() { Sign::Connected } else { Sign::Ill(Symptom::Connection) };
    observe(worker, proxy, server, sign);
    opened
}

async fn establish(worker: &Rc<Worker>, generation: &Generation, proxy: &Proxy, server: &Server) -> Option<Transport> {
    let route = worker.process.outgoing.route(server.serial).filter(|route| !route.blocked)?;
    let destination = fixed_address(&worker.process.outgoing.address(server))?;
    let through = server.connecting.socks4.as_ref().and_then(fixed_address);
    let to = through.as_ref().unwrap_or(&destination);
    let mut stream = transport::connect(to, &route.options).ok()?.await.ok()?;
    if through.is_some() {
        let mut greeting = Greeting::through(&destination, true, false);
        std::future::poll_fn(|cx| greeting.poll(cx, &mut stream, &[])).await.ok()?;
    }
    match server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic()) {
        None => Some(stream),
        Some(tls) => secure(worker, generation, proxy, server, tls, stream, &destination).await,
    }
}

/// Performs the TLS handshake.
async fn secure(
    worker: &Rc<Worker>,
    generation: &Generation,
    proxy: &Proxy,
    server: &Server,
    tls: &ServerTls,
    stream: Transport,
    destination: &Address,
) -> Option<Transport> {
    if is_one_too_many(generation.program.global.max_tls_connections) {
        return None;
    }
    let mut sni = Vec::new();
    if let Some(expression) = &tls.sni {
        streamless_context::lend_process(worker, generation, &proxy.name, |context| {
            let text = expression.evaluate(context).and_then(|value| context.as_text(value));
            sni.extend_from_slice(text.unwrap_or_default());
        });
    }
    let sni = std::str::from_utf8(&sni).ok().filter(|name| !name.is_empty());
    let name = asked_name(sni, destination.inet().map(|address| address.ip()));
    let client = TlsConnection::of_client(&tls.client, name, None).ok()?;
    let mut stream = stream.with_tls(client);
    stream.begin_tls(&[]);
    let shaken = rt::in_class(rt::Class::Heavy, std::future::poll_fn(|cx| stream.poll_handshake(cx))).await;
    let handshake = match (&shaken, stream.handshake_info()) {
        (Ok(()), Some(state)) => Handshake::Made { resumed: state.resumed },
        _ => Handshake::Failed,
    };
    metrics::server_handshake(worker, proxy.index, server.serial, handshake);
    shaken.ok().map(|()| stream)
}

/// Sleeps for a period.
pub(super) async fn pause(period: Duration) {
    let until: Moment = rt::now() + period;
    rt::sleep_until(until).await;
}
