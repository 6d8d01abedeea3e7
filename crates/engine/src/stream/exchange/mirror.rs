//! `http-request mirror`, an extension of Weir: chooses the server of another backend for the copy of a request, and sends it
//! in a task. Must never make the request wait, change it, or affect its response.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use balance::Subject;
use base::buffer::Buffer;
use config::spec::HttpReuse;
use conn::carrier::RequestFormat;
use conn::copy::{Copy, Failure, SharedFeed};
use conn::exchange::RequestLine;
use conn::h1::HeadLimits;
use conn::link::Link;
use conn::pool_key::PoolKey;
use conn::quota::Reservation;
use conn::transport::{self, Transport};
use live::{Mirrored, PickContext, ProxyState};
use policy::program::{Backend, MuxProtocol, Proxy, Server, ServerTls};
use policy::rule::Mirror;
use rt::Timer;
use rt::net::Address;
use tls::{Connection, asked_name};
use wire::http::Method;

use crate::generation::Generation;
use crate::handshake::is_one_too_many;
use crate::outgoing::fixed_address;
use crate::session::Session;
use crate::stream::exchange::filter;
use crate::stream::record::metrics::{self, ServerEvent};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::head_limits::head_limits;
use crate::stream::request::outgoing_head;
use crate::stream::server::connect::{hash_of_key, make_room};
use crate::stream::server::private_connections;
use crate::stream_state::StreamState;
use crate::worker::{Slot, Worker};

/// Maximum number of concurrent copies of one worker.
const MOST: u32 = 1024;
/// Connection timeout if the backend has no `timeout connect`.
const CONNECT: Duration = Duration::from_secs(5);
/// Time from the end of the request to the end of the response if the backend has no `timeout server`.
const ANSWER: Duration = Duration::from_secs(60);

/// Applies the rule `mirror`: if the request is in the sample, it is copied once it is ready for its own server.
pub fn request(session: &Session, state: &mut StreamState, mirror: Mirror) {
    let is_drawn = mirror.share == Mirror::WHOLE || rt::random() % u64::from(Mirror::WHOLE) < u64::from(mirror.share);
    let request = &state.request;
    if is_drawn && !request.upgrade && request.known_method() != Method::Connect {
        filter::mirror(session, state, mirror.backend);
    }
}

/// Sends a copy of a request that is ready for its server; its body is received through the feed. Returns false if the copy is
/// not sent.
pub fn send(session: &Session, state: &StreamState, index: usize, feed: Option<SharedFeed>) -> bool {
    let proxy_state = session.worker.proxy_state(index);
    let begun = Job::new(session, state, index, feed);
    proxy_state.note_mirrored(if begun.is_some() { Mirrored::Begun } else { Mirrored::Dropped });
    let Some(job) = begun else { return false };
    rt::spawn(rt::Class::Normal, rt::NO_TAG, job.run());
    true
}

/// The copy of one request.
struct Job {
    worker: Rc<Worker>,
    generation: Arc<Generation>,
    /// Index of the backend's proxy.
    proxy: usize,
    slot: Slot,
    head: Buffer,
    feed: Option<SharedFeed>,
    is_head: bool,
    /// The connection is not reused: the request asks to close it, the server's connections differ by request, or the copy
    /// authenticates its connection.
    alone: bool,
    /// SNI of the TLS handshake.
    sni: Option<Box<str>>,
    limits: HeadLimits,
    _counted: MirrorGuard,
}

/// Guard that counts a running copy.
struct MirrorGuard(Rc<Worker>);

impl MirrorGuard {
    fn new(worker: &Rc<Worker>) -> Option<Self> {
        let under_way = worker.copies.get();
        if under_way >= MOST {
            return None;
        }
        worker.copies.set(under_way + 1);
        Some(Self(Rc::clone(worker)))
    }
}

impl Drop for MirrorGuard {
    fn drop(&mut self) {
        self.0.copies.set(self.0.copies.get().saturating_sub(1));
    }
}

/// Whether copies can be sent to a server: over HTTP/1.1, on connections that do not depend on the client.
fn takes_copies(server: &Server) -> bool {
    let connecting = &server.connecting;
    !connecting.varies
        && connecting.socks4.is_none()
        && server.redirect.is_none()
        && !matches!(connecting.protocol, Some(MuxProtocol::Http2 | MuxProtocol::Qmux | MuxProtocol::Fcgi))
}

/// Returns the request's hash for load balancing.
fn hash(session: &Session, state: &StreamState, backend: &Backend) -> Option<u32> {
    let recogniser = backend.recogniser.as_ref()?;
    match &backend.hash_key {
        Some(key) => hash_of_key(EvalContext::request(session, state), backend, key),
        None => recogniser.hash(&Subject { source: state.source(session), request: Some(&state.request), bytes: &[] }),
    }
}

/// Returns the SNI for the copy's TLS handshake.
fn sni(session: &Session, state: &StreamState, tls: Option<&ServerTls>) -> Option<Box<str>> {
    let sni = tls?.sni.as_ref()?;
    EvalContext::request(session, state).lend(|context| {
        let name = sni.evaluate(context).and_then(|value| context.as_text(value))?;
        std::str::from_utf8(name).ok().filter(|name| !name.is_empty()).map(Into::into)
    })
}

impl Job {
    fn new(session: &Session, state: &StreamState, index: usize, feed: Option<SharedFeed>) -> Option<Self> {
        let worker = &session.worker;
        let counted = MirrorGuard::new(worker).filter(|_| !rt::memory_is_scarce())?;
        let proxy = session.proxy_at(index);
        let backend = proxy.backend.as_ref()?;
        let hash = hash(session, state, backend);
        let pick = PickContext { hash, random: rt::random(), ..PickContext::default() };
        let slot = ProxyState::assign_spare(worker.proxy_state(index).clone(), &pick)?;
        let server = backend.servers.get(slot.server()).filter(|server| takes_copies(server))?;
        let request = &state.request;
        let says_close = outgoing_head::asks_for_a_last_one(request);
        let line = RequestLine {
            says_close,
            last: proxy.http.send_name_header.as_deref().map(|name| (name, server.name.as_bytes())),
            spelling: proxy.http.server_spelling.as_deref(),
        };
        let mut head = rt::buffer();
        line.encode(RequestFormat::H1, request, &mut head).ok()?;
        metrics::backend(worker, proxy);
        metrics::server(worker, proxy, server, slot.entered(), true);
        Some(Self {
            worker: Rc::clone(worker),
            generation: session.shared_generation(),
            proxy: index,
            slot,
            head,
            feed,
            is_head: request.known_method() == Method::Head,
            alone: says_close
                || server.connecting.name.is_some()
                || backend.http_reuse == HttpReuse::Never
                || private_connections::authenticates(state),
            sni: sni(session, state, server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic())),
            limits: HeadLimits {
                accept_unsafe: proxy.http.accept_unsafe_response,
                ..head_limits(&session.generation().program.global)
            },
            _counted: counted,
        })
    }

    /// Sends the copy, and counts the result.
    async fn run(mut self) {
        let generation = Arc::clone(&self.generation);
        let proxy = generation.proxy(self.proxy);
        let outcome = match proxy.server(self.slot.server()) {
            Some(server) => self.send(proxy, server).await,
            None => Mirrored::Failed,
        };
        self.worker.proxy_state(self.proxy).note_mirrored(outcome);
    }

    async fn send(&mut self, proxy: &Proxy, server: &Server) -> Mirrored {
        let mut timer = Timer::new();
        let connect = proxy.timeouts.connect.unwrap_or(CONNECT);
        timer.arm(Some(rt::now() + connect));
        let pool = &self.worker.process.pool;
        let idle =
            if self.alone { None } else { self.worker.links.take_own(pool, server.serial, false, PoolKey::COMMON) };
        let parts = match idle {
            Some(link) => {
                metrics::step(&self.worker, proxy, Some(server), ServerEvent::Reuse);
                let Link { carrier, answers, glitches, generation, place, .. } = link;
                carrier.into_transport().map(|stream| (stream, answers, glitches, generation, place))
            }
            None => self.open(&mut timer, proxy, server).await,
        };
        let Some((stream, answers, glitches, generation, place)) = parts else { return Mirrored::Failed };
        let head = std::mem::replace(&mut self.head, Buffer::empty());
        let mut copy = Copy::new(stream, head, self.feed.take(), self.is_head, self.limits);
        timer.arm(None);
        let limit = proxy.timeouts.server.unwrap_or(ANSWER);
        let mut is_timed = false;
        let ended = std::future::poll_fn(|cx| {
            if let Poll::Ready(ended) = copy.poll(cx) {
                return Poll::Ready(Some(ended));
            }
            if !is_timed && copy.is_fed() {
                is_timed = true;
                timer.arm(Some(rt::now() + limit));
            }
            if is_timed { timer.poll_expired(cx).map(|()| None) } else { Poll::Pending }
        })
        .await;
        match ended {
            Some(Ok(keeps)) => {
                let mut stream = copy.into_transport();
                if keeps && !self.alone && stream.is_clean() {
                    let link = Link { glitches, generation, place, answers, ..Link::new(stream) };
                    self.keep(proxy, server, link);
                }
                Mirrored::Answered
            }
            Some(Err(Failure::Lagged)) => Mirrored::Lagged,
            Some(Err(Failure::Aborted | Failure::Broken)) | None => Mirrored::Failed,
        }
    }

    /// Puts the connection in the pool for later requests and copies.
    fn keep(&self, proxy: &Proxy, server: &Server, mut link: Link) {
        link.note_answer(link.glitches);
        let global = &self.generation.program.global;
        let is_high = link.carrier.descriptor().and_then(|number| u64::try_from(number).ok());
        let is_high = is_high.is_none_or(|number| number >= global.pool_low_descriptors);
        let is_worn = server.max_reuse.is_some_and(|most| link.answers > most);
        let pool = &self.worker.process.pool;
        if !is_high && !is_worn && link.generation == pool.generation(server.serial) && proxy.backend.is_some() {
            self.worker.links.put(pool, server.serial, link);
        }
    }

    /// Opens a connection.
    async fn open(
        &self,
        timer: &mut Timer,
        proxy: &Proxy,
        server: &Server,
    ) -> Option<(Transport, u32, u32, u32, Option<Reservation>)> {
        let process = &self.worker.process;
        let generation = process.pool.generation(server.serial);
        let place = make_room(&self.worker, proxy, server).ok()?;
        let route = process.outgoing.route(server.serial).filter(|route| !route.blocked)?;
        let to = fixed_address(&process.outgoing.address(server))?;
        metrics::step(&self.worker, proxy, Some(server), ServerEvent::Connect);
        let mut opening = transport::connect(&to, &route.options).ok()?;
        metrics::server_session(&self.worker, server);
        let opened = within(timer, |cx| Pin::new(&mut opening).poll(cx)).await?;
        let stream = opened.ok()?;
        let tls = server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic());
        let stream = match tls {
            Some(tls) => self.secure(timer, stream, tls, &to).await.ok()?,
            None => stream,
        };
        Some((stream, 0, 0, generation, place))
    }

    /// Performs a TLS handshake that offers only HTTP/1.1.
    async fn secure(
        &self,
        timer: &mut Timer,
        stream: Transport,
        tls: &ServerTls,
        to: &Address,
    ) -> io::Result<Transport> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionAborted);
        if is_one_too_many(self.generation.program.global.max_tls_connections) {
            return Err(refused());
        }
        let multiplexes = tls.client.offers(b"h2") || tls.client.offers(b"h3");
        let alpn = multiplexes.then(|| [b"http/1.1".to_vec()]);
        let name = asked_name(self.sni.as_deref(), to.inet().map(|address| address.ip()));
        let side = Connection::of_client(&tls.client, name, alpn.as_ref().map(<[_; 1]>::as_slice));
        let mut stream = stream.with_tls(side.map_err(|_| refused())?);
        stream.begin_tls(&[]);
        let shaken = within(timer, |cx| stream.poll_handshake(cx)).await;
        shaken.ok_or_else(refused)?.map_err(|_| refused())?;
        Ok(stream)
    }
}

/// Polls until ready; `None`: the timer expired.
async fn within<T>(timer: &mut Timer, mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    std::future::poll_fn(|cx| match ready(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => timer.poll_expired(cx).map(|()| None),
    })
    .await
}
