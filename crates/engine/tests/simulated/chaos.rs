//! Tests of everything at once: clients and servers that behave in every possible way, over a network that fails, with
//! timeouts, queues and limits that apply all the time. No client gets another one's answer, correct clients are
//! answered, and at the end no connection is left.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rt::net::Address;
use rt::sim::Link;
use testkit::{Peer, PeerOptions, Service, sleep, text, within};

use crate::world::*;

const SERVERS: [&str; 3] = ["10.0.1.1:80", "10.0.1.2:80", "10.0.1.3:80"];

const BODY: &str = "
    maxconn 12
    backlog 100
    balance leastconn
    retries 2
    option redispatch
    timeout http-request 80ms
    timeout http-keep-alive 60ms
    timeout client 100ms
    timeout queue 50ms
    timeout connect 40ms
    timeout server 120ms
    timeout tunnel 150ms
    server s1 10.0.1.1:80 maxconn 2 pool-max-conn 2 pool-purge-delay 100ms
    server s2 10.0.1.2:80 maxconn 3 pool-purge-delay 100ms
    server s3 10.0.1.3:80 maxqueue 2 pool-purge-delay 100ms
";

/// Enough for queues to form, few enough for a short run.
const CLIENTS: u64 = 40;

fn below(limit: u64) -> u64 {
    rt::random() % limit
}

fn one_in(times: u64) -> bool {
    below(times) == 0
}

async fn pause(most_micros: u64) {
    rt::sleep(Duration::from_micros(below(most_micros))).await;
}

/// The body of the answer to a path, from which a client can detect the answer to another request.
fn body_of(path: &str) -> Vec<u8> {
    let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
    let length = match number % 10 {
        0 => 0,
        1..8 => number % 2000,
        _ => number % 150_000,
    };
    text(length as usize, number)
}

/// Serves a connection, and answers most requests.
async fn serve(mut peer: Peer) {
    while let Some(head) = peer.receive_head().await {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if one_in(10) {
            pause(200_000).await;
        }
        let mut unread = 0;
        if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
            let length: usize = length.parse().unwrap();
            let read = if one_in(4) { length / 2 } else { length };
            unread = length - read;
            if read > 0 && !peer.try_receive(read).await {
                return;
            }
        }
        if one_in(12) {
            return if one_in(2) { peer.reset() } else { peer.close() };
        }
        if head.contains("upgrade: ") && !one_in(4) {
            if peer.try_send("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await {
                peer.echo().await;
            }
            return;
        }
        if one_in(10) {
            peer.try_send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n").await;
        }
        if one_in(40) {
            peer.try_send("HTTP/1.1 what\r\n\r\n").await;
            return;
        }
        // The rest of a request that was answered early is not the next request.
        if !answer(&mut peer, &path).await || (unread > 0 && !peer.try_receive(unread).await) {
            return;
        }
    }
}

/// Sends an answer. Returns false if the connection cannot be used again.
async fn answer(peer: &mut Peer, path: &str) -> bool {
    let body = body_of(path);
    let closes = one_in(8);
    let connection = if closes { "Connection: close\r\n" } else { "" };
    let coded = if one_in(3) {
        let head =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{connection}X-Length: {}\r\n\r\n", body.len());
        let largest = 1 + below(30_000) as usize;
        [head.into_bytes(), testkit::encode_chunks(&body, &mut || largest, &[])].concat()
    } else {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{connection}X-Length: {length}\r\n\r\n");
        [head.into_bytes(), body].concat()
    };
    let sent = if one_in(15) { coded.len() / 2 } else { coded.len() };
    if !peer.try_send(&coded[..sent]).await {
        return false;
    }
    if sent < coded.len() && one_in(2) {
        pause(200_000).await;
    }
    sent == coded.len() && !closes
}

/// The part of an answer that a client has received.
#[derive(Debug, PartialEq, Eq)]
enum AnswerOutcome {
    /// All of it, and it was the expected one.
    Whole,
    /// An error page, or the end of the connection.
    Less,
}

/// Reads an answer and compares it with the expected one.
async fn read_answer(peer: &mut Peer, path: &str) -> Option<AnswerOutcome> {
    let head = loop {
        let head = peer.try_receive_head().await?;
        if !head.starts_with("HTTP/1.1 103") {
            break head;
        }
    };
    let status: u16 = head[9..12].parse().unwrap_or_else(|_| panic!("no status: {head:?}"));
    let length: usize =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    if status != 200 {
        assert!([400, 408, 502, 503, 504].contains(&status), "{head}");
        peer.try_receive(length).await.then_some(())?;
        return (!head.contains("connection: close")).then_some(AnswerOutcome::Less);
    }
    let expected = body_of(path);
    let (got, whole) = if head.contains("transfer-encoding: chunked") {
        peer.try_receive_chunked().await
    } else {
        assert_eq!(length, expected.len(), "{head}");
        peer.try_receive_up_to(length).await
    };
    assert!(expected.starts_with(&got), "{path}: {} bytes are not of {}", got.len(), expected.len());
    assert!(!whole || got == expected, "{path}: a whole answer of {} instead of {} bytes", got.len(), expected.len());
    (whole && !head.contains("connection: close")).then_some(AnswerOutcome::Whole)
}

/// Runs a mostly correct client; returns the number of answers that it has received.
async fn client(number: u64) -> u64 {
    let Ok(mut peer) = Peer::try_connect(WEIR, PeerOptions::default()).await else { return 0 };
    let mut got = 0;
    for request in 0..6 {
        if one_in(4) {
            pause(90_000).await;
        }
        let path = format!("/{}", number * 1_000_003 + request * 7919);
        let length = if one_in(3) { below(60_000) } else { 0 };
        let (method, field) = match length {
            0 => ("GET", String::new()),
            _ => ("POST", format!("Content-Length: {length}\r\n")),
        };
        let upgrades = length == 0 && one_in(12);
        let upgrade = if upgrades { "Connection: Upgrade\r\nUpgrade: echo\r\n" } else { "" };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{field}{upgrade}\r\n");
        let whole = [head.as_bytes(), &text(length as usize, number)].concat();
        // Some stop in the middle, and stay, disconnect or close one direction.
        let sent = if one_in(10) { below(whole.len() as u64) as usize } else { whole.len() };
        if !peer.try_send(&whole[..sent]).await {
            return got;
        }
        if one_in(12) {
            pause(50_000).await;
            if one_in(2) {
                peer.reset();
            }
            return got;
        }
        if one_in(15) {
            peer.try_half_close();
        }
        if upgrades {
            peer.try_send("through the tunnel").await;
            within(Duration::from_millis(below(300)), peer.try_receive(60)).await;
            return got;
        }
        match read_answer(&mut peer, &path).await {
            Some(AnswerOutcome::Whole) => got += 1,
            Some(AnswerOutcome::Less) => {}
            None => return got,
        }
    }
    got
}

/// Makes the network fail now and then, until `calm` is set.
async fn weather(calm: Rc<Cell<bool>>) {
    let network = rt::sim::network();
    while !calm.get() {
        pause(40_000).await;
        let service = Address::Inet(SERVERS[below(3) as usize].parse().unwrap());
        match below(4) {
            0 => {
                network.reset(&service);
            }
            1 => {
                network.black_hole(&service, true);
                pause(100_000).await;
                network.black_hole(&service, false);
            }
            _ => {
                network.refuse(&service, true);
                pause(60_000).await;
                network.refuse(&service, false);
            }
        }
    }
}

fn any_network(seed: u64) -> Link {
    let draw = text(3, seed);
    let micros = |byte: u8| Duration::from_micros(u64::from(byte));
    let buffer = if draw[2].is_multiple_of(2) { 16 * 1024 } else { 256 * 1024 };
    Link { latency: micros(draw[0]), jitter: micros(draw[1]), buffer, fragment: !seed.is_multiple_of(3) }
}

/// Runs the scenario with additional options.
fn run(options: &str, seeds: std::ops::Range<u64>) {
    listen(&format!("{BODY}\n{options}")).shuffled().workers(&[1, 4]).seeds(seeds).links(any_network).run(
        |world| async move {
            for address in SERVERS {
                Service::at(address).serve(&world.scope, |peer, _| serve(peer));
            }
            let calm = Rc::new(Cell::new(false));
            world.scope.spawn(weather(Rc::clone(&calm)));
            let (left, got) = (Rc::new(Cell::new(CLIENTS)), Rc::new(Cell::new(0)));
            for number in 0..CLIENTS {
                let (left, got) = (Rc::clone(&left), Rc::clone(&got));
                world.scope.spawn(async move {
                    pause(150_000).await;
                    let answers = client(number).await;
                    got.set(got.get() + answers);
                    left.set(left.get() - 1);
                });
            }
            // Every timeout is below a second: a client that has not finished after minutes has failed.
            let deadline = rt::now() + Duration::from_secs(120);
            while left.get() > 0 && rt::now() < deadline {
                sleep(1).await;
            }
            assert_eq!(left.get(), 0, "clients that failed");
            // If a fault has hidden the end of an idle link, the next purges close it.
            calm.set(true);
            sleep(2000).await;
            assert!(got.get() > 10, "{} answers arrived", got.get());
            for line in world.take_log().await {
                assert!(
                    [
                        "----", "CR--", "cR--", "PR--", "CQ--", "sQ--", "SQ--", "CC--", "sC--", "SC--", "CH--", "cH--",
                        "SH--", "sH--", "PH--", "CD--", "cD--", "SD--", "sD--", "CL--", "cL--", "SL--"
                    ]
                    .iter()
                    .any(|state| line.contains(state)),
                    "{line}"
                );
            }
        },
    );
}

#[test]
fn with_links_that_are_shared() {
    run("http-reuse always", 0..6);
}

#[test]
fn with_links_that_are_shared_with_care() {
    run("http-reuse safe", 100..104);
    run("http-reuse aggressive", 150..152);
}

#[test]
fn with_links_of_their_own() {
    run("http-reuse never\n option prefer-last-server\n max-keep-alive-queue 2", 200..204);
}

#[test]
fn with_requests_that_are_sent_again() {
    run("http-reuse always\n retries 4\n retry-on all-retryable-errors 404", 300..306);
}

#[test]
fn with_limits_that_follow_the_load_and_are_strict() {
    let servers = "server s4 10.0.1.1:80 minconn 1 maxconn 4 strict-maxconn pool-purge-delay 100ms\n server s5 10.0.1.2:80 minconn 1 maxconn 3 pool-purge-delay 100ms";
    run(&format!("balance roundrobin\n http-reuse safe\n fullconn 8\n rate-limit sessions 200\n {servers}"), 400..404);
}
