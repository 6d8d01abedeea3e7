//! A client's connection: the choice of its protocol, and the loop of HTTP/1: wait for a request, serve it, wait for the next.
//! Between two requests the session holds no buffer and no large future. Must never interpret a request.

use std::task::{Context, Poll};
use std::time::Duration;

use conn::h1::{BodyEnd, Reuse};
use conn::multiplexed::Beginning;
use rt::LocalRc;

use crate::protocol::{Choice, Expected, Protocol};
use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::client::{Client, EarlyStream, multiplexed};
use crate::stream::request;
use crate::stream::server::private_connections;

/// How a wait for a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Readable,
    Expired,
    Stopping,
}

/// Serves a client's connection that was accepted in TCP mode and upgraded to HTTP, until it ends. Continues with the stream
/// that began in TCP mode.
pub async fn serve_upgraded(session: &LocalRc<StreamTask>, client: &mut Client) {
    session.upgrade(None);
    client.begun = EarlyStream::Tcp;
    match choose(session, client).await {
        Some(Protocol::Http1) => serve(session, client).await,
        Some(Protocol::Multiplexed(protocol)) => {
            let arguments = (session, &mut *client);
            rt::boxed_with(arguments, |(session, client)| multiplexed::serve(session, client, protocol)).await;
        }
        Some(Protocol::Tcp) | None => {}
    }
    if let Some(state) = client.take_begun(session) {
        // The connection ended before a request was served.
        session.end(state);
    }
}

/// Chooses the protocol of a connection. In HTTP mode, waits for the bytes that are required for it, for at most the time of
/// `timeout http-request`. `None`: the connection has ended before, and is logged.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
pub fn choose<'a>(
    session: &'a LocalRc<StreamTask>,
    client: &'a mut Client,
) -> impl Future<Output = Option<Protocol>> + 'a {
    async move {
        if !session.is_http() {
            return Some(Protocol::Tcp);
        }
        client.ready = rt::now();
        if let Some(protocol) = expected(session, client).at_once() {
            return Some(protocol);
        }
        // A request that came along with its connection is read at once, unless memory is scarce.
        let mut waits = rt::memory_is_scarce();
        loop {
            if waits && !client.conn.has_received() {
                match std::future::poll_fn(|cx| poll_idle(session, client, cx)).await {
                    Wait::Readable => {}
                    Wait::Expired => {
                        rt::boxed(expire(session, client)).await;
                        return None;
                    }
                    Wait::Stopping => return None,
                }
            }
            if waits && rt::slice_is_over() {
                rt::yield_now().await;
            }
            if client.conn.try_receive() {
                break;
            }
            waits = true;
        }
        match expected(session, client).choose(client.conn.received()) {
            Choice::Known(protocol) => Some(protocol),
            Choice::Open(protocol) => rt::boxed(look(session, client, protocol)).await,
            Choice::Refused => {
                refuse(session, client);
                None
            }
        }
    }
}

/// Returns the protocols that a connection in HTTP mode may begin with.
fn expected(session: &Session, client: &mut Client) -> Expected {
    let info = client.conn.bytes().and_then(|(transport, _)| transport.handshake_info());
    let alpn = info.and_then(|info| info.alpn.as_deref());
    Expected::by(session.protocol(), alpn, !session.proxy().http.disable_h2_upgrade)
}

/// Waits for further bytes of a possible connection preface of `protocol`.
async fn look(session: &StreamTask, client: &mut Client, protocol: conn::multiplexed::Protocol) -> Option<Protocol> {
    let first_byte = rt::now();
    let limit = session.proxy().timeouts.request();
    client.timer.arm(limit.map(|limit| client.ready + limit));
    let Client { conn, timer, .. } = &mut *client;
    let seen = std::future::poll_fn(|cx| {
        let Some((transport, input)) = conn.bytes() else { return Poll::Ready(None) };
        match protocol.poll_beginning(cx, transport, input) {
            Poll::Ready(seen) => Poll::Ready(Some(seen)),
            Poll::Pending => timer.poll_expired(cx).map(|()| None),
        }
    })
    .await;
    let expected = expected(session, client);
    let choice = match seen {
        Some(Beginning::Whole | Beginning::Other) => expected.choose(client.conn.received()),
        Some(Beginning::Part) | None => expected.give_up(),
    };
    match choice {
        Choice::Known(Protocol::Multiplexed(protocol)) => Some(Protocol::Multiplexed(protocol)),
        Choice::Known(protocol) => {
            let (state, is_tcp) = client.begin(session);
            client.begun = if is_tcp { EarlyStream::Tcp } else { EarlyStream::Early };
            state.borrow_mut().timings.first_byte = Some(first_byte);
            Some(protocol)
        }
        // As in HAProxy, a timeout of the client is not logged.
        Choice::Refused if seen.is_none() && client.begun == EarlyStream::Nothing => None,
        Choice::Refused | Choice::Open(_) => {
            refuse(session, client);
            None
        }
    }
}

/// Ends a new connection whose client sent nothing in time. As in HAProxy, a connection that has to begin with the preface of
/// HTTP/2 is not logged.
async fn expire(session: &StreamTask, client: &mut Client) {
    if session.proxy().http.ignore_probes {
        return;
    }
    match expected(session, client).give_up() {
        Choice::Known(_) => request::expired(session, client).await,
        Choice::Open(_) | Choice::Refused if client.begun == EarlyStream::Tcp => {
            request::refuse_silently(session, client)
        }
        Choice::Open(_) | Choice::Refused => {}
    }
}

/// Ends a connection that does not begin with an expected protocol.
#[cold]
fn refuse(session: &StreamTask, client: &mut Client) {
    if session.proxy().http.ignore_probes && !client.conn.has_received() {
        // The connection has ended without any data.
        client.drop_connection();
    } else {
        request::refuse_silently(session, client);
    }
}

/// Serves a client's HTTP/1 connection, whose first request has begun to arrive, until the connection ends.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
pub fn serve<'a>(session: &'a LocalRc<StreamTask>, client: &'a mut Client) -> impl Future<Output = ()> + 'a {
    async move {
        loop {
            rt::boxed_with((session, &mut *client), |(session, client)| request::serve(session, client)).await;
            match client.finish() {
                Reuse::Again(BodyEnd { .. }) => {
                    client.served = client.served.saturating_add(1);
                    client.since = rt::now();
                    client.since_date = rt::wall();
                }
                end @ (Reuse::Close | Reuse::Drop | Reuse::Linger | Reuse::Refuse) => {
                    client.reuse = end;
                    return;
                }
            }
            loop {
                if !client.conn.has_received()
                    && std::future::poll_fn(|cx| poll_idle(session, client, cx)).await != Wait::Readable
                {
                    return;
                }
                if rt::slice_is_over() {
                    // Other tasks are served between the requests of a client that pipelines them.
                    rt::yield_now().await;
                }
                if client.conn.try_receive() {
                    break;
                }
            }
        }
    }
}

/// A client that got its answer less than this time ago may be sending its next request when the process stops. The same is
/// true if its answer was being sent at that time, without `Connection: close`.
const SETTLED: Duration = Duration::from_millis(100);

/// Waits for the first byte of a request, and holds nothing but the session: the deadlines are computed again at each call,
/// which costs less than storing them. A soft stop ends the wait of a client that has got an answer.
fn poll_idle(session: &Session, client: &mut Client, cx: &mut Context<'_>) -> Poll<Wait> {
    private_connections::discard_disturbed(session, cx);
    if client.conn.poll_readable(cx).is_ready() {
        if rt::poll_memory(cx, rt::Stage::Request).is_ready() {
            return Poll::Ready(Wait::Readable);
        }
    } else if client.served > 0 && rt::memory_is_scarce() {
        // Clients without a request are closed in favour of those with one.
        return Poll::Ready(Wait::Stopping);
    }
    let proxy = session.proxy();
    let (limit, begin) = match client.served {
        0 => (proxy.timeouts.request(), client.ready),
        _ => (proxy.timeouts.keep_alive(), client.since),
    };
    let deadline = limit.map(|limit| begin + limit);
    let leaves = client.served > 0 && !proxy.options.idle_close_on_response;
    loop {
        let now = rt::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Poll::Ready(Wait::Expired);
        }
        let mut next = deadline;
        if leaves && let Some(departure) = session.departure() {
            let settled = (client.since + SETTLED).max(departure);
            if now >= settled {
                // A request that has arrived since this iteration's events were polled is still served.
                return Poll::Ready(if client.conn.is_readable() { Wait::Readable } else { Wait::Stopping });
            }
            next = Some(next.map_or(settled, |next| next.min(settled)));
        }
        client.timer.arm(next);
        if client.timer.poll_expired(cx).is_pending() {
            return Poll::Pending;
        }
    }
}
