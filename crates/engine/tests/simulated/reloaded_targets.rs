//! Tests of the targets of log lines and SPOE messages across configurations: backends in `mode log` and their servers,
//! SPOE agents and their backends.

use std::cell::RefCell;
use std::rc::Rc;

use base::Buffer;
use rt::net::{Address, Datagram};
use testkit::{Peer, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::spoe::{AGENT, acknowledge, engine, greeted, notified, proxies};
use crate::world::*;

const ONE: &str = "10.0.3.1:514";
const TWO: &str = "10.0.3.2:514";
/// No log line is sent there at first.
const THREE: &str = "10.0.3.3:514";
const OTHER: &str = "10.0.0.1:81";

/// Starts a UDP log server, and returns its lines.
pub fn collect(world: &World, at: &str) -> Rc<RefCell<Vec<String>>> {
    let lines: Rc<RefCell<Vec<String>>> = Rc::default();
    let (kept, mut socket) = (Rc::clone(&lines), Datagram::bind(&Address::Inet(at.parse().unwrap())).unwrap());
    world.scope.spawn(async move {
        let mut buffer = Buffer::with_capacity(4096);
        loop {
            buffer.clear();
            if std::future::poll_fn(|cx| socket.poll_receive_from(cx, &mut buffer)).await.is_err() {
                return;
            }
            kept.borrow_mut().push(String::from_utf8_lossy(buffer.data()).trim().to_owned());
        }
    });
    lines
}

/// A frontend, and additional sections.
fn answering(more: &str) -> Worlds {
    config(&format!("frontend l\n bind 10.0.0.1:80\n http-request return status 200\n{more}")).global(api::SOCKET)
}

/// A frontend that logs to these servers.
fn logging(servers: &str) -> Worlds {
    answering(&format!(
        "frontend other\n bind {OTHER}\n log backend@lines format raw local0\n log {THREE} format raw local0\n log-format %HU\n http-request return status 200\n\
         backend lines\n mode log\n balance roundrobin\n{servers}"
    ))
}

async fn ask(client: &mut Peer, path: &str) {
    client.send(get(path)).await;
    assert!(client.receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 200 ")));
    sleep(5).await;
}

#[test]
fn backends_of_lines_and_their_servers_come_and_go() {
    let (s1, s2) = (format!(" server s1 udp@{ONE}\n"), format!(" server s2 udp@{TWO}\n"));
    answering("").workers(&[1, 2]).run(move |world| {
        let (s1, s2) = (s1.clone(), s2.clone());
        async move {
            let (one, two, three) = (collect(&world, ONE), collect(&world, TWO), collect(&world, THREE));
            assert_eq!(world.adopt(&logging(&s1)), Ok(()));
            sleep(5).await;
            let mut client = Peer::connect(OTHER).await;
            ask(&mut client, "/1").await;
            assert_eq!(*one.borrow(), ["/1"]);
            assert_eq!(*three.borrow(), ["/1"]);
            // A server is added: sessions that began before log there as well.
            assert_eq!(world.adopt(&logging(&format!("{s1}{s2}"))), Ok(()));
            sleep(5).await;
            for path in ["/2", "/3"] {
                ask(&mut client, path).await;
            }
            assert_eq!((one.borrow().len(), two.borrow().len()), (2, 1));
            // Another one is removed.
            assert_eq!(world.adopt(&logging(&s2)), Ok(()));
            sleep(5).await;
            for path in ["/4", "/5"] {
                ask(&mut client, path).await;
                ask(&mut Peer::connect(OTHER).await, path).await;
            }
            assert_eq!((one.borrow().len(), two.borrow().len()), (2, 5));
            assert!(api::ask("show stat").await.contains("\nlines,s2,"));
            // All are removed, except for sessions that use them.
            assert_eq!(world.adopt(&answering("")), Ok(()));
            sleep(5).await;
            ask(&mut client, "/6").await;
            assert_eq!(two.borrow().last().map(String::as_str), Some("/6"));
            assert!(!api::ask("show stat").await.contains("\nlines,"));
            drop(client);
            sleep(5_000).await;
            // They return, in new slots.
            assert_eq!(world.adopt(&logging(&s1)), Ok(()));
            sleep(5).await;
            ask(&mut Peer::connect(OTHER).await, "/7").await;
            assert_eq!(one.borrow().last().map(String::as_str), Some("/7"));
            assert_eq!(world.adopt(&answering("")), Ok(()));
            sleep(5_000).await;
            world.forget_log();
        }
    });
}

#[test]
fn engines_and_their_backends_come_and_go() {
    let plain = || config("frontend f\n bind 10.0.0.1:80\n default_backend b\nbackend b\n server s1 10.0.1.1:80\n");
    let asking = || config(&proxies("", "")).file(&engine(" messages fh\n log global"));
    plain().workers(&[1, 2]).run(move |world| async move {
        let mut agents = Service::at(AGENT);
        let _served = serve_ok(&world.scope, S1);
        let mut old = Peer::connect(WEIR).await;
        old.send(get("/0")).await;
        old.expect(OK_AT_CLIENT).await;
        assert_eq!(world.adopt(&asking()), Ok(()));
        sleep(5).await;
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "fh(path=/1)");
        acknowledge(&mut agent, stream, &[]).await;
        client.expect(OK_AT_CLIENT).await;
        let lines = world.take_log().await;
        assert!(lines.iter().any(|line| line.contains("SPOE: [a] ") && line.contains(" 0/1")), "{lines:?}");
        // A session that began without the engine continues without it.
        old.send(get("/2")).await;
        old.expect(OK_AT_CLIENT).await;
        // The engine is removed while its agent processes a message.
        client.send(get("/3")).await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "fh(path=/3)");
        assert_eq!(world.adopt(&plain()), Ok(()));
        sleep(50).await;
        acknowledge(&mut agent, stream, &[]).await;
        client.expect(OK_AT_CLIENT).await;
        let mut late = Peer::connect(WEIR).await;
        late.send(get("/4")).await;
        late.expect(OK_AT_CLIENT).await;
        assert_eq!(agents.accepted(), 1);
        // It returns, and its counters begin at 0.
        assert_eq!(world.adopt(&asking()), Ok(()));
        sleep(5).await;
        world.take_log().await;
        let mut late = Peer::connect(WEIR).await;
        late.send(get("/5")).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "fh(path=/5)");
        acknowledge(&mut agent, stream, &[]).await;
        late.expect(OK_AT_CLIENT).await;
        let lines = world.take_log().await;
        assert!(lines.iter().any(|line| line.contains("SPOE: [a] ") && line.contains(" 0/1")), "{lines:?}");
        world.forget_log();
    });
}
