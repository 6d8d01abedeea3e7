//! Chunked bodies through kernel pipes, on the simulated network: they arrive exactly as with copying. Owns the
//! comparison of both; must never know how a flow chooses between them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::buffer::Buffer;
use rt::net::{Address, BindOptions, ConnectOptions, Listener, ListeningSocket, Stream};
use rt::sim::Link;
use testkit::{Chunked, Peer, both, decode_chunks, encode_chunks, sleep, text};
use weir_conn::flow::{BodyFilter, FilterOutput, Flow, FlowError, FlowProgress, FlowStep, forward};
use weir_conn::transport::Transport;
use wire::http::Framing;

/// The least number of bytes left in a chunk that is spliced.
const THRESHOLD: usize = 16 * 1024;
/// The most bytes of one read.
const BUFFER: usize = 16 * 1024;

/// Returns the two ends of one connection.
async fn pair(service: &str) -> (Stream, Stream) {
    let address = Address::Inet(service.parse().unwrap());
    let socket = Arc::new(ListeningSocket::bind(&address, &BindOptions::default()).unwrap());
    let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
    let client = Stream::connect(&address, &ConnectOptions::default()).unwrap().await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client, Stream::adopt(server))
}

/// Returns a sender, and the source that it feeds.
async fn source_at(service: &str) -> (Stream, Transport) {
    let (client, server) = pair(service).await;
    (client, Transport::Plain(server))
}

/// Returns a sink, and the reader of its bytes.
async fn sink_at(service: &str) -> (Transport, Stream) {
    let (client, server) = pair(service).await;
    (Transport::Plain(client), server)
}

fn simulate<F: Future<Output = ()> + 'static>(seed: u64, link: Link, script: impl FnOnce() -> F + 'static) {
    rt::sim::run(seed, 1, Arc::new(|_| Box::pin(async {})), async move {
        rt::sim::network().set_default_link(link);
        script().await;
    });
}

/// Polls a flow to its end, or until `pause` returns true.
async fn drive(
    flow: &mut Flow,
    source: &mut Transport,
    sink: &mut Transport,
    moved: &mut FlowProgress,
    mut pause: impl FnMut(&FlowProgress, FlowStep) -> bool,
) -> Result<(), FlowError> {
    poll_fn(|context| {
        loop {
            let step = match flow.poll(context, source, sink, moved) {
                Ok(step) => step,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match step {
                FlowStep::Finished => return Poll::Ready(Ok(())),
                step if pause(moved, step) => return Poll::Ready(Ok(())),
                FlowStep::Exhausted => {}
                FlowStep::AwaitsSource | FlowStep::AwaitsSink | FlowStep::Held => return Poll::Pending,
            }
        }
    })
    .await
}

/// How the transfer is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abort {
    Never,
    /// The sender closes its direction after that number of bytes.
    Closes(usize),
    /// The sender resets the connection after it has sent that number of bytes.
    Resets(usize),
    /// The sink's reader resets the connection after that number of bytes.
    SinkResets(usize),
}

/// The outcome of one transfer.
struct Outcome {
    ended: String,
    received: Vec<u8>,
    moved: FlowProgress,
}

/// Sends `coded` through a flow over two new connections.
async fn transfer(number: u16, coded: Vec<u8>, chunked: bool, spliced: bool, abort: Abort) -> Outcome {
    let (sender, mut source) = source_at(&format!("10.0.0.1:{}", 2 * number)).await;
    let (mut sink, receiver) = sink_at(&format!("10.0.0.1:{}", 2 * number + 1)).await;
    let (mut sender, mut receiver) = (Peer::over(sender), Peer::over(receiver));
    let sends = async move {
        let upto = match abort {
            Abort::Closes(upto) | Abort::Resets(upto) => upto.min(coded.len()),
            Abort::Never | Abort::SinkResets(_) => coded.len(),
        };
        sender.try_send(&coded[..upto]).await;
        match abort {
            Abort::Closes(_) => sender.try_half_close(),
            Abort::Resets(_) => return sender.reset(),
            Abort::Never | Abort::SinkResets(_) => {}
        }
        // It stays open until the flow has ended.
        sender.try_receive(1).await;
    };
    let receives = async move {
        if let Abort::SinkResets(upto) = abort {
            let received = receiver.try_receive_up_to(upto).await.0;
            receiver.reset();
            return received;
        }
        receiver.try_receive_up_to(usize::MAX / 2).await.0
    };
    let flows = async move {
        let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
        flow.start(Buffer::empty(), Framing::Chunked, chunked).unwrap();
        if spliced {
            flow.splice();
        }
        let result = drive(&mut flow, &mut source, &mut sink, &mut moved, |_, _| false).await;
        assert_eq!(result.is_ok(), flow.is_finished());
        (format!("{result:?}"), moved)
    };
    let ((), (received, (ended, moved))) = join(sends, join(receives, flows)).await;
    Outcome { ended, received, moved }
}

/// Runs two futures concurrently, and returns both results.
async fn join<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (None, None);
    both(async { one = Some(first.await) }, async { other = Some(second.await) }).await;
    (one.unwrap(), other.unwrap())
}

/// The payload of the bytes received, and the trailers if it was complete.
fn payload(received: &[u8], chunked: bool) -> (Vec<u8>, Option<Vec<(String, String)>>) {
    if !chunked {
        return (received.to_vec(), None);
    }
    let (mut coded, mut into) = (received.to_vec(), Chunked::default());
    let whole = decode_chunks(&mut coded, &mut into);
    if whole {
        assert!(coded.is_empty(), "{} bytes after the last chunk", coded.len());
        return (into.body, Some(into.trailers));
    }
    // The rest is a part of one chunk.
    if let Some(line) = coded.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&coded[..line]).unwrap(), 16).unwrap();
        let data = &coded[line + 2..];
        assert!(data.len() < size + 2, "a chunk of {size} bytes with {} after it", data.len());
        into.body.extend_from_slice(&data[..data.len().min(size)]);
    }
    (into.body, None)
}

fn links() -> [Link; 4] {
    let quick = Link { latency: Duration::from_micros(10), jitter: Duration::ZERO, ..Link::default() };
    [
        Link { buffer: 256 * 1024, fragment: false, ..quick },
        Link { buffer: 100_000, fragment: true, ..quick },
        Link { buffer: 20_000, fragment: true, jitter: Duration::from_micros(50), ..quick },
        Link { buffer: 3_000, fragment: true, ..quick },
    ]
}

/// Sizes of chunks around the threshold, alone and together with the bytes of the first read before it.
const SIZES: [&[usize]; 8] = [
    &[THRESHOLD - 1],
    &[THRESHOLD, 1, THRESHOLD + 1],
    &[BUFFER + THRESHOLD - 20, BUFFER + THRESHOLD, BUFFER + THRESHOLD + 20],
    &[5, 70_000, 300],
    &[200_000],
    &[1, 1, 100_000, 16_000, 40_000],
    &[600_000],
    &[64 * 1024],
];

fn coded_body(seed: u64, sizes: &'static [usize]) -> (Vec<u8>, Vec<(String, String)>, Vec<u8>) {
    let body = text(300_000 + (seed as usize * 7919) % 300_000, seed);
    let trailers: Vec<_> = (0..seed % 3).map(|number| (format!("x-{number}"), format!("value {number}"))).collect();
    let mut next = sizes.iter().copied().cycle();
    let coded = encode_chunks(&body, &mut || next.next().unwrap(), &trailers);
    (body, trailers, coded)
}

#[test]
fn chunks_through_a_pipe_arrive_as_copied_ones_do() {
    for (number, sizes) in SIZES.into_iter().enumerate() {
        for (place, link) in links().into_iter().enumerate() {
            for chunked in [true, false] {
                let seed = (number * 10 + place) as u64;
                simulate(seed, link, move || async move {
                    let (body, trailers, coded) = coded_body(seed, sizes);
                    for spliced in [false, true] {
                        let number = 1 + u16::from(spliced);
                        let outcome = transfer(number, coded.clone(), chunked, spliced, Abort::Never).await;
                        assert_eq!(outcome.ended, "Ok(())");
                        let (got, end) = payload(&outcome.received, chunked);
                        assert!(got == body, "{} bytes of {}", got.len(), body.len());
                        assert_eq!(end, chunked.then(|| trailers.clone()));
                        assert_eq!(outcome.moved.read, coded.len());
                        assert_eq!(outcome.moved.written, outcome.received.len());
                        if spliced && sizes.iter().any(|size| *size >= BUFFER + THRESHOLD) {
                            assert!(outcome.moved.spliced > 0, "nothing of {sizes:?} was spliced");
                            assert!(outcome.moved.spliced < body.len(), "the first bytes are always copied");
                        }
                        if !spliced || sizes.iter().all(|size| *size < THRESHOLD) {
                            assert_eq!(outcome.moved.spliced, 0);
                        }
                    }
                });
            }
        }
    }
}

#[test]
fn an_abort_in_the_middle_of_a_chunk_ends_both_ways_alike() {
    for (place, link) in links().into_iter().enumerate() {
        for upto in [0, 1, 9, BUFFER - 1, BUFFER, BUFFER + 1, 90_000, 200_000, 200_008, 200_009, 200_010, 305_000] {
            for abort in [Abort::Closes(upto), Abort::Resets(upto), Abort::SinkResets(upto)] {
                for chunked in [true, false] {
                    let seed = (upto * 10 + place) as u64;
                    simulate(seed, link, move || async move {
                        let (body, _, coded) = coded_body(1, &[200_000]);
                        let coded_length = coded.len();
                        let copied = transfer(1, coded.clone(), chunked, false, abort).await;
                        let spliced = transfer(2, coded, chunked, true, abort).await;
                        let (one, other) = (payload(&copied.received, chunked), payload(&spliced.received, chunked));
                        assert!(body.starts_with(&one.0) && body.starts_with(&other.0), "{abort:?}");
                        assert_eq!((one.1, other.1), (None, None), "{abort:?}");
                        let begins = |text| copied.ended.starts_with(text) && spliced.ended.starts_with(text);
                        match abort {
                            Abort::Never => unreachable!("not here"),
                            Abort::Closes(_) => assert!(begins("Err(Truncated)"), "{abort:?}: {}", spliced.ended),
                            Abort::Resets(_) => assert!(begins("Err(Read("), "{abort:?}: {}", spliced.ended),
                            // The rest may have been sent already.
                            Abort::SinkResets(upto) if upto + link.buffer > coded_length => {}
                            Abort::SinkResets(_) => assert!(begins("Err(Write("), "{abort:?}: {}", spliced.ended),
                        }
                        if matches!(abort, Abort::Closes(_)) {
                            assert!(one.0 == other.0, "{abort:?}: {} bytes, copied {}", other.0.len(), one.0.len());
                        }
                    });
                }
            }
        }
    }
}

/// A body of one chunk whose source pauses in its middle: sender, flow and reader.
struct Paused {
    sender: Peer,
    source: Transport,
    sink: Transport,
    receiver: Peer,
    flow: Flow,
    moved: FlowProgress,
    body: Vec<u8>,
    coded: Vec<u8>,
}

/// The number of bytes sent before the source pauses.
const SENT: usize = 100_000;

/// Brings a flow to the middle of a chunk of 200 000 bytes, a part of which was spliced.
async fn paused() -> Paused {
    let (sender, mut source) = source_at("10.0.0.1:1").await;
    let (mut sink, receiver) = sink_at("10.0.0.1:2").await;
    let (mut sender, receiver) = (Peer::over(sender), Peer::over(receiver));
    let body = text(200_000, 3);
    let coded = encode_chunks(&body, &mut || 200_000, &[("x-end".to_owned(), "1".to_owned())]);
    let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
    flow.start(Buffer::empty(), Framing::Chunked, true).unwrap();
    flow.splice();
    sender.send(&coded[..SENT]).await;
    drive(&mut flow, &mut source, &mut sink, &mut moved, |moved, step| {
        step == FlowStep::AwaitsSource && moved.read == SENT
    })
    .await
    .unwrap();
    assert!(moved.spliced > 0);
    Paused { sender, source, sink, receiver, flow, moved, body, coded }
}

fn one_link() -> Link {
    Link { fragment: false, ..Link::default() }
}

#[test]
fn a_source_that_pauses_leaves_no_chunk_open() {
    simulate(1, one_link(), || async {
        let mut p = paused().await;
        assert!(p.flow.is_flushed() && !p.flow.is_finished());
        sleep(100).await;
        let (mut coded, mut into) = (Vec::new(), Chunked::default());
        let waiting = p.moved.written;
        coded.extend(p.receiver.receive(waiting).await);
        assert!(!decode_chunks(&mut coded, &mut into));
        assert!(coded.is_empty(), "every chunk that was begun has its end");
        let line = p.coded.len() - p.body.len() - "\r\n0\r\nx-end: 1\r\n\r\n".len();
        assert!(into.body == p.body[..SENT - line]);
    });
}

#[test]
fn a_source_that_leaves_in_a_chunk_leaves_no_chunk_open() {
    simulate(5, one_link(), || async {
        let (sender, mut source) = source_at("10.0.0.1:1").await;
        let (mut sink, receiver) = sink_at("10.0.0.1:2").await;
        let (mut sender, mut receiver) = (Peer::over(sender), Peer::over(receiver));
        let (body, _, coded) = coded_body(0, &[200_000]);
        sender.send(&coded[..SENT]).await;
        sender.half_close();
        sleep(10).await;
        let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
        flow.start(Buffer::empty(), Framing::Chunked, true).unwrap();
        flow.splice();
        let ended = drive(&mut flow, &mut source, &mut sink, &mut moved, |_, _| false).await;
        assert!(matches!(ended, Err(FlowError::Truncated)) && moved.spliced > 0);
        let (mut coded, mut into) = (receiver.receive(moved.written).await, Chunked::default());
        assert!(!decode_chunks(&mut coded, &mut into) && coded.is_empty());
        assert!(into.body == body[..SENT - "30d40\r\n".len()]);
    });
}

#[test]
fn a_flush_while_the_pipe_is_full_ends_the_chunk_after_it() {
    for seed in 0..20 {
        simulate(seed, Link { buffer: 100_000, ..Link::default() }, || async {
            let (sender, mut source) = source_at("10.0.0.1:1").await;
            rt::sim::network().set_default_link(Link { buffer: 1_000, ..Link::default() });
            let (mut sink, receiver) = sink_at("10.0.0.1:2").await;
            let (mut sender, mut receiver) = (Peer::over(sender), Peer::over(receiver));
            let (body, _, coded) = coded_body(0, &[200_000]);
            let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
            flow.start(Buffer::empty(), Framing::Chunked, true).unwrap();
            flow.splice();
            sender.send(&coded[..SENT]).await;
            let (mut received, stopped) = (Vec::new(), std::cell::Cell::new(false));
            // When the sink accepts no more, bytes are on their way.
            let reads = async {
                while !stopped.get() {
                    received.extend(receiver.receive_some().await);
                }
            };
            let fills = async {
                let stop = |moved: &FlowProgress, step| step == FlowStep::AwaitsSink && moved.spliced > 0;
                drive(&mut flow, &mut source, &mut sink, &mut moved, stop).await.unwrap();
                stopped.set(true);
            };
            both(reads, fills).await;
            assert!(moved.spliced > 0 && !flow.is_flushed());
            stopped.set(false);
            let flushes = async {
                poll_fn(|context| flow.poll_flush(context, &mut sink, &mut moved)).await.unwrap();
                stopped.set(true);
            };
            let reads = async {
                while !stopped.get() {
                    received.extend(receiver.receive_some().await);
                }
            };
            both(flushes, reads).await;
            let left = moved.written - received.len();
            received.extend(receiver.receive(left).await);
            let (mut coded, mut into) = (received, Chunked::default());
            assert!(!decode_chunks(&mut coded, &mut into) && coded.is_empty());
            assert!(body.starts_with(&into.body));
        });
    }
}

/// Passes everything on, and counts it.
struct Counts(std::rc::Rc<std::cell::Cell<usize>>);

impl BodyFilter for Counts {
    fn pass(&mut self, input: &mut Buffer, output: &mut Buffer, _: bool) -> FilterOutput {
        self.0.set(self.0.get() + forward(input, output, usize::MAX));
        FilterOutput::Through
    }
}

#[test]
fn a_filter_that_begins_in_the_middle_of_a_chunk_sees_the_rest_of_it() {
    simulate(2, one_link(), || async {
        let mut p = paused().await;
        let spliced = p.moved.spliced;
        let seen = std::rc::Rc::default();
        p.flow.set_body_filter(Box::new(Counts(std::rc::Rc::clone(&seen))));
        let rest = p.coded.split_off(SENT);
        let mut sender = p.sender;
        let (mut flow, mut source, mut sink, mut moved) = (p.flow, p.source, p.sink, p.moved);
        let sends = async { sender.send(&rest).await };
        let flows = async { drive(&mut flow, &mut source, &mut sink, &mut moved, |_, _| false).await.unwrap() };
        both(sends, flows).await;
        drop(sink);
        let (got, end) = payload(&p.receiver.receive_rest().await, true);
        assert!(got == p.body);
        assert_eq!(end.unwrap(), [("x-end".to_owned(), "1".to_owned())]);
        assert_eq!(seen.get(), rest.len() - "\r\n0\r\nx-end: 1\r\n\r\n".len());
        assert_eq!(moved.spliced, spliced, "nothing goes past a filter");
    });
}

#[test]
fn a_body_whose_sink_is_gone_is_read_to_its_end() {
    simulate(3, one_link(), || async {
        let mut p = paused().await;
        let rest = [&p.coded.split_off(SENT)[..], b"GET /next"].concat();
        p.flow.abandon_sink();
        let sends = async { p.sender.send(&rest).await };
        let drains = poll_fn(|context| {
            loop {
                match p.flow.poll_drain(context, &mut p.source, &mut p.moved).unwrap() {
                    FlowStep::Finished => return Poll::Ready(()),
                    FlowStep::Exhausted => {}
                    _ => return Poll::Pending,
                }
            }
        });
        both(sends, drains).await;
        assert_eq!(p.moved.read, SENT + rest.len() - "GET /next".len());
        assert_eq!(p.flow.take_rest().data(), b"GET /next");
    });
}

#[test]
fn what_is_recorded_or_filtered_is_copied() {
    for filtered in [false, true] {
        simulate(4, one_link(), move || async move {
            let (sender, mut source) = source_at("10.0.0.1:1").await;
            let (mut sink, receiver) = sink_at("10.0.0.1:2").await;
            let (mut sender, mut receiver) = (Peer::over(sender), Peer::over(receiver));
            let (body, _, coded) = coded_body(0, &[200_000]);
            let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
            if filtered {
                flow.set_body_filter(Box::new(Counts(std::rc::Rc::default())));
            }
            flow.start(Buffer::empty(), Framing::Chunked, true).unwrap();
            flow.splice();
            if !filtered {
                flow.record();
            }
            let flows = async {
                drive(&mut flow, &mut source, &mut sink, &mut moved, |_, _| false).await.unwrap();
                drop(sink);
            };
            let sends = async { sender.send(&coded).await };
            let ((), ((), received)) = join(flows, join(sends, receiver.receive_rest())).await;
            assert!(payload(&received, true).0 == body);
            assert_eq!(moved.spliced, 0);
        });
    }
}
