//! A property: a body of any size and framing arrives unchanged, in both directions at once, through any network and
//! any reader. Each seed draws its own bodies; the same connections carry several of them. Must never depend on a fixed
//! division into pieces.

use rt::sim::Link;
use testkit::{Peer, Service, both, encode_chunks, text};

use crate::world::*;

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
}

/// A body, and how it is sent and read.
#[derive(Clone, Debug)]
struct Body {
    framing: Framing,
    bytes: Vec<u8>,
    trailers: Vec<(String, String)>,
    largest_chunk: usize,
    /// The number of bytes per write, and the pause between writes in milliseconds.
    writes: (usize, u64),
    /// The number of bytes per read, and the pause between reads in milliseconds.
    reads: (usize, u64),
}

fn below(limit: u64) -> u64 {
    rt::random() % limit
}

/// Mostly small, sometimes about a buffer, sometimes large.
fn size() -> usize {
    let (small, around, large) = (below(3000), below(64), below(2 << 20));
    match below(8) {
        0 => 0,
        1..4 => small as usize,
        4 => (16 * 1024 - 32 + around) as usize,
        5 | 6 => (large / 16) as usize,
        _ => large as usize,
    }
}

fn pace(length: usize) -> (usize, u64) {
    match below(4) {
        // At most some hundred steps, whatever the length of the body.
        0 => ((1 + below(2000) as usize).max(length / 200), below(3)),
        _ => (64 * 1024, 0),
    }
}

fn draw(framings: &[Framing]) -> Body {
    let framing = framings[below(framings.len() as u64) as usize];
    let bytes = text(size(), rt::random());
    let trailers = (0..below(3)).map(|number| (format!("x-trailer-{number}"), format!("value {number}"))).collect();
    let largest_chunk = 1 + [7, 300, 20_000, 200_000][below(4) as usize];
    // A large body in tiny chunks would consist mostly of size lines.
    let largest_chunk = largest_chunk.max(bytes.len() / 300);
    let (writes, reads) = (pace(bytes.len()), pace(bytes.len()));
    Body { framing, trailers, largest_chunk, writes, reads, bytes }
}

impl Body {
    fn field(&self) -> String {
        match self.framing {
            Framing::Length => format!("content-length: {}\r\n", self.bytes.len()),
            Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            Framing::UntilClose => String::new(),
        }
    }

    async fn send(&self, peer: &mut Peer) {
        let (piece, pause) = self.writes;
        match self.framing {
            Framing::Chunked => {
                let largest = self.largest_chunk as u64;
                let coded = encode_chunks(&self.bytes, &mut || 1 + below(largest) as usize, &self.trailers);
                peer.send_slowly(coded, piece, pause).await;
            }
            Framing::Length | Framing::UntilClose => peer.send_slowly(&self.bytes, piece, pause).await,
        }
    }

    async fn expect(&self, peer: &mut Peer) {
        let (piece, pause) = self.reads;
        let (got, trailers) = match self.framing {
            Framing::Length => (peer.receive_slowly(self.bytes.len(), piece, pause).await, Vec::new()),
            Framing::UntilClose => (peer.receive_rest_slowly(piece, pause).await, Vec::new()),
            Framing::Chunked => {
                let decoded = peer.receive_chunked(piece, pause).await;
                (decoded.body, decoded.trailers)
            }
        };
        assert_eq!(got.len(), self.bytes.len(), "{:?}", self.framing);
        let wrong = got.iter().zip(&self.bytes).position(|(got, sent)| got != sent);
        assert_eq!(wrong, None, "the first wrong byte of {} ({:?})", got.len(), self.framing);
        if self.framing == Framing::Chunked {
            assert_eq!(trailers, self.trailers);
        }
    }
}

/// Several requests over one pair of connections, the last one with an answer of any framing.
async fn converse(rounds: u64) {
    let mut s1 = Service::at(S1);
    let mut client = Peer::connect(WEIR).await;
    let mut server = None;
    for round in 0..rounds {
        let last = round + 1 == rounds;
        let up = draw(&[Framing::Length, Framing::Chunked]);
        let down = match last {
            true => draw(&[Framing::Length, Framing::Chunked, Framing::UntilClose]),
            false => draw(&[Framing::Length, Framing::Chunked]),
        };
        let request = format!("POST /{round} HTTP/1.1\r\nhost: a\r\n{}\r\n", up.field());
        client.send(&request).await;
        let mut peer = match server.take() {
            Some(peer) => peer,
            None => s1.accept().await,
        };
        peer.expect(&request).await;
        // The answer begins before the request was received, in its middle, or after it.
        let eager = below(3);
        let answer = format!("HTTP/1.1 200 OK\r\n{}\r\n", down.field());
        let closing = if down.framing == Framing::UntilClose { "connection: close\r\n" } else { "" };
        let at_client = format!("HTTP/1.1 200 OK\r\n{}{closing}\r\n", down.field());
        let client_side = async {
            let receive = async |client: &mut Peer| {
                client.expect(&at_client).await;
                down.expect(client).await;
            };
            up.send(&mut client).await;
            receive(&mut client).await;
        };
        let server_side = async {
            if eager == 0 {
                peer.send(&answer).await;
                up.expect(&mut peer).await;
            } else {
                up.expect(&mut peer).await;
                peer.send(&answer).await;
            }
            down.send(&mut peer).await;
            if down.framing == Framing::UntilClose {
                peer.half_close();
            }
        };
        both(client_side, server_side).await;
        server = Some(peer);
    }
}

fn any_network(seed: u64) -> Link {
    let draw = text(3, seed + 77);
    let micros = |byte: u8| std::time::Duration::from_micros(u64::from(byte) * 4);
    let buffer = [4 * 1024, 30_000, 100_000, 256 * 1024][usize::from(draw[2]) % 4];
    Link { latency: micros(draw[0]), jitter: micros(draw[1]), buffer, fragment: !seed.is_multiple_of(4) }
}

/// A transport that buffers bytes cannot be spliced.
fn unless_spliced(worlds: Worlds, body: &str) -> Worlds {
    if body.contains("splice") { worlds } else { worlds.shuffled() }
}

fn conversations(body: &str, global: &str, seeds: std::ops::Range<u64>) {
    let worlds = unless_spliced(listen(&format!("{body}\n server s1 10.0.1.1:80")).global(global), body);
    worlds.workers(&[2]).seeds(seeds).links(any_network).run(|world| async move {
        converse(3).await;
        let lines = world.take_log().await;
        assert!(lines.iter().all(|line| line.contains(" 200 ") && line.contains(" ---- ")), "{lines:#?}");
    });
}

#[test]
fn bodies_arrive_unchanged() {
    conversations("", "", 0..40);
}

#[test]
fn bodies_arrive_unchanged_through_small_buffers() {
    conversations("", "tune.bufsize 2048\n tune.maxrewrite 512", 100..120);
}

#[test]
fn bodies_arrive_unchanged_through_pipes() {
    conversations("option splice-auto\n option splice-request\n option splice-response", "", 200..220);
}

/// Filters that hold back a random share of their input, before and after one that limits both directions.
const FILTERS: &str = "filter trace random-forwarding quiet\n filter bwlim-in up default-limit 3m default-period 1s\n \
                       filter bwlim-out down default-limit 3m default-period 100 min-size 3k\n \
                       filter trace name b random-forwarding max-fwd 9999 quiet";

#[test]
fn bodies_arrive_unchanged_through_filters() {
    let rules = "http-request set-bandwidth-limit up\n http-response set-bandwidth-limit down";
    conversations(&format!("{FILTERS}\n {rules}"), "", 500..510);
    let sequence = "filter-sequence request trace\n filter-sequence response bwlim-out,trace";
    conversations(&format!("{FILTERS}\n {sequence}\n {rules}"), "", 530..534);
}

#[test]
fn bodies_arrive_unchanged_through_filters_that_begin_in_their_middle() {
    let rules = "option splice-auto\n http-response set-bandwidth-limit up\n http-response set-bandwidth-limit down";
    let limits = "filter bwlim-in up default-limit 3m default-period 1s\n \
                  filter bwlim-out down default-limit 3m default-period 100 min-size 3k";
    conversations(&format!("{limits}\n {rules}"), "", 540..550);
}

#[test]
fn bodies_arrive_unchanged_through_filters_and_small_buffers() {
    let rules = "http-request set-bandwidth-limit up\n http-response set-bandwidth-limit down";
    conversations(&format!("{FILTERS}\n {rules}"), "tune.bufsize 2048\n tune.maxrewrite 512", 570..574);
}

#[test]
fn bodies_arrive_unchanged_where_they_may_be_sent_again() {
    let rules = "retry-on all-retryable-errors\n http-request set-bandwidth-limit up";
    conversations(&format!("{FILTERS}\n {rules}"), "", 580..588);
}

fn sessions(body: &str, seeds: std::ops::Range<u64>) {
    let worlds = unless_spliced(listen(&format!("mode tcp\n option tcplog\n {body}\n server s1 10.0.1.1:80")), body);
    worlds.workers(&[2]).seeds(seeds).links(any_network).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("a").await;
        let mut server = s1.accept().await;
        server.expect("a").await;
        let (up, down) = (draw(&[Framing::UntilClose]), draw(&[Framing::UntilClose]));
        let client_side = async {
            up.send(&mut client).await;
            client.half_close();
            down.expect(&mut client).await;
        };
        let server_side = async {
            up.expect(&mut server).await;
            down.send(&mut server).await;
            server.half_close();
        };
        both(client_side, server_side).await;
        let line = format!("l l/s1 #/#/# {} -- 1/1/0/0/0 0/0", down.bytes.len());
        world.expect_log(&[&line]).await;
    });
}

#[test]
fn streams_arrive_unchanged_in_tcp_mode() {
    sessions("", 300..310);
}

#[test]
fn streams_arrive_unchanged_in_tcp_mode_through_pipes() {
    sessions("option splice-auto", 320..330);
}

#[test]
fn streams_arrive_unchanged_in_tcp_mode_through_filters() {
    let rules = "tcp-request content set-bandwidth-limit up\n tcp-response content set-bandwidth-limit down";
    sessions(&format!("option splice-auto\n {FILTERS}\n {rules}"), 600..606);
    let late = "tcp-response inspect-delay 50\n tcp-response content set-bandwidth-limit up if { res.len ge 10 }";
    sessions(&format!("option splice-auto\n {FILTERS}\n {late}"), 620..626);
}

/// Answers of unknown length to clients of HTTP/1.0, which has no chunked coding.
#[test]
fn bodies_arrive_unchanged_at_old_clients() {
    listen("server s1 10.0.1.1:80").workers(&[2]).seeds(400..410).links(any_network).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.0\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").await;
        let body = draw(&[Framing::UntilClose]);
        let sends = async {
            server.send("HTTP/1.0 200 OK\r\n\r\n").await;
            body.send(&mut server).await;
            server.half_close();
        };
        let receives = async {
            client.expect("HTTP/1.0 200 OK\r\n\r\n").await;
            body.expect(&mut client).await;
        };
        both(sends, receives).await;
    });
}
