//! Tests of connections to servers: the headers sent first, source and destination addresses, reuse, and failures of
//! the local system to open one.

use rt::net::Address;
use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

fn address(text: &str) -> Address {
    Address::Inet(text.parse().unwrap())
}

/// The header of version 1 for this client.
fn line_of(client: &Peer) -> String {
    let client = client.local_address().inet().unwrap();
    format!("PROXY TCP4 {} 10.0.0.1 {} 80\r\n", client.ip(), client.port())
}

/// Sends one request of a client, and waits until its connection is idle.
async fn ask(client: &mut Peer) {
    client.send(GET).await;
    client.expect(OK_AT_CLIENT).await;
    sleep(1).await;
}

async fn serve(server: &mut Peer, header: &str) {
    server.expect(format!("{header}{GET_AT_SERVER}")).await;
    server.send(OK).await;
}

#[test]
fn a_header_tells_of_the_client_and_its_link_is_for_that_client_alone() {
    listen("http-reuse always\n server s1 10.0.1.1:80 send-proxy").run(|world| async move {
        let mut service = Service::at(S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(GET).await;
        let mut first = service.accept().await;
        // Another client gets a connection of its own, although there are idle ones.
        two.send(GET).await;
        let mut second = service.accept().await;
        serve(&mut first, &line_of(&one)).await;
        one.expect(OK_AT_CLIENT).await;
        sleep(1).await;
        assert_eq!(world.idle_links(), 1);
        serve(&mut second, &line_of(&two)).await;
        two.expect(OK_AT_CLIENT).await;
        sleep(1).await;
        assert_eq!(world.idle_links(), 2);
        let mut three = Peer::connect(WEIR).await;
        three.send(GET).await;
        let mut third = service.accept().await;
        serve(&mut third, &line_of(&three)).await;
        three.expect(OK_AT_CLIENT).await;
        sleep(1).await;
        // Two were in use at once, and no more are idle.
        assert_eq!(world.idle_links(), 2);
        // The first client gets its own again, and the header is not repeated.
        for _ in 0..3 {
            one.send(GET).await;
            serve(&mut first, "").await;
            one.expect(OK_AT_CLIENT).await;
            sleep(1).await;
        }
        assert_eq!(world.idle_links(), 2);
        service.is_left_alone();
    });
}

#[test]
fn in_tcp_mode_the_header_does_not_wait_for_the_client() {
    listen("mode tcp\n server s1 10.0.1.1:80 send-proxy-v2").run(|_| async {
        let mut service = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut server = service.accept().await;
        let header = server.receive(28).await;
        assert_eq!(header[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
        let ends = client.local_address().inet().unwrap();
        assert_eq!(header[24..26], ends.port().to_be_bytes());
        server.send("hello").await;
        client.expect("hello").await;
    });
}

/// The request to a SOCKS4 proxy for the server at 10.0.1.1:80.
const SOCKS_REQUEST: &[u8] = b"\x04\x01\x00\x50\x0a\x00\x01\x01HAProxy\0";

#[test]
fn through_a_proxy_and_what_is_behind_its_answer_is_the_servers() {
    listen("mode tcp\n server s1 10.0.1.1:80 socks4 10.0.1.2:80 send-proxy").run(|_| async {
        let mut proxy = Service::at(S2);
        let mut client = Peer::connect(WEIR).await;
        let mut server = proxy.accept().await;
        server.expect(SOCKS_REQUEST).await;
        server.expect_silence(5).await;
        server.send(b"\x00\x5a\x00\x00\x00\x00\x00\x00at once").await;
        server.expect(line_of(&client)).await;
        client.expect("at once").await;
        client.send("more").await;
        server.expect("more").await;
    });
}

#[test]
fn a_proxy_that_refuses_talks_nonsense_or_leaves_is_a_server_that_refuses() {
    let rows: [&'static [u8]; 4] = [b"\x00\x5b\x00\x00\x00\x00\x00\x00", b"HTTP/1.1 200", b"\x00\x5a\x00", b""];
    for answer in rows {
        listen("retries 1\n timeout connect 300ms\n server s1 10.0.1.1:80 socks4 10.0.1.2:80").run(
            move |world| async move {
                let mut proxy = Service::at(S2);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                for _ in 0..2 {
                    let mut server = proxy.accept().await;
                    server.expect(SOCKS_REQUEST).await;
                    server.send(answer).await;
                    server.close();
                }
                client.expect(page(503)).await;
                world.expect_log(&[r#"l l/s1 0/0/-1/-1/# 503 # - - SC-- 1/1/0/0/1 0/0 "GET / HTTP/1.1""#]).await;
            },
        );
    }
}

#[test]
fn a_silent_proxy_has_as_long_as_any_server_to_connect() {
    listen("retries 0\n timeout connect 300ms\n server s1 10.0.1.1:80 socks4 10.0.1.2:80").run(|world| async move {
        let mut proxy = Service::at(S2);
        let mut client = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        client.send(GET).await;
        let mut server = proxy.accept().await;
        server.expect(SOCKS_REQUEST).await;
        client.expect(page(503)).await;
        watch.took(300);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/-1/-1/300 503 # - - sC-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// Simulates a local shortage of a resource: attempts are made without a pause, the log names the resource, other
/// clients are served, and so is this one when the resource is available again.
fn shortage(code: i32, message: &'static str) {
    listen("retries 2\n http-reuse always\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80 weight 0").run(
        move |world| async move {
            let mut service = Service::at(S1);
            let mut other = Peer::connect(WEIR).await;
            other.send(GET).await;
            let mut busy = service.accept().await;
            busy.expect(GET_AT_SERVER).await;
            world.forget_log();
            rt::sim::network().fail_to_connect(&address(S1), Some(code));
            let mut client = Peer::connect(WEIR).await;
            let watch = Stopwatch::start();
            client.send(GET).await;
            client.expect(page(503)).await;
            watch.took(0);
            let lines = world.lines(4).await;
            assert_eq!(lines.iter().filter(|line| line.contains(message)).count(), 3, "{lines:?}");
            let failed = r#"l l/s1 0/0/-1/-1/0 503"#;
            assert!(lines.iter().any(|line| line.contains(failed) && line.contains(" SC-- ")), "{lines:?}");
            world.forget_log();
            busy.send(OK).await;
            other.expect(OK_AT_CLIENT).await;
            busy.close();
            sleep(1).await;
            rt::sim::network().fail_to_connect(&address(S1), None);
            client.send(GET).await;
            let mut server = service.accept().await;
            serve(&mut server, "").await;
            client.expect(OK_AT_CLIENT).await;
        },
    );
}

#[test]
fn without_descriptors_ports_or_memory_others_live_and_it_recovers() {
    shortage(24, "Proxy l reached process FD limit");
    shortage(23, "Proxy l reached system FD limit");
    shortage(105, "Proxy l reached system memory limit");
    shortage(99, "Connect() failed for backend l: no free ports.");
}

/// Ports of a range that the system refuses, such as those in TIME_WAIT: an attempt tries 16 of them, the least
/// recently tried first.
#[test]
fn an_attempt_tries_some_ports_of_a_range_and_the_next_one_others() {
    let lines = "retries 1\n server s1 10.0.1.1:80 source 10.0.0.1:1000-1039";
    listen(lines).workers(&[1, 2]).run(|world| async move {
        world.forget_log();
        let mut service = Service::at(S1);
        rt::sim::network().fail_to_connect(&address(S1), Some(99));
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        let lines = world.lines(3).await;
        let message = "Connect() failed for backend l: no free ports.";
        assert_eq!(lines.iter().filter(|line| line.contains(message)).count(), 2, "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("l l/s1 0/0/-1/-1/0 503")), "{lines:?}");
        rt::sim::network().fail_to_connect(&address(S1), None);
        client.send(GET).await;
        let mut server = service.accept().await;
        assert_eq!(server.remote_address(), address("10.0.0.1:1032"));
        serve(&mut server, "").await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_range_of_ports_bounds_the_connections_until_one_is_closed() {
    listen("retries 0\n http-reuse always\n server s1 10.0.1.1:80 source 10.0.0.1:1000-1001").workers(&[1, 4]).run(
        |world| async move {
            world.forget_log();
            let mut service = Service::at(S1);
            let mut clients = Vec::new();
            let mut servers = Vec::new();
            for port in [1000, 1001] {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut server = service.accept().await;
                server.expect(GET_AT_SERVER).await;
                assert_eq!(server.remote_address(), address(&format!("10.0.0.1:{port}")));
                clients.push(client);
                servers.push(server);
            }
            let mut third = Peer::connect(WEIR).await;
            third.send(GET).await;
            third.expect(page(503)).await;
            let lines = world.lines(2).await;
            let message = "Cannot bind to source address before connect() for backend l.";
            assert!(lines.iter().any(|line| line.contains(message)), "{lines:?}");
            world.forget_log();
            servers.remove(0).close();
            clients.remove(0).expect(page(502)).await;
            third.send(GET).await;
            let mut server = service.accept().await;
            serve(&mut server, "").await;
            third.expect(OK_AT_CLIENT).await;
            assert_eq!(server.remote_address(), address("10.0.0.1:1000"));
        },
    );
}

/// Each of these clients needs a connection of its own (`http-reuse safe`), and the idle connections that they leave
/// use all ports.
#[test]
fn idle_connections_give_way_when_they_have_all_ports_of_a_range() {
    listen("retries 0\n server s1 10.0.1.1:80 source 10.0.0.1:1000-1001").workers(&[1, 4]).run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        for request in 1..=6 {
            let mut client = Peer::connect(WEIR).await;
            ask(&mut client).await;
            client.close();
            sleep(1).await;
            assert_eq!(opened.get(), request);
        }
        assert_eq!(world.idle_links(), 2);
    });
}

#[test]
fn a_server_at_no_address_is_where_the_client_meant_to_go() {
    config("listen l\n bind 10.0.0.1:80\n bind 10.0.0.2:81\n http-reuse always\n server s1 0.0.0.0:+1000").run(
        |world| async move {
            let (mut at_one, mut at_two) = (Service::at("10.0.0.1:1080"), Service::at("10.0.0.2:1081"));
            let (mut one, mut two) = (Peer::connect("10.0.0.1:80").await, Peer::connect("10.0.0.2:81").await);
            one.send(GET).await;
            let mut server = at_one.accept().await;
            two.send(GET).await;
            let mut other = at_two.accept().await;
            serve(&mut server, "").await;
            one.expect(OK_AT_CLIENT).await;
            sleep(1).await;
            // A link to one address is not used for the other.
            serve(&mut other, "").await;
            two.expect(OK_AT_CLIENT).await;
            sleep(1).await;
            assert_eq!(world.idle_links(), 2);
            for _ in 0..2 {
                one.send(GET).await;
                serve(&mut server, "").await;
                one.expect(OK_AT_CLIENT).await;
                sleep(1).await;
            }
        },
    );
}

#[test]
fn no_more_links_that_differ_lie_idle_than_were_in_use_at_once() {
    let rows = [("", [false, true, false, true, false]), ("pool-low-conn 2", [false, true, true, true, true])];
    for (keyword, reused) in rows {
        config(&format!(
            "listen l\n bind 10.0.0.1:80\n bind 10.0.0.2:81\n http-reuse always\n server s1 0.0.0.0:+1000 {keyword}"
        ))
        .workers(&[1])
        .run(|world| async move {
            let at_one = serve_ok(&world.scope, "10.0.0.1:1080");
            let at_two = serve_ok(&world.scope, "10.0.0.2:1081");
            let (mut one, mut two) = (Peer::connect("10.0.0.1:80").await, Peer::connect("10.0.0.2:81").await);
            ask(&mut one).await;
            for (step, reused) in reused.into_iter().enumerate() {
                let before = at_one.get() + at_two.get();
                ask(if step % 2 == 0 { &mut two } else { &mut one }).await;
                sleep(1).await;
                assert_eq!(at_one.get() + at_two.get(), before + usize::from(!reused), "{keyword} {step}");
            }
            assert_eq!(world.idle_links(), if keyword.is_empty() { 1 } else { 2 });
        });
    }
}

#[test]
fn a_connection_is_used_so_often_and_no_more() {
    listen("http-reuse always\n server s1 10.0.1.1:80 max-reuse 2").run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        for request in 1..=7 {
            ask(&mut client).await;
            assert_eq!(opened.get(), usize::div_ceil(request, 3));
        }
    });
}

#[test]
fn idle_links_never_have_more_than_their_share_of_the_descriptors() {
    // A hundredth of what 40 connections need is less than one descriptor.
    listen("http-reuse always\n server s1 10.0.1.1:80").global("tune.pool-low-fd-ratio 0").run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        for request in 1..=3 {
            ask(&mut client).await;
            assert_eq!((opened.get(), world.idle_links()), (request, 0));
        }
    });
}

#[test]
fn new_connections_push_idle_ones_out_where_descriptors_are_many() {
    listen("http-reuse safe\n server s1 10.0.1.1:80").global("tune.pool-high-fd-ratio 0").workers(&[1]).run(
        |world| async move {
            let opened = serve_ok(&world.scope, S1);
            for number in 1..=5 {
                let mut client = Peer::connect(WEIR).await;
                ask(&mut client).await;
                client.close();
                sleep(1).await;
                assert_eq!((opened.get(), world.idle_links()), (number, 1));
            }
        },
    );
}

#[test]
fn a_low_number_of_idle_links_is_left_to_the_worker_that_has_them() {
    listen("http-reuse always\n server s1 10.0.1.1:80 pool-low-conn 1000").workers(&[1, 4]).run(|world| async move {
        let opened = serve_ok(&world.scope, S1);
        for _ in 0..40 {
            let mut client = Peer::connect(WEIR).await;
            ask(&mut client).await;
            client.close();
            sleep(1).await;
        }
        assert!(opened.get() <= world.shared().workers(), "{} links", opened.get());
        assert!(world.shared().workers() == 1 || opened.get() > 1, "several workers serve");
    });
}

#[test]
fn clients_are_sent_to_the_server_itself() {
    listen("server s1 10.0.1.1:80 redir http://other").run(|world| async move {
        let mut service = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        for (target, path) in [("/x?y=1", "/x?y=1"), ("http://a/b", "/b"), ("http://a", "/")] {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            client
                .expect(format!(
                    "HTTP/1.1 302 Found\r\ncache-control: no-cache\r\ncontent-length: 0\r\nlocation: http://other{path}\r\n\r\n"
                ))
                .await;
        }
        world.forget_log();
        client.send(format!("{}ok", post(2))).await;
        let mut server = service.accept().await;
        server.expect(format!("{}ok", post_at_server(2))).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
    });
}
