//! A reload in place meets what connections are in the middle of: streams of HTTP/2, requests that were sent together, tunnels,
//! requests that wait for a server, and servers that the runtime API has changed.

use testkit::{Peer, Service, sleep};

use crate::api;
use crate::h2::Client;
use crate::messages::*;
use crate::world::*;

/// A proxy whose answers bear a mark, before these lines.
fn marked(mark: &str, lines: &str) -> Worlds {
    listen(&format!("http-response set-header x-mark {mark}\n{lines}")).global(api::SOCKET)
}

const ONE: &str = "server s1 10.0.1.1:80\n";
const BOTH: &str = "server s2 10.0.1.2:80\n server s1 10.0.1.1:80\n";

#[test]
fn streams_that_are_open_end_and_others_begin_on_their_connection() {
    marked("old", ONE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        client.get(1, "/1").await;
        let mut first = s1.accept().await;
        first.expect(get_at_server("/1")).await;
        first.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n").await;
        while client.answers.get(&1).is_none_or(|answered| answered.head.is_empty()) {
            client.step().await;
        }
        assert_eq!(world.adopt(&marked("new", ONE)), Ok(()));
        sleep(5).await;
        client.get(3, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        second.send(answer("two")).await;
        let answered = client.answer(3).await;
        assert!(answered.head.contains("x-mark: old"), "{}", answered.head);
        first.send("3\r\nmor\r\n0\r\n\r\n").await;
        let answered = client.answer(1).await;
        assert!(answered.head.contains("x-mark: old") && answered.reset.is_none(), "{}", answered.head);
        let mut other = Client::connect().await;
        other.get(1, "/3").await;
        second.expect(get_at_server("/3")).await;
        second.send(answer("three")).await;
        let answered = other.answer(1).await;
        assert!(answered.head.contains("x-mark: new"), "{}", answered.head);
        assert_eq!(world.shared().generations(), 2);
        drop(client);
        sleep(50).await;
        assert_eq!(world.shared().generations(), 1);
    });
}

#[test]
fn requests_that_were_sent_together_are_all_answered() {
    marked("old", ONE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send([get("/1"), get("/2"), get("/3")].concat()).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        assert_eq!(world.adopt(&marked("new", ONE)), Ok(()));
        sleep(5).await;
        for path in ["/1", "/2", "/3"] {
            if path != "/1" {
                server.expect(get_at_server(path)).await;
            }
            server.send(answer("ok")).await;
            let head = client.receive_head().await.expect("an answer");
            assert!(head.starts_with("HTTP/1.1 200") && head.contains("x-mark: old"), "{head}");
            client.expect("ok").await;
        }
    });
}

#[test]
fn a_tunnel_outlives_its_server_and_its_configuration() {
    marked("old", ONE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: custom\r\n\r\n").await;
        let mut server = s1.accept().await;
        assert!(server.receive_head().await.is_some());
        server.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: custom\r\n\r\n").await;
        assert!(client.receive_head().await.is_some_and(|head| head.contains(" 101 ")));
        for lines in ["server s2 10.0.1.2:80\n", BOTH, ONE] {
            assert_eq!(world.adopt(&marked("new", lines)), Ok(()));
            sleep(3_000).await;
            client.send("ping").await;
            server.expect("ping").await;
            server.send("pong").await;
            client.expect("pong").await;
        }
    });
}

#[test]
fn requests_that_wait_are_served_by_the_server_that_stays() {
    let full = "server s1 10.0.1.1:80 maxconn 1\n";
    marked("old", full).run(move |world| async move {
        let mut s1 = Service::at(S1);
        let (mut first, mut second) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        first.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        second.send(GET).await;
        sleep(50).await;
        assert_eq!(world.adopt(&marked("new", &format!("{full}timeout queue 9s\n"))), Ok(()));
        sleep(5).await;
        let mut third = Peer::connect(WEIR).await;
        third.send(GET).await;
        sleep(5).await;
        for (client, mark) in [(&mut first, "old"), (&mut second, "old"), (&mut third, "new")] {
            server.send(answer("ok")).await;
            let head = client.receive_head().await.expect("an answer");
            assert!(head.contains(&format!("x-mark: {mark}")), "{head}");
            client.expect("ok").await;
            if mark == "old" {
                server.expect(GET_AT_SERVER).await;
            }
        }
    });
}

#[test]
fn what_the_runtime_api_has_changed_of_a_server_goes_on() {
    let template = |count: u32| format!("server-template s 1-{count} 10.0.1.1:80\n");
    marked("old", &template(2)).run(move |world| async move {
        for (address, name) in [(S1, "s1"), (S2, "s2")] {
            Service::at(address).serve(&world.scope, move |mut peer: Peer, _| async move {
                while peer.receive_head().await.is_some() {
                    if !peer.try_send(answer(name)).await {
                        return;
                    }
                }
            });
        }
        api::order("disable server l/s1").await;
        assert!(api::ask("set server l/s2 addr 10.0.1.2 port 80").await.contains("10.0.1.2"));
        assert_eq!(world.adopt(&marked("new", &template(2))), Ok(()));
        sleep(5).await;
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..3 {
            client.send(GET).await;
            assert!(client.receive_head().await.is_some_and(|head| head.contains("x-mark: new")));
            client.expect("s2").await;
        }
        // One more of the template, and another proxy before it all.
        let more = config(&format!(
            "backend first\n server s1 10.0.1.2:80\nlisten l\n bind {WEIR}\n http-response set-header x-mark newer\n {}",
            template(3)
        ));
        assert_eq!(world.adopt(&more.global(api::SOCKET)), Ok(()));
        sleep(5).await;
        let mut bodies = Vec::new();
        for _ in 0..4 {
            client.send(GET).await;
            assert!(client.receive_head().await.is_some());
            bodies.push(String::from_utf8(client.receive(2).await).unwrap());
        }
        bodies.sort();
        assert_eq!(bodies, ["s1", "s1", "s2", "s2"], "the third is at the address of the template");
        assert!(api::ask("show servers state l").await.contains(" s1 10.0.1.1 0 1 "));
        world.forget_log();
    });
}
