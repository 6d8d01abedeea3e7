//! A node as a whole, with a store that executes the script, and another node that is numbers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use engine::Refusal;
use engine::store::slots::script;
use testkit::{Peer, Service, sleep};
use wire::resp::{Reply, next_reply};

use crate::api::{SOCKET, ask, order};
use crate::messages::*;
use crate::redis::{Answer, Redis};
use crate::world::*;

const STORE: &str = "10.0.6.1:6379";
const KEY: &str = "weir:slots:l/s1";
/// A part of the line of `show store` once all slots are leased.
const READY: &str = "state LEASED maxconn 4 leased 4";

/// A proxy with a server of four slots.
fn leased(lost: &str) -> Worlds {
    leased_with(&format!("maxconn-store fleet {lost}"))
}

fn leased_with(options: &str) -> Worlds {
    config(&leased_sections(options)).global(SOCKET).seeds(0..2).workers(&[1, 2])
}

fn leased_sections(options: &str) -> String {
    let store = format!("store fleet\n server redis1 {STORE}\n");
    format!(
        "{store}listen l\n bind {WEIR}\n no log\n timeout queue 60s\n server s1 {S1} maxconn 4 {options}\n server s2 {S2} disabled\n"
    )
}

/// A server that holds its requests for 10 ms, and the number of requests in progress: now, and the most.
#[derive(Default)]
struct Gauge {
    now: Cell<usize>,
    most: Cell<usize>,
    total: Cell<usize>,
}

impl Gauge {
    fn open(world: &World) -> Rc<Self> {
        let gauge = Rc::new(Self::default());
        let counted = Rc::clone(&gauge);
        Service::at(S1).serve(&world.scope, move |mut peer, _| {
            let gauge = Rc::clone(&counted);
            async move {
                while peer.receive_head().await.is_some() {
                    gauge.now.set(gauge.now.get() + 1);
                    gauge.total.set(gauge.total.get() + 1);
                    gauge.most.set(gauge.most.get().max(gauge.now.get()));
                    sleep(10).await;
                    gauge.now.set(gauge.now.get() - 1);
                    peer.send(OK).await;
                }
            }
        });
        gauge
    }
}

/// Clients that send one request after the other until the flag is set.
fn crowd(world: &World, count: usize) -> Rc<Cell<bool>> {
    let is_over = Rc::new(Cell::new(false));
    for _ in 0..count {
        let is_over = Rc::clone(&is_over);
        world.scope.spawn(async move {
            let mut client = Peer::connect(WEIR).await;
            while !is_over.get() {
                client.send(GET).await;
                client.expect(OK_AT_CLIENT).await;
            }
        });
    }
    is_over
}

/// The other node reports what it holds and needs. Returns its slots.
fn claim(redis: &Redis, sequence: usize, held: usize, demand: usize) -> usize {
    let text = String::from_utf8(script::TEXT.to_vec()).unwrap();
    let numbers = [sequence, 4, held, demand, 0].map(|number| number.to_string());
    let mut command = vec!["EVAL", &text, "1", KEY, "00000000000000ff", "5000000", "0"];
    command.extend(numbers.iter().map(String::as_str));
    match redis.command(&command) {
        Answer::Array(elements) => match elements[0] {
            Answer::Integer(count) => count.try_into().unwrap(),
            _ => panic!("{elements:?}"),
        },
        other => panic!("{other:?}"),
    }
}

async fn line() -> String {
    let shown = ask("show store fleet").await;
    shown.lines().find(|line| line.starts_with("slots ")).unwrap().to_owned()
}

/// Waits until the line of `show store` contains that.
async fn wait(text: &str) {
    for _ in 0..3_000 {
        if line().await.contains(text) {
            return;
        }
        sleep(10).await;
    }
    panic!("{text}: {}", line().await);
}

#[test]
fn two_nodes_share_the_slots_of_a_server() {
    leased("").run(|world| async move {
        let redis = Redis::default();
        redis.serve(&world.scope, STORE);
        let gauge = Gauge::open(&world);
        let is_over = crowd(&world, 12);
        wait(READY).await;
        let (mut slots, mut most) = (0, 0);
        for sequence in 1..60 {
            // The other one uses whatever it gets.
            slots = claim(&redis, sequence, slots, 50);
            for _ in 0..50 {
                most = most.max(gauge.now.get() + slots);
                sleep(1).await;
            }
        }
        assert_eq!((slots, most), (2, 4));
        wait("maxconn 4 leased 2 used 2 waiting 10 nodes 2 lost local").await;
        // It dies: what it holds returns.
        sleep(5_200).await;
        assert!(line().await.contains("leased 4 used 4 waiting 8 nodes 1"), "{}", line().await);
        is_over.set(true);
        sleep(500).await;
        assert_eq!((gauge.now.get(), gauge.most.get()), (0, 4));
        assert!(line().await.contains("leased 4 used 0 waiting 0"), "{}", line().await);
    });
}

#[test]
fn commands_change_the_slots_of_all_nodes() {
    leased("").workers(&[1]).run(|world| async move {
        let redis = Redis::default();
        redis.serve(&world.scope, STORE);
        let gauge = Gauge::open(&world);
        let is_over = crowd(&world, 12);
        wait(READY).await;
        for (most, expected) in [("2", "maxconn 2 leased 2 used 2"), ("7", "maxconn 7 leased 7 used 7")] {
            order(&format!("set maxconn server l/s1 {most}")).await;
            wait(expected).await;
        }
        let table = ask("show stat").await;
        assert_eq!(crate::api::column(&table, "l,s1", "slim"), "7");
        order("set maxconn server l/s1 0").await;
        wait("maxconn - leased - used 12").await;
        order("set maxconn server l/s1 3").await;
        wait("maxconn 3 leased 3 used 3").await;
        is_over.set(true);
        sleep(500).await;
        assert_eq!(gauge.now.get(), 0);
    });
}

#[test]
fn slots_are_a_part_of_what_slowstart_and_minconn_allow() {
    let body = |options: &str| leased_with(&format!("maxconn-store fleet {options}")).workers(&[1]).seeds(0..1);
    body("slowstart 8s").run(|world| async move {
        let redis = Redis::default();
        redis.serve(&world.scope, STORE);
        let gauge = Gauge::open(&world);
        wait(READY).await;
        order("disable server l/s1").await;
        order("enable server l/s1").await;
        let is_over = crowd(&world, 12);
        sleep(1_500).await;
        assert_eq!(gauge.most.get(), 1, "a sixteenth, then three");
        sleep(8_000).await;
        assert_eq!(gauge.most.get(), 4);
        is_over.set(true);
        sleep(500).await;
    });
    body("minconn 1").run(|world| async move {
        let redis = Redis::default();
        redis.serve(&world.scope, STORE);
        let gauge = Gauge::open(&world);
        wait(READY).await;
        let is_over = crowd(&world, 12);
        sleep(500).await;
        // The automatic fullconn is far away.
        assert_eq!(gauge.most.get(), 1);
        assert!(line().await.contains("maxconn 4 leased 4 used 1 waiting 11"), "{}", line().await);
        is_over.set(true);
        sleep(500).await;
    });
}

#[test]
fn the_word_decides_when_there_is_no_store() {
    for (lost, expected) in [("lost local", 4), ("lost open", 4), ("lost closed", 0)] {
        leased(lost).run(move |world| async move {
            let gauge = Gauge::open(&world);
            let is_over = crowd(&world, 12);
            sleep(1_000).await;
            assert_eq!(gauge.most.get(), expected, "{lost}");
            assert!(line().await.contains(&format!("state LOST maxconn 4 leased {expected} ")), "{}", line().await);
            is_over.set(true);
            // Once there is one, requests that wait are served.
            let redis = Redis::default();
            redis.serve(&world.scope, STORE);
            sleep(8_000).await;
            assert_eq!((gauge.now.get(), gauge.most.get()), (0, 4), "{lost}");
            world.forget_log();
        });
    }
}

/// Answers of a store to claims, and what the log says.
const LIES: [(&str, &str); 8] = [
    ("-OOM command not allowed\r\n", "EVALSHA was answered with 'OOM command not allowed'"),
    ("-NOSCRIPT No matching script\r\n", "EVALSHA was answered with 'NOSCRIPT No matching script'"),
    ("+OK\r\n", "unexpected answer to EVALSHA"),
    ("*2\r\n:1\r\n:1\r\n", "unexpected answer to EVALSHA"),
    ("*3\r\n:-3\r\n:1\r\n:0\r\n", "unexpected answer to EVALSHA"),
    ("*3\r\n:4\r\n:0\r\n:0\r\n", "unexpected answer to EVALSHA"),
    ("*3\r\n:99999999999\r\n:1\r\n:0\r\n", "unexpected answer to EVALSHA"),
    ("", "no answer within 1000ms"),
];

/// Answers `SCRIPT LOAD`.
fn digest(text: &[u8]) -> String {
    use sha1::Digest as _;
    let digest: String = sha1::Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("${}\r\n{digest}\r\n", digest.len())
}

/// A store whose answers to claims are the content of the cell.
fn lie(world: &World, answer: &Rc<RefCell<String>>) {
    let answer = Rc::clone(answer);
    Service::at(STORE).serve(&world.scope, move |mut peer, _| {
        let answer = Rc::clone(&answer);
        async move {
            let mut input = Vec::new();
            loop {
                let some = peer.receive_some().await;
                input.extend(some.iter());
                if some.is_empty() {
                    return;
                }
                while let Ok(Ok((Reply::Array(words), taken))) = next_reply(&input, 1 << 20) {
                    let word = |at: usize| match words.get(at) {
                        Some(Reply::Bulk(bytes)) => bytes.to_vec(),
                        other => panic!("{other:?}"),
                    };
                    let reply = match word(0).as_slice() {
                        b"SCRIPT" => digest(&word(2)),
                        _ if word(3) == b"weir:nodes" => ":1\r\n".to_owned(),
                        _ => answer.borrow().clone(),
                    };
                    input.drain(..taken);
                    if !peer.try_send(reply).await {
                        return;
                    }
                }
            }
        }
    });
}

#[test]
fn a_store_that_lies_is_lost() {
    for (text, told) in LIES {
        leased("lost closed").workers(&[1]).seeds(0..1).run(move |world| async move {
            let answer = Rc::new(RefCell::new("*3\r\n:4000000\r\n:1\r\n:0\r\n".to_owned()));
            lie(&world, &answer);
            let gauge = Gauge::open(&world);
            let is_over = crowd(&world, 12);
            wait("state LEASED maxconn 4 leased 4 used 4").await;
            assert_eq!(gauge.most.get(), 4, "it cannot grant more than maxconn");
            world.take_log().await;
            answer.replace(text.to_owned());
            sleep(2_000).await;
            let lines = world.take_log().await;
            assert!(lines[0].contains(&format!("Store fleet is LOST, server redis1: {told}.")), "{text:?} {lines:?}");
            // The lease is valid until it expires.
            sleep(1_000).await;
            assert_eq!(gauge.now.get(), 4, "{text:?}");
            sleep(4_000).await;
            assert_eq!(gauge.now.get(), 0, "{text:?}");
            is_over.set(true);
            answer.replace("*3\r\n:3\r\n:2\r\n:1\r\n".to_owned());
            sleep(8_000).await;
            assert_eq!((gauge.now.get(), gauge.most.get()), (0, 4), "{text:?}");
            world.forget_log();
        });
    }
}

#[test]
fn a_key_with_other_data_is_named_once() {
    leased("").workers(&[1]).run(|world| async move {
        let redis = Redis::default();
        redis.set(KEY, b"mine");
        redis.serve(&world.scope, STORE);
        sleep(30_000).await;
        assert!(line().await.contains("state LOST maxconn 4 leased 4"), "{}", line().await);
        let lines = world.take_log().await;
        let told = "Store fleet: the key of server l/s1 holds other data, its slots are lost.";
        assert_eq!(lines.iter().filter(|line| line.contains(told)).count(), 1, "{lines:?}");
        world.forget_log();
    });
}

#[test]
fn a_process_that_stops_gives_its_slots_back() {
    leased("").run(|world| async move {
        let redis = Redis::default();
        redis.serve(&world.scope, STORE);
        let (received, is_free) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let (counted, freed) = (Rc::clone(&received), Rc::clone(&is_free));
        Service::at(S1).serve(&world.scope, move |mut peer, _| {
            let (received, is_free) = (Rc::clone(&counted), Rc::clone(&freed));
            async move {
                if peer.receive_head().await.is_none() {
                    return;
                }
                received.set(received.get() + 1);
                while !is_free.get() {
                    sleep(1).await;
                }
                peer.send(OK).await;
            }
        });
        wait(READY).await;
        for _ in 0..3 {
            world.scope.spawn(async move {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                client.receive_rest().await;
            });
        }
        wait("used 3").await;
        world.stop();
        sleep(500).await;
        // It keeps what its requests need, and no more.
        assert_eq!((claim(&redis, 1, 0, 4), received.get()), (1, 3));
        is_free.set(true);
        sleep(300).await;
        assert!(world.is_drained().await);
        assert_eq!(claim(&redis, 2, 1, 4), 4);
        let commands = redis.commands();
        let last = commands.iter().rfind(|command| command.iter().any(|word| word == KEY.as_bytes())).unwrap();
        assert_eq!(last[5..7], [b"1000000".to_vec(), b"1".to_vec()], "a short lease of a process that ends");
    });
}

#[test]
fn a_server_that_was_removed_has_no_lease() {
    // Worlds share the program, from which the server is removed.
    leased("").workers(&[1]).seeds(0..1).run(|world| async move {
        let redis = Redis::default();
        redis.serve(&world.scope, STORE);
        wait(READY).await;
        order("disable server l/s1").await;
        assert!(ask("del server l/s1").await.contains("Server deleted."));
        sleep(100).await;
        let before = redis.commands().len();
        sleep(1_000).await;
        let since = &redis.commands()[before..];
        let claims = since.iter().filter(|command| command.iter().any(|word| word == KEY.as_bytes()));
        assert_eq!(claims.count(), 0);
        assert!(line().await.contains("server l/s1 state REMOVED "), "{}", line().await);
        let refused = ask("add server l/s3 10.0.1.3:80 maxconn 4 maxconn-store fleet").await;
        assert!(refused.contains("'maxconn-store' option is not accepted for dynamic server"), "{refused}");
    });
}

#[test]
fn leases_are_not_changed_in_place() {
    leased("").workers(&[1]).seeds(0..1).run(|world| async move {
        for options in ["", "maxconn-store fleet lost open"] {
            let next = leased_with(options);
            let refused = world.adopt(&next);
            assert_eq!(refused, Err(Refusal::Differs("stores of the configuration".to_owned())), "{options}");
        }
        // The place of the proxy in the configuration does not matter.
        let sections = ["backend other\n server s1 10.0.1.9:80\n", &leased_sections("maxconn-store fleet")].concat();
        assert_eq!(world.adopt(&config(&sections).global(SOCKET)), Ok(()));
        let redis = Redis::default();
        redis.serve(&world.scope, STORE);
        wait(READY).await;
    });
}

/// The lease of a removed server has ended, so that a new worker is needed for one of its name.
#[test]
fn a_removed_server_does_not_return_in_place() {
    leased("").workers(&[1]).seeds(0..1).run(|world| async move {
        assert_eq!(world.adopt(&leased("")), Ok(()));
        let (next, _) = world.read(&leased("")).unwrap();
        order("set server l/s1 state maint").await;
        assert_eq!(ask("del server l/s1").await, "Server deleted.\n\n");
        // Whether the configuration was read before the server was removed or after it.
        let removed = "servers with 'maxconn-store' that were removed".to_owned();
        assert_eq!(world.shared().adopt(next), Err(Refusal::Differs(removed)));
        assert_eq!(world.adopt(&leased("")), Err(Refusal::Differs("stores of the configuration".to_owned())));
    });
}
