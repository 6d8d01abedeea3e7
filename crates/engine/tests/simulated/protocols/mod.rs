//! The choice of a connection's protocol: by `proto`, by ALPN and by the first bytes, in HTTP mode and where TCP mode goes over to it. Each
//! row of the table is a connection to an address, and what HAProxy 3.5 does with it (`bench/protocols.py`).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use testkit::{Peer, Stopwatch, sleep, within};
use tls::client::{self, Client};

use crate::api::*;
use crate::secure::Secure;
use crate::world::*;

/// Milliseconds of `timeout http-request`.
const LIMIT: u64 = 1000;

/// A line of the table.
#[derive(Debug, Clone, Copy)]
struct Row {
    address: &'static str,
    alpn: &'static str,
    scene: &'static str,
    sent: &'static str,
    answer: &'static str,
    ended: &'static str,
    line: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    include_str!("haproxy.tsv").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [address, alpn, scene, sent, answer, ended, line] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        Row { address, alpn, scene, sent, answer, ended, line }
    })
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

/// Serves an address of the table.
fn worlds(address: &str) -> Worlds {
    let words: Vec<&str> = address.split('/').collect();
    let proto = match words.last() {
        Some(&"h1") => "proto h1",
        Some(&"h2") => "proto h2",
        _ => "",
    };
    let (mut bind, mut lines) = (proto.to_owned(), String::new());
    for word in &words {
        match *word {
            "tls" => bind = format!("ssl crt a.pem alpn h2,http/1.1 {proto}"),
            "off" => lines += " option disable-h2-upgrade\n",
            "probes" => lines += " option http-ignore-probes\n",
            "switch" => {
                (bind, lines) =
                    (String::new(), format!(" mode tcp\n tcp-request content switch-mode http {proto} if TRUE\n"));
            }
            _ => {}
        }
    }
    config(&format!(
        "frontend f\n bind {WEIR} {bind}\n timeout http-request {LIMIT}ms\n timeout client 10s\n \
         log-format \"%ts %ST %HV %{{+Q}}r\"\n error-log-format \"%ts %ST %HV %{{+Q}}r\"\n{lines} \
         default_backend b\nbackend b\n http-request return status 204\n"
    ))
    .workers(&[1])
    .seeds(0..2)
}

/// The client's end.
enum End {
    Clear(Peer),
    Tls(Box<Secure>),
}

impl End {
    async fn connect(row: &Row) -> End {
        if !row.address.starts_with("tls") {
            return End::Clear(Peer::connect(WEIR).await);
        }
        let alpn = if row.alpn == "-" { Vec::new() } else { vec![row.alpn.as_bytes().to_vec()] };
        let client = Client::new(client::Settings { alpn, ..client::Settings::default() }).unwrap();
        End::Tls(Box::new(Secure::connect(WEIR, &client, usize::MAX).await.unwrap()))
    }

    async fn send(&mut self, bytes: &[u8]) {
        let _ = match self {
            End::Clear(peer) => peer.try_send(bytes).await,
            End::Tls(secure) => secure.try_send(bytes).await,
        };
    }

    fn half_close(&mut self) {
        match self {
            End::Clear(peer) => peer.half_close(),
            End::Tls(_) => panic!("the table has no such row"),
        }
    }

    async fn receive_some(&mut self) -> Vec<u8> {
        match self {
            End::Clear(peer) => peer.receive_some().await,
            End::Tls(secure) => secure.receive_some().await,
        }
    }
}

/// The answer, as the table calls it.
fn kind(answer: &[u8]) -> String {
    if answer.get(3) == Some(&4) {
        return "h2".to_owned();
    }
    let text = String::from_utf8_lossy(answer);
    let statuses: Vec<&str> = text.split("HTTP/1.").skip(1).map(|part| &part[2..5]).collect();
    if statuses.is_empty() && answer.is_empty() { "-".to_owned() } else { statuses.join("+") }
}

/// The answer, the moment of the end, and lines of the log.
async fn play(world: &World, row: &Row) -> [String; 3] {
    let mut end = End::connect(row).await;
    let watch = Stopwatch::start();
    for (number, part) in row.sent.split('|').filter(|part| *part != "-").enumerate() {
        if number > 0 && part != "$" {
            sleep(100).await;
        }
        if part == "$" { end.half_close() } else { end.send(&unescape(part)).await }
    }
    let (mut answer, mut ended) = (Vec::new(), "open");
    let limit = Duration::from_millis(2 * LIMIT);
    while let Some(bytes) = within(limit.saturating_sub(watch.elapsed()), end.receive_some()).await {
        if bytes.is_empty() {
            ended = if watch.elapsed() < Duration::from_millis(LIMIT - 1) { "now" } else { "late" };
            break;
        }
        answer.extend(bytes);
    }
    drop(end);
    sleep(5).await;
    let lines = world.lines(0).await;
    let lines: Vec<&str> = lines.iter().map(|line| line.rsplit_once("]: ").map_or(&**line, |(_, rest)| rest)).collect();
    let lines = if lines.is_empty() { "-".to_owned() } else { lines.join(" | ") };
    [kind(&answer), ended.to_owned(), lines]
}

/// What Weir does with a row. It differs from HAProxy where a preface comes in pieces, and where a connection that has to begin with
/// one does not: the first wrong byte ends that, and `timeout http-request` bounds it.
fn expected(row: &Row) -> [String; 3] {
    const BAD: &str = "<BADREQ> \"<BADREQ>\"";
    let words: Vec<&str> = row.address.split('/').collect();
    let is_switched = words[0] == "switch";
    let has_upgrades = !words.contains(&"h1") && !words.contains(&"off");
    let is_h2 = words.contains(&"h2") || row.alpn == "h2" && !words.contains(&"h1");
    // The line of a stream that began in TCP mode has no status.
    let line = |state: &str, status: u16| match (state, is_switched) {
        ("-", _) => "-".to_owned(),
        (_, true) => format!("PR 0 {BAD}"),
        (state, false) => format!("{state} {status} {BAD}"),
    };
    let number = row.scene.split('-').nth(1).and_then(|number| number.parse::<u32>().ok()).unwrap_or_default();
    let scene = row.scene.split('-').next().unwrap_or_default();
    let (answer, ended, line) = match (row.scene, scene) {
        ("preface-in-pieces", _) if !is_h2 && has_upgrades => ("h2", "late", "-".to_owned()),
        ("preface-in-pieces", _) if !is_h2 => ("405", "now", line("PR", 405)),
        ("request-begun" | "junk", _) if is_h2 => ("-", "now", line("PR", 0)),
        ("preface-later", _) if is_switched && !is_h2 => (row.answer, row.ended, row.line.replace("PR 0", "PR 405")),
        // The preface alone is taken for no complete request of HTTP/1.
        ("cut-23-end", _) if !is_h2 => ("400", "now", line("CR", 400)),
        (_, "cut") if !is_h2 && number >= 18 => ("408", "late", line("cR", 408)),
        // Nor is `*` a target of methods but OPTIONS.
        (_, "broken") if !is_h2 && number < 3 => ("400", "now", line("PR", 400)),
        _ if row.answer == "400" && row.line.starts_with("PR ") => ("400", row.ended, line("PR", 400)),
        _ if row.answer == "h2" => ("h2", "late", row.line.to_owned()),
        _ if is_h2 && row.ended == "open" => ("-", "late", line(if is_switched { "PR" } else { "-" }, 0)),
        _ => (row.answer, row.ended, row.line.to_owned()),
    };
    [answer.to_owned(), ended.to_owned(), line]
}

#[test]
fn a_protocol_is_chosen_as_recorded() {
    let differences = Rc::new(RefCell::new(Vec::new()));
    let mut addresses: Vec<&str> = rows().map(|row| row.address).collect();
    addresses.dedup();
    for address in addresses {
        worlds(address).run(|world| {
            let differences = Rc::clone(&differences);
            async move {
                for row in rows().filter(|row| row.address == address) {
                    let found = play(&world, &row).await;
                    if found != expected(&row) {
                        let Row { address, alpn, scene, .. } = row;
                        differences
                            .borrow_mut()
                            .push(format!("{address} {alpn} {scene}: {found:?}, not {:?}", expected(&row)));
                    }
                }
            }
        });
    }
    let differences = differences.borrow();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// A preface that is refused is a glitch, but no malformed request that `show errors` keeps; a malformed one is both.
#[test]
fn a_refused_preface_is_a_glitch() {
    let sections = format!(
        "listen l\n bind {WEIR} proto h1\n log-format \"[1] %ts %ST - %[fc_glitches]\"\n http-request return status 204"
    );
    for (sent, line, errors) in
        [(&wire::h2::PREFACE[..], "PR 405 - 1", 0), (b"\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PR 400 - 1", 1)]
    {
        config(&sections).global(SOCKET).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(sent).await;
            client.receive_rest().await;
            world.expect_log(&[line]).await;
            let shown = ask("show errors").await;
            assert!(shown.contains(&format!(" : {errors}\n")), "{shown}");
        });
    }
}

/// The time of a request that begins like the preface runs from its first byte.
#[test]
fn a_request_that_may_become_a_preface_keeps_its_first_byte() {
    for proto in ["", "proto h1"] {
        let sections =
            format!("listen l\n bind {WEIR} {proto}\n log-format \"[1] l - %Ti/%TR\"\n http-request return status 204");
        config(&sections).workers(&[1]).run(|world| async move {
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..2 {
                sleep(100).await;
                client.send("P").await;
                sleep(200).await;
                client.send("OST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
                client.expect("HTTP/1.1 204 No Content\r\n\r\n").await;
                world.expect_log(&["l - 100/200"]).await;
            }
        });
    }
}
