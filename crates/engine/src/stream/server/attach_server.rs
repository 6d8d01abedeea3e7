//! Reverse HTTP on the accepting side: a rule attaches a client's connection to a server (`attach-srv`), and that
//! server's requests are sent over it from then on. Must never serve a request of the client.

use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use conn::multiplexed::{Beginning, Handover, Requests, ServerConnection};
use live::{Admin, Entry, ServerPlace};

use crate::protocol::REVERSED;
use crate::session::Session;
use crate::session::attached_server::AttachedServer;
use crate::session::task::StreamTask;
use crate::stream::client::Client;
use crate::stream::server::server_multiplex::{self, Watched, move_frames};
use crate::worker::Worker;
use crate::worker::attachments::Kind;
use crate::worker::reverse_connections::Presence;

/// Waits, for the duration of the request timeout, until the connection has started HTTP/2, and passes it to its
/// server. A connection that starts with anything else is closed. `None`: the session was killed.
pub async fn serve(session: &StreamTask, mut client: Client, attached: AttachedServer) -> Option<bool> {
    let begun = rt::unless(|| session.is_killed(), begins(session, &mut client)).await?;
    if begun {
        give(session, client, attached);
    }
    Some(true)
}

async fn begins(session: &Session, client: &mut Client) -> bool {
    client.timer.arm(session.proxy().timeouts.request().map(|limit| rt::now() + limit));
    std::future::poll_fn(|cx| {
        if session.is_stopping() {
            return Poll::Ready(false);
        }
        let Some((transport, input)) = client.conn.bytes() else { return Poll::Ready(false) };
        match REVERSED.poll_beginning(cx, transport, input) {
            Poll::Ready(seen) => Poll::Ready(seen == Beginning::Whole),
            Poll::Pending => client.timer.poll_expired(cx).map(|()| false),
        }
    })
    .await
}

/// Continues the connection as a connection to the server. Its connection slots are held until it ends, so that the
/// `maxconn` of its frontend is never exceeded.
fn give(session: &Session, client: Client, attached: AttachedServer) {
    let (backend, index) = attached.server;
    let (proxy, worker) = (session.proxy_at(backend), &session.worker);
    let Some((server, slots)) = proxy.server(index).zip(session.take_slots()) else { return };
    let terms = server_multiplex::terms(&session.generation().program.global, server);
    let Some((connection, requests)) = ServerConnection::reversed(client.conn, terms) else { return };
    let joining = Joining {
        place: ServerPlace { proxy: backend, server: index },
        generation: worker.process.pool.generation(server.serial),
        kind: Kind::new(server.serial, &attached.key),
        limit: session.proxy().timeouts.request(),
        interval: server.connecting.idle_ping,
        _slots: slots,
    };
    rt::spawn(rt::Class::Normal, rt::NO_TAG, carry(Load::on(worker), joining, connection, requests));
}

/// Counts a connection as load of its worker, and makes a soft stop wait for its end.
struct Load(Rc<Worker>);

impl Load {
    fn on(worker: &Rc<Worker>) -> Self {
        worker.enter_relay();
        Self(Rc::clone(worker))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.leave_relay();
    }
}

/// A connection that is being attached to a server.
struct Joining {
    place: ServerPlace,
    /// Generation of the server when the connection was attached. The connection is unusable once the server is taken
    /// out of service or is changed.
    generation: u32,
    kind: Kind,
    /// Maximum time until the SETTINGS of the peer have been received.
    limit: Option<Duration>,
    /// `idle-ping` of the server.
    interval: Option<Duration>,
    _slots: Entry,
}

impl Joining {
    /// Whether the server accepts connections: it still exists and is not in maintenance.
    fn is_wanted(&self, worker: &Worker) -> bool {
        let process = &worker.process;
        let proxy = process.live.proxies.get(self.place.proxy);
        let status = proxy.and_then(|proxy| proxy.status(self.place.server));
        let serves = status.is_some_and(|status| status.admin != Admin::Maintenance);
        serves && !process.is_stopping() && self.generation == process.pool.generation(self.kind.server)
    }
}

/// Serves a connection to a server until it ends. Requests use it once the peer's SETTINGS have been received.
async fn carry(load: Load, joining: Joining, mut connection: ServerConnection, requests: Requests) {
    let mut timer = rt::Timer::new();
    timer.arm(joining.limit.map(|limit| rt::now() + limit));
    let is_settled = std::future::poll_fn(|cx| {
        connection.advance(rt::now());
        if connection.poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        // Early data may be a replay: the connection is used only after the handshake is complete.
        if requests.is_settled() && !requests.is_early() {
            return Poll::Ready(true);
        }
        timer.poll_expired(cx).map(|()| false)
    });
    if !is_settled.await || !joining.is_wanted(&load.0) {
        return;
    }
    drop(timer);
    let presence = Presence::of(&load.0.process, joining.kind.clone(), load.0.id);
    join(load, joining, presence, connection, requests).await;
}

/// Serves a connection that is available to the requests of this worker, until it ends or is moved to another worker.
async fn join(load: Load, joining: Joining, presence: Presence, mut connection: ServerConnection, requests: Requests) {
    let worker = &load.0;
    let (pool, kind) = (&worker.process.pool, &joining.kind);
    worker.links.attach(kind.server, joining.generation, kind.key().keep(None), &requests);
    let mut presence = Some(presence);
    let mut next = None;
    let look = |connection: &ServerConnection| {
        if requests.is_closing() {
            presence = None;
        } else if worker.arrivals.are_there(kind) {
            if requests.open() < requests.limit() {
                worker.arrivals.wake(kind);
            }
        } else if requests.open() == 0 && connection.is_movable() {
            next = worker.process.attachments.claim(kind, worker.id);
        }
        next.is_some()
    };
    let watched = Watched { place: joining.place, serial: kind.server, interval: joining.interval };
    move_frames(worker, watched, &mut connection, &requests, look).await;
    worker.links.note_ended(pool, &requests);
    let Some((next, mut presence)) = next.zip(presence) else { return };
    presence.move_to(next);
    let parcel = connection.pack();
    drop((load, requests));
    let receive = move |worker: &Rc<Worker>| {
        let kind = joining.kind.clone();
        let arrived = parcel.and_then(Handover::unpack).filter(|_| joining.is_wanted(worker));
        if let Some((connection, requests)) = arrived {
            let load = Load::on(worker);
            rt::spawn(rt::Class::Normal, rt::NO_TAG, join(load, joining, presence, connection, requests));
        } else {
            drop(presence);
            // Requests that wait for this connection have to look for another one.
            worker.arrivals.wake(&kind);
        }
    };
    rt::post(next as rt::WorkerId, Box::new(move || crate::on_worker(receive)));
}
