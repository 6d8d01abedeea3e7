//! One HTTP request's head, from its first byte until it is known where it goes. Must never touch a body.

use std::task::Poll;

use base::buffer::Buffer;
use conn::flow;
use policy::log_format::Origin;
use policy::program::{Global, Proxy};
use wire::h1::{self, Parse, Scan};
use wire::http::{Head, PART};

use crate::facts::{Cause, Facts, Outcome, Phase};
use crate::session::Session;
use crate::stream::body::{BodyEnd, UnreadBody};
use crate::stream::evaluate::View;
use crate::stream::http::Client;
use crate::stream::reply::{Answer, finish, reply_malformed, reply_unread};
use crate::stream::{conclude, content, dispatch, filter, tally, tracking};
use crate::worker::SharedFacts;

/// Bytes of text that a head which is waited for keeps room for.
const PARTIAL_HEAD: usize = 1024;

/// What becomes of the client's connection.
#[derive(Debug)]
pub enum Next {
    /// Nothing was there: wait for the first byte.
    Wait,
    /// Wait for the next request: this one was read to its end.
    Again(BodyEnd),
    /// It ends.
    Close,
    /// It ends, but the client may still be sending: see that it gets the answer first.
    Linger,
}

/// How a request's head came.
enum Received {
    Head(UnreadBody),
    Nothing,
    /// The client went away between two requests.
    Silence,
    Failed {
        outcome: Outcome,
        status: u16,
    },
}

/// Serves one request.
pub async fn serve(session: &Session, client: &mut Client) -> Next {
    if client.input.is_empty() && !try_first_byte(client) {
        client.input = Buffer::empty();
        return Next::Wait;
    }
    let (facts, begun) = client.begin(session);
    {
        let facts = &mut *facts.borrow_mut();
        facts.timings.start = client.since;
        facts.start_date = client.since_date;
        facts.status = -1;
        facts.first = client.served == 0;
        facts.client_streams = client.served;
        if !client.input.is_empty() {
            facts.timings.first_byte = Some(rt::now());
        }
    }
    let received = receive(session, client, &facts).await;
    if !begun && !matches!(received, Received::Nothing | Received::Silence) {
        facts.borrow_mut().number = session.worker.shared.number_stream();
    }
    let body = match received {
        // Its rules have run, and the process has counted it.
        Received::Head(body) if begun => {
            tally::upgraded(session);
            body
        }
        Received::Head(body) => {
            let proxy = session.proxy();
            filter::begin(session, &facts);
            conclude::log_step(session, &facts, Origin::Accept);
            if !proxy.rules.request_content.is_empty() {
                let Client { stream, timer, .. } = client;
                let inspected = rt::boxed(content::http_request(session, stream, timer, &facts, proxy)).await;
                if let Err(outcome) = inspected {
                    // Nobody knows of a request yet.
                    facts.borrow_mut().forget_request();
                    return dispatch::cut(session, facts, outcome);
                }
            }
            facts.borrow_mut().inspected = true;
            tally::request(session);
            tracking::request(session, &mut facts.borrow_mut());
            body
        }
        Received::Nothing | Received::Silence => {
            session.end(facts);
            return Next::Close;
        }
        Received::Failed { outcome, status } => {
            conclude::learn_destination(session);
            if begun {
                tally::upgraded(session);
                finish_upgrade(&facts);
            } else {
                tally::request(session);
                tracking::request(session, &mut facts.borrow_mut());
                tracking::wrong_request(session, &facts.borrow());
                finish(&facts, outcome, i32::from(status));
            }
            return rt::boxed(reply_malformed(session, client, facts, status)).await;
        }
    };
    if let Some(plan) = session.proxy().frontend.as_ref().and_then(|frontend| frontend.captures.as_ref()) {
        let facts = facts.borrow();
        facts.captures.borrow_mut().take_request(plan, &facts.request);
    }
    if is_monitor(session.proxy(), &facts) {
        return rt::boxed(monitor(session, client, facts, body)).await;
    }
    conclude::log_step(session, &facts, Origin::Request);
    dispatch::dispatch(session, client, facts, body).await
}

/// Reads without waiting. False: nothing has come yet. The end of the connection counts as something.
fn try_first_byte(client: &mut Client) -> bool {
    if client.input.capacity() == 0 {
        client.input = rt::buffer();
    }
    !matches!(client.stream.try_read(&mut client.input), Ok(None))
}

/// Reads and parses until the head is complete.
async fn receive(session: &Session, client: &mut Client, facts: &SharedFacts) -> Received {
    let http = &session.proxy().http;
    let limits = h1::Limits {
        accept_unsafe: http.accept_unsafe_request,
        keep_proxy_connection: http.use_proxy_header,
        ..head_limits(&session.worker.shared.program.global)
    };
    let mut scan = Scan::default();
    let timeouts = &session.proxy().timeouts;
    // The first request's time runs from the accept, that of the others from their first byte.
    let begin = if client.served == 0 { client.ready } else { rt::now() };
    let deadline = timeouts.request().map(|limit| begin + limit);
    let mut armed = false;
    std::future::poll_fn(|cx| {
        loop {
            if !client.input.is_empty() {
                let received = parse(client, &mut facts.borrow_mut(), &limits, &mut scan);
                if let Some(received) = received {
                    return Poll::Ready(received);
                }
            }
            flow::expand(&mut client.input);
            match client.stream.poll_read(cx, &mut client.input) {
                Poll::Ready(Ok(read)) if read > 0 => {}
                Poll::Ready(_) => {
                    if client.input.is_empty() && (client.served > 0 || http.ignore_probes) {
                        return Poll::Ready(Received::Silence);
                    }
                    let outcome = Outcome::new(Cause::Client, Phase::Request);
                    return Poll::Ready(Received::Failed { outcome, status: 400 });
                }
                Poll::Pending => {
                    if !armed {
                        armed = true;
                        client.timer.arm(deadline);
                    }
                    if client.timer.poll_expired(cx).is_ready() {
                        if client.input.is_empty() && (client.served > 0 || http.ignore_probes) {
                            return Poll::Ready(Received::Nothing);
                        }
                        let outcome = Outcome::new(Cause::ClientTimeout, Phase::Request);
                        return Poll::Ready(Received::Failed { outcome, status: 408 });
                    }
                    // A client that stops in the middle of its head holds what has come of it and no more.
                    flow::shrink(&mut client.input);
                    facts.borrow_mut().request.fields.shrink_to(PARTIAL_HEAD);
                    return Poll::Pending;
                }
            }
        }
    })
    .await
}

/// Parses what is there. `None`: more is needed.
fn parse(client: &mut Client, facts: &mut Facts, limits: &h1::Limits, scan: &mut Scan) -> Option<Received> {
    let now = rt::now();
    facts.timings.first_byte.get_or_insert(now);
    let status = match h1::parse_request(client.input.data(), limits, scan, &mut facts.request) {
        Ok(Parse::Complete { consumed }) if fits(&facts.request, consumed, limits.max_head) => {
            let body = UnreadBody::after(&facts.request, consumed, &mut client.input);
            facts.bytes_in += consumed as u64;
            facts.timings.request = Some(now);
            facts.has_request = true;
            return Some(Received::Head(body));
        }
        Ok(Parse::Complete { .. }) => 431,
        Ok(Parse::Partial) if client.input.len() < limits.max_head => return None,
        Ok(Parse::Partial) => 400,
        Err(error) => error.status(),
    };
    Some(Received::Failed { outcome: Outcome::new(Cause::Proxy, Phase::Request), status })
}

/// Whether a head leaves the room that `tune.maxrewrite` keeps free, by the measure that HAProxy takes.
pub fn fits(head: &Head, consumed: usize, room: usize) -> bool {
    /// What a message without fields measures at most, beside its text.
    const MESSAGE: usize = 116;
    consumed + PART * head.field_count() + MESSAGE <= room || head.measure() <= room
}

/// A stream that began in TCP mode was no request: the proxy has refused it, whatever the client is told.
fn finish_upgrade(facts: &SharedFacts) {
    facts.borrow_mut().backend = None;
    finish(facts, Outcome::new(Cause::Proxy, Phase::Request), 0);
}

/// The client of a fresh connection sent nothing in time.
pub async fn expired(session: &Session, client: &mut Client) {
    let (facts, begun) = client.begin(session);
    conclude::learn_destination(session);
    if begun {
        finish_upgrade(&facts);
    } else {
        {
            let facts = &mut *facts.borrow_mut();
            facts.number = session.worker.shared.number_stream();
            facts.timings.start = client.since;
            facts.start_date = client.since_date;
        }
        tracking::request(session, &mut facts.borrow_mut());
        tracking::wrong_request(session, &facts.borrow());
        finish(&facts, Outcome::new(Cause::ClientTimeout, Phase::Request), 408);
    }
    reply_malformed(session, client, facts, 408).await;
}

/// What a head may be like, on either side (`tune.bufsize`, `tune.maxrewrite`, `tune.http.maxhdr`).
pub fn head_limits(global: &Global) -> h1::Limits {
    let max_head = global.bufsize.saturating_sub(global.maxrewrite);
    h1::Limits {
        max_fields: global.maxhdr,
        max_head,
        accept_payload_with_any_method: global.http.accept_payload_with_any_method,
        keep_insecure_transfer_encoding: global.http.keep_insecure_transfer_encoding,
        ..h1::Limits::default()
    }
}

/// What begins with a slash is compared with the path and query alone, anything else with the whole target.
fn is_monitor(proxy: &Proxy, facts: &SharedFacts) -> bool {
    let Some(uri) = &proxy.monitor_uri else { return false };
    let request = &facts.borrow().request;
    let target = if uri.starts_with(b"/") { origin_form(request.target()) } else { request.target() };
    target == &**uri
}

/// The path and query of a target, whether it names a host before them or not (RFC 9112, section 3.2).
fn origin_form(target: &[u8]) -> &[u8] {
    match wire::http::target::path(target) {
        Some(at) if at == target.len() => b"/",
        Some(at) => &target[at..],
        None => target,
    }
}

/// Answers a monitoring request; it is not logged.
async fn monitor(session: &Session, client: &mut Client, facts: SharedFacts, body: UnreadBody) -> Next {
    let status = {
        let facts = facts.borrow();
        let proxy = session.proxy();
        let view = View::request(session, &facts);
        let fails = !proxy.monitor_fail.is_empty()
            && view.lend(|context| proxy.monitor_fail.iter().any(|condition| condition.holds(context)));
        if fails { 503 } else { 200 }
    };
    tally::monitored(session, status);
    reply_unread(session, client, facts, Answer { logged: false, ..Answer::new(status, None) }, body).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_compared_by_its_path() {
        for (target, path) in [
            ("/alive", "/alive"),
            ("/alive?x=http://y", "/alive?x=http://y"),
            ("http://a.example/alive", "/alive"),
            ("https://a.example:8443/alive?x", "/alive?x"),
            ("http://a.example", "/"),
            ("*", "*"),
            ("a.example:443", "a.example:443"),
        ] {
            assert_eq!(origin_form(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }

    /// The largest head that HAProxy 3.5 takes with its defaults has 15,281 bytes when it is this one.
    #[test]
    fn the_room_for_a_head_is_the_one_of_haproxy() {
        let room = 16384 - 1024;
        for (value, wanted) in [(15_247, true), (15_248, true), (15_249, false)] {
            let text = format!("GET /x HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "v".repeat(value));
            let (mut head, mut scan) = (Head::new(), Scan::default());
            let limits = h1::Limits { max_head: 16384, ..h1::Limits::default() };
            let parsed = h1::parse_request(text.as_bytes(), &limits, &mut scan, &mut head);
            let Ok(Parse::Complete { consumed }) = parsed else { panic!("{parsed:?}") };
            assert_eq!(fits(&head, consumed, room), wanted, "{value}: {consumed} bytes");
        }
    }

    /// The same for an answer with `tune.bufsize 8192`: 7,089 bytes.
    #[test]
    fn so_is_that_for_the_head_of_an_answer() {
        let room = 8192 - 1024;
        for (length, wanted) in [(7_088, true), (7_089, true), (7_090, false)] {
            let start = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: ";
            let text = format!("{start}{}\r\n\r\n", "v".repeat(length - start.len() - 4));
            let (mut head, mut scan) = (Head::new(), Scan::default());
            let limits = h1::Limits { max_head: 8192, ..h1::Limits::default() };
            let context = h1::RequestContext::default();
            let parsed = h1::parse_response(text.as_bytes(), &limits, &context, &mut scan, &mut head);
            let Ok(Parse::Complete { consumed }) = parsed else { panic!("{parsed:?}") };
            assert_eq!(fits(&head, consumed, room), wanted, "{consumed} bytes");
        }
    }
}
