//! Requests that wait by a rule: for a delay, for their body, for sending hints, in the tarpit. Must never decide that one waits.

use std::task::Poll;
use std::time::Duration;

use conn::h1::prepared;
use live::cache::{Landed, Waiting};
use policy::program::Proxy;
use policy::rule::{BodyWait, NameLookup, Wait};
use wire::http::Version;

use crate::resolve;
use crate::session::Session;
use crate::stream::buffering;
use crate::stream::cache::{self, Help};
use crate::stream::client::Client;
use crate::stream::evaluate::EvalContext;
use crate::stream::leaving::unless_left;
use crate::stream::reply::send_interim;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Sends the client the early hints that a cache has for its request.
///
/// # Errors
/// Sending has failed.
pub async fn send_hints(session: &Session, client: &mut Client, state: &SharedStreamState) -> Result<(), Failure> {
    let Some(object) = cache::take_hints(&mut state.borrow_mut()) else { return Ok(()) };
    let hint = prepared::early_hints(object.hints.iter().map(|value| (&b"link"[..], &**value)));
    if send_interim(session, client, &hint).await {
        return Ok(());
    }
    Err(Failure { outcome: Outcome::new(Cause::Client, Phase::Request), status: 400, page: false })
}

/// Maximum number of other requests that one waits for in sequence.
const LEADERS: usize = 10;

/// Waits for the response to another request for the same object, within the cache's limit, and looks it up again. If that
/// request fails or takes too long, one of the waiting requests takes its place, and the others wait for that one.
///
/// # Errors
/// The client has disconnected.
pub async fn share(session: &Session, client: &mut Client, state: &SharedStreamState) -> Result<Help, Failure> {
    let mut leaders = 0;
    loop {
        let awaited = cache::awaited(session, &state.borrow());
        let mut landed = Landed::Known;
        if let Some((cache, key)) = awaited {
            let Client { conn, timer, .. } = &mut *client;
            timer.arm(cache.plan().coalesce.map(|limit| rt::now() + limit));
            let mut waiting = Waiting::default();
            let wait = unless_left(session, conn, state, |cx, _| match cache.poll_landed(&key, cx, &mut waiting) {
                Poll::Ready(landed) => Poll::Ready(landed),
                Poll::Pending => timer.poll_expired(cx).map(|()| Landed::Open),
            });
            landed = wait.await?;
            state.borrow_mut().timings.request = Some(rt::now());
        }
        leaders += 1;
        let help = cache::look_again(session, &mut state.borrow_mut(), landed == Landed::Open && leaders < LEADERS);
        if help != Help::Waits {
            return Ok(help);
        }
    }
}

/// Waits as a rule requires.
///
/// # Errors
/// The request ends here.
pub async fn wait(
    session: &Session,
    client: &mut Client,
    state: &SharedStreamState,
    rule: &Wait,
) -> Result<(), Failure> {
    match rule {
        Wait::Pause(period) => {
            let period = {
                let state = state.borrow();
                EvalContext::request(session, &state)
                    .behind(client.conn.behind())
                    .lend(|context| period.evaluate(context))
            };
            if let Some(period) = period {
                pass(session, client, state, period).await?;
                state.borrow_mut().timings.request = Some(rt::now());
            }
            Ok(())
        }
        Wait::Body(BodyWait { limit, least, large }) => {
            let deadline = Some(rt::now() + *limit);
            let large = session.generation().program.global.large_bufsize.filter(|_| *large);
            buffering::wait_until(session, client, state, deadline, (*least, large)).await
        }
        Wait::Handshake => whole_handshake(session, client, state).await,
        // The caller runs these: they can end the request.
        Wait::Script(_) | Wait::Agent(_) | Wait::Decompressed(_) => Ok(()),
        Wait::Lookup(lookup) => {
            look_up(session, client, state, lookup).await?;
            state.borrow_mut().timings.request = Some(rt::now());
            Ok(())
        }
        Wait::Hint(name, format) => {
            let hint = {
                let state = state.borrow();
                if state.request.version() != Version::Http11 {
                    return Ok(());
                }
                let mut value = Vec::new();
                EvalContext::request(session, &state)
                    .behind(client.conn.behind())
                    .lend(|context| format.render_in(context, &mut value));
                prepared::early_hint(name, &value)
            };
            if hint.len() > session.generation().program.global.bufsize {
                let outcome = Outcome::new(Cause::Internal, Phase::Request);
                return Err(Failure { outcome, status: 500, page: true });
            }
            if send_interim(session, client, &hint).await {
                return Ok(());
            }
            Err(Failure { outcome: Outcome::new(Cause::Client, Phase::Request), status: 400, page: false })
        }
    }
}

/// Waits for the end of a client's TLS handshake that is still running, within its timeout.
async fn whole_handshake(session: &Session, client: &mut Client, state: &SharedStreamState) -> Result<(), Failure> {
    let Some(early) = session.tls().and_then(|tls| tls.early.clone()).filter(|early| early.is_pending()) else {
        return Ok(());
    };
    let timeouts = &session.proxy().timeouts;
    client.timer.arm(timeouts.client_hs.or(timeouts.client).map(|limit| rt::now() + limit));
    let failure = |cause, status, page| Failure { outcome: Outcome::new(cause, Phase::Request), status, page };
    let result = std::future::poll_fn(|cx| {
        // A connection that carries one request is not read by anything else in this state.
        if let Poll::Ready(Err(_)) = client.conn.poll_whole_handshake(cx) {
            return Poll::Ready(Err(failure(Cause::Client, 400, false)));
        }
        match early.poll_over(cx) {
            Poll::Ready(true) => Poll::Ready(Ok(())),
            Poll::Ready(false) => Poll::Ready(Err(failure(Cause::Client, 400, false))),
            Poll::Pending => client.timer.poll_expired(cx).map(|()| Err(failure(Cause::ClientTimeout, 408, true))),
        }
    });
    let result = result.await;
    state.borrow_mut().timings.request = Some(rt::now());
    result
}

/// `do-resolve`: sets the variable if an address is found.
async fn look_up(
    session: &Session,
    client: &mut Client,
    state: &SharedStreamState,
    lookup: &NameLookup,
) -> Result<(), Failure> {
    let name = {
        let state = state.borrow();
        EvalContext::request(session, &state).behind(client.conn.behind()).lend(|context| lookup.name(context))
    };
    let (Some(name), Some(section)) = (name, lookup.section) else { return Ok(()) };
    let mut found = std::pin::pin!(resolve::lookup(&session.worker, section, name, lookup.prefers_ipv4, true));
    let ip = unless_left(session, &mut client.conn, state, |cx, _| found.as_mut().poll(cx)).await?;
    if let Some(ip) = ip {
        let state = state.borrow();
        EvalContext::request(session, &state).behind(client.conn.behind()).lend(|context| lookup.store(context, ip));
    }
    Ok(())
}

async fn pass(
    session: &Session,
    client: &mut Client,
    state: &SharedStreamState,
    period: Duration,
) -> Result<(), Failure> {
    let Client { conn, timer, .. } = client;
    timer.arm(Some(rt::now() + period));
    unless_left(session, conn, state, |cx, _| timer.poll_expired(cx)).await
}

/// Holds a request in the tarpit of the proxy that rejects it, until its timeout or the client disconnects.
pub async fn tarpit(session: &Session, client: &mut Client, state: &SharedStreamState, proxy: &Proxy) {
    let own = state.borrow().rules.orders.get().timeouts.tarpit;
    if let Some(period) = own.or(proxy.timeouts.tarpit).or(proxy.timeouts.connect) {
        // The result is the same if the client disconnects.
        let _ = pass(session, client, state, period).await;
    }
    let timings = &mut state.borrow_mut().timings;
    timings.request = None;
    timings.queued = Some(rt::now());
}
