//! Whole conversations with another implementation of HTTP/2 on either side, or on both: streams of many sizes at once,
//! with and without lengths and trailers, aborted, answered early, refused. Payload is neither lost nor mixed between
//! streams, and everything ends. All choices are derived from seeds.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Buffer;
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, client, server};
use http::{HeaderMap, HeaderValue, Request, Response};
use rt::net::{Address, ConnectOptions, Stream};
use rt::sim::Link;
use testkit::{Scope, Service, sleep, text};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::world::*;

/// A connection as used by the other implementation.
struct Io(Stream);

impl AsyncRead for Io {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut buffer = Buffer::with_capacity(into.remaining().min(16 * 1024));
        std::task::ready!(self.0.poll_read(cx, &mut buffer))?;
        into.put_slice(buffer.data());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write_slices(cx, &[IoSlice::new(bytes)], false)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Pseudorandom numbers from a seed.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A size: empty, small, about a frame, or large.
    fn size(&mut self) -> usize {
        match self.below(5) {
            0 => 0,
            1 => self.below(100),
            2 => 16_384 - 2 + self.below(5),
            3 => self.below(20_000),
            _ => self.below(150_000),
        }
    }

    fn window(&mut self) -> u32 {
        [700, 5000, 16_384, 65_535, 1 << 20][self.below(5)]
    }
}

/// The behaviour of a server for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Sends payload and trailers back as they are received.
    Echo,
    /// Answers at once, and does not read the request.
    Early,
    /// Resets the stream after a part of the answer.
    Break,
    /// Refuses the first attempt as not processed, then behaves as `Echo`.
    Refuse,
}

/// One request and its expected outcome. Both ends derive it from the same seed.
#[derive(Debug)]
struct Plan {
    act: Act,
    request: Vec<u8>,
    answer: Vec<u8>,
    has_length: bool,
    has_trailers: bool,
    /// The number of bytes after which the client resets the stream.
    aborts: Option<usize>,
    /// Whether the answer is read in pieces with pauses.
    slow: bool,
    piece: usize,
}

impl Plan {
    fn of(seed: u64) -> Plan {
        let mut random = Random(seed);
        let act = [Act::Echo, Act::Echo, Act::Echo, Act::Early, Act::Break, Act::Refuse][random.below(6)];
        let (request, answer) = (random.size(), random.size());
        Plan {
            act,
            request: text(request, seed),
            answer: text(answer, seed ^ 1),
            has_length: random.one_in(2),
            has_trailers: random.one_in(3),
            aborts: random.one_in(5).then(|| random.below(request + 1)),
            slow: random.one_in(4),
            piece: 1 + random.below(30_000),
        }
    }

    fn trailers(&self) -> Option<HeaderMap> {
        self.has_trailers
            .then(|| HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from(self.request.len()))]))
    }
}

/// Sends payload as the window allows.
async fn send(stream: &mut SendStream<Bytes>, payload: &[u8], piece: usize) -> Result<(), h2::Error> {
    for part in payload.chunks(piece) {
        let mut rest = part;
        while !rest.is_empty() {
            stream.reserve_capacity(rest.len());
            let capacity = match poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(capacity) => capacity?.min(rest.len()),
                None => return Err(Reason::CANCEL.into()),
            };
            stream.send_data(Bytes::copy_from_slice(&rest[..capacity]), false)?;
            rest = &rest[capacity..];
        }
    }
    Ok(())
}

fn end(stream: &mut SendStream<Bytes>, trailers: Option<HeaderMap>) -> Result<(), h2::Error> {
    match trailers {
        Some(trailers) => stream.send_trailers(trailers),
        None => stream.send_data(Bytes::new(), true),
    }
}

/// Reads a message to its end.
async fn receive(stream: &mut RecvStream, slow: bool) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut payload = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        payload.extend_from_slice(&data);
        if slow {
            sleep(1).await;
        }
        stream.flow_control().release_capacity(data.len())?;
    }
    Ok((payload, stream.trailers().await?))
}

/// Serves a connection.
async fn serve(stream: Stream, scope: Rc<Scope>, mut random: Random, refused: Rc<RefCell<HashSet<u64>>>) {
    let mut builder = server::Builder::new();
    builder.initial_window_size(random.window()).initial_connection_window_size(65_535 + random.window());
    builder.max_concurrent_streams(1 + random.below(20) as u32);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(Io(stream)).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        scope.spawn({
            let refused = Rc::clone(&refused);
            async move { drop(answer(request, respond, refused).await) }
        });
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: server::SendResponse<Bytes>,
    refused: Rc<RefCell<HashSet<u64>>>,
) -> Result<(), h2::Error> {
    let seed = request.uri().path()[1..].parse().unwrap();
    let plan = Plan::of(seed);
    let mut body = request.into_body();
    if plan.act == Act::Refuse && refused.borrow_mut().insert(seed) {
        respond.send_reset(Reason::REFUSED_STREAM);
        return Ok(());
    }
    let mut head = Response::builder().status(200);
    match plan.act {
        Act::Early | Act::Break => {
            if plan.has_length {
                head = head.header("content-length", plan.answer.len());
            }
            let mut stream = respond.send_response(head.body(()).unwrap(), false)?;
            if plan.act == Act::Break {
                send(&mut stream, &plan.answer[..plan.answer.len() / 2], plan.piece).await?;
                stream.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            send(&mut stream, &plan.answer, plan.piece).await?;
            end(&mut stream, None)
        }
        Act::Echo | Act::Refuse => {
            let mut stream = respond.send_response(head.body(()).unwrap(), false)?;
            while let Some(data) = body.data().await {
                let data = data?;
                send(&mut stream, &data, plan.piece).await?;
                body.flow_control().release_capacity(data.len())?;
            }
            let trailers = body.trailers().await?;
            end(&mut stream, trailers)
        }
    }
}

/// Sends a request of a client. An error describes a wrong outcome.
async fn ask(mut sender: client::SendRequest<Bytes>, seed: u64, strict: bool) -> Result<(), String> {
    let plan = Plan::of(seed);
    let broken = |error: h2::Error| error.to_string();
    let mut head = Request::builder().method("POST").uri(format!("http://a/{seed}"));
    if plan.has_length {
        head = head.header("content-length", plan.request.len());
    }
    poll_fn(|cx| sender.poll_ready(cx)).await.map_err(broken)?;
    let (answered, mut stream) = sender.send_request(head.body(()).unwrap(), false).map_err(broken)?;
    let (result, sent) = testkit::both(
        async {
            let answered = answered.await?;
            let status = answered.status().as_u16();
            let received = receive(&mut answered.into_body(), plan.slow).await?;
            Ok::<_, h2::Error>((status, received))
        },
        async {
            let most = plan.aborts.unwrap_or(plan.request.len());
            let sent = send(&mut stream, &plan.request[..most], plan.piece).await;
            match plan.aborts {
                Some(_) => stream.send_reset(Reason::CANCEL),
                None => drop(sent.and_then(|()| end(&mut stream, plan.trailers()))),
            }
        },
    )
    .await;
    let () = sent;
    if plan.aborts.is_some() {
        return Ok(());
    }
    // A server of HTTP/1 sends everything back.
    match (if strict { plan.act } else { Act::Echo }, result) {
        (Act::Echo | Act::Refuse, Ok((200, (payload, trailers)))) => {
            if payload != plan.request {
                return Err(format!("{} bytes of {}", payload.len(), plan.request.len()));
            }
            // A body with a length ends with its last byte: trailers after it are not waited for.
            if strict && !plan.has_length && trailers != plan.trailers() {
                return Err(format!("{trailers:?}"));
            }
            Ok(())
        }
        (Act::Refuse, Ok((502 | 503, _))) => Ok(()),
        // Requests that do not fit in a buffer have to be retried by the client.
        (Act::Refuse, Err(error)) if error.reason() == Some(Reason::REFUSED_STREAM) => match plan.request.len() {
            0..16_000 => Err(format!("{} bytes are refused", plan.request.len())),
            _ => Ok(()),
        },
        (Act::Early, Ok((200, (payload, _)))) if payload == plan.answer => Ok(()),
        (Act::Break, Err(_) | Ok((502, _))) => Ok(()),
        // A reused connection that does not accept this request: the client repeats it.
        (_, Err(error)) if strict && error.reason() == Some(Reason::CANCEL) => Ok(()),
        (_, Ok((status, (payload, _)))) => Err(format!("{status} and {} bytes", payload.len())),
        (_, Err(error)) => Err(error.to_string()),
    }
}

/// Sends requests of a client, some of them concurrently.
async fn converse(scope: Rc<Scope>, mut random: Random, count: usize, strict: bool, report: Rc<Report>) {
    let address = Address::Inet(WEIR.parse().unwrap());
    let stream = Stream::connect(&address, &ConnectOptions::default()).unwrap().await.unwrap();
    let mut builder = client::Builder::new();
    builder.initial_window_size(random.window()).initial_connection_window_size(65_535 + random.window());
    let (sender, connection) = builder.handshake::<_, Bytes>(Io(stream)).await.unwrap();
    scope.spawn(async move { drop(connection.await) });
    for _ in 0..count {
        let seed = random.below(1 << 30) as u64;
        let (sender, report) = (sender.clone(), Rc::clone(&report));
        report.open.borrow_mut().insert(seed);
        scope.spawn(async move {
            if let Err(fault) = ask(sender, seed, strict).await {
                let plan = Plan::of(seed);
                let (act, request, answer) = (plan.act, plan.request.len(), plan.answer.len());
                let about = format!("{act:?}, {request} and {answer} bytes, length {}", plan.has_length);
                report.faults.borrow_mut().push(format!("{seed} ({about}): {fault}"));
            }
            report.open.borrow_mut().remove(&seed);
        });
        if random.one_in(3) {
            sleep(random.below(20) as u64).await;
        }
    }
    report.begun.set(report.begun.get() + 1);
}

#[derive(Default)]
struct Report {
    faults: RefCell<Vec<String>>,
    open: RefCell<HashSet<u64>>,
    begun: Cell<usize>,
}

/// Links with short and long latencies, on which bytes arrive in pieces.
fn links(seed: u64) -> Link {
    let millis = |count| Duration::from_millis(count);
    let (latency, jitter) =
        [(0, 0), (1, 3), (20, 5), (0, 2)].map(|(one, two)| (millis(one), millis(two)))[seed as usize % 4];
    Link { latency, jitter, fragment: !seed.is_multiple_of(3), ..Link::default() }
}

fn play(options: &str, server: &str, seeds: std::ops::Range<u64>) {
    let sections = format!("{options}\n http-reuse always\n server s1 {S1} {server}");
    let kind = server.contains("h2");
    listen(&sections).links(links).workers(&[1, 2]).seeds(seeds).shuffled().run(move |world| async move {
        let seed = world.seed;
        let refused = Rc::default();
        if kind {
            let scope = Rc::clone(&world.scope);
            Service::at(S1).serve(&world.scope, move |peer, number| {
                serve(peer.into_stream(), Rc::clone(&scope), Random(seed ^ number as u64), Rc::clone(&refused))
            });
        } else {
            Service::at(S1).serve(&world.scope, crate::multiplexed_client::echo);
        }
        let report = Rc::new(Report::default());
        for client in 0..3 {
            let random = Random(seed << 8 | client);
            world.scope.spawn(converse(Rc::clone(&world.scope), random, 12, kind, Rc::clone(&report)));
        }
        let mut patience = 0;
        while report.begun.get() < 3 || !report.open.borrow().is_empty() {
            patience += 1;
            assert!(patience < 20_000, "these have no end: {:?}", report.open.borrow());
            sleep(10).await;
        }
        let faults = report.faults.take();
        assert!(faults.is_empty(), "world {seed}: {faults:#?}");
        world.forget_log();
    });
}

#[test]
fn between_two_others_nothing_is_lost() {
    play("", "proto h2", 0..4);
}

#[test]
fn nor_on_its_way_to_http_1() {
    play("", "", 0..3);
}

#[test]
fn nor_where_requests_are_waited_for_or_sent_again() {
    play("option http-buffer-request\n retry-on all-retryable-errors", "proto h2", 0..3);
}

#[test]
fn nor_where_filters_slow_it_down() {
    let filters = "filter bwlim-in in default-limit 4m default-period 1s\n filter bwlim-out out default-limit 4m default-period 1s
         http-request set-bandwidth-limit in\n http-response set-bandwidth-limit out";
    play(filters, "proto h2", 0..3);
}
