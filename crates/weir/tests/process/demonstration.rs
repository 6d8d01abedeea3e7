//! `weir` without arguments.

use crate::support::{Running, connect, exchange, get, wait_for_close, wait_until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Starts it, and returns the port of the frontend, which it prints.
fn start() -> (Running, u16) {
    let (running, _, port) = start_with_dashboard();
    (running, port)
}

/// Starts it, and returns the ports that it prints: of the dashboard and of the frontend.
fn start_with_dashboard() -> (Running, u16, u16) {
    let mut running = Running::weir(&[]);
    let dashboard = port_of(&running.wait_for_line(|line| line.contains("/stats/dashboard")));
    let front = port_of(&running.wait_for_line(|line| line.starts_with("Weir listens on ")));
    (running, dashboard, front)
}

fn port_of(line: &str) -> u16 {
    let port = line.split("http://127.0.0.1:").nth(1).expect("a port");
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    port.parse().expect("a port")
}

/// Requests a page of the dashboard by its usual name.
fn read(dashboard: u16, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{dashboard}\r\nconnection: close\r\n\r\n");
    let mut stream = connect(dashboard);
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    (answer.split(' ').nth(1).expect("a status").parse().expect("a number"), answer)
}

#[test]
fn the_dashboard_shows_its_own_visitors() {
    let (running, dashboard, _) = start_with_dashboard();
    let (status, page) = read(dashboard, "/stats/dashboard");
    assert!(status == 200 && page.contains("<html"), "{page}");
    wait_until("a request of a visitor", || {
        let (status, text) = read(dashboard, "/stats;csv");
        assert_eq!(status, 200, "{text}");
        let row = text.lines().find(|line| line.starts_with("visitors,FRONTEND,")).expect("the frontend");
        row.split(',').nth(48).and_then(|total| total.parse().ok()).is_some_and(|total: u32| total > 0)
    });
    let foreign = "GET /stats/dashboard HTTP/1.1\r\nhost: attacker.test\r\n\r\n";
    assert_eq!(exchange(&mut connect(dashboard), foreign).0, 403);
    running.send(Signal::INT);
    assert_eq!(running.finish().code(), Some(0));
    assert!(TcpStream::connect(("127.0.0.1", dashboard)).is_err(), "it listens after its end");
}

#[test]
fn a_server_fails_and_returns_while_every_request_succeeds() {
    let (mut running, _, port) = start_with_dashboard();
    let ended = Arc::new(AtomicBool::new(false));
    let is_ended = Arc::clone(&ended);
    let client = thread::spawn(move || {
        let mut answers = 0_u32;
        while !is_ended.load(Ordering::Relaxed) {
            assert_eq!(exchange(&mut connect(port), &get("/")).0, 200);
            answers += 1;
        }
        answers
    });
    running
        .wait_for_line(|line| line.contains("Server origins/origin3 is DOWN, reason: Layer7 wrong status, code: 503"));
    running.wait_for_line(|line| line.contains("Server origins/origin3 is UP"));
    ended.store(true, Ordering::Relaxed);
    assert!(client.join().expect("every answer is 200") > 0);
    running.send(Signal::INT);
    assert_eq!(running.finish().code(), Some(0));
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
