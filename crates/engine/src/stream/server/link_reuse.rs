//! Reuse of server connections: which ones stay open after an answer, and in which pool. Must never choose a server.

use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use config::spec::HttpReuse;
use conn::link::Link;
use policy::program::{Backend, Server};

use crate::session::Session;
use crate::stream::server::private_connections;
use crate::worker::{SharedStreamState, Slot, Worker};

/// Keeps the connection for later requests: in the session if it is private, otherwise in the worker's pool (`http-reuse`,
/// `pool-low-conn`, `max-reuse`, configuration manual, section 5.2).
pub(in crate::stream) fn keep_link(
    session: &Session,
    state: &SharedStreamState,
    backend: &Backend,
    slot: &Slot,
    mut link: Link,
) {
    let Some(server) = backend.servers.get(slot.server()) else { return };
    link.note_answer(state.borrow().attempts.link.map_or(0, |link| link.protocol.glitches));
    if server.max_reuse.is_some_and(|most| link.answers > most) {
        return;
    }
    if link.private || backend.http_reuse == HttpReuse::Never && !server.is_reversed() {
        let most = session.proxy().frontend.as_ref().map_or(0, |frontend| frontend.limits.private_links);
        let backend = state.borrow().route.backend.unwrap_or_default();
        // A private connection must be usable for the next request at once.
        if link.carrier.is_at_rest() {
            private_connections::put(session, backend, server, link, most);
        }
    } else if let Some(descriptor) = link.carrier.descriptor() {
        let worker = &session.worker;
        // The kernel assigns the lowest free descriptor number: if connections with larger numbers were kept, idle connections
        // would exceed their share of all descriptors.
        if u64::try_from(descriptor)
            .is_ok_and(|number| number >= session.generation().program.global.pool_low_descriptors)
        {
            return;
        }
        if link.first && is_one_too_many(worker, backend, server, &link) || exceeds_need(session, server, &link) {
            return;
        }
        if link.carrier.is_at_rest() {
            worker.links.put(&worker.process.pool, server.serial, link);
        } else {
            keep_later(worker, server.serial, link);
        }
    }
}

/// Time that an application has after its response to send the end of the request (`FCGI_END_REQUEST`), until its connection is
/// closed.
const ENDING: Duration = Duration::from_secs(1);

/// Keeps a connection once the application has ended the request, whose response was already forwarded.
fn keep_later(worker: &Rc<Worker>, server: usize, mut link: Link) {
    if !worker.process.pool.has_room(server) {
        return;
    }
    let worker = Rc::clone(worker);
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        let mut timer = rt::Timer::new();
        timer.arm(Some(rt::now() + ENDING));
        let rests = std::future::poll_fn(|cx| match link.carrier.poll_rest(cx) {
            Poll::Ready(rests) => Poll::Ready(rests),
            Poll::Pending => timer.poll_expired(cx).map(|()| false),
        });
        if rests.await {
            worker.links.put(&worker.process.pool, server, link);
        }
    });
}

/// Whether a connection that was opened for a session's first request, although idle ones were available, is unlikely to be
/// reused: otherwise a site whose clients send one request each would keep a connection for each of them.
fn is_one_too_many(worker: &Worker, backend: &Backend, server: &Server, link: &Link) -> bool {
    matches!(backend.http_reuse, HttpReuse::Safe | HttpReuse::Aggressive)
        && link.pool_key.is_none()
        && worker.process.pool.idle_of(server.serial, worker.id) > 0
}

/// Whether this connection can be used by some requests only, and the number of idle connections to the server has reached its
/// maximum of concurrent sessions. Connections for all requests never exceed that maximum; without this check, those with
/// different keys would grow to one for each key.
fn exceeds_need(session: &Session, server: &Server, link: &Link) -> bool {
    if link.pool_key.as_ref().is_none_or(|kept| kept.bytes().is_empty()) {
        return false;
    }
    let worker = &session.worker;
    let shared = &worker.process;
    let idle = if session.generation().program.global.idle_pool_shared {
        shared.pool.idle(server.serial)
    } else {
        shared.pool.idle_of(server.serial, worker.id)
    };
    let (idle, floor) = (idle as u64, u64::from(server.pool_low_conn.max(1)));
    // Each worker notes how many all of them had: its own number is at hand, and mostly decides.
    let own = worker.counters().server(server.serial).most_sessions.get();
    idle >= own.max(floor)
        && idle
            >= shared
                .counters
                .of(|counters| counters.known_server(server.serial))
                .peak(|counters| &counters.most_sessions)
}
