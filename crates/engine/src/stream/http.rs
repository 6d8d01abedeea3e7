//! A client's HTTP/1 connection, from top to bottom: wait, serve a request, wait for the next. Between two requests the
//! session holds no buffer and no large future. Must never know what a request says.

use std::task::{Context, Poll};
use std::time::Duration;

use conn::h1::{BodyEnd, Reuse};
use rt::LocalRc;

use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::client::Client;
use crate::stream::private;
use crate::stream::request;
use crate::stream::several;

/// How a wait for a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Readable,
    Expired,
    Stopping,
}

/// Serves a client whose connection has come in TCP mode until it ends. The stream that began then is the session's.
pub async fn serve_upgraded(session: &LocalRc<StreamTask>, client: &mut Client) {
    session.upgrade(None);
    client.begun = true;
    serve(session, client).await;
    if client.begun
        && let Some(state) = session.current()
    {
        // Nothing came of it.
        session.end(state);
    }
}

/// Serves a client until its connection ends.
pub fn serve<'a>(session: &'a LocalRc<StreamTask>, client: &'a mut Client) -> impl Future<Output = ()> + 'a {
    client.ready = rt::now();
    async move {
        // A request that came along with its connection is read at once, unless memory is scarce.
        let mut wait = rt::memory_is_scarce();
        loop {
            if wait && !client.conn.has_received() {
                match std::future::poll_fn(|cx| poll_idle(session, client, cx)).await {
                    Wait::Readable => {}
                    Wait::Expired => {
                        if client.served == 0 && !session.proxy().http.ignore_probes {
                            rt::boxed(request::expired(session, client)).await;
                        }
                        break;
                    }
                    Wait::Stopping => break,
                }
            }
            if wait && rt::slice_is_over() {
                // A client that sends one request after the other is served beside the others, not before them.
                rt::yield_now().await;
            }
            wait = true;
            if !client.conn.try_receive() {
                continue;
            }
            rt::boxed_with((session, &mut *client), |(session, client)| request::serve(session, client)).await;
            match client.finish() {
                Reuse::Again(BodyEnd { .. }) => {
                    client.served = client.served.saturating_add(1);
                    client.since = rt::now();
                    client.since_date = rt::wall();
                }
                Reuse::Several => {
                    rt::boxed_with((session, &mut *client), |(session, client)| several::serve(session, client)).await;
                    break;
                }
                end @ (Reuse::Close | Reuse::Drop | Reuse::Linger | Reuse::Refuse) => {
                    client.reuse = end;
                    break;
                }
            }
        }
    }
}

/// A client that was answered less than this long ago may be sending its next request when the process stops. So may one whose
/// answer was under way then, and could not say that the connection ends.
const SETTLED: Duration = Duration::from_millis(100);

/// Waits for the first byte of a request, holding nothing but the session: what follows from it is found out anew by each
/// look, which costs less than to keep it. A soft stop ends the wait of a client that has had an answer.
fn poll_idle(session: &Session, client: &mut Client, cx: &mut Context<'_>) -> Poll<Wait> {
    private::discard_disturbed(session, cx);
    if client.conn.poll_readable(cx).is_ready() {
        if rt::poll_memory(cx, rt::Stage::Request).is_ready() {
            return Poll::Ready(Wait::Readable);
        }
    } else if client.served > 0 && rt::memory_is_scarce() {
        // A client without a request makes way for those with one.
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
                // A request that came since the events of this turn were taken is still served.
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
