//! Connections to servers that carry several requests at a time: a task for each moves their frames. Must never choose a
//! server, nor serve a request.

use std::rc::Rc;

use conn::link::Link;
use conn::several::{Protocol, Requests, ServerConnection};
use policy::program::Server;

use crate::worker::Worker;

/// What a server speaks other than HTTP/1; `None`: nothing.
pub fn protocol(server: &Server) -> Option<Protocol> {
    server.connecting.protocol.as_deref().and_then(Protocol::named)
}

/// Speaks a protocol on a connection that was just opened, which becomes the first request's share of it. Later requests of
/// this worker find it where it is `shared`. `None`: it cannot.
pub fn open(worker: &Rc<Worker>, server: &Server, protocol: Protocol, shared: bool, link: Link) -> Option<Link> {
    let Link { carrier, answers, private, first, generation, place, pool_key } = link;
    let (connection, requests) = ServerConnection::new(protocol, carrier.into_transport()?);
    let carrier = requests.begin()?;
    let mut link = Link { carrier, answers, private, first, generation, place, pool_key };
    if shared {
        worker.links.share(server.serial, &mut link, &requests);
    }
    rt::spawn(rt::Class::Normal, rt::NO_TAG, carry(Rc::clone(worker), connection, requests));
    Some(link)
}

/// Serves a connection until it has ended.
async fn carry(worker: Rc<Worker>, connection: ServerConnection, requests: Requests) {
    move_frames(&worker, connection, &requests).await;
    worker.links.note_ended(&worker.process.pool, &requests);
}

/// Moves what the requests of a connection have to send and to receive.
async fn move_frames(worker: &Worker, mut connection: ServerConnection, requests: &Requests) {
    std::future::poll_fn(|cx| {
        let ended = connection.poll(cx);
        if ended.is_pending() && requests.open() == 0 {
            worker.links.note_idle(&worker.process.pool, requests);
        }
        ended
    })
    .await;
}
