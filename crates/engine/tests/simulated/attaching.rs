//! Tests of reverse HTTP on the balancer's side: servers open the connections over which requests are sent to them.

use testkit::{Peer, sleep};

use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

/// The address that servers connect to.
const EDGE: &str = "10.0.0.1:81";

const SECTIONS: &str = "frontend pub\n bind 10.0.0.1:80\n use_backend edge\n\
                        frontend priv\n bind 10.0.0.1:81 proto h2\n tcp-request session attach-srv edge/dev\n\
                        backend edge\n server dev rhttp@";

fn attaching(sections: &str) -> Worlds {
    config(sections).global("expose-experimental-directives")
}

/// Returns a server that has connected and was attached.
async fn attached() -> End {
    let mut end = End::open(EDGE).await;
    end.settle().await;
    end
}

#[test]
fn requests_go_over_the_connection_that_a_server_has_opened() {
    attaching(SECTIONS).workers(&[1]).shuffled().seeds(0..8).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        world.expect_log(&["pub edge/dev 0/0/-1/-1/0 503 214 - - SC-- 1/1/0/0/0 0/0 \"GET / HTTP/1.1\""]).await;
        let mut dev = attached().await;
        for round in 0..3 {
            client.send(get("/a")).await;
            let stream = dev.expect_request(&get_at_server("/a"), b"").await;
            assert_eq!(stream, 2 * round + 1);
            dev.answer(stream, b"hello").await;
            client.expect(answer_at_client("hello")).await;
        }
        drop(client);
        // Clients share it, even if `http-reuse` excludes first requests.
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/1")).await;
        let first = dev.expect_request(&get_at_server("/1"), b"").await;
        two.send(get("/2")).await;
        let second = dev.expect_request(&get_at_server("/2"), b"").await;
        dev.answer(second, b"two").await;
        two.expect(answer_at_client("two")).await;
        dev.answer(first, b"one").await;
        one.expect(answer_at_client("one")).await;
        drop(dev);
        sleep(1).await;
        two.send(GET).await;
        two.expect(page(503)).await;
        world.forget_log();
    });
}

#[test]
fn a_connection_is_found_by_its_name() {
    let sections = "frontend pub\n bind 10.0.0.1:80\n use_backend edge\n\
                    frontend priv\n bind 10.0.0.1:81 accept-proxy\n tcp-request session attach-srv edge/dev name src\n\
                    backend edge\n server dev rhttp@ pool-conn-name hdr(x-name)";
    attaching(sections).shuffled().seeds(0..4).run(|world| async move {
        let mut ends = Vec::new();
        for name in ["10.9.0.1", "10.9.0.2"] {
            let mut peer = Peer::connect(EDGE).await;
            peer.send(format!("PROXY TCP4 {name} 10.0.0.1 1000 81\r\n")).await;
            let mut end = End::open_over(peer).await;
            end.settle().await;
            ends.push((name, end));
        }
        let mut client = Peer::connect(WEIR).await;
        for (name, end) in &mut ends {
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nx-name: {name}\r\n\r\n")).await;
            let head = format!("GET / HTTP/1.1\r\nhost: a\r\nx-name: {name}\r\n\r\n");
            let stream = end.expect_request(&head, b"").await;
            end.answer(stream, name.as_bytes()).await;
            client.expect(answer_at_client(name)).await;
        }
        client.send("GET / HTTP/1.1\r\nHost: a\r\nx-name: 10.9.0.3\r\n\r\n").await;
        client.expect(page(503)).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        world.forget_log();
    });
}

/// A connection moves to the worker whose request needs it, once no request is in progress on it; the request waits
/// until then.
#[test]
fn requests_of_every_worker_reach_the_connection() {
    attaching(SECTIONS).workers(&[2, 4]).shuffled().seeds(0..8).run(|world| async move {
        let mut dev = attached().await;
        let mut clients = Vec::new();
        for number in 0..8 {
            let mut client = Peer::connect(WEIR).await;
            client.send(get(&format!("/{number}"))).await;
            let stream = dev.expect_request(&get_at_server(&format!("/{number}")), b"").await;
            dev.answer(stream, b"hello").await;
            client.expect(answer_at_client("hello")).await;
            clients.push(client);
        }
        for round in 0..8 {
            let other = (round + 3) % 8;
            clients[round].send(get("/first")).await;
            let first = dev.expect_request(&get_at_server("/first"), b"").await;
            clients[other].send(get("/second")).await;
            sleep(75).await;
            dev.answer(first, b"first").await;
            clients[round].expect(answer_at_client("first")).await;
            let second = dev.expect_request(&get_at_server("/second"), b"").await;
            dev.answer(second, b"second").await;
            clients[other].expect(answer_at_client("second")).await;
        }
        drop(dev);
        sleep(1).await;
        for client in &mut clients {
            client.send(GET).await;
            client.expect(page(503)).await;
        }
        world.forget_log();
    });
}

/// A request waits for a busy connection at most as long as for a new one.
#[test]
fn a_request_waits_as_long_as_for_a_connection() {
    attaching(SECTIONS).workers(&[2]).seeds(0..8).run(|world| async move {
        let mut dev = attached().await;
        let mut one = Peer::connect(WEIR).await;
        one.send(get("/first")).await;
        let first = dev.expect_request(&get_at_server("/first"), b"").await;
        let mut clients = Vec::new();
        for _ in 0..6 {
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/second")).await;
            clients.push(client);
        }
        sleep(15_000).await;
        dev.answer(first, b"first").await;
        one.expect(answer_at_client("first")).await;
        for client in &mut clients {
            let second = dev.expect_request(&get_at_server("/second"), b"").await;
            dev.answer(second, b"second").await;
            let _ = client;
        }
        for client in &mut clients {
            client.expect(answer_at_client("second")).await;
        }
        world.forget_log();
    });
}

/// A connection that does not begin with HTTP/2, or sends nothing, is closed and not attached.
#[test]
fn a_connection_has_to_begin_with_http2() {
    attaching(SECTIONS).shuffled().seeds(0..4).run(|world| async move {
        let mut peer = Peer::connect(EDGE).await;
        peer.send(GET).await;
        peer.expect_eof().await;
        let mut silent = Peer::connect(EDGE).await;
        silent.expect_eof().await;
        // Without SETTINGS it is not attached either.
        let mut mute = Peer::connect(EDGE).await;
        mute.send(wire::h2::PREFACE).await;
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        mute.receive_rest().await;
        world.forget_log();
    });
}

/// A stop completes requests in progress, and makes the server connect elsewhere.
#[test]
fn a_stop_ends_the_connection_behind_its_requests() {
    attaching(SECTIONS).workers(&[1]).seeds(0..4).run(|world| async move {
        let mut dev = attached().await;
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let stream = dev.expect_request(GET_AT_SERVER, b"").await;
        world.stop();
        sleep(5).await;
        dev.answer(stream, b"late").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlate").await;
        dev.expect_end().await;
        assert!(dev.gone.is_some());
        world.forget_log();
    });
}

/// When the connection is lost, its requests without an answer are retried as with any server; there is no other
/// connection.
#[test]
fn a_connection_that_is_lost_takes_its_requests_along() {
    attaching(SECTIONS).workers(&[1]).shuffled().seeds(0..4).run(|world| async move {
        let mut dev = attached().await;
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let stream = dev.expect_request(GET_AT_SERVER, b"").await;
        let mut other = Peer::connect(WEIR).await;
        other.send(GET).await;
        let second = loop {
            match dev.messages.keys().find(|known| **known != stream) {
                Some(second) => break *second,
                None => assert!(dev.step().await),
            }
        };
        dev.send(Part::Head, second, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
        dev.send(Part::Data, second, "ab").await;
        other.expect("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab").await;
        drop(dev);
        client.expect(page(503)).await;
        other.expect_eof().await;
        world.forget_log();
    });
}
