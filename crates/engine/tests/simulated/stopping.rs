//! Tests of the soft stop: no new clients, idle clients are closed at once, the others after their requests.

use std::cell::RefCell;
use std::rc::Rc;

use testkit::{Peer, PeerOptions, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

/// The last answer of a connection.
const LAST: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
/// An answer, and its two halves.
const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nokme";
const AT_CLIENT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok";

/// Clients whose answers are half-way, with their servers.
async fn half_answered(s1: &mut Service, count: usize) -> Vec<(Peer, Peer)> {
    let mut pairs = Vec::new();
    for _ in 0..count {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(&WHOLE[..WHOLE.len() - 2]).await;
        client.expect(AT_CLIENT).await;
        pairs.push((client, server));
        sleep(7).await;
    }
    pairs
}

/// Expects that connections are refused.
async fn is_closed() {
    assert!(Peer::try_connect(WEIR, PeerOptions::default()).await.is_err(), "nobody listens");
}

#[test]
fn idle_clients_are_closed_and_nobody_else_comes() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        serve_ok(&world.scope, S1);
        let mut clients = Vec::new();
        for _ in 0..8 {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            clients.push(client);
        }
        sleep(500).await;
        assert!(!world.is_drained().await);
        let watch = Stopwatch::start();
        world.stop();
        for client in &mut clients {
            client.expect_eof().await;
        }
        watch.took(0);
        is_closed().await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn a_running_request_is_finished_first() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        world.stop();
        sleep(50).await;
        is_closed().await;
        assert!(!world.is_drained().await);
        server.send(OK).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
        client.expect_eof().await;
        client.close();
        sleep(2).await;
        assert!(world.is_drained().await);
        world.expect_log(&[r#"l l/s1 0/0/0/50/50 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_body_that_flows_is_finished_first() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
        world.stop();
        sleep(50).await;
        assert!(!world.is_drained().await);
        server.send("me").await;
        client.expect("me").await;
        // The head of this answer did not contain `connection: close`; the head of the next answer does.
        client.expect_silence(50).await;
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(LAST).await;
        client.expect_eof().await;
        client.close();
        sleep(2).await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn connections_end_after_the_answers_that_were_under_way() {
    listen("server s1 10.0.1.1:80\ntimeout http-keep-alive 60s").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut pairs = half_answered(&mut s1, 3).await;
        world.stop();
        for (after, (client, server)) in [0, 5_000, 90].into_iter().zip(&mut pairs) {
            client.expect_silence(after).await;
            server.send("me").await;
            client.expect("me").await;
            let watch = Stopwatch::start();
            client.expect_eof().await;
            // A client that knows of no end may be sending its next request.
            watch.took(100);
        }
        drop(pairs);
        sleep(2).await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn clients_that_are_owed_a_last_answer_keep_their_connections_after_the_one_under_way() {
    listen("server s1 10.0.1.1:80\noption idle-close-on-response").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut pairs = half_answered(&mut s1, 1).await;
        world.stop();
        let (client, server) = &mut pairs[0];
        server.send("me").await;
        client.expect("me").await;
        client.expect_silence(5_000).await;
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(LAST).await;
        client.expect_eof().await;
    });
}

#[test]
fn a_client_that_was_just_answered_is_told_in_its_next_answer() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        serve_ok(&world.scope, S1);
        let mut talking = Peer::connect(WEIR).await;
        let mut silent = Peer::connect(WEIR).await;
        for client in [&mut talking, &mut silent] {
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
        }
        world.stop();
        sleep(20).await;
        talking.send(GET).await;
        talking.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
        talking.expect_eof().await;
        talking.close();
        silent.expect_eof().await;
        silent.close();
        sleep(2).await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn who_has_connected_already_is_served() {
    // One connection is accepted at a time, so that a stop finds the others in the backlog.
    listen("server s1 10.0.1.1:80").global("tune.maxaccept 1").run(|world| async move {
        serve_ok(&world.scope, S1);
        let clients: Rc<RefCell<Vec<Peer>>> = Rc::default();
        for _ in 0..30 {
            let clients = Rc::clone(&clients);
            world.scope.spawn(async move {
                let client = Peer::connect(WEIR).await;
                clients.borrow_mut().push(client);
            });
        }
        while clients.borrow().is_empty() {
            rt::yield_now().await;
        }
        world.stop();
        is_closed().await;
        sleep(5).await;
        let mut clients = clients.take();
        for client in &mut clients {
            client.send(GET).await;
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
            client.expect_eof().await;
        }
        drop(clients);
        sleep(2).await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn a_request_that_waits_in_the_queue_is_served() {
    listen("server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let (mut first, mut server, mut s1) = asked().await;
        let mut second = Peer::connect(WEIR).await;
        second.send(get("/2")).await;
        sleep(10).await;
        world.stop();
        sleep(50).await;
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        let closing = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
        first.expect(closing).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/2")).await;
        server.send(OK).await;
        second.expect(closing).await;
        second.expect_eof().await;
        drop((first, second));
        sleep(2).await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn a_client_that_has_not_asked_yet_may_do_so() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        serve_ok(&world.scope, S1);
        let (mut silent, mut slow) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        slow.send("GET / HT").await;
        sleep(5).await;
        world.stop();
        silent.expect_silence(100).await;
        slow.expect_silence(100).await;
        slow.send("TP/1.1\r\nHost: a\r\n\r\n").await;
        silent.send(GET).await;
        for client in [&mut silent, &mut slow] {
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
            client.expect_eof().await;
        }
    });
}

#[test]
fn tcp_sessions_are_not_cut() {
    listen("mode tcp\n option tcplog\n server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("a").await;
        let mut server = s1.accept().await;
        server.expect("a").await;
        world.stop();
        sleep(5000).await;
        is_closed().await;
        client.send("b").await;
        server.expect("b").await;
        server.send("c").await;
        client.expect("c").await;
        assert!(!world.is_drained().await);
        client.close();
        server.expect_eof().await;
        server.close();
        sleep(2).await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn workers_that_wait_for_a_place_stop_as_well() {
    for global in ["", "maxconn 1"] {
        let body = if global.is_empty() { "maxconn 1\n backlog 100" } else { "backlog 100" };
        listen(&format!("{body}\n server s1 10.0.1.1:80")).global(global).run(|world| async move {
            let (mut client, mut server, _s1) = asked().await;
            // They are in the backlog when the listener closes.
            let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
            one.send(GET).await;
            sleep(5).await;
            world.stop();
            one.expect_end().await;
            two.expect_end().await;
            server.send(OK).await;
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
            client.expect_eof().await;
            client.close();
            sleep(2).await;
            assert!(world.is_drained().await);
        });
    }
}

#[test]
fn idle_clients_may_be_owed_a_last_answer() {
    listen("server s1 10.0.1.1:80\noption idle-close-on-response").run(|world| async move {
        serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(OK_AT_CLIENT).await;
        sleep(500).await;
        world.stop();
        client.expect_silence(5_000).await;
        client.send(GET).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
        client.expect_eof().await;
    });
}

#[test]
fn idle_clients_may_leave_one_after_the_other() {
    listen("server s1 10.0.1.1:80").global("close-spread-time 10s").run(|world| async move {
        serve_ok(&world.scope, S1);
        let mut clients = Vec::new();
        for _ in 0..40 {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            clients.push(client);
            sleep(7).await;
        }
        sleep(500).await;
        world.stop();
        let (watch, ends) = (Stopwatch::start(), Rc::new(RefCell::new(Vec::new())));
        for mut client in clients {
            let ends = Rc::clone(&ends);
            world.scope.spawn(async move {
                client.expect_eof().await;
                ends.borrow_mut().push(watch.elapsed().as_millis());
            });
        }
        sleep(12_000).await;
        let ends = ends.borrow();
        let before = |millis| ends.iter().filter(|end| **end < millis).count();
        assert_eq!(before(10_100), 40, "{ends:?}");
        assert!(before(1_000) <= 12 && (8..=32).contains(&before(5_000)), "{ends:?}");
    });
}

#[test]
fn connections_whose_answers_were_under_way_leave_one_after_the_other_as_well() {
    listen("server s1 10.0.1.1:80").global("close-spread-time 10s").run(|world| async move {
        let mut s1 = Service::at(S1);
        let pairs = half_answered(&mut s1, 40).await;
        world.stop();
        let (watch, ends) = (Stopwatch::start(), Rc::new(RefCell::new(Vec::new())));
        for (mut client, mut server) in pairs {
            let ends = Rc::clone(&ends);
            world.scope.spawn(async move {
                server.send("me").await;
                client.expect("me").await;
                client.expect_eof().await;
                ends.borrow_mut().push(watch.elapsed().as_millis());
            });
        }
        sleep(12_000).await;
        let ends = ends.borrow();
        let before = |millis| ends.iter().filter(|end| **end < millis).count();
        assert_eq!(before(10_100), 40, "{ends:?}");
        assert!(before(1_000) <= 12 && (8..=32).contains(&before(5_000)), "{ends:?}");
    });
}

#[test]
fn connections_may_end_by_their_own_timeouts_alone() {
    listen("server s1 10.0.1.1:80\ntimeout http-keep-alive 3s").global("close-spread-time infinite").run(
        |world| async move {
            serve_ok(&world.scope, S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            sleep(500).await;
            world.stop();
            client.expect_silence(1_000).await;
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            let watch = Stopwatch::start();
            client.expect_eof().await;
            watch.took(3_000);
        },
    );
}

#[test]
fn answers_under_way_end_no_connections_where_only_timeouts_do() {
    listen("server s1 10.0.1.1:80\ntimeout http-keep-alive 3s").global("close-spread-time infinite").run(
        |world| async move {
            let mut s1 = Service::at(S1);
            let mut pairs = half_answered(&mut s1, 1).await;
            world.stop();
            let (client, server) = &mut pairs[0];
            server.send("me").await;
            client.expect("me").await;
            let watch = Stopwatch::start();
            client.expect_eof().await;
            watch.took(3_000);
        },
    );
}
