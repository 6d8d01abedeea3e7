//! Tests of requests that are sent to a second server if the first one takes too long (`hedge-requests`): to the
//! millisecond, on the virtual clock.

use live::HedgeCounts;
use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::secure::Secure;
use crate::world::*;

const SERVERS: &str = "server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
const BUSY_AT_CLIENT: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy";

fn hedged(options: &str) -> Worlds {
    listen(&format!("balance roundrobin\n hedge-requests after 50ms budget 100 min 0\n {options}\n {SERVERS}"))
}

fn counts(world: &World) -> HedgeCounts {
    world.shared().live.proxies[0].hedge_counts().unwrap()
}

/// Sends a client's request, which the first server receives.
async fn asked_first() -> (Peer, Peer, Service) {
    let mut s1 = Service::at(S1);
    let mut client = Peer::connect(WEIR).await;
    client.send(GET).await;
    let mut first = s1.accept().await;
    first.expect(GET_AT_SERVER).await;
    (client, first, s1)
}

#[test]
fn the_second_server_wins_and_the_first_link_ends() {
    hedged("").run(|world| async move {
        let mut s2 = Service::at(S2);
        let watch = Stopwatch::start();
        let (mut client, mut first, _s1) = asked_first().await;
        let mut second = s2.accept().await;
        watch.took(50);
        second.expect(GET_AT_SERVER).await;
        sleep(20).await;
        second.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        first.expect_end().await;
        // The connection took no time, the answer 20 ms after that.
        world.expect_log(&[r#"l l/s2 0/0/50/20/70 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        assert_eq!(counts(&world), HedgeCounts { begun: 1, won: 1, ..HedgeCounts::default() });
        assert_eq!(world.idle_links(), 1, "the winner's");
    });
}

#[test]
fn the_first_server_may_still_win() {
    hedged("").run(|world| async move {
        let mut s2 = Service::at(S2);
        let (mut client, mut first, _s1) = asked_first().await;
        let mut second = s2.accept().await;
        second.expect(GET_AT_SERVER).await;
        first.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        second.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/50/50 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        assert_eq!(counts(&world), HedgeCounts { begun: 1, ..HedgeCounts::default() });
        assert_eq!(world.idle_links(), 1);
    });
}

#[test]
fn an_answer_in_time_is_the_only_one() {
    hedged("").run(|world| async move {
        let mut s2 = Service::at(S2);
        let (mut client, mut first, _s1) = asked_first().await;
        sleep(45).await;
        // The beginning of an answer is sufficient.
        first.send(&OK[..1]).await;
        sleep(100).await;
        first.send(&OK[1..]).await;
        client.expect(OK_AT_CLIENT).await;
        s2.is_left_alone();
        world.expect_log(&[r#"l l/s1 0/0/0/145/145 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        assert_eq!(counts(&world), HedgeCounts::default());
    });
}

#[test]
fn a_failure_of_one_waits_for_the_other() {
    // The first server's behaviour after 60 ms, and the second one's 20 ms later.
    let refuses = |failure: &'static str| {
        hedged("").run(move |world| async move {
            let mut s2 = Service::at(S2);
            let (mut client, mut first, _s1) = asked_first().await;
            let mut second = s2.accept().await;
            second.expect(GET_AT_SERVER).await;
            sleep(10).await;
            if failure.is_empty() {
                first.close();
            } else {
                first.send(failure).await;
            }
            client.expect_silence(10).await;
            second.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            world.expect_log(&[r#"l l/s2 0/0/50/20/70 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        });
    };
    refuses("");
    refuses(BUSY);
    let second_refuses = |failure: &'static str| {
        hedged("").run(move |world| async move {
            let mut s2 = Service::at(S2);
            let (mut client, mut first, _s1) = asked_first().await;
            let mut second = s2.accept().await;
            second.expect(GET_AT_SERVER).await;
            if failure.is_empty() {
                second.close();
            } else {
                second.send(failure).await;
            }
            client.expect_silence(30).await;
            first.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            world.expect_log(&[r#"l l/s1 0/0/0/80/80 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
            assert_eq!(counts(&world), HedgeCounts { begun: 1, failed: 1, ..HedgeCounts::default() });
        });
    };
    second_refuses("");
    second_refuses(BUSY);
}

#[test]
fn where_both_fail_the_client_learns_of_it() {
    hedged("").run(|world| async move {
        let mut s2 = Service::at(S2);
        let (mut client, first, _s1) = asked_first().await;
        let mut second = s2.accept().await;
        second.expect(GET_AT_SERVER).await;
        first.close();
        client.expect_silence(10).await;
        second.close();
        client.expect(page(502)).await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/60 502 # - - SH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
    // Any answer is preferred to none, from either server.
    for busy_is_second in [false, true] {
        hedged("").run(move |world| async move {
            let mut s2 = Service::at(S2);
            let (mut client, mut first, _s1) = asked_first().await;
            let mut second = s2.accept().await;
            second.expect(GET_AT_SERVER).await;
            let (busy, gone) = if busy_is_second { (&mut second, first) } else { (&mut first, second) };
            busy.send(BUSY).await;
            client.expect_silence(10).await;
            gone.close();
            client.expect(BUSY_AT_CLIENT).await;
            let lines = world.take_log().await;
            assert!(lines.len() == 1 && lines[0].contains(" 503 "), "{lines:?}");
            assert!(lines[0].contains(if busy_is_second { " l/s2 " } else { " l/s1 " }), "{lines:?}");
        });
    }
}

#[test]
fn nobody_listens_at_the_second_server() {
    hedged("").run(|world| async move {
        let (mut client, mut first, _s1) = asked_first().await;
        client.expect_silence(60).await;
        first.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        assert_eq!(counts(&world), HedgeCounts { begun: 1, failed: 1, ..HedgeCounts::default() });
        world.expect_log(&[r#"l l/s1 0/0/0/*/* 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn the_time_for_an_answer_is_that_of_the_first_attempt() {
    hedged("timeout server 200ms").run(|world| async move {
        let mut s2 = Service::at(S2);
        let (mut client, mut first, _s1) = asked_first().await;
        let mut second = s2.accept().await;
        second.expect(GET_AT_SERVER).await;
        client.expect(page(504)).await;
        first.expect_end().await;
        second.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
    hedged("timeout server 200ms").run(|world| async move {
        let mut s2 = Service::at(S2);
        let (mut client, mut first, _s1) = asked_first().await;
        let mut second = s2.accept().await;
        second.expect(GET_AT_SERVER).await;
        second.send(BUSY).await;
        client.expect(BUSY_AT_CLIENT).await;
        first.expect_end().await;
        world.expect_log(&[r#"l l/s2 0/0/50/150/200 503 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_client_that_leaves_ends_both() {
    hedged("option abortonclose").run(|world| async move {
        let mut s2 = Service::at(S2);
        let (client, mut first, _s1) = asked_first().await;
        let mut second = s2.accept().await;
        second.expect(GET_AT_SERVER).await;
        client.close();
        first.expect_end().await;
        second.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/* 400 # - - CH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn what_must_not_be_done_twice_is_sent_once() {
    let once = |options: &'static str, request: String, at_server: String| {
        hedged(options).run(move |world| {
            let (request, at_server) = (request.clone(), at_server.clone());
            async move {
                let (mut s1, mut s2) = (Service::at(S1), Service::at(S2));
                let mut client = Peer::connect(WEIR).await;
                client.send(&request).await;
                let mut first = s1.accept().await;
                first.expect(&at_server).await;
                sleep(500).await;
                first.send(OK).await;
                client.receive_head().await;
                s2.is_left_alone();
                assert_eq!(counts(&world), HedgeCounts::default(), "{request}");
            }
        });
    };
    once("", post(3) + "abc", post_at_server(3) + "abc");
    for method in ["PUT", "DELETE"] {
        let head = |host: &str, length: &str| format!("{method} / HTTP/1.1\r\n{host}: a\r\n{length}: 0\r\n\r\n");
        once("", head("Host", "Content-Length"), head("host", "content-length"));
    }
    let body = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na";
    once("", body.to_owned(), body.replace("Host", "host").replace("Content-Length", "content-length"));
    // Requests bound to their server are not hedged, nor those whose retry is forbidden.
    let cookie = |name: &str, host: &str| format!("GET / HTTP/1.1\r\n{host}: a\r\n{name}: SRV=a\r\n\r\n");
    once(
        "cookie SRV insert\n server s0 10.0.1.1:80 cookie a weight 0",
        cookie("Cookie", "Host"),
        cookie("cookie", "host"),
    );
    once("http-request disable-l7-retry", GET.to_owned(), GET_AT_SERVER.to_owned());
}

#[test]
fn a_server_without_a_free_slot_is_not_asked() {
    let body = "balance roundrobin\n hedge-requests after 50ms budget 100\n server s1 10.0.1.1:80 maxconn 5\n \
                server s2 10.0.1.2:80 maxconn 1";
    listen(body).run(|world| async move {
        let (mut s1, mut s2) = (Service::at(S1), Service::at(S2));
        // One request each, then the second attempt of the next one finds no free slot.
        let mut clients = Vec::new();
        let mut answering = Vec::new();
        for (path, at_second) in [("/1", false), ("/2", true), ("/3", false)] {
            let mut client = Peer::connect(WEIR).await;
            client.send(get(path)).await;
            let mut server = if at_second { s2.accept().await } else { s1.accept().await };
            server.expect(get_at_server(path)).await;
            clients.push(client);
            answering.push(server);
        }
        // The second server's own request gets a slot at the first one.
        let mut hedge = s1.accept().await;
        hedge.expect(get_at_server("/2")).await;
        sleep(100).await;
        let found = counts(&world);
        assert_eq!((found.begun, found.without_server), (1, 2), "{found:?}");
        assert_eq!(world.shared().live.proxies[0].counts(Some(1)).srv_conn, 1);
        for (client, server) in clients.iter_mut().zip(&mut answering) {
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
        }
        hedge.expect_end().await;
    });
}

#[test]
fn the_budget_bounds_second_attempts() {
    for (budget, expected) in [("budget 50 min 0", 2), ("budget 0 min 0", 0), ("budget 0 min 1", 4)] {
        let body = format!("balance roundrobin\n hedge-requests after 5ms {budget}\n http-reuse never\n {SERVERS}");
        listen(&body).run(move |world| async move {
            for address in [S1, S2] {
                Service::at(address).serve(&world.scope, |mut peer: Peer, _| async move {
                    if peer.receive_head().await.is_some() {
                        sleep(30).await;
                        peer.try_send(OK).await;
                    }
                });
            }
            for _ in 0..4 {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                client.expect(OK_AT_CLIENT).await;
            }
            let found = counts(&world);
            assert_eq!((found.begun, found.over_budget), (expected, 4 - expected), "{budget}");
        });
    }
}

#[test]
fn a_percentile_of_what_was_seen_is_the_delay() {
    listen(&format!("balance roundrobin\n hedge-requests after p90 budget 100\n {SERVERS}")).run(|world| async move {
        let slow = std::rc::Rc::new(std::cell::Cell::new(false));
        for address in [S1, S2] {
            let slow = slow.clone();
            Service::at(address).serve(&world.scope, move |mut peer: Peer, _| {
                let slow = slow.clone();
                async move {
                    while peer.receive_head().await.is_some() {
                        sleep(if slow.replace(false) { 5_000 } else { 10 }).await;
                        if !peer.try_send(OK).await {
                            return;
                        }
                    }
                }
            });
        }
        let mut client = Peer::connect(WEIR).await;
        let mut ask = async || {
            let watch = Stopwatch::start();
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            watch.elapsed().as_millis()
        };
        slow.set(true);
        assert!((5_000..=5_001).contains(&ask().await), "nothing is known");
        for _ in 0..70 {
            assert!((10..=11).contains(&ask().await));
        }
        slow.set(true);
        let took = ask().await;
        // The percentile is estimated up to an eighth too high, and answers take time.
        assert!((20..=24).contains(&took), "{took} ms");
        assert_eq!(counts(&world).won, 1);
    });
}

/// TLS servers are hedged like others, with or without a PROXY header before the handshake, on a new link or an idle
/// one.
#[test]
fn the_second_server_may_speak_tls() {
    for (options, header) in [("", ""), ("send-proxy", "PROXY TCP4 ")] {
        let servers = format!(
            "server s1 10.0.1.1:80\n server s2 10.0.1.2:80 ssl verify required ca-file ca.pem sni str(a.example) {options}"
        );
        listen(&format!("balance roundrobin\n hedge-requests after 50ms budget 100 min 0\n {servers}")).run(
            move |world| async move {
                let mut s2 = Service::at(S2);
                let (mut client, mut first, _s1) = asked_first().await;
                let mut peer = s2.accept().await;
                if !header.is_empty() {
                    let mut line = Vec::new();
                    while !line.ends_with(b"\r\n") {
                        line.extend(peer.receive(1).await);
                    }
                    assert!(line.starts_with(header.as_bytes()), "{}", line.escape_ascii());
                }
                let mut second = Secure::accept(peer).await.unwrap();
                assert_eq!(second.asked_name().as_deref(), Some("a.example"));
                second.expect(GET_AT_SERVER).await;
                second.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
                first.expect_end().await;
                assert_eq!(counts(&world), HedgeCounts { begun: 1, won: 1, ..HedgeCounts::default() });
                world.forget_log();
            },
        );
    }
}

/// A handshake that fails, or is not completed in time, loses the hedge.
#[test]
fn a_rival_that_is_not_who_it_has_to_be_has_lost() {
    for silent in [false, true] {
        let servers = "server s1 10.0.1.1:80\n server s2 10.0.1.2:80 ssl verify required ca-file other.pem";
        listen(&format!(
            "balance roundrobin\n timeout connect 1s\n hedge-requests after 50ms budget 100 min 0\n {servers}"
        ))
        .run(move |world| async move {
            let mut s2 = Service::at(S2);
            let (mut client, mut first, _s1) = asked_first().await;
            let mut peer = s2.accept().await;
            if silent {
                peer.receive_rest().await;
            } else {
                assert!(Secure::accept(peer).await.is_err());
            }
            first.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            assert_eq!(counts(&world), HedgeCounts { begun: 1, failed: 1, ..HedgeCounts::default() });
            world.forget_log();
        });
    }
}
