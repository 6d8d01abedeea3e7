//! Many connections of HTTP/3 over a network with every fault, in one world: bodies arrive whole, and nothing is left of a
//! connection after its end. `SIMULATED_CONNECTIONS` sets the number of connections. In a debug build a processor serves about 30
//! connections a second.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use quic::Closed;
use rt::net::Address;
use rt::sim::DatagramPath;
use testkit::{Scope, Service, sleep, text};

use crate::http3_client::{Client, request, tls};
use crate::multiplexed_client::echo;
use crate::world::*;

const QUIC: &str = "10.0.0.1:443";
/// The number of connections at a time, at least.
const AT_ONCE: u64 = 50;
/// The number of turns, at most: a script has one day.
const TURNS: u64 = 1_000;
/// Time after which every connection without a client has ended, in milliseconds: more than the idle timeout.
const ALL_OVER: u64 = 60_000;

/// The results of connections.
#[derive(Default)]
struct Results {
    ended: Cell<u64>,
    requests: Cell<u64>,
    /// Connections that the network cut off: nothing was received for long, or it has made a Version Negotiation packet, which nothing
    /// protects, of a damaged one (RFC 9000, section 21.12).
    cut_off: Cell<u64>,
}

impl Results {
    fn add(cell: &Cell<u64>) {
        cell.set(cell.get() + 1);
    }
}

/// The conduct of a client, and the sizes of its requests.
struct Visit {
    number: u64,
    moves: bool,
    resets: bool,
    vanishes: bool,
}

impl Visit {
    fn new(number: u64) -> Self {
        let draw = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        Self { number, moves: draw.is_multiple_of(3), resets: draw.is_multiple_of(5), vanishes: draw.is_multiple_of(7) }
    }

    fn address(&self, port: u16) -> String {
        let [_, high, middle, low] = (self.number as u32).to_be_bytes();
        format!("10.{}.{middle}.{low}:{port}", 100 + u16::from(high))
    }

    /// Opens a connection, and sends requests whose bodies come back.
    async fn run(self, results: Rc<Results>) {
        let mut client = Client::begin(&self.address(5000), QUIC, &tls(&["h3"], false));
        client.until(|client| client.is_connected() || client.closed.is_some()).await;
        if client.closed.is_none() {
            client.send_settings();
            self.ask(&mut client, &results).await;
        }
        match &client.closed {
            None if self.vanishes => {}
            None => client.close().await,
            Some(Closed::TimedOut | Closed::Version) => Results::add(&results.cut_off),
            Some(other) => panic!("{}: {other:?}", self.number),
        }
        Results::add(&results.ended);
    }

    async fn ask(&self, client: &mut Client, results: &Results) {
        let sizes = [0, 1 + self.number % 3_000, 1_200, self.number * 7_919 % 40_000];
        for (turn, length) in sizes.into_iter().enumerate() {
            if turn == 2 && self.moves {
                let address = |port| Address::Inet(self.address(port).parse().unwrap());
                rt::sim::network().rebind(&address(5000), &address(6001));
            }
            if turn == 1 && self.resets {
                let id = client.open_whole(&request("GET /reset HTTP/1.1\r\nHost: a\r\n\r\n"));
                client.stop(id, 0x10c);
            }
            let payload = text(length as usize, self.number);
            let head = format!("POST /{turn} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            let id = client.post(&head, &payload).await;
            let answered = client.answer(id).await;
            if client.closed.is_some() {
                return;
            }
            assert!(answered.ended, "{}: {:?} {:?}", self.number, answered.heads, answered.reset);
            assert!(answered.payload == payload, "{}: {} bytes of {length}", self.number, answered.payload.len());
            Results::add(&results.requests);
        }
    }
}

#[test]
fn many_connections_over_a_bad_network() {
    let asked = std::env::var("SIMULATED_CONNECTIONS").ok().and_then(|value| value.parse().ok());
    let connections: u64 = asked.unwrap_or(200);
    let text = format!("listen l\n    bind quic4@{QUIC} ssl crt a.pem\n    server s1 {S1}\n");
    config(&text).seeds(0..1).workers(&[2]).run(move |world| async move {
        let path = DatagramPath {
            latency: Duration::from_millis(5),
            jitter: Duration::from_millis(5),
            keeps_order: false,
            loss: 30,
            duplicates: 30,
            corruption: 20,
            marks: 20,
            ..DatagramPath::default()
        };
        rt::sim::network().set_datagram_path(path);
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let results = Rc::new(Results::default());
        let mut first_holdings = None;
        let at_once = AT_ONCE.max(connections.div_ceil(TURNS));
        for first in (0..connections).step_by(at_once as usize) {
            let last = (first + at_once).min(connections);
            let clients = Scope::new();
            for number in first..last {
                clients.spawn(Visit::new(number).run(Rc::clone(&results)));
            }
            let deadline = rt::now() + Duration::from_secs(300);
            while results.ended.get() < last {
                assert!(rt::now() < deadline, "{} of {last} connections have ended", results.ended.get());
                sleep(50).await;
            }
            // Nothing of them is left, so that the number of connections does not determine the memory.
            sleep(ALL_OVER).await;
            assert_eq!(world.sessions(), 0, "after {last} connections");
            world.take_log().await;
            world.forget_log();
            let holdings = world.inventory().await;
            let expected = first_holdings.get_or_insert_with(|| holdings.clone());
            assert_eq!(&holdings, expected, "after {last} connections");
            if asked.is_some() {
                eprintln!("{last} connections, {} requests, {} cut off", results.requests.get(), results.cut_off.get());
            }
        }
        let faults = rt::sim::network().datagram_faults();
        assert!(faults.lost > 0 && faults.duplicated > 0 && faults.corrupted > 0, "{faults:?}");
        let cut_off = results.cut_off.get();
        assert!(cut_off * 100 <= connections, "{cut_off} of {connections} connections were cut off");
    });
}
