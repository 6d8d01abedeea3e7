//! Connections to servers that carry several requests at a time: a task for each moves their frames. Must never choose a
//! server, nor serve a request.

use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use conn::h2::{Ping, Terms};
use conn::link::Link;
use conn::several::{Protocol, Requests, ServerConnection};
use policy::program::{Global, MuxProtocol, Server};

use crate::session::Session;
use crate::stream::request::head_limits;
use crate::worker::Worker;

/// What a server speaks other than HTTP/1, whatever connection leads to it; `None`: nothing, or what the handshake of TLS agrees
/// on.
pub fn protocol(server: &Server) -> Option<Protocol> {
    (server.connecting.protocol == Some(MuxProtocol::Http2)).then_some(Protocol::H2)
}

/// The same on a connection that stands; `special`: what one request asks for.
pub fn protocol_on(server: &Server, special: Option<MuxProtocol>, link: &Link) -> Option<Protocol> {
    let is_secured = link.carrier.tls_facts().is_some();
    match special {
        Some(MuxProtocol::Http2) if !is_secured => return Some(Protocol::H2),
        Some(MuxProtocol::Http2) => {}
        Some(_) => return None,
        None if !server.connecting.negotiates => return protocol(server),
        None => {}
    }
    link.carrier.tls_facts().and_then(|facts| facts.alpn.as_deref()).and_then(Protocol::named)
}

/// Speaks a protocol on a connection that was just opened, which becomes the first request's share of it. Later requests of
/// this worker find it where it is `shared`. `None`: it cannot.
pub fn open(session: &Session, server: &Server, protocol: Protocol, shared: bool, link: Link) -> Option<Link> {
    let worker = &session.worker;
    let Link { carrier, answers, private, first, generation, place, pool_key } = link;
    let terms = terms(&session.generation().program.global, server);
    let (connection, requests) = ServerConnection::new(protocol, carrier.into_transport()?, terms);
    let carrier = requests.begin()?;
    let mut link = Link { carrier, answers, private, first, generation, place, pool_key };
    if shared {
        worker.links.share(server.serial, &mut link, &requests);
    }
    let interval = server.connecting.idle_ping;
    rt::spawn(rt::Class::Normal, rt::NO_TAG, carry(Rc::clone(worker), connection, requests, interval));
    Some(link)
}

/// What a server is granted.
fn terms(global: &Global, server: &Server) -> Terms {
    Terms {
        max_streams: global.http2_servers.streams,
        window: global.http2_servers.window,
        shared_window: global.http2_servers.shared_window,
        table_size: global.http2_servers.table_size,
        max_total: server.max_reuse.map_or(0, |most| most.saturating_add(1)),
        max_head: head_limits(global).max_head,
        max_fields: head_limits(global).max_fields,
        extends: false,
        accept_unsafe: false,
    }
}

/// Serves a connection until it has ended. An idle one is asked every `interval` whether its server is there.
async fn carry(worker: Rc<Worker>, connection: ServerConnection, requests: Requests, interval: Option<Duration>) {
    move_frames(&worker, connection, &requests, interval).await;
    worker.links.note_ended(&worker.process.pool, &requests);
}

/// Moves what the requests of a connection have to send and to receive.
async fn move_frames(
    worker: &Worker,
    mut connection: ServerConnection,
    requests: &Requests,
    interval: Option<Duration>,
) {
    let mut timer = rt::Timer::new();
    std::future::poll_fn(|cx| {
        loop {
            if connection.poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if requests.open() == 0 {
                worker.links.note_idle(&worker.process.pool, requests);
            }
            let Some(interval) = interval else { return Poll::Pending };
            match connection.ping(rt::now(), interval) {
                Ping::Unanswered => return Poll::Ready(()),
                Ping::Sent => continue,
                Ping::Due(moment) => timer.arm(Some(moment)),
            }
            if timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}
