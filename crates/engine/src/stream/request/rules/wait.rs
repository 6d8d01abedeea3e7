//! Requests that wait by a rule: for a delay, for their body, for sending hints, in the tarpit. Must never decide that one waits.

use std::task::Poll;
use std::time::Duration;

use conn::h1::prepared_answer;
use live::cache::{FlightResult, Waiting};
use policy::program::Proxy;
use policy::rule::{BodyWait, NameLookup, Wait};
use wire::http::Version;

use crate::resolve;
use crate::stream::cache::{self, Help};
use crate::stream::client::Client;
use crate::stream::client::client_abort::unless_left;
use crate::stream::context::RequestContext;
use crate::stream::reply::send_interim;
use crate::stream::request::buffering;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};

/// Sends the client the early hints that a cache has for its request.
///
/// # Errors
/// Sending has failed.
pub async fn send_hints(context: &mut RequestContext<'_>) -> Result<(), Failure> {
    let Some(object) = cache::take_hints(&mut context.state.borrow_mut()) else { return Ok(()) };
    let hint = prepared_answer::early_hints(object.hints.iter().map(|value| (&b"link"[..], &**value)));
    if send_interim(context.session, context.client, &hint).await {
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
pub async fn share(context: &mut RequestContext<'_>) -> Result<Help, Failure> {
    let mut leaders = 0;
    loop {
        let awaited = cache::awaited(context.session, &context.state.borrow());
        let mut landed = FlightResult::Known;
        if let Some((cache, key)) = awaited {
            let Client { conn, timer, .. } = &mut *context.client;
            timer.arm(cache.plan().coalesce.map(|limit| rt::now() + limit));
            let mut waiting = Waiting::default();
            let wait = unless_left(context.session, conn, &context.state, |cx, _| {
                match cache.poll_landed(&key, cx, &mut waiting) {
                    Poll::Ready(landed) => Poll::Ready(landed),
                    Poll::Pending => timer.poll_expired(cx).map(|()| FlightResult::Open),
                }
            });
            landed = wait.await?;
            context.state.borrow_mut().timings.request = Some(rt::now());
        }
        leaders += 1;
        let help = cache::look_again(
            context.session,
            &mut context.state.borrow_mut(),
            landed == FlightResult::Open && leaders < LEADERS,
        );
        if help != Help::Waits {
            return Ok(help);
        }
    }
}

/// Waits as a rule requires.
///
/// # Errors
/// The request ends here.
pub async fn wait(context: &mut RequestContext<'_>, rule: &Wait) -> Result<(), Failure> {
    match rule {
        Wait::Pause(period) => {
            let period = {
                let state = context.state.borrow();
                EvalContext::request(context.session, &state)
                    .behind(context.client.conn.behind())
                    .lend(|context| period.evaluate(context))
            };
            if let Some(period) = period {
                pass(context, period).await?;
                context.state.borrow_mut().timings.request = Some(rt::now());
            }
            Ok(())
        }
        Wait::Body(BodyWait { limit, least, large }) => {
            let deadline = Some(rt::now() + *limit);
            let large = context.session.generation().program.global.large_bufsize.filter(|_| *large);
            buffering::wait_until(context, deadline, *least, large).await
        }
        Wait::Handshake => whole_handshake(context).await,
        // The caller runs these: they can end the request.
        Wait::Script(_) | Wait::Agent(_) | Wait::Decompressed(_) | Wait::Authorization(_) => Ok(()),
        Wait::Lookup(lookup) => {
            look_up(context, lookup).await?;
            context.state.borrow_mut().timings.request = Some(rt::now());
            Ok(())
        }
        Wait::Hint(name, format) => {
            let hint = {
                let state = context.state.borrow();
                if state.request.version() != Version::Http11 {
                    return Ok(());
                }
                let mut value = Vec::new();
                EvalContext::request(context.session, &state)
                    .behind(context.client.conn.behind())
                    .lend(|context| format.render_in(context, &mut value));
                prepared_answer::early_hint(name, &value)
            };
            if hint.len() > context.session.generation().program.global.bufsize {
                let outcome = Outcome::new(Cause::Internal, Phase::Request);
                return Err(Failure { outcome, status: 500, page: true });
            }
            if send_interim(context.session, context.client, &hint).await {
                return Ok(());
            }
            Err(Failure { outcome: Outcome::new(Cause::Client, Phase::Request), status: 400, page: false })
        }
    }
}

/// Waits for the end of a client's TLS handshake that is still running, within its timeout.
async fn whole_handshake(context: &mut RequestContext<'_>) -> Result<(), Failure> {
    let Some(early) = context.session.tls().and_then(|tls| tls.early.clone()).filter(|early| early.is_pending()) else {
        return Ok(());
    };
    let limit = context.session.proxy().timeouts.client_handshake();
    context.client.timer.arm(limit.map(|limit| rt::now() + limit));
    let failure = |cause, status, page| Failure { outcome: Outcome::new(cause, Phase::Request), status, page };
    let result = std::future::poll_fn(|cx| {
        // A connection that carries one request is not read by anything else in this state.
        if let Poll::Ready(Err(_)) = context.client.conn.poll_whole_handshake(cx) {
            return Poll::Ready(Err(failure(Cause::Client, 400, false)));
        }
        match early.poll_over(cx) {
            Poll::Ready(true) => Poll::Ready(Ok(())),
            Poll::Ready(false) => Poll::Ready(Err(failure(Cause::Client, 400, false))),
            Poll::Pending => {
                context.client.timer.poll_expired(cx).map(|()| Err(failure(Cause::ClientTimeout, 408, true)))
            }
        }
    });
    let result = result.await;
    context.state.borrow_mut().timings.request = Some(rt::now());
    result
}

/// `do-resolve`: sets the variable if an address is found.
async fn look_up(context: &mut RequestContext<'_>, lookup: &NameLookup) -> Result<(), Failure> {
    let name = {
        let state = context.state.borrow();
        EvalContext::request(context.session, &state)
            .behind(context.client.conn.behind())
            .lend(|context| lookup.name(context))
    };
    let (Some(name), Some(section)) = (name, lookup.section) else { return Ok(()) };
    let mut found = std::pin::pin!(resolve::lookup(&context.session.worker, section, name, lookup.prefers_ipv4, true));
    let ip =
        unless_left(context.session, &mut context.client.conn, &context.state, |cx, _| found.as_mut().poll(cx)).await?;
    if let Some(ip) = ip {
        let state = context.state.borrow();
        EvalContext::request(context.session, &state)
            .behind(context.client.conn.behind())
            .lend(|context| lookup.store(context, ip));
    }
    Ok(())
}

async fn pass(context: &mut RequestContext<'_>, period: Duration) -> Result<(), Failure> {
    let Client { conn, timer, .. } = context.client;
    timer.arm(Some(rt::now() + period));
    unless_left(context.session, conn, &context.state, |cx, _| timer.poll_expired(cx)).await
}

/// Holds a request in the tarpit of the proxy that rejects it, until its timeout or the client disconnects.
pub async fn tarpit(context: &mut RequestContext<'_>, proxy: &Proxy) {
    let own = context.state.borrow().rules.orders.get().timeouts.tarpit;
    if let Some(period) = own.or(proxy.timeouts.tarpit).or(proxy.timeouts.connect) {
        // The result is the same if the client disconnects.
        let _ = pass(context, period).await;
    }
    let timings = &mut context.state.borrow_mut().timings;
    timings.request = None;
    timings.queued = Some(rt::now());
}
