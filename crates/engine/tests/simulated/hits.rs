//! Tests of cached responses sent with one write: clients, the log and the statistics see no difference from those that
//! flow.

use std::sync::{Arc, Mutex};

use rt::sim::Link;
use testkit::{Peer, Service};

use crate::api::*;
use crate::world::*;

/// A rule that never matches. With a rule that may wait, answers flow.
const NEVER: &str = "http-response wait-for-body time 1s if { always_false }\n";

/// The server's response, by path.
fn stored(path: &str) -> Vec<u8> {
    let (length, fields) = match path {
        "/empty" => (0, ""),
        "/short" => (5, "ETag: \"e\"\r\nX-Mark: 1\r\nSet-Cookie: a=b\r\n"),
        "/pieces" => (16_000, "Last-Modified: Tue, 24 Nov 2026 18:00:00 GMT\r\n"),
        "/long" => (60_000, "ETag: W/\"l\"\r\n"),
        _ => (11, "X-Deny: 1\r\n"),
    };
    let head =
        format!("HTTP/1.1 200 Very Well\r\n{fields}Cache-Control: max-age=50\r\nContent-Length: {length}\r\n\r\n");
    [head.into_bytes(), (b'a'..=b'z').cycle().take(length).collect()].concat()
}

/// Requests that get each of these responses in every form.
fn requests() -> Vec<String> {
    let mut all = Vec::new();
    for path in ["/empty", "/short", "/pieces", "/long", "/denied"] {
        for fields in [
            "",
            "If-None-Match: \"e\"\r\n",
            "Range: bytes=1-3\r\n",
            "If-Modified-Since: Tue, 24 Nov 2026 18:00:00 GMT\r\n",
        ] {
            all.push(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        }
        all.push(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    all
}

/// Receives one answer.
async fn answered(client: &mut Peer, has_head_alone: bool) -> String {
    let head = client.receive_head().await.unwrap();
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: ")).map(str::to_owned);
    let has_body = !has_head_alone && !head.starts_with("HTTP/1.1 304") && !head.starts_with("HTTP/1.1 204");
    let length = length.filter(|_| has_body).map_or(0, |length| length.parse().unwrap());
    let body = if length > 0 { client.receive(length).await } else { Vec::new() };
    head + &String::from_utf8(body).unwrap()
}

/// The answers, log lines and statistics of hits with those rules: of requests one after the other, and with
/// `at_a_time` also of concurrent ones.
fn told(rules: &str, link: fn(u64) -> Link, at_a_time: bool) -> Vec<String> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&found);
    let proxy = format!(
        "log-format \"%HM %HP %ST %B %[res.bytes_in] %U %ts %CC %hrl %hsl %s\"\n http-request cache-use c\n {rules}\n \
         http-response cache-store c\n server s1 10.0.1.1:80\ncache c\n total-max-size 1\n max-object-size 500000\n ranges on"
    );
    listen(&proxy).global(SOCKET).workers(&[1]).seeds(0..3).links(link).run(move |world| {
        let notes = Arc::clone(&notes);
        async move {
            let (mut s1, mut told) = (Service::at(S1), Vec::new());
            let asks = requests();
            for asked in asks.iter().filter(|asked| asked.starts_with("GET") && asked.matches("\r\n").count() == 3) {
                let mut client = Peer::connect(WEIR).await;
                client.send(asked.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await;
                let mut server = s1.accept().await;
                let head = server.receive_head().await.unwrap();
                let path = head.split(' ').nth(1).unwrap().to_owned();
                testkit::both(server.send(stored(&path)), client.receive_rest()).await;
            }
            world.lines(5).await;
            let mut kept = None;
            for asked in &asks {
                let mut client = match kept.take() {
                    Some(client) => client,
                    None => Peer::connect(WEIR).await,
                };
                client.send(asked).await;
                let answer = answered(&mut client, asked.starts_with("HEAD")).await;
                kept = Some(client).filter(|_| !answer.contains("\r\nconnection: close\r\n"));
                told.push(answer);
            }
            drop(kept);
            let lines = if at_a_time { 2 * asks.len() + 1 } else { asks.len() };
            if at_a_time {
                let last = "GET /short HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
                let mut client = Peer::connect(WEIR).await;
                client.send(asks.concat() + last).await;
                told.push(String::from_utf8(client.receive_rest().await).unwrap());
            }
            told.extend(world.lines(lines).await);
            told.push(counted(&ask("show stat").await));
            notes.lock().unwrap().append(&mut told);
        }
    });
    let mut found = found.lock().unwrap();
    found.iter_mut().for_each(|text| *text = without_ages(text));
    std::mem::take(&mut *found)
}

/// Removes the values of Age fields, since durations are not compared.
fn without_ages(text: &str) -> String {
    let lines = text.split("\r\n").map(|line| if line.starts_with("age: ") { "age" } else { line });
    lines.collect::<Vec<_>>().join("\r\n")
}

/// The frontend's statistics.
fn counted(table: &str) -> String {
    const COLUMNS: &[&str] = &[
        "bin",
        "bout",
        "dresp",
        "eresp",
        "wrew",
        "req_tot",
        "hrsp_2xx",
        "hrsp_3xx",
        "hrsp_4xx",
        "hrsp_5xx",
        "cache_hits",
        "cache_lookups",
        "intercepted",
        "cli_abrt",
        "eint",
    ];
    let names: Vec<&str> = table.lines().next().unwrap().trim_start_matches("# ").split(',').collect();
    let row: Vec<&str> = table.lines().find(|line| line.starts_with("l,FRONTEND,")).unwrap().split(',').collect();
    let one = |name: &&str| format!("{name} {}", row[names.iter().position(|found| found == name).unwrap()]);
    COLUMNS.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Bytes of a cached response are counted as those of a server, heads included: only the framing of chunks is missing
/// from the client's bytes.
fn heads_count(told: &[String]) {
    let hits: Vec<&String> = told.iter().filter(|line| line.contains(" <CACHE>")).collect();
    assert!(hits.len() > 10, "{told:?}");
    for line in hits {
        let numbers: Vec<usize> = line
            .split(' ')
            .skip_while(|word| !word.starts_with('/'))
            .skip(2)
            .take(2)
            .map(|word| word.parse().unwrap())
            .collect();
        assert!(numbers[1] > 40 && (0..20).contains(&(numbers[0] - numbers[1])), "{line}");
    }
}

/// With every kind of rule on answers that does not wait, and with everything that prevents a response from being sent
/// at once.
#[test]
fn a_hit_is_the_same_whether_it_flows_or_not() {
    let rules = [
        "",
        "http-response set-header x-hit %[res.cache_hit],%[status],%[res.hdr(age)]\n http-response add-header a b",
        "http-response set-header cache-control private if { res.cache_hit }\n http-response del-header etag",
        "http-response deny status 403 if { res.cache_hit } { res.hdr(x-deny) 1 }",
        "http-response return status 404 content-type a/b string gone if { res.cache_hit } { res.hdr(x-mark) 1 }",
        "http-response redirect location /elsewhere if { res.cache_hit } { res.hdr(x-mark) 1 }",
        "http-response set-status 204 if { res.cache_hit } { res.hdr(x-mark) 1 }",
        "http-response set-status 503 reason Never if { res.cache_hit } { res.hdr(x-mark) 1 }",
        "http-response set-var(txn.a) res.hdr(etag)\n http-after-response set-header x-after %[var(txn.a)]",
        "http-after-response del-header cache-control",
        "http-response allow if { res.cache_hit }",
        "capture response header etag len 10\n capture request header host len 5\n capture cookie a len 5",
        "option checkcache",
        "option http-server-close",
        "option httpclose",
        "http-response set-header connection close if { res.hdr(x-mark) 1 }",
        "http-response del-header content-length if { res.cache_hit }",
        "compression algo gzip\n compression type a/b",
        "timeout client 1s\n http-response set-timeout client 30s",
        "http-request set-method HEAD if { path /long }",
        "cookie SRV insert\n option http-keep-alive",
    ];
    for rules in rules {
        let stays = !rules.contains("close");
        let at_once = told(rules, |_| Link::default(), stays);
        assert!(at_once.len() > 3, "{rules}");
        if rules.is_empty() {
            heads_count(&at_once);
        }
        let flowing = told(&format!("{rules}\n {NEVER}"), |_| Link::default(), stays);
        for (one, other) in at_once.iter().zip(&flowing) {
            assert!(one == other, "{rules}\n{one}\n{other}");
        }
        assert_eq!(at_once.len(), flowing.len(), "{rules}");
    }
}

/// Less than a head fits on the link to these clients.
#[test]
fn a_hit_that_is_taken_in_pieces_goes_on() {
    let narrow = |_| Link { buffer: 90, ..Link::default() };
    let (whole, pieces) = (told("", |_| Link::default(), false), told("", narrow, false));
    assert!(whole == pieces, "{whole:?}\n{pieces:?}");
}

/// A client that stops reading an answer gets its timeout, and the log shows a truncated answer.
#[test]
fn a_client_that_does_not_take_a_hit_is_late() {
    for rules in ["", NEVER] {
        let proxy = format!(
            "timeout client 2s\n http-request cache-use c\n http-response cache-store c\n {rules}\n \
             server s1 10.0.1.1:80\ncache c\n total-max-size 1\n max-object-size 500000"
        );
        let narrow = |_| Link { fragment: false, buffer: 6_000, ..Link::default() };
        listen(&proxy).workers(&[1]).seeds(0..1).links(narrow).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("GET /pieces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            let mut server = s1.accept().await;
            server.receive_head().await.unwrap();
            testkit::both(server.send(stored("/pieces")), client.receive_rest()).await;
            world.lines(1).await;
            let mut client = Peer::connect(WEIR).await;
            client.send("GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let line = world.lines(1).await.concat();
            assert!(line.contains("/<CACHE> ") && line.contains(" 200 ") && line.contains(" LR-- "), "{line}");
            let got = client.receive_rest().await;
            assert!((5_000..12_200).contains(&got.len()), "{}", got.len());
        });
    }
}
