//! Whether rules on bytes wait for a fetch, beside a table of what HAProxy does (`bench/finality.py`): a fetch whose value may still come
//! is waited for, and one that is finally absent is not.

use std::cell::RefCell;
use std::rc::Rc;

use testkit::{Peer, Scope, sleep};

use crate::world::*;

const TABLE: &str = include_str!("haproxy.tsv");

/// A fetch, and a letter for each scene.
struct Row {
    fetch: &'static str,
    cells: &'static [u8],
}

fn table() -> (Vec<&'static str>, Vec<Row>) {
    let mut lines = TABLE.lines();
    let names = lines.next().and_then(|line| line.split_once('\t')).unwrap().1.split(' ').collect();
    let row = |line: &'static str| line.split_once('\t').map(|(fetch, cells)| Row { fetch, cells: cells.as_bytes() });
    (names, lines.filter_map(row).collect())
}

/// The sections for one fetch in a kind of scene.
fn section(kind: &str, place: usize, fetch: &str) -> String {
    let bind = format!("bind 10.0.0.1:{}", 1000 + place);
    let request = format!(
        "tcp-request inspect-delay 1s\n tcp-request content set-var(txn.f) int(1) if {{ {fetch} -m found }}\n tcp-request content reject"
    );
    let track = format!(
        "tcp-request inspect-delay 1s\n tcp-request content track-sc0 {fetch} table t\n tcp-request content reject"
    );
    match kind {
        "tcp" => format!("frontend f{place}\n mode tcp\n {bind}\n {request}\n"),
        "http" => format!("frontend f{place}\n {bind}\n {request}\n"),
        "tcp/track" => format!("frontend f{place}\n mode tcp\n {bind}\n {track}\n"),
        "http/track" => format!("frontend f{place}\n {bind}\n {track}\n"),
        _ => format!("frontend f{place}\n {bind}\n default_backend c{place}\nbackend c{place}\n {request}\n"),
    }
}

const COMMON: &str = "userlist users\n user a insecure-password b\nbackend t\n stick-table type string len 32 size 1k store gpc0,gpt0,http_req_cnt,server_id\n\
                      backend be\n server s 10.0.1.1:80\nfrontend f\n bind 10.0.0.1:999\n";

/// The configuration with those fetches that are known, and which these are.
fn known(kind: &str, rows: &[(usize, &Row)]) -> (String, Vec<usize>) {
    let mut left: Vec<(usize, &str)> = rows.iter().map(|(place, row)| (*place, row.fetch)).collect();
    loop {
        let mut text = COMMON.to_owned();
        let mut begins = Vec::new();
        for (place, fetch) in &left {
            begins.push(text.lines().count());
            text += &section(kind, *place, fetch);
        }
        let refused = config(&text).refused_lines();
        if refused.is_empty() {
            return (text, left.iter().map(|(place, _)| *place).collect());
        }
        let before = left.len();
        let is_refused = |at: usize| {
            let end = begins.get(at + 1).copied().unwrap_or(usize::MAX);
            refused.iter().any(|line| (begins[at]..end).contains(line))
        };
        let kept = (0..before).filter(|at| !is_refused(*at)).map(|at| left[at]).collect();
        left = kept;
        assert!(left.len() < before, "{refused:?}");
    }
}

/// What a scene sends.
fn sent(name: &str) -> Option<(&'static str, Vec<u8>)> {
    const HTTP: &str = "GET /a?b=c HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n\r\n";
    const FIX: &[u8] = b"8=FIX.4.2\x019=5\x0135=0\x0110=161\x01";
    let mqtt = b"\x10\x12\x00\x04MQTT\x04\x02\x00\x00\x00\x06client";
    let rdp =
        b"\x03\x00\x00\x2b\x26\xe0\x00\x00\x00\x00\x00Cookie: mstshash=abcdefg\r\n\x01\x00\x08\x00\x01\x00\x00\x00";
    let post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc";
    Some(match name {
        "tcp/junk" => ("tcp", b"\xff\x00junk\r\n\r\njunk\r\njunk".to_vec()),
        "tcp/part" => ("tcp", HTTP.as_bytes()[..HTTP.len() - 11].to_vec()),
        "tcp/http" => ("tcp", HTTP.into()),
        "tcp/mqtt" => ("tcp", mqtt.to_vec()),
        "tcp/mqtt-part" => ("tcp", mqtt[..5].to_vec()),
        "tcp/mqtt-anonymous" => ("tcp", b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00".to_vec()),
        "tcp/fix" => ("tcp", FIX.to_vec()),
        "tcp/fix-part" => ("tcp", FIX[..14].to_vec()),
        "tcp/rdp" => ("tcp", rdp.to_vec()),
        "tcp/rdp-part" => ("tcp", rdp[..20].to_vec()),
        "tcp/track/junk" => ("tcp/track", b"\xff\x00junk\r\n\r\njunk\r\njunk".to_vec()),
        "tcp/track/http" => ("tcp/track", HTTP.into()),
        "http/get" => ("http", HTTP.into()),
        "http/post" => ("http", post.into()),
        "http/track/get" => ("http/track", HTTP.into()),
        "http/backend/get" => ("http/backend", HTTP.into()),
        _ => return None,
    })
}

/// Where HAProxy does not wait: it finds a version in a head that is not complete.
fn still_comes(scene: &str, fetch: &str) -> bool {
    scene == "tcp/part" && ["req.ver", "req_ver"].contains(&fetch)
}

/// Where Weir knows sooner, and why.
fn knows_sooner(scene: &str, fetch: &str) -> bool {
    // A key that may change is tracked as it is.
    const CHANGING: [&str; 11] = [
        "accept_date",
        "date",
        "date_us",
        "fs.debug_str",
        "rand",
        "req.body",
        "req.len",
        "req_len",
        "request_date",
        "term_events",
        "uuid",
    ];
    let tracks = scene.contains("/track/") && (CHANGING.contains(&fetch) || fetch.starts_with("req.payload(0,0),"));
    // The first byte of RDP is another one.
    let is_other = fetch.ends_with("rdp_cookie") && !scene.contains("rdp");
    // A reset is never seen by a rule that waits.
    tracks || is_other || fetch.ends_with("s.rst_code")
}

#[test]
fn rules_wait_for_what_may_still_come() {
    let (names, rows) = table();
    let mut differs = Vec::new();
    for kind in ["tcp", "http", "tcp/track", "http/track", "http/backend"] {
        let scenes: Vec<(usize, Vec<u8>)> = names
            .iter()
            .enumerate()
            .filter_map(|(column, name)| Some((column, sent(name).filter(|(own, _)| *own == kind)?.1)))
            .collect();
        let first = scenes[0].0;
        let asked: Vec<(usize, &Row)> =
            rows.iter().enumerate().filter(|(_, row)| row.cells[first].is_ascii_alphabetic()).collect();
        let (text, places) = known(kind, &asked);
        assert!(places.len() > 300, "{kind}: {}", places.len());
        let found = Rc::new(RefCell::new(Vec::new()));
        let kept = Rc::clone(&found);
        config(&text).workers(&[1]).seeds(0..1).run(move |world| {
            let (places, scenes, kept) = (places.clone(), scenes.clone(), Rc::clone(&kept));
            async move {
                let scope = Scope::new();
                for (column, bytes) in scenes {
                    for place in places.iter().copied() {
                        let mut client = Peer::connect(&format!("10.0.0.1:{}", 1000 + place)).await;
                        client.send(&bytes).await;
                        let (begun, kept) = (rt::now(), Rc::clone(&kept));
                        scope.spawn(async move {
                            client.try_receive_up_to(1 << 20).await;
                            kept.borrow_mut().push((column, place, rt::now().millis_since(begun) > 500));
                        });
                    }
                }
                sleep(1_500).await;
                world.forget_log();
            }
        });
        for (column, place, waits) in found.take() {
            let (name, row) = (names[column], &rows[place]);
            let is_known = if waits { still_comes(name, row.fetch) } else { knows_sooner(name, row.fetch) };
            if waits != row.cells[column].eq_ignore_ascii_case(&b'w') && !is_known {
                differs.push(format!("{name}: {} waits {waits}", row.fetch));
            }
        }
    }
    assert!(differs.is_empty(), "{} differ:\n{}", differs.len(), differs.join("\n"));
}
