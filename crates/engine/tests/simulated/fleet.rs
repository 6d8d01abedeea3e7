//! Limits of a store: a store that is slow, hung, gone, restarted or lying, and what the nodes' limits decide then.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use engine::store::{Client, Failure, Stores};
use rt::sim::Link;
use testkit::{Peer, Service, sleep};
use wire::resp::{OwnedReply, Reply, next_reply};

use crate::world::*;

/// The address of the store.
const STORE: &str = "10.0.6.1:6379";

/// The number of milliseconds after which a test waits in vain.
const MOST_WAITS: usize = 60_000;

/// How the store answers commands.
type Answer = fn(&Store, &[Vec<u8>]) -> Vec<u8>;

/// A store that a test controls. Other nodes are numbers.
struct Store {
    answer: Cell<Answer>,
    /// Commands, without the text of scripts.
    commands: RefCell<Vec<String>>,
    /// Whether it knows the script.
    has_script: Cell<bool>,
    /// Number of nodes, and tokens that it has for every key.
    nodes: Cell<i64>,
    tokens: Cell<i64>,
    /// It reads nothing.
    is_paused: Cell<bool>,
    /// It sends each byte by itself.
    drips: Cell<bool>,
}

impl Store {
    fn new(answer: Answer) -> Rc<Self> {
        Rc::new(Self {
            answer: Cell::new(answer),
            commands: RefCell::default(),
            has_script: Cell::new(false),
            nodes: Cell::new(2),
            tokens: Cell::new(100),
            is_paused: Cell::new(false),
            drips: Cell::new(false),
        })
    }

    /// Serves connections until the end of the world; returns their number.
    fn open(self: &Rc<Self>, world: &World) -> Rc<Cell<usize>> {
        let store = Rc::clone(self);
        Service::at(STORE).serve(&world.scope, move |mut peer, _| {
            let store = Rc::clone(&store);
            async move {
                let mut input = Vec::new();
                loop {
                    while store.is_paused.get() {
                        sleep(1).await;
                    }
                    let some = peer.receive_some().await;
                    if some.is_empty() {
                        return;
                    }
                    input.extend(some);
                    while let Some((command, taken)) = command(&input) {
                        input.drain(..taken);
                        let answer = (store.answer.get())(&store, &command);
                        let words = command.iter().map(|word| String::from_utf8_lossy(word).into_owned());
                        let words: Vec<_> = words.filter(|word| word.len() < 100).collect();
                        store.commands.borrow_mut().push(words.join(" "));
                        let piece = if store.drips.get() { 1 } else { answer.len().max(1) };
                        for piece in answer.chunks(piece) {
                            if !peer.try_send(piece).await {
                                return;
                            }
                            if store.drips.get() {
                                sleep(1).await;
                            }
                        }
                    }
                }
            }
        })
    }

    /// Waits until a command has been received whose text contains that.
    async fn wait(&self, text: &str) {
        for _ in 0..MOST_WAITS {
            if self.commands.borrow().iter().any(|command| command.contains(text)) {
                return;
            }
            sleep(1).await;
        }
        let commands = self.commands.borrow();
        panic!("{text} is missing: {:?}", &commands[commands.len().saturating_sub(10)..]);
    }
}

/// Decodes a command at the start of a text.
fn command(input: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let (Reply::Array(words), taken) = next_reply(input, 1 << 20).unwrap().ok()? else { panic!("no command") };
    let words = words.into_iter().map(|word| match word {
        Reply::Bulk(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    });
    Some((words.collect(), taken))
}

/// A store as it should be. It grants tokens while it has some.
fn sound(store: &Store, command: &[Vec<u8>]) -> Vec<u8> {
    let word = |at: usize| std::str::from_utf8(&command[at]).unwrap();
    match word(0) {
        "SCRIPT" => {
            store.has_script.set(true);
            let digest = hex(&command[2]);
            format!("${}\r\n{digest}\r\n", digest.len()).into()
        }
        "EVALSHA" if !store.has_script.get() => b"-NOSCRIPT No matching script.\r\n".into(),
        "EVALSHA" => {
            let keys: usize = word(2).parse().unwrap();
            let arguments = &command[3 + keys..];
            if arguments[0] == b"nodes" {
                return format!(":{}\r\n", store.nodes.get()).into();
            }
            let mut answer = format!("*{}\r\n", 2 * keys);
            for at in 0..keys {
                let number = |at: usize| std::str::from_utf8(&arguments[at]).unwrap().parse::<i64>().unwrap();
                let (spent, want) = (number(4 + 3 * at), number(6 + 3 * at));
                let left = store.tokens.get() - spent;
                let granted = want.min(left).max(0);
                store.tokens.set(left - granted);
                answer.push_str(&format!(":{granted}\r\n:{}\r\n", store.tokens.get()));
            }
            answer.into()
        }
        "AUTH" | "SELECT" | "SET" => b"+OK\r\n".into(),
        other => panic!("{other}"),
    }
}

/// The SHA-1 digest of a text in hexadecimal.
fn hex(text: &[u8]) -> String {
    use sha1::Digest as _;
    sha1::Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A proxy that answers 429 to those that exceed the limit of their path: 100 tokens at once, then one per minute.
fn limited(lines: &str, lost: &str) -> Worlds {
    config(&format!(
        "store fleet\n server redis1 {STORE}\n{lines}\n limit paths rate 100 period 100m lost {lost}\n\
         frontend f\n bind {WEIR}\n no log\n http-request deny deny_status 429 if {{ path,exceeds(fleet/paths) }}\n \
         http-request return status 200\n"
    ))
}

/// Returns the number of requests for a path that are admitted, of `count` over one connection.
async fn admitted(path: &str, count: usize) -> usize {
    let mut client = Peer::connect(WEIR).await;
    let mut admitted = 0;
    for _ in 0..count {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let head = client.receive_head().await.unwrap();
        let length = head
            .to_ascii_lowercase()
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
        client.receive(length).await;
        admitted += usize::from(head.starts_with("HTTP/1.1 200"));
    }
    admitted
}

fn is_up(world: &World) -> bool {
    world.shared().service::<Stores>().find("fleet").unwrap().is_ready()
}

async fn wait(world: &World, up: bool) {
    for _ in 0..MOST_WAITS {
        if is_up(world) == up {
            return;
        }
        sleep(1).await;
    }
    panic!("the state of the store stays {}", is_up(world));
}

#[test]
fn the_script_is_loaded_again() {
    limited("", "closed").run(|world| async move {
        let store = Store::new(sound);
        store.open(&world);
        wait(&world, true).await;
        store.has_script.set(false);
        assert_eq!(admitted("/a", 1).await, 1);
        sleep(200).await;
        assert!(store.has_script.get() && is_up(&world));
        // One that never has it is at fault.
        store.answer.set(|store, command| {
            store.has_script.set(false);
            sound(store, command)
        });
        assert_eq!(admitted("/b", 1).await, 1);
        wait(&world, false).await;
        assert_eq!(admitted("/c", 1).await, 0);
    });
}

#[test]
fn a_store_that_is_not_there_leaves_what_the_line_says() {
    for (lost, expected) in [("local", 100), ("open", 120), ("closed", 0)] {
        limited("", lost).seeds(0..1).run(move |world| async move {
            assert_eq!(admitted("/a", 120).await, expected, "{lost}");
            sleep(60_000).await;
            let store = Store::new(sound);
            let connections = store.open(&world);
            // It is tried again at least every five seconds.
            let begun = rt::now();
            wait(&world, true).await;
            assert!(rt::now().saturating_since(begun) <= Duration::from_millis(5_100));
            assert_eq!(connections.get(), 1);
        });
    }
}

/// Faults of a store: its name, its answer to a request for tokens, and a part of the log line.
const FAULTS: [(&str, Answer, &str); 12] = [
    ("an error", |_, _| b"-ERR unknown\r\n".into(), "EVALSHA was answered with 'ERR unknown'"),
    ("no memory", |_, _| b"-OOM command not allowed\r\n".into(), "EVALSHA was answered with 'OOM command not allowed'"),
    ("a cluster", |_, _| b"-MOVED 866 10.0.0.7:6379\r\n".into(), "EVALSHA was answered with 'MOVED 866 10.0.0.7:6379'"),
    ("loading", |_, _| b"-LOADING Redis is loading\r\n".into(), "EVALSHA was answered with 'LOADING Redis is loading'"),
    ("another type", |_, _| b"+OK\r\n".into(), "unexpected answer to EVALSHA"),
    ("too few numbers", |_, _| b"*1\r\n:1\r\n".into(), "unexpected answer to EVALSHA"),
    ("no RESP", |_, _| b"HTTP/1.1 200 OK\r\n\r\n".into(), "an answer is no RESP2 or exceeds answer-size"),
    ("an announced size", |_, _| b"$1000000\r\n".into(), "an answer is no RESP2 or exceeds answer-size"),
    ("an endless line", |_, _| vec![b'+'; 100_000], "an answer is no RESP2 or exceeds answer-size"),
    ("an endless answer", |_, _| b"*1000\r\n$5000\r\n".into(), "no answer within 1000ms"),
    ("half an answer", |_, _| b"*2\r\n:1\r\n".into(), "no answer within 1000ms"),
    ("two answers", |_, _| b"*2\r\n:1\r\n:1\r\n:1\r\n".into(), "an answer without a command"),
];

#[test]
fn a_store_that_lies_is_lost_until_it_works_again() {
    for (name, fault, line) in FAULTS {
        limited("", "closed").seeds(0..2).workers(&[1, 2]).run(move |world| async move {
            let store = Store::new(sound);
            store.open(&world);
            wait(&world, true).await;
            world.take_log().await;
            store.answer.set(fault);
            assert_eq!(admitted("/a", 1).await, 1, "{name}");
            wait(&world, false).await;
            let lines = world.take_log().await;
            assert!(lines[0].contains(&format!("Store fleet is LOST, server redis1: {line}.")), "{name}: {lines:?}");
            assert_eq!(admitted("/b", 1).await, 0, "{name}");
            // While it lies, nothing more is logged.
            sleep(20_000).await;
            world.expect_no_log();
            store.answer.set(sound);
            wait(&world, true).await;
            let lines = world.take_log().await;
            assert!(lines[0].contains("Store fleet is UP, connected to server redis1."), "{name}: {lines:?}");
            assert_eq!(admitted("/c", 1).await, 1, "{name}");
            world.forget_log();
        });
    }
}

#[test]
fn a_store_that_hangs_delays_no_request() {
    limited("timeout server 5s", "closed").run(|world| async move {
        let store = Store::new(sound);
        store.open(&world);
        wait(&world, true).await;
        store.answer.set(|_, _| Vec::new());
        let begun = rt::now();
        // What may be taken before an answer is taken, and nothing waits.
        assert_eq!(admitted("/a", 100).await, 25);
        assert!(rt::now().saturating_since(begun) < Duration::from_millis(200));
        wait(&world, false).await;
        assert!(rt::now().saturating_since(begun) >= Duration::from_millis(5_000));
        assert_eq!(admitted("/b", 1).await, 0);
    });
}

#[test]
fn requests_for_a_scarce_key_do_not_wait_for_answers() {
    limited("timeout server 5s", "closed").seeds(0..2).run(|world| async move {
        let store = Store::new(sound);
        store.open(&world);
        wait(&world, true).await;
        store.answer.set(|_, _| Vec::new());
        for _ in 0..50 {
            admitted("/a", 1).await;
            sleep(20).await;
        }
        let commands = store.commands.borrow();
        let taken = commands.iter().filter(|command| command.contains("limit:paths:/a take")).count();
        assert!((10..=16).contains(&taken), "{taken}");
    });
}

/// Sends commands of that size until the queue is full; returns their number.
async fn fill(client: &Client, size: usize) -> usize {
    let value = vec![b'x'; size];
    let mut sent = 0;
    loop {
        match client.send(&[b"SET", b"key", &value]) {
            Ok(_) => sent += 1,
            Err(failure) => {
                assert_eq!(failure, Failure::Full);
                return sent;
            }
        }
        if sent % 20 == 0 {
            // The connection takes them.
            sleep(1).await;
        }
    }
}

#[test]
fn debts_outlive_a_queue_that_is_full() {
    limited("timeout server 5s", "closed").run(|world| async move {
        let store = Store::new(sound);
        store.open(&world);
        wait(&world, true).await;
        store.is_paused.set(true);
        let client = Arc::clone(world.shared().service::<Stores>().find("fleet").unwrap());
        fill(&client, 1).await;
        assert_eq!(admitted("/a", 10).await, 10);
        sleep(500).await;
        // Presence, and requests of tokens.
        assert!(client.counts.refused.load(Relaxed) >= 3);
        store.is_paused.set(false);
        store.wait("limit:paths:/a take").await;
        assert!(is_up(&world));
        let commands = store.commands.borrow();
        let taken = commands.iter().find(|command| command.contains("limit:paths:/a take")).unwrap();
        assert_eq!(taken.split(' ').rev().nth(2), Some("10"), "{taken}");
    });
}

#[test]
fn answers_may_arrive_byte_by_byte() {
    limited("", "closed").seeds(0..2).run(|world| async move {
        let store = Store::new(sound);
        store.drips.set(true);
        store.open(&world);
        wait(&world, true).await;
        let client = Arc::clone(world.shared().service::<Stores>().find("fleet").unwrap());
        let pending: Vec<_> = (0..3).map(|_| client.send(&[b"SET", b"key", b"x"]).unwrap()).collect();
        for answer in pending {
            assert_eq!(answer.await, Ok(OwnedReply::Simple(b"OK"[..].into())));
        }
        assert_eq!(admitted("/a", 1).await, 1);
        store.wait("limit:paths:/a take").await;
        sleep(1_000).await;
        assert!(is_up(&world));
    });
}

/// What waits for a socket that is full counts as well.
#[test]
fn the_bytes_of_commands_are_bounded() {
    limited("timeout server 1h", "closed").workers(&[1]).run(|world| async move {
        let store = Store::new(sound);
        store.open(&world);
        wait(&world, true).await;
        let client = Arc::clone(world.shared().service::<Stores>().find("fleet").unwrap());
        for _ in 0..2 {
            store.is_paused.set(true);
            let sent = fill(&client, 60_000).await;
            // 4 MB, and what the network has taken.
            assert!((60..150).contains(&sent), "{sent}");
            store.is_paused.set(false);
            for _ in 0..sent {
                sleep(100).await;
            }
            assert!(is_up(&world));
        }
    });
}

#[test]
fn a_slow_store_keeps_up_with_the_rate() {
    let slow = |_| Link { latency: Duration::from_millis(50), jitter: Duration::from_millis(5), ..Link::default() };
    let worlds = limited("", "closed").links(slow).seeds(0..2).workers(&[1]);
    worlds.run(|world| async move {
        let store = Store::new(sound);
        store.tokens.set(1_000_000);
        store.open(&world);
        wait(&world, true).await;
        // One request each 100 ms.
        assert_eq!(admitted("/a", 90).await, 90);
        assert!(is_up(&world));
    });
}

#[test]
fn a_key_with_other_data_is_lost_alone() {
    limited("", "closed").run(|world| async move {
        let store = Store::new(sound);
        store.open(&world);
        wait(&world, true).await;
        store.answer.set(|store, command| match command.iter().any(|word| word.ends_with(b"/bad")) {
            true => b"*2\r\n:-1\r\n:0\r\n".into(),
            false => sound(store, command),
        });
        assert_eq!(admitted("/bad", 1).await, 1);
        store.wait("/bad").await;
        sleep(50).await;
        assert_eq!((admitted("/bad", 1).await, admitted("/good", 1).await), (0, 1));
        let lines = world.take_log().await;
        let told = lines.iter().filter(|line| line.contains("key '/bad' of limit paths holds other data")).count();
        assert_eq!(told, 1, "{lines:?}");
        world.forget_log();
    });
}
