//! `weir` without arguments.

use crate::support::{Running, connect, exchange, get, wait_for_close};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{Read, Write};

/// Starts it, and returns the port that it prints.
fn start() -> (Running, u16) {
    let mut running = Running::weir(&[]);
    let line = running.wait_for_line(|line| line.contains("http://127.0.0.1:"));
    let port = line.split("http://127.0.0.1:").nth(1).expect("a port");
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    (running, port.parse().expect("a port"))
}

#[test]
fn it_answers_spreads_and_logs() {
    let (mut running, port) = start();
    let mut origins = BTreeSet::new();
    for _ in 0..6 {
        let (status, body) = exchange(&mut connect(port), &get("/"));
        assert_eq!(status, 200);
        assert!(body.contains("x-forwarded-for: 127.0.0.1"), "{body}");
        origins.insert(body.lines().next().unwrap_or_default().to_owned());
    }
    assert_eq!(origins.len(), 3, "{origins:?}");
    let logged = running.wait_for_line(|line| line.contains("\"GET / HTTP/1.1\""));
    assert!(logged.contains(" front origins/origin") && logged.contains(" 200 "), "{logged}");
    running.send(Signal::INT);
    assert_eq!(running.finish().code(), Some(0));
}

#[test]
fn it_shows_what_it_promises() {
    let (_running, port) = start();
    let mut client = connect(port);
    assert_eq!(
        exchange(&mut client, "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello"),
        (200, "hello".into())
    );
    let chunked =
        "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(exchange(&mut client, chunked), (200, "abcde".into()));
    assert_eq!(exchange(&mut client, &get("/status/404")).0, 404);
    let (status, body) = exchange(&mut client, &get("/large/1000000"));
    assert_eq!((status, body.len()), (200, 1_000_000));
}

#[test]
fn it_carries_an_upgraded_connection() {
    let (_running, port) = start();
    let mut client = connect(port);
    let upgrade = "GET /tunnel HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    assert_eq!(exchange(&mut client, upgrade).0, 101);
    client.write_all(b"any bytes").expect("sent");
    let mut back = [0; 9];
    client.read_exact(&mut back).expect("the echo");
    assert_eq!(&back, b"any bytes");
}

#[test]
fn it_ends_at_once_although_connections_are_open() {
    for signal in [Signal::INT, Signal::TERM] {
        let (running, port) = start();
        let mut kept = connect(port);
        assert_eq!(exchange(&mut kept, &get("/")).0, 200);
        let silent = connect(port);
        let mut busy = connect(port);
        busy.write_all(get("/large").as_bytes()).expect("sent");
        running.send(signal);
        assert_eq!(running.finish().code(), Some(0));
        wait_for_close(kept);
        wait_for_close(silent);
    }
}
