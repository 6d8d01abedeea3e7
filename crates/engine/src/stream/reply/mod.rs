//! Responses that Weir generates: to data that was not a request, and to requests that could not be served. Owns the end of
//! such an exchange: the rest of the request is read, or the connection is closed. Must never decide that an error has
//! occurred: its callers do.

pub(super) mod answer;
pub(super) mod early_hints;
pub(super) mod ending;
pub mod page;
pub(super) mod stats_page;

use std::task::Poll;

use config::spec::CloseMode;
use policy::program::{Proxy, Server};
use policy::rule::Reply;
use wire::http::{Head, Version};

use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::conclude;
use crate::stream::context::RequestContext;
use crate::stream::exchange::filter;
use crate::stream::record::{metrics, tracking};
use crate::stream::request::body::{self, Remainder, UndelimitedBody};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::switching::switch;
use crate::stream::server::server_target::REDIRECT;
use crate::stream::server::{persistence, redirect};
use crate::stream_state::failure::{Failure, FilterRejection};
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;
use conn::exchange::{Coding, RequestBody};
use conn::h1::UnreadBody;
use conn::h1::prepared_answer::PreparedAnswer;

/// A response that Weir generates.
pub struct Answer<'t> {
    /// Its status.
    pub status: u16,
    /// Its complete text; `None`: the proxy's page for that status.
    pub text: Option<Reply<'t>>,
    /// Whether its stream is counted and logged.
    pub logged: bool,
}

impl<'t> Answer<'t> {
    /// Creates an answer with that text, or with the proxy's page for that status.
    pub fn new(status: u16, text: Option<Reply<'t>>) -> Self {
        Self { status, text, logged: true }
    }
}

impl FilterRejection {
    /// Returns the response of the filter. The error names the page to be sent instead.
    fn answer(self, state: &SharedStreamState) -> Result<Answer<'static>, Failure> {
        let Self { failure, text } = self;
        match (text, u16::try_from(failure.status)) {
            (Some(text), Ok(status)) => {
                finish(state, failure.outcome, failure.status);
                Ok(Answer::new(status, Some(Reply::new(text))))
            }
            _ => Err(failure),
        }
    }
}

/// Ends a request that a filter has rejected.
pub async fn reply_refused(context: RequestContext<'_>, refused: FilterRejection, rest: impl Remainder) {
    match refused.answer(&context.state) {
        Ok(answer) => reply(context, answer, rest).await,
        Err(failure) => reply_error(context, failure, rest).await,
    }
}

/// Like [`reply_refused`], before the body of the request is forwarded.
pub async fn reply_refused_unread(context: RequestContext<'_>, refused: FilterRejection, body: UnreadBody) {
    match refused.answer(&context.state) {
        Ok(answer) => reply_unread(context, answer, body).await,
        Err(failure) => reply_error_unread(context, failure, body).await,
    }
}

/// Records the outcome of a stream and the status that is sent to the client; -1: none.
pub fn finish(state: &SharedStreamState, outcome: Outcome, status: i32) {
    let state = &mut *state.borrow_mut();
    state.outcome = outcome;
    state.answer.status = status;
}

/// Ends a request without a response. As in HAProxy, the status is 0 if a script has requested that.
pub fn cut(session: &Session, state: SharedStreamState, outcome: Outcome) {
    finish(&state, outcome, if outcome.cause == Cause::Local { 0 } else { -1 });
    state.borrow_mut().timings.request = None;
    conclude::conclude(session, state);
}

/// Ends a request with the error page of its failure. See [`reply`].
pub async fn reply_error(context: RequestContext<'_>, failure: impl Into<Failure>, rest: impl Remainder) {
    let Failure { outcome, status, page } = failure.into();
    finish(&context.state, outcome, status);
    match u16::try_from(status) {
        Ok(status) if page => reply(context, Answer::new(status, None), rest).await,
        _ => {
            context.conclude();
        }
    }
}

/// Like [`reply_error`], before the body of the request is forwarded.
pub async fn reply_error_unread(context: RequestContext<'_>, failure: Failure, body: UnreadBody) {
    if failure.outcome.cause == Cause::Client {
        blame_client(&context);
    }
    if !failure.page {
        return reply_error(context, failure, UndelimitedBody).await;
    }
    let mut up = RequestBody::idle();
    match body::start(&mut up, body, Coding::Kept, context.client, &context.state, |_, _| {}) {
        Ok(()) => reply_error(context, failure, up).await,
        Err(_) => reply_broken(context).await,
    }
}

/// Assigns a backend to a request that its client left incomplete, and reads its cookie, for the log line, as in HAProxy.
fn blame_client(context: &RequestContext<'_>) {
    if context.state.borrow().route.backend.is_none() {
        let backend = switch(context);
        if let Some(index) = backend {
            let backend = context.session.proxy_at(index);
            context.state.borrow_mut().choose_backend(backend);
            metrics::backend(&context.session.worker, backend);
        }
    }
    persistence::note_cookie(context);
}

/// Answers a request whose body is not forwarded yet. Requests without a body, the most frequent case, are answered in the
/// caller's future; a body gets a future of its own, so that the caller's stays small.
pub async fn reply_unread(context: RequestContext<'_>, answer: Answer<'_>, body: UnreadBody) {
    match body.absent() {
        Ok(end) => {
            context.client.conn.release();
            reply(context, answer, end).await
        }
        Err(body) => {
            rt::boxed(async move {
                let mut up = RequestBody::idle();
                match body::start(&mut up, body, Coding::Kept, context.client, &context.state, |_, _| {}) {
                    Ok(()) => reply(context, answer, up).await,
                    Err(_) => reply_broken(context).await,
                }
            })
            .await
        }
    }
}

/// Ends a request whose body violates the chunked coding in the data received with its head: it is logged as an invalid
/// request.
pub async fn reply_broken(context: RequestContext<'_>) {
    context.state.borrow_mut().forget_request();
    tracking::wrong_body(context.session, &context.client.conn, &context.state);
    finish(&context.state, Outcome::new(Cause::Invalid, Phase::Request), 400);
    reply_malformed(context, 400).await
}

/// Answers data that was not a request, or a late request, with the page, without running rules. The connection ends.
pub async fn reply_malformed(context: RequestContext<'_>, status: u16) {
    let page = page::refusal(context.session, status);
    let sent = write(context.session, context.client, &page, false).await;
    if sent {
        context.client.conn.complete(None);
    }
    metrics::no_request(
        context.session,
        &context.state.borrow(),
        context.client.conn.received().len(),
        if sent { page.len() } else { 0 },
    );
    let client = context.conclude();
    if sent && !page.is_empty() {
        client.refuse_more();
    }
}

/// Sends the head of an interim response. Returns false if the client does not accept it.
pub async fn send_interim(session: &Session, client: &mut Client, head: &[u8]) -> bool {
    write(session, client, head, false).await
}

/// Ends a request with a response, possibly before the request itself is complete. Its remaining bytes are read and discarded,
/// so that the connection can be reused; if its end cannot be found, the response announces that the connection closes.
pub async fn reply<R: Remainder>(context: RequestContext<'_>, answer: Answer<'_>, rest: R) {
    let logged = answer.logged;
    if logged {
        tracking::own_answer(context.session, &mut context.state.borrow_mut());
    }
    let answer = prepare(context.session, &context.state.borrow(), answer, rest.may_end());
    // All data from the client was read: closing the connection cannot reset it before the response is delivered.
    let closes = !answer.keep && rest.is_read() && context.client.conn.is_settled();
    let sent = write(context.session, context.client, &answer.bytes, closes).await;
    if sent && !answer.bytes.is_empty() {
        context.client.conn.complete(None);
    }
    {
        let state = &mut *context.state.borrow_mut();
        if let Some(status) = answer.status.filter(|_| state.answer.status > 0) {
            state.answer.status = i32::from(status);
        }
        if sent && !is_of_client(state) {
            state.accounting.bytes.bytes_out += answer.bytes.len() as u64;
        }
    }
    if logged {
        conclude::conclude(context.session, context.state);
    } else {
        context.session.end(context.state);
    }
    let (keep, length) = (answer.keep, answer.bytes.len());
    page::keep_text(context.session, answer);
    if !sent || length == 0 {
        return;
    }
    if closes {
        return context.client.end_after(length as u64, true);
    }
    let end = if keep && context.client.conn.is_connection() {
        rest.read(context.session, context.client).await
    } else {
        None
    };
    match end {
        Some(end) => context.client.keep(end),
        None => context.client.linger(),
    }
}

/// Writes to the client. `then_closes`: the connection is closed next, and the last bytes may be sent together with that.
/// Returns false if the client does not accept them.
async fn write(session: &Session, client: &mut Client, page: &[u8], then_closes: bool) -> bool {
    let mut sent = 0;
    let mut armed = false;
    std::future::poll_fn(|cx| {
        while sent < page.len() {
            match client.conn.poll_send(cx, &page[sent..], then_closes) {
                Poll::Ready(Ok(written)) => sent += written,
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Pending => {
                    if !armed {
                        armed = true;
                        client.timer.arm(session.proxy().timeouts.client.map(|limit| rt::now() + limit));
                    }
                    return client.timer.poll_expired(cx).map(|()| false);
                }
            }
        }
        Poll::Ready(true)
    })
    .await
}

/// Returns the response for the client. `may_end`: the request's end can be found.
fn prepare<'t>(
    session: &'t Session,
    state: &StreamState,
    Answer { status, text, .. }: Answer<'t>,
    may_end: bool,
) -> PreparedAnswer<'t> {
    filter::tell(state.filters.as_ref(), filter::Event::Replied(status));
    let may_go_on = may_end && !state.opens_tunnel(status);
    let keep =
        may_go_on && !is_of_client(state) && (status != 400 || text.is_some()) && keeps_client(session, &state.request);
    let proxy = state.route.backend.map_or(session.proxy(), |backend| session.proxy_at(backend));
    let target = if i32::from(status) == REDIRECT { server(proxy, state) } else { None };
    let redirect = target.and_then(|server| redirect::page(server, &state.request));
    let reply = match (redirect, text) {
        (Some(redirect), _) => Reply::new(redirect),
        (None, Some(text)) => text,
        (None, None) => page::of(session, EvalContext::request(session, state), status),
    };
    page::to_stream(session, state, reply, keep)
}

/// Whether the stream was ended by the client.
fn is_of_client(state: &StreamState) -> bool {
    matches!(state.outcome.cause, Cause::Client | Cause::ClientTimeout)
}

/// Returns the server that was assigned to the request.
fn server<'a>(proxy: &'a Proxy, state: &StreamState) -> Option<&'a Server> {
    proxy.backend.as_ref().zip(state.route.server).and_then(|(backend, index)| backend.servers.get(index))
}

/// Whether the client's connection may be reused after a response.
#[inline]
pub fn keeps_client(session: &Session, request: &Head) -> bool {
    wants_keep_alive(request) && session.proxy().close_mode != CloseMode::Close && !session.is_leaving()
}

/// Whether the client allows its connection to be reused (RFC 9112, section 9.3).
fn wants_keep_alive(request: &Head) -> bool {
    match request.version() {
        Version::Http11 => !request.connection.close,
        Version::Http10 => request.connection.keep_alive && !request.connection.close,
    }
}
