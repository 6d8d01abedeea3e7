//! Multiplexed server connections: a task for each of them moves its frames. Must never choose a server, nor serve a request.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::moment::Moment;
use config::spec::HttpReuse;
use conn::carrier::SharedUse;
use conn::fcgi;
use conn::h2::Terms;
use conn::link::Link;
use conn::multiplexed::{Ping, Protocol, Requests, ServerConnection, ServerTerms};
use conn::quic::Link as QuicLink;
use expression::sample::ProtocolFacts;
use live::ServerPlace;
use live::health::Symptom;
use live::trace::events;
use policy::program::{Backend, FcgiApp, Global, MuxProtocol, Server};
use tls::HandshakeInfo;

use crate::check::{Sign, observe, trace};
use crate::outgoing_quic::http3_terms;
use crate::protocol::{CountedConnection, http2_terms};
use crate::session::Session;
use crate::stream::record::metrics::{self, Handshake};
use crate::stream::request::head_limits::head_limits;
use crate::worker::Worker;

use super::quic_tally::ServerTally;

/// Returns the protocol of all connections to a server if it is not HTTP/1. `None`: HTTP/1, or negotiated during the TLS
/// handshake.
pub fn protocol(server: &Server) -> Option<Protocol> {
    match server.connecting.protocol {
        Some(MuxProtocol::Http2) => Some(Protocol::H2),
        Some(MuxProtocol::Quic) => Some(Protocol::H3),
        Some(MuxProtocol::Qmux) => Some(Protocol::Qmux),
        _ => None,
    }
}

/// Returns the protocol of an established connection. `special`: the protocol that one request requires.
pub fn protocol_on(server: &Server, special: Option<MuxProtocol>, link: &Link) -> Option<Protocol> {
    let is_secured = link.carrier.handshake_info().is_some();
    match special {
        Some(MuxProtocol::Http2) if !is_secured => return Some(Protocol::H2),
        Some(MuxProtocol::Http2) => {}
        Some(_) => return None,
        None if !server.connecting.negotiates => return protocol(server),
        None => {}
    }
    let agreed = link.carrier.handshake_info().and_then(|state| state.alpn.as_deref());
    agreed.or_else(|| link.carrier.early_protocol()).and_then(Protocol::named)
}

/// Starts HTTP/2 on a connection that was just opened, and returns the first request's stream. Later requests of this
/// worker can use the connection if it is `shared`. `None`: it failed.
pub fn open(session: &Session, proxy: usize, server: &Server, shared: bool, link: Link) -> Option<Link> {
    let Link { carrier, answers, glitches, private, first, generation, place, pool_key } = link;
    let terms = ServerTerms::H2(terms(&session.generation().program.global, server));
    let (connection, requests) = ServerConnection::new(carrier.into_transport()?, terms);
    let carrier = requests.begin()?;
    let link = Link { carrier, answers, glitches, private, first, generation, place, pool_key };
    Some(start(session, proxy, server, shared, link, NewConnection { connection, requests, tally: None }))
}

/// Starts HTTP/3 on a QUIC connection. `tls` is the result of its handshake.
pub(super) fn over_quic(
    session: &Session,
    server: &Server,
    link: QuicLink,
    tls: Option<Arc<HandshakeInfo>>,
) -> (ServerConnection, Requests) {
    ServerConnection::over_quic(link, http3_terms(&session.generation().program.global, server), tls)
}

/// Starts HTTP/3 on a connection whose first requests are early data. Its handshake has to be complete at the `deadline`.
pub(super) fn over_early_quic(
    session: &Session,
    server: &Server,
    link: QuicLink,
    deadline: Option<Moment>,
) -> (ServerConnection, Requests) {
    ServerConnection::over_early_quic(link, http3_terms(&session.generation().program.global, server), deadline)
}

/// A connection whose task is to be started.
pub(super) struct NewConnection {
    pub(super) connection: ServerConnection,
    pub(super) requests: Requests,
    /// The counts of one over QUIC.
    pub(super) tally: Option<ServerTally>,
}

/// Starts the task of a connection that carries the first request. Later requests of this worker can use it if it is
/// `shared`.
pub(super) fn start(
    session: &Session,
    proxy: usize,
    server: &Server,
    shared: bool,
    mut link: Link,
    fresh: NewConnection,
) -> Link {
    let worker = &session.worker;
    let NewConnection { connection, requests, tally } = fresh;
    if shared {
        worker.links.share(server.serial, &mut link, &requests);
    }
    let interval = server.connecting.idle_ping;
    // One of HTTP/1 would have been counted.
    worker.counters().proxies[proxy].back().protocol.connections.subtract(1);
    let place = ServerPlace { proxy, server: server.index };
    let watched = Watched { place, serial: server.serial, interval };
    let task = carry(Rc::clone(worker), watched, connection, requests);
    match tally {
        None => rt::spawn(rt::Class::Normal, rt::NO_TAG, task),
        Some(tally) => rt::spawn(rt::Class::Normal, rt::NO_TAG, async move { tally.during(task).await }),
    }
    link
}

/// Starts FastCGI on a connection that was just opened and may be multiplexed. See [`open`].
pub fn open_fcgi(session: &Session, proxy: usize, server: &Server, app: &FcgiApp, link: Link) -> Option<Link> {
    let worker = &session.worker;
    let Link { carrier, answers, glitches, private, first, generation, place, pool_key } = link;
    let terms = fcgi::Terms {
        asks_values: app.get_values,
        keeps_errors: app.logs_errors,
        shares: app.shares_connections,
        max_requests: app.max_requests,
        max_total: server.max_reuse.map_or(0, |most| most.saturating_add(1)),
    };
    trace(worker, session.proxy_at(proxy), server, &events::FCONN_NEW, String::new);
    let (connection, requests) = ServerConnection::of_fcgi(carrier.into_transport()?, terms, rt::now());
    let carrier = requests.begin()?;
    let mut link = Link { carrier, answers, glitches, private, first, generation, place, pool_key };
    worker.links.share(server.serial, &mut link, &requests);
    let place = ServerPlace { proxy, server: server.index };
    let watched = Watched { place, serial: server.serial, interval: None };
    rt::spawn(rt::Class::Normal, rt::NO_TAG, carry(Rc::clone(worker), watched, connection, requests));
    Some(link)
}

/// Returns the FastCGI application of a server if its connections are multiplexed (`option mpxs-conns`), or may be (`option
/// get-values`).
pub fn shared_app<'b>(backend: &'b Backend, server: &Server) -> Option<&'b FcgiApp> {
    let app = backend.fcgi.as_deref().filter(|app| (app.shares_connections || app.get_values) && app.keep_conn)?;
    let speaks = server.connecting.protocol == Some(MuxProtocol::Fcgi);
    (speaks && backend.http_reuse != HttpReuse::Never).then_some(app)
}

/// Switches a connection to FastCGI if its server uses that.
pub fn speak_fcgi(backend: &Backend, server: &Server, link: Link, fresh: bool) -> Link {
    match &backend.fcgi {
        Some(app) if server.connecting.protocol == Some(MuxProtocol::Fcgi) => {
            let options = fcgi::Options { asks_values: app.get_values, keeps_errors: app.logs_errors };
            Link { carrier: link.carrier.into_fcgi(options, fresh), ..link }
        }
        _ => link,
    }
}

/// Returns the properties of a multiplexed connection.
pub fn protocol_of(shared: SharedUse) -> ProtocolFacts {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ProtocolFacts {
        major: shared.major,
        glitches: shared.glitches,
        streams: number(shared.open),
        limit: number(shared.limit),
    }
}

/// Returns the protocol limits for a server.
pub(super) fn terms(global: &Global, server: &Server) -> Terms {
    let max_total = server.max_reuse.map_or(0, |most| most.saturating_add(1));
    let terms = http2_terms(&global.http2_servers, global.glitches.http2_servers, global, head_limits(global));
    Terms { max_total, extends: false, ..terms }
}

/// The server of a connection, and how the connection is watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched {
    pub(super) place: ServerPlace,
    /// Serial number of the server.
    pub(super) serial: usize,
    /// Interval of pings on an idle connection.
    pub(super) interval: Option<Duration>,
}

/// Serves a connection until it ends.
async fn carry(worker: Rc<Worker>, watched: Watched, mut connection: ServerConnection, requests: Requests) {
    move_frames(&worker, watched, &mut connection, &requests, |_| false).await;
    worker.links.note_ended(&worker.process.pool, &requests);
}

/// Applies the end of a handshake to the server's health (`observe layer4`): the attempt to connect ended before it.
fn observe_handshake(worker: &Worker, watched: Watched, handshake: &Handshake) {
    let program = &worker.generation().program;
    let server = program.server_at(watched.place).filter(|server| server.serial == watched.serial);
    let Some((server, proxy)) = server.zip(program.proxies.get(watched.place.proxy)) else { return };
    let sign = match handshake {
        Handshake::Made { .. } => Sign::Connected,
        Handshake::Failed => Sign::Ill(Symptom::Connection),
    };
    observe(worker, proxy, server, sign);
}

/// Moves the data of a connection's requests until it ends, or `leaves` returns true, which is called after each step. Counts
/// its handshake if it was not complete at the beginning.
pub(super) async fn move_frames(
    worker: &Worker,
    watched: Watched,
    connection: &mut ServerConnection,
    requests: &Requests,
    mut leaves: impl FnMut(&ServerConnection) -> bool,
) {
    let Watched { place, serial, interval } = watched;
    let mut timer = rt::Timer::new();
    let counters = worker.counters().proxies[place.proxy].serving();
    let counted = requests.protocol().map(|protocol| CountedConnection::to_server(counters, protocol));
    let mut early = requests.is_early();
    std::future::poll_fn(|cx| {
        loop {
            connection.advance(rt::now());
            let polled = connection.poll(cx);
            if let Some((counted, counts)) = counted.as_ref().zip(connection.take_counts())
                && !counts.is_empty()
            {
                counted.count(&counts);
                counted.count_glitches(counts.faults().glitches);
            }
            if early && (polled.is_ready() || !requests.is_early()) {
                early = false;
                let made = requests.handshake_info().filter(|info| info.failure.is_none());
                let handshake = made.map_or(Handshake::Failed, |info| Handshake::Made { resumed: info.resumed });
                metrics::server_handshake(worker, place.proxy, serial, handshake);
                observe_handshake(worker, watched, &handshake);
            }
            if polled.is_ready() {
                return Poll::Ready(());
            }
            if leaves(connection) {
                return Poll::Ready(());
            }
            if requests.open() == 0 {
                worker.links.note_idle(&worker.process.pool, requests);
            }
            let pinged = interval.and_then(|interval| connection.ping(rt::now(), interval));
            let due = match pinged {
                None => connection.deadline(),
                Some(Ping::Unanswered) => return Poll::Ready(()),
                Some(Ping::Sent) => continue,
                Some(Ping::Due(moment)) => Some(moment),
            };
            let Some(due) = due else { return Poll::Pending };
            timer.arm(Some(due));
            if timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
    if let Some((counted, counts)) = counted.zip(connection.end_counts()) {
        counted.count_end(&counts);
    }
}
