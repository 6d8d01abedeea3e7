//! Requests beside a stream's own: the server of another backend that gets one, and its connection, which is shared with the other
//! traffic of that backend. Must never retry one.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use balance::Subject;
use config::spec::HttpReuse;
use conn::carrier::{Carrier, RequestFormat};
use conn::link::Link;
use conn::pool_key::PoolKey;
use conn::quota::Reservation;
use conn::transport::{self, Transport};
use conn::worker_links::ShareTerms;
use live::{Assignment, Local, PickContext, Priority, ProxyState, QueueTicket};
use policy::program::{Backend, MuxProtocol, Proxy, Server, ServerTls};
use rt::Timer;
use rt::net::Address;
use tls::{Connection, asked_name};

use crate::generation::Generation;
use crate::handshake::is_one_too_many;
use crate::outgoing::fixed_address;
use crate::session::Session;
use crate::stream::record::metrics::{self, ServerEvent};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::server::connect::{hash_of_key, make_room};
use crate::stream::server::{private_connections, server_multiplex};
use crate::stream_state::StreamState;
use crate::worker::{Slot, Worker};

/// Timeout of the connection and of the queue if the backend has no `timeout connect`.
const CONNECT: Duration = Duration::from_secs(5);

/// A server that was chosen for a request, with its slot.
pub(in crate::stream) struct SideServer {
    worker: Rc<Worker>,
    generation: Arc<Generation>,
    /// Index of the backend's proxy.
    proxy: usize,
    slot: Slot,
    /// The connection is not reused: the server's connections differ by request, or the request authenticates its connection.
    alone: bool,
    /// SNI of the TLS handshake.
    sni: Option<Box<str>>,
}

/// The result of choosing a server for a request that may wait.
pub(in crate::stream) enum Assigned {
    Chosen(SideServer),
    /// Its position in the queue.
    Queued(QueueTicket<Local>),
}

/// The reason why such a request has no connection.
#[derive(Debug)]
pub(in crate::stream) enum Unconnected {
    /// No server is up.
    Unavailable,
    /// The queue of its server is full.
    QueueFull,
    /// No slot was free within `timeout queue`.
    Queued,
    /// The server needs another protocol or a connection that depends on the client, or was removed.
    Unfit,
    /// No connection within `timeout connect`.
    Late,
    /// The process has no room for a connection, or the address cannot be used.
    Blocked,
    Refused(io::Error),
    Insecure,
}

impl fmt::Display for Unconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "no server is available",
            Self::QueueFull => "the queue is full",
            Self::Queued => "no free slot within 'timeout queue'",
            Self::Unfit => "the server cannot be used for subrequests",
            Self::Late => "no connection within 'timeout connect'",
            Self::Blocked => "no connection can be opened",
            Self::Refused(error) => return write!(f, "connection failed: {error}"),
            Self::Insecure => "TLS handshake failed",
        })
    }
}

/// Protocols that a TLS handshake may offer, in the order of preference.
const HTTP1: &[&[u8]] = &[b"http/1.1"];
const HTTP2: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The way to a server for one request.
pub(in crate::stream) enum SideLink {
    /// A connection of its own, over HTTP/1.1.
    Own(Transport, SideConnection),
    /// A stream of HTTP/2.
    Shared {
        carrier: Carrier,
        /// Its connection was there before, so that the server may have closed it.
        was_idle: bool,
    },
}

impl SideLink {
    /// `None`: the link has another protocol.
    fn of(link: Link, was_idle: bool) -> Option<Self> {
        let Link { carrier, answers, glitches, generation, place, .. } = link;
        if carrier.request_format() == RequestFormat::H2 {
            return Some(Self::Shared { carrier, was_idle });
        }
        let kept = SideConnection { was_idle, answers, glitches, generation, place };
        carrier.into_transport().map(|stream| Self::Own(stream, kept))
    }
}

/// A connection to such a server.
pub(in crate::stream) struct SideConnection {
    /// It was idle before, so that the server may have closed it.
    pub was_idle: bool,
    answers: u32,
    glitches: u32,
    generation: u32,
    place: Option<Reservation>,
}

/// Whether such requests can be sent to a server: over HTTP/1.1 or HTTP/2, on connections that do not depend on the client.
fn is_fit(server: &Server) -> bool {
    let connecting = &server.connecting;
    !connecting.varies
        && connecting.socks4.is_none()
        && server.redirect.is_none()
        && !matches!(connecting.protocol, Some(MuxProtocol::Qmux | MuxProtocol::Fcgi))
}

/// Returns the request's hash for load balancing.
fn hash(session: &Session, state: &StreamState, backend: &Backend) -> Option<u32> {
    let recogniser = backend.recogniser.as_ref()?;
    match &backend.hash_key {
        Some(key) => hash_of_key(EvalContext::request(session, state), backend, key),
        None => recogniser.hash(&Subject { source: state.source(session), request: Some(&state.request), bytes: &[] }),
    }
}

/// Returns the SNI for the TLS handshake.
fn sni(session: &Session, state: &StreamState, tls: Option<&ServerTls>) -> Option<Box<str>> {
    let sni = tls?.sni.as_ref()?;
    EvalContext::request(session, state).lend(|context| {
        let name = sni.evaluate(context).and_then(|value| context.as_text(value))?;
        std::str::from_utf8(name).ok().filter(|name| !name.is_empty()).map(Into::into)
    })
}

impl SideServer {
    /// Chooses a server of the proxy at an index by the backend's balance. `None`: none is up with a free slot, or it needs another
    /// protocol.
    pub(in crate::stream) fn choose(session: &Session, state: &StreamState, index: usize) -> Option<Self> {
        let hash = hash(session, state, session.proxy_at(index).backend.as_ref()?);
        let pick = PickContext { hash, random: rt::random(), ..PickContext::default() };
        let slot = ProxyState::assign_spare(session.worker.proxy_state(index).clone(), &pick)?;
        metrics::backend(&session.worker, session.proxy_at(index));
        Self::of_slot(session, state, index, slot, true)
    }

    /// Chooses a server in the same way for a request that waits in the queue if no slot is free.
    ///
    /// # Errors
    /// The request cannot be sent.
    pub(in crate::stream) fn assign(
        session: &Session,
        state: &StreamState,
        index: usize,
    ) -> Result<Assigned, Unconnected> {
        let (worker, proxy) = (&session.worker, session.proxy_at(index));
        let hash = proxy.backend.as_ref().and_then(|backend| hash(session, state, backend));
        let priority = Priority { class: 0, offset: 0, now: rt::now() };
        let pick = PickContext { hash, random: rt::random(), priority, ..PickContext::default() };
        metrics::backend(worker, proxy);
        match ProxyState::assign_with(worker.proxy_state(index).clone(), &pick) {
            Assignment::Slot(slot) => {
                Self::of_slot(session, state, index, slot, true).map(Assigned::Chosen).ok_or(Unconnected::Unfit)
            }
            Assignment::Queued(ticket) => {
                let state = worker.proxy_state(index);
                let (waiting, at_server) = state.queued(ticket.server());
                let server = ticket.server().and_then(|server| proxy.server(server));
                let sessions = state.counts(None).beconn;
                metrics::queued(worker, proxy, server.map(|server| (server, at_server)), true, waiting, sessions);
                Ok(Assigned::Queued(ticket))
            }
            Assignment::Unavailable => Err(Unconnected::Unavailable),
            Assignment::QueueFull => Err(Unconnected::QueueFull),
        }
    }

    /// Waits in the queue of the proxy at an index, within `timeout queue`. Returns the slot.
    pub(in crate::stream) async fn wait(
        session: &Session,
        index: usize,
        mut ticket: QueueTicket<Local>,
    ) -> Result<Slot, Unconnected> {
        let mut timer = Timer::new();
        timer.arm(Some(rt::now() + session.proxy_at(index).timeouts.queued().unwrap_or(CONNECT)));
        within(&mut timer, |cx| ticket.poll_granted(cx)).await.ok_or(Unconnected::Queued)
    }

    /// Returns the server of a slot. `None`: it needs another protocol, or was removed.
    pub(in crate::stream) fn of_slot(
        session: &Session,
        state: &StreamState,
        index: usize,
        slot: Slot,
        balanced: bool,
    ) -> Option<Self> {
        let (worker, proxy) = (&session.worker, session.proxy_at(index));
        let backend = proxy.backend.as_ref()?;
        let server = backend.servers.get(slot.server()).filter(|server| is_fit(server))?;
        metrics::server(worker, proxy, server, slot.entered(), balanced);
        Some(Self {
            worker: Rc::clone(worker),
            generation: session.shared_generation(),
            proxy: index,
            alone: server.connecting.name.is_some()
                || backend.http_reuse == HttpReuse::Never
                || private_connections::authenticates(state),
            sni: sni(session, state, server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic())),
            slot,
        })
    }

    /// Returns the proxy of the server.
    pub(in crate::stream) fn proxy(&self) -> &Proxy {
        self.generation.proxy(self.proxy)
    }

    /// Returns the index of the server.
    pub(in crate::stream) fn index(&self) -> usize {
        self.slot.server()
    }

    /// Returns the server; `None`: it was removed.
    pub(in crate::stream) fn server(&self) -> Option<&Server> {
        self.proxy().server(self.slot.server())
    }

    /// Returns an idle connection of HTTP/1.1, unless `is_fresh` is set, or a new one within `timeout connect`.
    pub(in crate::stream) async fn connect(
        &self,
        timer: &mut Timer,
        is_fresh: bool,
    ) -> Result<(Transport, SideConnection), Unconnected> {
        let (proxy, server) = (self.proxy(), self.server().ok_or(Unconnected::Unfit)?);
        if server.connecting.protocol == Some(MuxProtocol::Http2) {
            return Err(Unconnected::Unfit);
        }
        timer.arm(Some(rt::now() + proxy.timeouts.connect.unwrap_or(CONNECT)));
        let pool = &self.worker.process.pool;
        let idle = if self.alone || is_fresh {
            None
        } else {
            self.worker.links.take_own(pool, server.serial, false, PoolKey::COMMON)
        };
        let connection = match idle {
            Some(link) => {
                metrics::step(&self.worker, proxy, Some(server), ServerEvent::Reuse);
                let Link { carrier, answers, glitches, generation, place, .. } = link;
                let kept = SideConnection { was_idle: true, answers, glitches, generation, place };
                carrier.into_transport().map(|stream| (stream, kept)).ok_or(Unconnected::Unfit)
            }
            None => self.open(timer, proxy, server, HTTP1).await,
        };
        timer.arm(None);
        connection
    }

    /// Returns an idle connection or a stream of a multiplexed one, unless `is_fresh` is set, or a new one within `timeout connect`: over
    /// HTTP/2 if the server has it.
    pub(in crate::stream) async fn attach(
        &self,
        session: &Session,
        timer: &mut Timer,
        is_fresh: bool,
    ) -> Result<SideLink, Unconnected> {
        let (proxy, server) = (self.proxy(), self.server().ok_or(Unconnected::Unfit)?);
        if !has_http2(server) {
            return self.connect(timer, is_fresh).await.map(|(stream, connection)| SideLink::Own(stream, connection));
        }
        timer.arm(Some(rt::now() + proxy.timeouts.connect.unwrap_or(CONNECT)));
        let pool = &self.worker.process.pool;
        let terms = ShareTerms { proven: false, may_share: &|is_early| !is_early };
        let idle =
            (!self.alone && !is_fresh).then(|| self.worker.links.take(pool, server.serial, terms, PoolKey::COMMON));
        let link = match idle.flatten() {
            Some(link) => {
                metrics::step(&self.worker, proxy, Some(server), ServerEvent::Reuse);
                SideLink::of(link, true)
            }
            None => {
                let (stream, kept) = self.open(timer, proxy, server, HTTP2).await?;
                let link = Link { generation: kept.generation, place: kept.place, ..Link::new(stream) };
                match server_multiplex::protocol_on(server, None, &link) {
                    Some(_) => {
                        let begun = server_multiplex::open(session, self.proxy, server, !self.alone, link);
                        SideLink::of(begun.ok_or(Unconnected::Blocked)?, false)
                    }
                    None => SideLink::of(link, false),
                }
            }
        };
        timer.arm(None);
        link.ok_or(Unconnected::Unfit)
    }

    /// Puts a connection that may carry another request in the pool.
    pub(in crate::stream) fn keep(&self, stream: Transport, connection: SideConnection) {
        let Some(server) = self.server() else { return };
        let SideConnection { glitches, generation, place, answers, .. } = connection;
        let mut stream = stream;
        if self.alone || !stream.is_clean() {
            return;
        }
        let mut link = Link { glitches, generation, place, answers, ..Link::new(stream) };
        link.note_answer(link.glitches);
        let global = &self.generation.program.global;
        let is_high = link.carrier.descriptor().and_then(|number| u64::try_from(number).ok());
        let is_high = is_high.is_none_or(|number| number >= global.pool_low_descriptors);
        let is_worn = server.max_reuse.is_some_and(|most| link.answers > most);
        let pool = &self.worker.process.pool;
        if !is_high && !is_worn && link.generation == pool.generation(server.serial) && self.proxy().backend.is_some() {
            self.worker.links.put(pool, server.serial, link);
        }
    }

    /// Opens a connection.
    async fn open(
        &self,
        timer: &mut Timer,
        proxy: &Proxy,
        server: &Server,
        protocols: &[&[u8]],
    ) -> Result<(Transport, SideConnection), Unconnected> {
        let process = &self.worker.process;
        let generation = process.pool.generation(server.serial);
        let place = make_room(&self.worker, proxy, server).map_err(|_| Unconnected::Blocked)?;
        let route = process.outgoing.route(server.serial).filter(|route| !route.blocked).ok_or(Unconnected::Blocked)?;
        let to = fixed_address(&process.outgoing.address(server)).ok_or(Unconnected::Blocked)?;
        metrics::step(&self.worker, proxy, Some(server), ServerEvent::Connect);
        let mut opening = transport::connect(&to, &route.options).map_err(Unconnected::Refused)?;
        metrics::server_session(&self.worker, server);
        let opened = within(timer, |cx| Pin::new(&mut opening).poll(cx)).await.ok_or(Unconnected::Late)?;
        let stream = opened.map_err(Unconnected::Refused)?;
        let tls = server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic());
        let stream = match tls {
            Some(tls) => self.secure(timer, stream, tls, &to, protocols).await.map_err(|_| Unconnected::Insecure)?,
            None => stream,
        };
        Ok((stream, SideConnection { was_idle: false, answers: 0, glitches: 0, generation, place }))
    }

    /// Performs a TLS handshake that offers those of the server's protocols that are among `protocols`, or the last of them.
    async fn secure(
        &self,
        timer: &mut Timer,
        stream: Transport,
        tls: &ServerTls,
        to: &Address,
        protocols: &[&[u8]],
    ) -> io::Result<Transport> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionAborted);
        if is_one_too_many(self.generation.program.global.max_tls_connections) {
            return Err(refused());
        }
        let multiplexes = tls.client.offers(b"h2") || tls.client.offers(b"h3");
        let alpn = multiplexes.then(|| offered(tls, protocols));
        let name = asked_name(self.sni.as_deref(), to.inet().map(|address| address.ip()));
        let side = Connection::of_client(&tls.client, name, alpn.as_deref());
        let mut stream = stream.with_tls(side.map_err(|_| refused())?);
        stream.begin_tls(&[]);
        let shaken = within(timer, |cx| stream.poll_handshake(cx)).await;
        shaken.ok_or_else(refused)?.map_err(|_| refused())?;
        Ok(stream)
    }
}

/// Returns the protocols that a handshake offers.
fn offered(tls: &ServerTls, protocols: &[&[u8]]) -> Vec<Vec<u8>> {
    let found: Vec<_> = protocols.iter().filter(|name| tls.client.offers(name)).map(|name| name.to_vec()).collect();
    if found.is_empty() { protocols.last().map(|name| name.to_vec()).into_iter().collect() } else { found }
}

/// Whether requests may be sent to a server over HTTP/2.
fn has_http2(server: &Server) -> bool {
    let connecting = &server.connecting;
    let tls = connecting.tls.as_deref().filter(|tls| tls.carries_traffic());
    let negotiates = connecting.negotiates && tls.is_some_and(|tls| tls.client.offers(b"h2"));
    connecting.protocol == Some(MuxProtocol::Http2) || negotiates
}

/// Polls until ready; `None`: the timer expired.
async fn within<T>(timer: &mut Timer, mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    std::future::poll_fn(|cx| match ready(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => timer.poll_expired(cx).map(|()| None),
    })
    .await
}
