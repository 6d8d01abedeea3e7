//! Tests of idle links to servers: which requests may use them (`http-reuse`), how workers share them, links that are
//! closed by servers, and purges.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use testkit::{Peer, Scope, Service, sleep};

use crate::messages::*;
use crate::world::*;

/// Sends one request of a client that stays.
async fn ask(client: &mut Peer) {
    client.send(GET).await;
    client.expect(OK_AT_CLIENT).await;
    // The link becomes idle shortly after the answer was sent.
    sleep(1).await;
}

/// Sends one request of a client that disconnects.
async fn ask_once() {
    let mut client = Peer::connect(WEIR).await;
    ask(&mut client).await;
    client.close();
    sleep(1).await;
}

fn mode(mode: &str) -> Worlds {
    listen(&format!("http-reuse {mode}\n server s1 10.0.1.1:80"))
}

#[test]
fn always_one_link_serves_everybody() {
    mode("always").run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        for _ in 0..30 {
            ask_once().await;
        }
        assert_eq!((opened.get(), world.idle_links()), (1, 1), "workers take each other's links");
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        for _ in 0..3 {
            ask(&mut one).await;
            ask(&mut two).await;
        }
        assert_eq!((opened.get(), world.idle_links()), (1, 1));
    });
}

/// Sends one request for a host, by a client that disconnects.
async fn ask_for(host: &str) {
    let mut client = Peer::connect(WEIR).await;
    client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    client.expect(OK_AT_CLIENT).await;
    client.close();
    sleep(1).await;
}

#[test]
fn links_with_names_serve_requests_of_that_name() {
    // The host of each request, and the number of links afterwards.
    let rows = [("a", 1), ("a", 1), ("b", 2), ("a", 2), ("b", 2), ("", 3), ("", 3), ("a", 3)];
    // The second one's port is the client's, which makes connections differ as well.
    for address in ["10.0.1.1:80", "10.0.1.1:+0"] {
        let server = format!("http-reuse always\n server s1 {address} pool-conn-name req.hdr(host) pool-low-conn 9");
        listen(&server).workers(&[1]).run(move |world| async move {
            let opened = serve_ok(&world.scope, S1);
            for (host, links) in rows {
                ask_for(host).await;
                assert_eq!(opened.get(), links, "{host} {address}");
            }
        });
    }
}

#[test]
fn a_check_may_have_the_name_of_requests() {
    for (name, links) in [("a", 1), ("b", 2)] {
        let server = format!(
            "option httpchk\n http-check send meth GET uri / ver HTTP/1.1 hdr Host x hdr Connection keep-alive\n http-reuse \
             always\n server s1 10.0.1.1:80 pool-conn-name str({name}) check inter 1s init-state fully-up check-reuse-pool \
             check-pool-conn-name a"
        );
        listen(&server).workers(&[1]).run(move |world| async move {
            let opened = serve_ok(&world.scope, S1);
            sleep(1_500).await;
            assert_eq!(opened.get(), 1, "a check that found somebody");
            ask_for("x").await;
            assert_eq!(opened.get(), links, "{name}");
            world.forget_log();
        });
    }
}

#[test]
fn clients_that_ask_once_do_not_pile_links_up() {
    for how in ["safe", "aggressive"] {
        mode(how).workers(&[1, 4]).run(|world| async move {
            let opened = serve_ok(&world.scope, S1);
            for _ in 0..30 {
                ask_once().await;
            }
            assert!(world.idle_links() <= world.shared().workers(), "{} idle links", world.idle_links());
            // A client that sends more requests finds one of them.
            let before = opened.get();
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..5 {
                ask(&mut client).await;
            }
            assert!(opened.get() <= before + 1, "{} links for one client", opened.get() - before);
        });
    }
}

#[test]
fn workers_keep_their_links_where_the_pool_is_not_shared() {
    mode("always").global("tune.idle-pool.shared off").workers(&[1, 4]).run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        for _ in 0..60 {
            ask_once().await;
        }
        assert!(opened.get() <= world.shared().workers(), "{} links", opened.get());
        assert_eq!(world.idle_links(), opened.get());
        assert!(world.shared().workers() == 1 || opened.get() > 1, "several workers serve");
    });
}

#[test]
fn safe_never_for_a_first_request() {
    mode("safe").run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        for number in 1..=5 {
            ask_once().await;
            assert_eq!(opened.get(), number);
            assert!((1..=world.shared().workers()).contains(&world.idle_links()), "{}", world.idle_links());
        }
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..5 {
            ask(&mut client).await;
            assert_eq!(opened.get(), 6);
        }
    });
}

#[test]
fn aggressive_for_a_first_request_over_a_proven_link() {
    mode("aggressive").run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        ask_once().await;
        ask_once().await;
        assert_eq!(opened.get(), 2, "neither link was reused so far");
        let mut client = Peer::connect(WEIR).await;
        ask(&mut client).await;
        ask(&mut client).await;
        assert_eq!(opened.get(), 3, "the second request reused one");
        for _ in 0..5 {
            ask_once().await;
        }
        assert_eq!(opened.get(), 3);
    });
}

#[test]
fn never_a_link_belongs_to_its_client() {
    mode("never").run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        for _ in 0..3 {
            ask(&mut one).await;
            ask(&mut two).await;
        }
        assert_eq!((opened.get(), world.idle_links()), (2, 0));
        one.close();
        two.reset();
        sleep(1).await;
        assert_eq!(rt::sim::network().open_ends(&rt::net::Address::Inet(S1.parse().unwrap())), 0);
        ask_once().await;
        assert_eq!(opened.get(), 3);
    });
}

#[test]
fn never_a_private_link_that_dies_is_replaced() {
    mode("never").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        for number in 0..3 {
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            if number % 2 == 0 {
                server.close()
            } else {
                server.reset()
            }
            sleep(1).await;
            world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        }
    });
}

/// An idle link that `dies` leaves the pool at once, and the next request gets a new one.
fn idle_link_dies(dies: impl Fn(Peer) -> Option<Peer> + Copy + 'static) {
    mode("always").run(move |world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        sleep(5).await;
        assert_eq!(world.idle_links(), 1);
        let rest = dies(server);
        sleep(1).await;
        assert_eq!(world.idle_links(), 0);
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let line = r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
        world.expect_log(&[line, line]).await;
        drop(rest);
    });
}

#[test]
fn an_idle_link_that_ends_is_forgotten() {
    idle_link_dies(|server| {
        server.close();
        None
    });
    idle_link_dies(|server| {
        server.reset();
        None
    });
    idle_link_dies(|mut server| {
        server.half_close();
        Some(server)
    });
}

#[test]
fn what_a_server_says_on_an_idle_link_reaches_nobody() {
    mode("always").run(|world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        sleep(5).await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").await;
        server.expect_end().await;
        assert_eq!(world.idle_links(), 0);
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        // It sends more than the answer.
        server.send(format!("{OK}{OK}")).await;
        client.expect(OK_AT_CLIENT).await;
        server.expect_end().await;
        client.expect_silence(100).await;
        assert_eq!(world.idle_links(), 0);
    });
}

/// A reused link over which a request was sent is closed before its answer.
async fn reused_link_dies(request: &str, at_server: &str, reset: bool) -> (Peer, Service) {
    let (mut client, mut server, s1) = asked().await;
    server.send(OK).await;
    client.expect(OK_AT_CLIENT).await;
    client.send(request).await;
    server.expect(at_server).await;
    if reset {
        server.reset()
    } else {
        server.close()
    }
    (client, s1)
}

const ANSWERED: &str = r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;

#[test]
fn a_get_is_replayed_over_a_new_link() {
    for reset in [false, true] {
        listen("server s1 10.0.1.1:80").run(move |world| async move {
            let (mut client, mut s1) = reused_link_dies(GET, GET_AT_SERVER, reset).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            world.expect_log(&[ANSWERED, r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/* 0/0 "GET / HTTP/1.1""#]).await;
        });
    }
}

#[test]
fn a_get_is_not_replayed_over_a_new_link_that_dies_as_well() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut s1) = reused_link_dies(GET, GET_AT_SERVER, false).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.close();
        client.expect(page(502)).await;
        world.expect_log(&[ANSWERED, r#"l l/s1 0/0/0/-1/0 502 # - - SH-- 1/1/0/0/* 0/0 "GET / HTTP/1.1""#]).await;
        s1.is_left_alone();
    });
}

#[test]
fn a_post_is_not_replayed_and_its_client_is_told_nothing() {
    for reset in [false, true] {
        listen("server s1 10.0.1.1:80").run(move |world| async move {
            let (mut client, mut s1) = reused_link_dies(&(post(3) + "abc"), &(post_at_server(3) + "abc"), reset).await;
            client.expect_end().await;
            s1.is_left_alone();
            world.expect_log(&[ANSWERED]).await;
        });
    }
}

#[test]
fn a_link_that_dies_within_its_answer_is_not_replayed() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send("HTTP/1.1 2").await;
        sleep(10).await;
        server.close();
        client.expect(page(502)).await;
        s1.is_left_alone();
        world.expect_log(&[ANSWERED, r#"l l/s1 0/0/0/-1/10 502 # - - PH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn no_get_is_lost_to_links_that_die_as_it_comes() {
    // The server closes each link some time after its answer, at about the time of the next request.
    mode("always").workers(&[1, 4]).seeds(0..25).run(|world| async move {
        let opened = Service::at(S1).serve(&world.scope, |mut server, _| async move {
            while let Some(Some(_)) =
                testkit::within(Duration::from_micros(900 + rt::random() % 300), server.receive_head()).await
            {
                if !server.try_send(OK).await {
                    return;
                }
            }
            if rt::random().is_multiple_of(2) {
                server.reset();
            }
        });
        let done = Rc::new(Cell::new(0));
        for _ in 0..4 {
            let done = Rc::clone(&done);
            world.scope.spawn(async move {
                let mut client = Peer::connect(WEIR).await;
                for _ in 0..20 {
                    client.send(GET).await;
                    client.expect(OK_AT_CLIENT).await;
                    rt::sleep(Duration::from_micros(rt::random() % 1500)).await;
                }
                done.set(done.get() + 1);
            });
        }
        while done.get() < 4 {
            sleep(1).await;
        }
        assert!(opened.get() > 4, "links died: {}", opened.get());
        let lines = world.take_log().await;
        assert_eq!(lines.len(), 80);
        assert!(lines.iter().all(|line| line.contains(" 200 ") && line.contains(" ---- ")), "{lines:#?}");
    });
}

/// Opens that number of links at once; all are idle afterwards.
async fn open_links(world: &World, scope: &Rc<Scope>, links: usize) {
    let busy = Rc::new(Cell::new(0));
    let all = Rc::clone(&busy);
    Service::at(S1).serve(scope, move |mut server, _| {
        let busy = Rc::clone(&all);
        async move {
            while server.receive_head().await.is_some() {
                busy.set(busy.get() + 1);
                // The first round waits for all.
                while busy.get() < links {
                    sleep(1).await;
                }
                server.send(OK).await;
            }
        }
    });
    let mut clients = Vec::new();
    for _ in 0..links {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        clients.push(client);
    }
    for client in &mut clients {
        client.expect(OK_AT_CLIENT).await;
    }
    drop(clients);
    while world.sessions() > 0 {
        sleep(1).await;
    }
}

#[test]
fn links_that_nobody_needs_are_purged_by_halves() {
    listen("http-reuse always\n server s1 10.0.1.1:80 pool-purge-delay 1s").workers(&[1]).run(|world| async move {
        open_links(&world, &world.scope, 8).await;
        assert_eq!(world.idle_links(), 8);
        let mut seen = vec![8];
        for _ in 0..8 {
            sleep(1000).await;
            let left = world.idle_links();
            let before = *seen.last().unwrap();
            assert!(left <= before && left >= before / 2, "{seen:?} {left}");
            seen.push(left);
        }
        assert_eq!(seen.last(), Some(&0), "{seen:?}");
    });
}

#[test]
fn links_of_all_workers_are_purged() {
    listen("http-reuse always\n server s1 10.0.1.1:80 pool-purge-delay 1s").run(|world| async move {
        open_links(&world, &world.scope, 12).await;
        assert_eq!(world.idle_links(), 12);
        sleep(10_000).await;
        assert_eq!(world.idle_links(), 0);
    });
}

#[test]
fn links_that_are_needed_are_not_purged() {
    listen("http-reuse always\n server s1 10.0.1.1:80 pool-purge-delay 1s").workers(&[1]).seeds(0..2).run(
        |world| async move {
            let opened = serve_ok(&world.scope, S1);
            for _ in 0..100 {
                ask_once().await;
                sleep(100).await;
            }
            assert_eq!((opened.get(), world.idle_links()), (1, 1));
        },
    );
}

#[test]
fn pool_max_conn_bounds_the_idle_links_of_all_workers() {
    for most in [0, 2, 5] {
        let body = format!("http-reuse always\n server s1 10.0.1.1:80 pool-max-conn {most}");
        listen(&body).run(move |world| async move {
            open_links(&world, &world.scope, 8).await;
            assert_eq!(world.idle_links(), most);
        });
    }
}

#[test]
fn every_answer_goes_to_its_own_client() {
    // Many clients, few links, several workers: an answer has to reach the client of its request.
    mode("always").workers(&[2, 4]).seeds(0..10).run(|world| async move {
        Service::at(S1).serve(&world.scope, |mut server, _| async move {
            while let Some(head) = server.receive_head().await {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                rt::sleep(Duration::from_micros(rt::random() % 800)).await;
                server.send(answer(&path)).await;
            }
        });
        let done = Rc::new(Cell::new(0));
        for client in 0..12 {
            let done = Rc::clone(&done);
            world.scope.spawn(async move {
                let mut peer = Peer::connect(WEIR).await;
                for request in 0..10 {
                    let path = format!("/{client}/{request}");
                    peer.send(get(&path)).await;
                    peer.expect(answer_at_client(&path)).await;
                    rt::sleep(Duration::from_micros(rt::random() % 500)).await;
                }
                done.set(done.get() + 1);
            });
        }
        while done.get() < 12 {
            sleep(1).await;
        }
    });
}

#[test]
fn a_server_that_closes_is_not_reused() {
    for head in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ] {
        mode("always").run(move |world| async move {
            let (mut client, mut server, _s1) = asked().await;
            server.send(head).await;
            let version = &head[..8];
            let connection = if version == "HTTP/1.0" { "connection: keep-alive\r\n" } else { "" };
            client.expect(format!("{version} 200 OK\r\ncontent-length: 2\r\n{connection}\r\nok")).await;
            server.expect_end().await;
            assert_eq!(world.idle_links(), 0);
        });
    }
}
