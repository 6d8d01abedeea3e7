//! One HTTP request, from its first byte to its log line. Reads the head, decides where it goes, gets a server's link,
//! lets the exchange run and concludes. Must never touch a body.

use std::task::Poll;

use base::buffer::Buffer;
use config::spec::{CloseMode, HttpReuse, SpliceSpec};
use conn::duplex::Duplex;
use conn::flow::{Flow, Moved, Step};
use conn::link::Link;
use policy::live::ServerSlot;
use policy::program::{Backend, ForwardFor, Proxy};
use wire::h1::{self, ConnectionLine, Edits, Parse, Scan};
use wire::http::{Framing, Head, Version};

use crate::facts::{Cause, Outcome, Phase};
use crate::session::Session;
use crate::stream::conclude;
use crate::stream::connect::{self, Refusal, Target};
use crate::stream::exchange::{End, Exchange, Terms};
use crate::stream::http::Client;
use crate::stream::page;
use crate::stream::tcp;
use crate::worker::SharedFacts;

/// What becomes of the client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing was there: wait for the first byte.
    Wait,
    /// Wait for the next request.
    Again,
    /// It ends.
    Close,
    /// It ends, but the client may still be sending: see that it gets the answer first.
    Linger,
}

/// How a request's head came.
enum Received {
    Head,
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
    let facts = session.begin();
    {
        let facts = &mut *facts.borrow_mut();
        facts.timings.start = client.since;
        facts.start_date = client.since_date;
        if !client.input.is_empty() {
            facts.timings.first_byte = Some(rt::now());
        }
    }
    match receive(session, client, &facts).await {
        Received::Head => {}
        Received::Nothing | Received::Silence => {
            session.end(facts);
            return Next::Close;
        }
        Received::Failed { outcome, status } => {
            finish(&facts, outcome, i32::from(status));
            return refuse(session, client, facts, status).await;
        }
    }
    if is_monitor(session.proxy(), &facts) {
        return monitor(session, client, facts).await;
    }
    conclude::log_early(session, &facts, &client.stream);
    dispatch(session, client, facts).await
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
    let global = &session.worker.shared.program.global;
    let limits = request_limits(global);
    let mut scan = Scan::default();
    let timeouts = &session.proxy().timeouts;
    // The first request's time runs from the accept, that of the others from their first byte.
    let begin = if client.served == 0 { client.since } else { rt::now() };
    let deadline = timeouts.request().map(|limit| begin + limit);
    let mut armed = false;
    std::future::poll_fn(|cx| {
        loop {
            if !client.input.is_empty() {
                let facts = &mut *facts.borrow_mut();
                let now = rt::now();
                facts.timings.first_byte.get_or_insert(now);
                match h1::parse_request(client.input.data(), &limits, &mut scan, &mut facts.request) {
                    Ok(Parse::Complete { consumed }) if !fits(&facts.request, consumed, limits.max_head) => {
                        let outcome = Outcome::new(Cause::Proxy, Phase::Request);
                        return Poll::Ready(Received::Failed { outcome, status: 431 });
                    }
                    Ok(Parse::Complete { consumed }) => {
                        client.input.consume(consumed);
                        facts.bytes_in += consumed as u64;
                        facts.timings.request = Some(now);
                        facts.has_request = true;
                        return Poll::Ready(Received::Head);
                    }
                    Ok(Parse::Partial) if client.input.len() < limits.max_head => {}
                    Ok(Parse::Partial) => {
                        let outcome = Outcome::new(Cause::Proxy, Phase::Request);
                        return Poll::Ready(Received::Failed { outcome, status: 400 });
                    }
                    Err(error) => {
                        let outcome = Outcome::new(Cause::Proxy, Phase::Request);
                        return Poll::Ready(Received::Failed { outcome, status: error.status() });
                    }
                }
            }
            if client.input.capacity() == 0 {
                client.input = rt::buffer();
            } else if client.input.room() == 0 {
                client.input.compact();
            }
            match client.stream.poll_read(cx, &mut client.input) {
                Poll::Ready(Ok(read)) if read > 0 => {}
                Poll::Ready(_) => {
                    if client.input.is_empty() && client.served > 0 {
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
                        if client.input.is_empty() && client.served > 0 {
                            return Poll::Ready(Received::Nothing);
                        }
                        let outcome = Outcome::new(Cause::ClientTimeout, Phase::Request);
                        return Poll::Ready(Received::Failed { outcome, status: 408 });
                    }
                    return Poll::Pending;
                }
            }
        }
    })
    .await
}

/// Whether a head leaves the room that `tune.maxrewrite` keeps free, by the measure that HAProxy takes: every field
/// counts 8 bytes on top of its name and value, and the whole message 116.
pub fn fits(head: &Head, consumed: usize, room: usize) -> bool {
    const FIELD: usize = 8;
    const MESSAGE: usize = 116;
    let extra = FIELD * head.field_count() + MESSAGE;
    if consumed + extra <= room {
        return true;
    }
    let fields: usize = head.fields().map(|(name, value)| name.len() + value.len()).sum();
    let line = head.method().len() + head.target().len() + head.reason().len();
    // 20 for the start line, 8 for the version, 3 for a status, 1 for the end; two entries more than fields; 40 in all.
    20 + 8 + 1 + line + fields + FIELD * (head.field_count() + 2) + 40 <= room
}

/// The client of a fresh connection sent nothing in time.
pub async fn expired(session: &Session, client: &mut Client) {
    let facts = session.begin();
    {
        let facts = &mut *facts.borrow_mut();
        facts.timings.start = client.since;
        facts.start_date = client.since_date;
    }
    finish(&facts, Outcome::new(Cause::ClientTimeout, Phase::Request), 408);
    refuse(session, client, facts, 408).await;
}

fn request_limits(global: &policy::Global) -> h1::Limits {
    h1::Limits { max_fields: global.maxhdr, max_head: global.bufsize - global.maxrewrite, ..h1::Limits::default() }
}

fn response_limits(global: &policy::Global) -> h1::Limits {
    request_limits(global)
}

fn finish(facts: &SharedFacts, outcome: Outcome, status: i32) {
    let facts = &mut *facts.borrow_mut();
    facts.outcome = outcome;
    facts.status = status;
}

/// Answers an invalid or late request with an error page and ends the connection.
async fn refuse(session: &Session, client: &mut Client, facts: SharedFacts, status: u16) -> Next {
    let page = page::refusal(session.proxy(), status);
    let sent = send_page(session, client, &page).await;
    conclude::conclude(session, facts);
    if sent && !page.is_empty() { Next::Linger } else { Next::Close }
}

/// Writes a page to the client. False: the client does not take it.
async fn send_page(session: &Session, client: &mut Client, page: &[u8]) -> bool {
    let deadline = session.proxy().timeouts.client.map(|limit| rt::now() + limit);
    let mut sent = 0;
    client.timer.arm(deadline);
    std::future::poll_fn(|cx| {
        while sent < page.len() {
            match client.stream.poll_write_slices(cx, &[std::io::IoSlice::new(&page[sent..])], false) {
                Poll::Ready(Ok(written)) => sent += written,
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Pending if client.timer.poll_expired(cx).is_ready() => return Poll::Ready(false),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(true)
    })
    .await
}

fn is_monitor(proxy: &Proxy, facts: &SharedFacts) -> bool {
    let Some(uri) = &proxy.monitor_uri else { return false };
    origin_form(facts.borrow().request.target()) == &**uri
}

/// The path and query of a target, whether it names a host before them or not (RFC 9112, section 3.2).
fn origin_form(target: &[u8]) -> &[u8] {
    let Some(scheme) = memchr::memmem::find(target, b"://").filter(|_| target.first() != Some(&b'/')) else {
        return target;
    };
    let authority = &target[scheme + 3..];
    memchr::memchr(b'/', authority).map_or(b"/", |path| &authority[path..])
}

/// Answers a monitoring request; it is not logged.
async fn monitor(session: &Session, client: &mut Client, facts: SharedFacts) -> Next {
    let answer = {
        let request = &facts.borrow().request;
        page::answer(session.proxy(), request, 200, keeps_client(session, request) && !request.framing.has_body())
    };
    session.end(facts);
    let sent = send_page(session, client, &answer.bytes).await;
    if sent && answer.keep { Next::Again } else { Next::Linger }
}

/// Sends a request to its backend and carries the answer back.
async fn dispatch(session: &Session, client: &mut Client, facts: SharedFacts) -> Next {
    let proxy = session.proxy();
    let target = proxy.frontend.as_ref().and_then(|frontend| frontend.target);
    let target = target.map(|index| session.worker.proxy(index));
    let Some((backend_proxy, backend)) = target.and_then(|proxy| proxy.backend.as_ref().map(|own| (proxy, own))) else {
        finish(&facts, Outcome::new(Cause::Server, Phase::Connect), 503);
        facts.borrow_mut().timings.request = None;
        return fail(session, client, facts, 503, Flow::idle()).await;
    };
    facts.borrow_mut().backend = Some(backend_proxy.index);
    add_forwarded_for(session, backend_proxy, &facts);
    let close_server = closes_server(proxy, backend_proxy) || is_outdated_coding(&facts.borrow().request);
    let terms = terms(session, backend_proxy, backend, &facts);
    let splice_request = splices(proxy, backend_proxy, |splice| splice.request);
    let Some(mut up) = start_body(client, &facts, splice_request) else {
        // What came with the head already breaks the chunked coding: the request never was one.
        facts.borrow_mut().forget_request();
        finish(&facts, Outcome::new(Cause::Proxy, Phase::Request), 400);
        return refuse(session, client, facts, 400).await;
    };
    let mut held: Option<ServerSlot> = None;
    let mut fresh = false;
    loop {
        let obtained = connect::Request {
            session,
            facts: &facts,
            proxy: backend_proxy,
            client: &mut client.stream,
            timer: &mut client.timer,
            private: &mut client.private,
            fresh,
            first: client.served == 0,
        }
        .obtain(held.take())
        .await;
        let Target { slot, mut link } = match obtained {
            Ok(target) => target,
            Err(refusal) => return refused(session, client, facts, refusal, up).await,
        };
        if encode_head(&facts, close_server, up.head_mut()).is_err() {
            finish(&facts, Outcome::new(Cause::Proxy, Phase::Request), 400);
            drop(slot);
            return fail(session, client, facts, 400, up).await;
        }
        let terms = Terms { reused: link.answers > 0, close_server, ..terms };
        let mut exchange = Exchange::new(session, client, &mut link, &facts, terms, up);
        match exchange.run().await {
            End::Replay => {
                drop(exchange);
                up = Flow::idle();
                held = Some(slot);
                fresh = true;
            }
            End::Silent => {
                drop(exchange);
                session.end(facts);
                return Next::Close;
            }
            End::Answered => {
                let (keep, reusable) = (exchange.client_goes_on(), exchange.link_is_reusable());
                drop(exchange);
                if reusable {
                    keep_link(session, client, backend, &slot, link);
                } else {
                    if close_server {
                        // The server was asked to close: nothing is lost when we do it first, and no port lingers.
                        let _ = link.stream.set_linger_zero();
                    }
                    drop(link);
                }
                drop(slot);
                conclude::conclude(session, facts);
                return match keep {
                    true => Next::Again,
                    // Nothing unread: closing cannot reset what is still on its way to the client.
                    false if client.input.is_empty() && client.stream.is_quiet() => Next::Close,
                    false => Next::Linger,
                };
            }
            End::Tunnel => {
                let (head, input) = exchange.into_tunnel();
                return tunnel(session, client, backend_proxy, facts, (slot, link), (head, input)).await;
            }
            End::Failed { outcome, status, page } => {
                let nothing_sent = exchange.nothing_sent();
                let up = exchange.into_upload();
                drop(link);
                drop(slot);
                facts.borrow_mut().outcome = outcome;
                if nothing_sent && status > 0 {
                    facts.borrow_mut().status = i32::from(status);
                    if page {
                        return fail(session, client, facts, status, up).await;
                    }
                }
                conclude::conclude(session, facts);
                return if outcome.phase == Phase::Last { Next::Linger } else { Next::Close };
            }
        }
    }
}

/// Starts the flow of the request's body with what came behind its head. `None`: that breaks the chunked coding.
fn start_body(client: &mut Client, facts: &SharedFacts, splice: bool) -> Option<Flow> {
    let framing = facts.borrow().request.framing;
    let mut up = Flow::idle();
    if framing.has_body() {
        let body = std::mem::replace(&mut client.input, Buffer::empty());
        up.start(body, framing, framing == Framing::Chunked).ok()?;
        if splice {
            up.splice();
        }
    } else if client.input.is_empty() {
        // Whoever waits for a server holds no buffer.
        client.input = Buffer::empty();
    }
    Some(up)
}

/// Whether one of both sides wants a direction spliced.
pub fn splices(frontend: &Proxy, backend: &Proxy, direction: impl Fn(&SpliceSpec) -> bool) -> bool {
    [frontend, backend].iter().any(|proxy| proxy.options.splice.auto || direction(&proxy.options.splice))
}

/// No server could be had.
async fn refused(
    session: &Session,
    client: &mut Client,
    facts: SharedFacts,
    refusal: Refusal,
    up: Flow,
) -> Next {
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
async fn fail(session: &Session, client: &mut Client, facts: SharedFacts, status: u16, up: Flow) -> Next {
    let answer = {
        let facts = facts.borrow();
        let by_client = matches!(facts.outcome.cause, Cause::Client | Cause::ClientTimeout);
        let keep = !by_client && facts.outcome.phase != Phase::Request && keeps_client(session, &facts.request);
        let proxy = facts.backend.map_or(session.proxy(), |backend| session.worker.proxy(backend));
        page::answer(proxy, &facts.request, status, keep)
    };
    let sent = send_page(session, client, &answer.bytes).await;
    let by_client = matches!(facts.borrow().outcome.cause, Cause::Client | Cause::ClientTimeout);
    if sent && !by_client {
        facts.borrow_mut().bytes_out += answer.bytes.len() as u64;
    }
    conclude::conclude(session, facts);
    if !sent || answer.bytes.is_empty() {
        return Next::Close;
    }
    if answer.keep && drain(session, client, up).await { Next::Again } else { Next::Linger }
}

/// Reads the rest of a request's body. False: it does not come to its end.
async fn drain(session: &Session, client: &mut Client, mut up: Flow) -> bool {
    up.abandon_sink();
    let limit = session.proxy().timeouts.client;
    let mut moved = Moved::default();
    client.timer.arm(limit.map(|limit| rt::now() + limit));
    let drained = std::future::poll_fn(|cx| {
        let read = moved.read;
        match up.poll_drain(cx, &mut client.stream, &mut moved) {
            Ok(Step::Finished) => return Poll::Ready(true),
            Ok(Step::Exhausted) => cx.waker().wake_by_ref(),
            Ok(Step::AwaitsSource | Step::AwaitsSink) => {}
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
fn keeps_client(session: &Session, request: &Head) -> bool {
    wants_keep_alive(request) && session.proxy().close_mode != CloseMode::Close && !session.is_stopping()
}

/// Lays the link down for later requests.
fn keep_link(session: &Session, client: &mut Client, backend: &Backend, slot: &ServerSlot, mut link: Link) {
    let Some(server) = backend.servers.get(slot.server()) else { return };
    link.answers = link.answers.saturating_add(1);
    if backend.http_reuse == HttpReuse::Never {
        client.private = Some((server.serial, link));
    } else {
        let worker = &session.worker;
        worker.links.put(&worker.shared.pool, server.serial, link);
    }
}

fn wants_keep_alive(request: &Head) -> bool {
    match request.version() {
        Version::Http11 => !request.connection.close,
        Version::Http10 => request.connection.keep_alive && !request.connection.close,
    }
}

/// Whether the server is asked to close behind the answer.
fn closes_server(frontend: &Proxy, backend: &Proxy) -> bool {
    backend.close_mode != CloseMode::KeepAlive || frontend.close_mode == CloseMode::ServerClose
}

/// A chunked body in HTTP/1.0, which has no such thing: nothing may follow on that connection (RFC 9112, section 6.1).
fn is_outdated_coding(request: &Head) -> bool {
    request.version() == Version::Http10 && request.framing == Framing::Chunked
}

fn terms(session: &Session, backend_proxy: &Proxy, backend: &Backend, facts: &SharedFacts) -> Terms {
    let proxy = session.proxy();
    let request = &facts.borrow().request;
    Terms {
        client: proxy.timeouts.client,
        server: backend_proxy.timeouts.server,
        splice_response: splices(proxy, backend_proxy, |splice| splice.response),
        abort_on_close: backend.abortonclose,
        close_client: !keeps_client(session, request),
        close_server: false,
        reused: false,
        replayable: is_replayable(request),
        limits: response_limits(&session.worker.shared.program.global),
    }
}

/// A request whose loss and repetition nobody can tell apart from a single one (RFC 9110, section 9.2.2), and of which
/// nothing but the head was sent.
fn is_replayable(request: &Head) -> bool {
    request.known_method().is_idempotent() && !request.framing.has_body()
}

fn encode_head(facts: &SharedFacts, close_server: bool, head: &mut Buffer) -> Result<(), h1::Overflow> {
    let facts = facts.borrow();
    let request = &facts.request;
    let upgrade;
    let connection = if request.upgrade {
        upgrade = request.first(b"upgrade").unwrap_or_default();
        ConnectionLine::Upgrade(upgrade)
    } else {
        match (close_server, request.version()) {
            (true, Version::Http11) => ConnectionLine::Close,
            (false, Version::Http10) => ConnectionLine::KeepAlive,
            (true, Version::Http10) | (false, Version::Http11) => ConnectionLine::Nothing,
        }
    };
    let edits = Edits { connection, framing: request.framing, version: request.version() };
    h1::encode_request(request, &edits, head)
}

/// `option forwardfor` of the frontend and the backend; the backend's field name wins.
fn add_forwarded_for(session: &Session, backend: &Proxy, facts: &SharedFacts) {
    let (front, back) = (session.proxy().forwardfor.as_ref(), backend.forwardfor.as_ref());
    let Some(chosen) = back.or(front) else { return };
    let Some(client) = session.source() else { return };
    let both = [front, back];
    if both.iter().flatten().any(|rule| is_excepted(rule, client)) {
        return;
    }
    let request = &mut facts.borrow_mut().request;
    let name = chosen.header.as_bytes();
    if both.iter().flatten().all(|rule| rule.if_none) && request.contains(name) {
        return;
    }
    let mut text = [0_u8; 48];
    let mut cursor = std::io::Cursor::new(&mut text[..]);
    if std::io::Write::write_fmt(&mut cursor, format_args!("{client}")).is_ok() {
        let length = cursor.position() as usize;
        request.append(name, &text[..length]);
    }
}

fn is_excepted(rule: &ForwardFor, client: std::net::IpAddr) -> bool {
    use std::net::IpAddr;
    match (rule.except, client) {
        (Some((IpAddr::V4(network), bits)), IpAddr::V4(client)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            network.to_bits() & mask == client.to_bits() & mask
        }
        (Some((IpAddr::V6(network), bits)), IpAddr::V6(client)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            network.to_bits() & mask == client.to_bits() & mask
        }
        _ => false,
    }
}

/// Carries a tunnel until both sides have closed.
async fn tunnel(
    session: &Session,
    client: &mut Client,
    backend: &Proxy,
    facts: SharedFacts,
    (slot, mut link): (ServerSlot, Link),
    (head, server_input): (Buffer, Buffer),
) -> Next {
    let input = std::mem::replace(&mut client.input, Buffer::empty());
    if let Ok(duplex) = Duplex::new(input, head, server_input) {
        let limits = tcp::Limits::of_upgrade(session.proxy(), backend);
        let (stream, timer) = (&mut client.stream, &mut client.timer);
        let outcome = tcp::carry(duplex, stream, &mut link.stream, timer, &limits, &facts).await;
        facts.borrow_mut().outcome = outcome;
    }
    drop(link);
    drop(slot);
    conclude::conclude(session, facts);
    Next::Close
}
