//! Tests of connections that become tunnels: `Upgrade` and CONNECT.

use testkit::{Peer, Service, both, sleep};

use crate::messages::*;
use crate::world::*;

const S1_LINE: &str = "server s1 10.0.1.1:80";

#[test]
fn bytes_pass_as_they_are() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, _s1) = upgraded().await;
        client.send(b"\x81\x05hello\r\n\r\n\0\xff").await;
        server.expect(b"\x81\x05hello\r\n\r\n\0\xff").await;
        server.send(b"GET / HTTP/1.1\r\n\r\n\0\xff").await;
        client.expect(b"GET / HTTP/1.1\r\n\r\n\0\xff").await;
        sleep(50).await;
        client.half_close();
        server.expect_eof().await;
        // The server may continue to send.
        server.send("bye").await;
        client.expect("bye").await;
        server.close();
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 101 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        assert_eq!(world.idle_links(), 0);
    });
}

#[test]
fn bytes_right_behind_the_heads_belong_to_the_tunnel() {
    listen(S1_LINE).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping").await;
        let mut server = s1.accept().await;
        server.expect("GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n").await;
        // These bytes wait for the server's 101 answer.
        server.expect_silence(50).await;
        server.send("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly").await;
        client.expect("HTTP/1.1 101 Switching\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\nearly").await;
        server.expect("ping").await;
        server.send("pong").await;
        client.expect("pong").await;
    });
}

#[test]
fn the_servers_end_is_the_end() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, _s1) = upgraded().await;
        sleep(50).await;
        server.send("bye").await;
        server.half_close();
        client.expect("bye").await;
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 101 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn who_resets_is_named() {
    for (of_client, state) in [(true, "CD"), (false, "SD")] {
        listen(S1_LINE).run(move |world| async move {
            let (mut client, mut server, _s1) = upgraded().await;
            sleep(50).await;
            if of_client {
                client.reset();
                server.expect_end().await;
            } else {
                server.reset();
                client.expect_end().await;
            }
            let line = format!(r#"l l/s1 0/0/0/0/50 101 # - - {state}-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#);
            world.expect_log(&[&line]).await;
        });
    }
}

#[test]
fn much_in_both_directions_through_a_slow_reader() {
    listen(S1_LINE).seeds(0..2).run(|_| async move {
        const LENGTH: usize = 700_000;
        let (mut client, mut server, _s1) = upgraded().await;
        let (up, down) = (testkit::text(LENGTH, 1), testkit::text(LENGTH, 2));
        let (sent_up, sent_down) = (up.clone(), down.clone());
        let client_side = async {
            client.send(sent_up).await;
            client.receive_slowly(LENGTH, 50_000, 1).await
        };
        let server_side = async {
            let got = server.receive_slowly(LENGTH, 100_000, 1).await;
            server.send(sent_down).await;
            got
        };
        let (got_down, got_up) = both(client_side, server_side).await;
        assert!(got_up == up && got_down == down);
    });
}

#[test]
fn a_refused_upgrade_is_an_ordinary_answer() {
    listen(S1_LINE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect("GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        sleep(2).await;
        assert_eq!(world.idle_links(), 1);
    });
}

#[test]
fn a_switch_that_nobody_asked_for_is_no_answer() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await;
        client.expect(page(502)).await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/0 502 # - - PH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn connect() {
    listen(S1_LINE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("CONNECT b:8443 HTTP/1.1\r\nHost: b:8443\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect("CONNECT b:8443 HTTP/1.1\r\nhost: b:8443\r\n\r\n").await;
        server.send("HTTP/1.1 200 OK\r\n\r\n").await;
        client.expect("HTTP/1.1 200 OK\r\n\r\n").await;
        client.send("ping").await;
        server.expect("ping").await;
        server.send("pong").await;
        client.expect("pong").await;
        server.close();
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "CONNECT b:8443 HTTP/1.1""#]).await;
    });
}
