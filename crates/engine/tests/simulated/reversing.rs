//! Tests of reverse HTTP: connections opened to a server that sends its requests over them.

use testkit::{Service, sleep};

use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

const SECTIONS: &str = "frontend f\n log global\n option httplog\n bind rhttp@edge/e nbconn 2\n http-request deny unless { fc_http_major 2 }\n default_backend b\n\
                        backend edge\n server e 10.0.1.2:80 proto h2\nbackend b\n server s1 10.0.1.1:80";

fn reversed() -> Worlds {
    config(SECTIONS).global("expose-experimental-directives")
}

/// The connections are kept without requests, are multiplexed, and are opened again when one ends.
#[test]
fn connections_are_kept_up_and_carry_the_requests_of_their_server() {
    reversed().shuffled().seeds(0..6).run(|world| async move {
        let (mut edge, mut s1) = (Service::at(S2), Service::at(S1));
        let (mut one, mut two) = (End::accept(&mut edge).await, End::accept(&mut edge).await);
        world.forget_log();
        for (round, client) in [&mut one, &mut two].into_iter().enumerate() {
            client.get(1, "/a").await;
            let mut server = s1.accept().await;
            server.expect(get_at_server("/a")).await;
            client.post(3, post(3)).await;
            let mut other = s1.accept().await;
            client.upload(3, b"abc").await;
            other.expect(post_at_server(3) + "abc").await;
            other.send(answer("second")).await;
            client.expect(3, "HTTP/1.1 200", "second").await;
            server.send(answer(&format!("first {round}"))).await;
            client.expect(1, "HTTP/1.1 200", &format!("first {round}")).await;
        }
        drop(one);
        let mut three = End::accept(&mut edge).await;
        three.get(1, "/b").await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send(OK).await;
        three.expect(1, "HTTP/1.1 200", "ok").await;
        assert_eq!(edge.accepted(), 3);
        world.stop();
        // They get a GOAWAY when the process stops, and are not opened again.
        two.expect_end().await;
        three.expect_end().await;
        assert!(two.gone.is_some() && three.gone.is_some());
        world.forget_log();
    });
}

/// A server that cannot be reached is retried after some time; this is logged once.
#[test]
fn a_server_that_cannot_be_reached_is_asked_again() {
    reversed().workers(&[1]).run(|world| async move {
        sleep(3_500).await;
        let mut edge = Service::at(S2);
        let (mut one, _two) = (End::accept(&mut edge).await, End::accept(&mut edge).await);
        one.send(Part::HeadAlone, 1, get("/")).await;
        let mut s1 = Service::at(S1);
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        one.expect(1, "HTTP/1.1 200", "ok").await;
        let lines = world.lines(4).await.join("\n");
        for said in ["Initiating.", "Error encountered.", "Running with nbconn 2 reached."] {
            assert_eq!(lines.matches(&format!("preconnect f::edge/e: {said}")).count(), 1, "{lines}");
        }
        world.stop();
        world.forget_log();
    });
}

/// Open connections are unaffected, and those opened later serve the newest configuration.
#[test]
fn a_reload_in_place_leaves_the_connections_open() {
    let marked =
        || config(&SECTIONS.replace("http-request deny", "http-response set-header x-mark new\n http-request deny"));
    reversed().shuffled().seeds(0..6).run(move |world| async move {
        let (mut edge, mut s1) = (Service::at(S2), Service::at(S1));
        let (mut one, mut two) = (End::accept(&mut edge).await, End::accept(&mut edge).await);
        one.get(1, "/a").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/a")).await;
        let next = marked().global("expose-experimental-directives");
        assert_eq!(world.adopt(&next), Ok(()));
        sleep(3_000).await;
        server.send(OK).await;
        one.expect(1, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", "ok").await;
        two.get(1, "/b").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/b")).await;
        server.send(OK).await;
        two.expect(1, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", "ok").await;
        assert_eq!(edge.accepted(), 2);
        assert!(one.gone.is_none() && two.gone.is_none());
        drop(one);
        let mut three = End::accept(&mut edge).await;
        three.get(1, "/c").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/c")).await;
        server.send(OK).await;
        three.expect(1, "HTTP/1.1 200 OK\r\nx-mark: new\r\n", "ok").await;
        world.forget_log();
    });
}
