//! Answers that Weir gives in a server's place: to what was no request, and to requests that could not be served. Must
//! never decide that something went wrong: whoever calls did.

use std::task::Poll;

use config::spec::CloseMode;
use conn::flow::{Flow, Moved, Step};
use policy::program::{Proxy, Server};
use policy::rule::Reply;
use wire::http::{Head, Version};

use crate::facts::{Cause, Facts, Outcome};
use crate::session::Session;
use crate::stream::connect::{REDIRECT, Refusal};
use crate::stream::evaluate::View;
use crate::stream::http::Client;
use crate::stream::request::Next;
use crate::stream::{conclude, filter, page, redirect, tracking};
use crate::worker::SharedFacts;

/// Notes how a stream ended, and the status that the client gets; -1 for none.
pub fn finish(facts: &SharedFacts, outcome: Outcome, status: i32) {
    let facts = &mut *facts.borrow_mut();
    facts.outcome = outcome;
    facts.status = status;
}

/// Answers an invalid or late request with an error page and ends the connection.
pub async fn refuse(session: &Session, client: &mut Client, facts: SharedFacts, status: u16) -> Next {
    let page = page::refusal(session, status);
    let sent = send_page(session, client, &page, false).await;
    conclude::conclude(session, facts);
    if sent && !page.is_empty() { Next::Linger } else { Next::Close }
}

/// Writes a page to the client; its last bytes wait for the connection's end, where that follows at once. False: the client
/// does not take it.
pub async fn send_page(session: &Session, client: &mut Client, page: &[u8], then_closes: bool) -> bool {
    let mut sent = 0;
    let mut armed = false;
    std::future::poll_fn(|cx| {
        while sent < page.len() {
            match client.stream.poll_write_slices(cx, &[std::io::IoSlice::new(&page[sent..])], then_closes) {
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

/// No server could be had.
pub async fn refused(session: &Session, client: &mut Client, facts: SharedFacts, refusal: Refusal, up: Flow) -> Next {
    finish(&facts, refusal.outcome, refusal.status);
    match u16::try_from(refusal.status) {
        Ok(status) => fail(session, client, facts, status, up).await,
        Err(_) => {
            conclude::conclude(session, facts);
            Next::Close
        }
    }
}

/// Answers with an error page after a request that was understood. What is still to come of its body is read and
/// dropped, so that the connection can go on.
pub async fn fail(session: &Session, client: &mut Client, facts: SharedFacts, status: u16, up: Flow) -> Next {
    fail_with(session, client, facts, status, None, up).await
}

/// The same with a text of its own, if there is one, in the place of the proxy's page.
pub async fn fail_with(
    session: &Session,
    client: &mut Client,
    facts: SharedFacts,
    status: u16,
    text: Option<Reply<'_>>,
    up: Flow,
) -> Next {
    let read = up.source_ended();
    match answer(session, client, facts, (status, text), read).await {
        Next::Again if !drain(session, client, up).await => Next::Linger,
        next => next,
    }
}

/// The answer itself. `read`: there is no more to read of the request.
pub async fn answer(
    session: &Session,
    client: &mut Client,
    facts: SharedFacts,
    (status, text): (u16, Option<Reply<'_>>),
    read: bool,
) -> Next {
    tracking::own_answer(session, &mut facts.borrow_mut());
    let answer = prepare(session, client, &facts.borrow(), status, text);
    // Everything that the client has sent was read: closing cannot reset what is on its way to it.
    let closes = !answer.keep && read && client.input.is_empty() && client.stream.is_quiet();
    let sent = send_page(session, client, &answer.bytes, closes).await;
    {
        let facts = &mut *facts.borrow_mut();
        if let Some(status) = answer.status.filter(|_| facts.status > 0) {
            facts.status = i32::from(status);
        }
        if sent && !is_of_client(facts) {
            facts.bytes_out += answer.bytes.len() as u64;
        }
    }
    conclude::conclude(session, facts);
    let (keep, empty) = (answer.keep, answer.bytes.is_empty());
    answer.end(session);
    if !sent || empty || (closes && client.stream.is_quiet()) {
        return Next::Close;
    }
    if keep { Next::Again } else { Next::Linger }
}

/// What the client gets.
fn prepare<'t>(
    session: &'t Session,
    client: &Client,
    facts: &Facts,
    status: u16,
    text: Option<Reply<'t>>,
) -> page::Answer<'t> {
    filter::tell(facts.filters.as_ref(), filter::Event::Replied(status));
    let keep = !is_of_client(facts) && (status != 400 || text.is_some()) && keeps_client(session, &facts.request);
    let proxy = facts.backend.map_or(session.proxy(), |backend| session.worker.proxy(backend));
    let target = if i32::from(status) == REDIRECT { server(proxy, facts) } else { None };
    let redirect = target.and_then(|server| redirect::page(server, &facts.request));
    let reply = match (redirect, text) {
        (Some(redirect), _) => Reply::new(redirect),
        (None, Some(text)) => text,
        (None, None) => page::of(session, View::request(session, &client.stream, facts), status),
    };
    page::to_stream(session, facts, reply, keep)
}

/// Whether the client has ended it.
fn is_of_client(facts: &Facts) -> bool {
    matches!(facts.outcome.cause, Cause::Client | Cause::ClientTimeout)
}

/// The server that the request got.
fn server<'a>(proxy: &'a Proxy, facts: &Facts) -> Option<&'a Server> {
    proxy.backend.as_ref().zip(facts.server).and_then(|(backend, index)| backend.servers.get(index))
}

/// Reads the rest of a request's body. False: it does not come to its end.
pub async fn drain(session: &Session, client: &mut Client, mut up: Flow) -> bool {
    up.abandon_sink();
    let limit = session.proxy().timeouts.client;
    let mut moved = Moved::default();
    client.timer.arm(limit.map(|limit| rt::now() + limit));
    let drained = std::future::poll_fn(|cx| {
        let read = moved.read;
        match up.poll_drain(cx, &mut client.stream, &mut moved) {
            Ok(Step::Finished) => return Poll::Ready(true),
            Ok(Step::Exhausted) => cx.waker().wake_by_ref(),
            Ok(Step::AwaitsSource | Step::AwaitsSink | Step::Held) => {}
            Err(_) => return Poll::Ready(false),
        }
        if moved.read > read {
            client.timer.arm(limit.map(|limit| rt::now() + limit));
        }
        client.timer.poll_expired(cx).map(|()| false)
    })
    .await;
    let rest = up.take_rest();
    if !rest.is_empty() {
        client.input = rest;
    }
    drained
}

/// Whether the client's connection may go on behind an answer.
pub fn keeps_client(session: &Session, request: &Head) -> bool {
    wants_keep_alive(request) && session.proxy().close_mode != CloseMode::Close && !session.is_leaving()
}

/// Whether the client said that its connection may go on (RFC 9112, section 9.3).
fn wants_keep_alive(request: &Head) -> bool {
    match request.version() {
        Version::Http11 => !request.connection.close,
        Version::Http10 => request.connection.keep_alive && !request.connection.close,
    }
}
