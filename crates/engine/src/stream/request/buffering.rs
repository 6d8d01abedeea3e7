//! `option http-buffer-request` and `wait-for-body`: a message waits until its body is complete or fills the buffer.
//! Must never consume a byte of the body.

use std::task::{Context, Poll};
use std::time::Duration;

use base::moment::Moment;
use conn::downstream::Downstream;
use conn::h1::{ExpectedBody, prepared_answer};
use conn::progress::TimeoutProgress;
use policy::program::Proxy;
use wire::http::{Framing, Version};

use crate::stream::client::Client;
use crate::stream::context::RequestContext;
use crate::stream::record::tracking;
use crate::stream::reply::send_interim;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Time limits of the wait for a body.
struct Limits {
    /// Deadline for the whole body.
    deadline: Option<Moment>,
    /// Maximum inactivity between two pieces of payload: `timeout client`.
    silence: Option<Duration>,
}

impl Limits {
    fn next(&self) -> Option<Moment> {
        self.deadline.into_iter().chain(self.silence.map(|silence| rt::now() + silence)).min()
    }

    fn restart(&self, timer: &mut rt::Timer, _: TimeoutProgress) {
        timer.arm(self.next());
    }
}

/// Waits for the body of the request in `state`. `timeout http-request` of `proxy` applies, counted from the same time
/// as that of the head.
///
/// # Errors
/// The body is incomplete or malformed.
pub async fn wait(context: &mut RequestContext<'_>, proxy: &Proxy) -> Result<(), Failure> {
    let deadline = deadline(context, proxy);
    wait_until(context, deadline, 0, None).await
}

/// Returns the deadline for the body of a request by `timeout http-request` of `proxy`.
pub fn deadline(context: &RequestContext<'_>, proxy: &Proxy) -> Option<Moment> {
    let known = context.state.borrow();
    let begin = known.timings.first_byte.filter(|_| context.client.served > 0).unwrap_or(known.timings.start);
    proxy.timeouts.http_request.or(context.session.proxy().timeouts.client).map(|limit| begin + limit)
}

/// Waits for the body until `deadline`. If `least` is not 0, the wait ends after that number of bytes. A body that fits
/// in no regular buffer gets one of size `large`, if that is given.
///
/// # Errors
/// The body is incomplete or malformed.
pub async fn wait_until(
    context: &mut RequestContext<'_>,
    deadline: Option<Moment>,
    least: u64,
    mut large: Option<usize>,
) -> Result<(), Failure> {
    let framing = context.state.borrow().request.framing;
    let framing = context.client.conn.behind().framing_of(framing);
    if framing == Framing::UntilClose && context.client.conn.is_connection() {
        return Ok(());
    }
    let mut coming = ExpectedBody::new(framing, least);
    // Bytes received with the head are validated when the flow of the body starts: a malformed coding there is answered
    // as a bad request.
    if coming.take(context.client.conn.received()).is_err() || coming.is_over() {
        return Ok(());
    }
    context.client.conn.begin_buffering();
    if !invite(context).await {
        return Err(Failure { outcome: Outcome::new(Cause::Client, Phase::Request), status: 400, page: false });
    }
    let own = context.state.borrow().rules.orders.get().timeouts;
    let limits = Limits { deadline, silence: own.client_timeout(context.session.proxy()) };
    context.client.timer.arm(limits.next());
    let result =
        std::future::poll_fn(|cx| poll(cx, context.client, &context.state, &mut coming, &limits, &mut large)).await;
    if matches!(result, Err(Failure { outcome: Outcome { cause: Cause::Invalid, .. }, .. })) {
        tracking::wrong_body(context.session, &context.client.conn, &context.state);
    }
    let mut state = context.state.borrow_mut();
    match result {
        Ok(()) | Err(Failure { outcome: Outcome { cause: Cause::Client, .. }, .. }) => {
            state.timings.request = Some(rt::now());
        }
        Err(_) => state.timings.request = None,
    }
    result
}

fn poll(
    cx: &mut Context<'_>,
    client: &mut Client,
    state: &SharedStreamState,
    coming: &mut ExpectedBody,
    limits: &Limits,
    large: &mut Option<usize>,
) -> Poll<Result<(), Failure>> {
    let missing =
        |cause, status, page| Poll::Ready(Err(Failure { outcome: Outcome::new(cause, Phase::Request), status, page }));
    loop {
        let before = client.conn.received().len();
        match client.conn.poll_buffer(cx) {
            Poll::Ready(Ok(None)) if client.conn.grow(large) => {}
            Poll::Ready(Ok(None)) => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(Some(read))) if read > 0 => {
                let state = &mut *state.borrow_mut();
                state.accounting.bytes.bytes_in += read as u64;
                state.accounting.early_body += read as u64;
                let Ok(progress) = coming.take(&client.conn.received()[before..]) else {
                    return missing(Cause::Invalid, 400, false);
                };
                if let Some(progress) = progress.filter(|_| client.conn.completes()) {
                    limits.restart(&mut client.timer, progress);
                }
                if coming.is_over() {
                    return Poll::Ready(Ok(()));
                }
            }
            Poll::Ready(Ok(Some(0))) if !client.conn.is_connection() => return Poll::Ready(Ok(())),
            Poll::Ready(_) => return missing(Cause::Client, 400, false),
            Poll::Pending if client.timer.poll_expired(cx).is_ready() => {
                return missing(Cause::ClientTimeout, 408, true);
            }
            Poll::Pending => {
                client.conn.rest_buffering();
                return Poll::Pending;
            }
        }
    }
}

/// Receives the body of a request that waits for something else.
#[derive(Default)]
pub struct Intake {
    coming: Option<ExpectedBody>,
}

impl Intake {
    /// Reads available bytes. Ready: the client has disconnected before the end of the body.
    pub fn poll(&mut self, cx: &mut Context<'_>, conn: &mut Downstream, state: &SharedStreamState) -> Poll<()> {
        let framing = conn.behind().framing_of(state.borrow().request.framing);
        if !framing.has_body() || framing == Framing::UntilClose {
            return Poll::Pending;
        }
        let coming = self.coming.get_or_insert_with(|| {
            let mut coming = ExpectedBody::new(framing, 0);
            // A malformed coding is reported when the flow of the body starts.
            let _ = coming.take(conn.received());
            conn.begin_buffering();
            coming
        });
        while !coming.is_over() {
            let before = conn.received().len();
            match conn.poll_buffer(cx) {
                Poll::Ready(Ok(Some(read))) if read > 0 => {
                    let state = &mut *state.borrow_mut();
                    state.accounting.bytes.bytes_in += read as u64;
                    state.accounting.early_body += read as u64;
                    if coming.take(&conn.received()[before..]).is_err() {
                        return Poll::Pending;
                    }
                }
                // The rest of the body will never be received.
                Poll::Ready(Ok(Some(0))) if conn.is_connection() => return Poll::Ready(()),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => return Poll::Pending,
                Poll::Pending => {
                    conn.rest_buffering();
                    return Poll::Pending;
                }
            }
        }
        Poll::Pending
    }
}

/// Sends 100 (Continue) to a client that expects it: a proxy that buffers the body cannot leave that to the server.
/// False: the client has disconnected.
async fn invite(context: &mut RequestContext<'_>) -> bool {
    {
        let request = &mut context.state.borrow_mut().request;
        if !request.expect_continue || request.version() != Version::Http11 || context.client.conn.has_received() {
            return true;
        }
        request.remove_all(b"expect");
    }
    send_interim(context.session, context.client, prepared_answer::CONTINUE).await
}
