//! Tests of accepted connections before the first request: headers of proxies in front (attack case 17), and a system
//! without a free descriptor for a connection (attack case 25).

use std::time::Duration;

use rt::net::Address;
use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

/// The signature of a header of version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const V1: &str = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";

/// Returns a header of version 2 from 192.0.2.7:4711 to 198.51.100.1:443 with this list of TLVs after the addresses.
fn v2(list: &[u8]) -> Vec<u8> {
    let addresses = [192, 0, 2, 7, 198, 51, 100, 1, 0x12, 0x67, 1, 0xbb];
    let length = (addresses.len() + list.len()) as u16;
    [SIGNATURE, &[0x21, 0x11], &length.to_be_bytes(), &addresses, list].concat()
}

fn behind_a_balancer(options: &str, body: &str) -> Worlds {
    config(&format!("listen l\n    bind {WEIR} {options}\n    server s1 {S1}\n{body}\n"))
}

/// Starts a server that expects one request from 192.0.2.7, or from the client's own address.
fn serve_one(world: &World, from: Option<&'static str>) {
    Service::at(S1).serve(&world.scope, move |mut peer, _| async move {
        while let Some(head) = peer.receive_head().await {
            let field = from.map(|from| format!("x-forwarded-for: {from}\r\n"));
            assert!(field.is_none_or(|field| head.contains(&field)), "{head}");
            peer.send(OK).await;
        }
    });
}

#[test]
fn a_header_tells_who_the_client_is() {
    for header in [V1.as_bytes().to_vec(), v2(b""), v2(b"\x01\0\x02h2\x04\0\0")] {
        behind_a_balancer("accept-proxy", "    option forwardfor").run(move |world| {
            let header = header.clone();
            async move {
                serve_one(&world, Some("192.0.2.7"));
                let mut client = Peer::connect(WEIR).await;
                client.send([&header, GET.as_bytes()].concat()).await;
                client.expect(OK_AT_CLIENT).await;
                // The header precedes only the first request.
                client.send(GET).await;
                client.expect(OK_AT_CLIENT).await;
                client.close();
                let line = r#"l l/s1 0/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET / HTTP/1.1""#;
                world.expect_log(&[line, line]).await;
            }
        });
    }
}

#[test]
fn a_header_may_come_byte_by_byte() {
    for header in [V1.as_bytes().to_vec(), v2(b"\x01\0\x02h2")] {
        behind_a_balancer("accept-proxy", "    option forwardfor").workers(&[1]).run(move |world| {
            let header = header.clone();
            async move {
                serve_one(&world, Some("192.0.2.7"));
                let mut client = Peer::connect(WEIR).await;
                client.send_slowly(&header, 1, 1).await;
                client.send(GET).await;
                client.expect(OK_AT_CLIENT).await;
                client.close();
                world.forget_log();
            }
        });
    }
}

#[test]
fn a_local_or_unknown_header_leaves_the_real_addresses() {
    let local = [SIGNATURE, &[0x20, 0x11, 0, 12], &[9; 12]].concat();
    let unspecified = [SIGNATURE, &[0x21, 0x00, 0, 0]].concat();
    for header in [local, unspecified, b"PROXY UNKNOWN and more\r\n".to_vec()] {
        behind_a_balancer("accept-proxy", "    option forwardfor").run(move |world| {
            let header = header.clone();
            async move {
                serve_one(&world, Some("10.0.0.1"));
                let mut client = Peer::connect(WEIR).await;
                client.send([&header, GET.as_bytes()].concat()).await;
                client.expect(OK_AT_CLIENT).await;
                client.close();
                world.forget_log();
            }
        });
    }
}

#[test]
fn netscalers_header_comes_before_the_other_one() {
    let mut packet = [0; 40];
    (packet[0], packet[9]) = (0x45, 6);
    packet[12..24].copy_from_slice(&[203, 0, 113, 9, 203, 0, 113, 10, 1, 0, 0, 80]);
    let header = [&77_u32.to_be_bytes(), &40_u32.to_be_bytes(), &packet[..]].concat();
    let both = [&header, V1.as_bytes()].concat();
    for (options, header, from) in [
        ("accept-netscaler-cip 77", header, "203.0.113.9"),
        ("accept-proxy accept-netscaler-cip 77", both, "192.0.2.7"),
    ] {
        behind_a_balancer(options, "    option forwardfor").run(move |world| {
            let header = header.clone();
            async move {
                serve_one(&world, Some(from));
                let mut client = Peer::connect(WEIR).await;
                client.send([&header, GET.as_bytes()].concat()).await;
                client.expect(OK_AT_CLIENT).await;
                client.close();
                world.forget_log();
            }
        });
    }
}

#[test]
fn bytes_behind_a_header_reach_the_server_in_tcp_mode() {
    behind_a_balancer("accept-proxy", "    mode tcp\n    option tcplog").run(|world| async move {
        Service::at(S1).serve(&world.scope, |mut peer, _| async move {
            peer.expect("hello").await;
            peer.send("world").await;
        });
        let mut client = Peer::connect(WEIR).await;
        client.send(format!("{V1}hello")).await;
        client.expect("world").await;
        client.close();
        world.forget_log();
    });
}

/// Sends bytes instead of a header, and expects that log line. `stays`: the client does not close its direction after
/// them.
fn refused(options: &'static str, sent: Vec<u8>, stays: bool, sentence: &'static str) {
    behind_a_balancer(options, "").run(move |world| {
        let sent = sent.clone();
        async move {
            Service::at(S1).serve(&world.scope, |_, _| async { panic!("nothing may reach the server") });
            let mut client = Peer::connect(WEIR).await;
            client.send(&sent).await;
            if !stays {
                client.half_close();
            }
            client.expect_end().await;
            world.expect_log(&[&format!("l/1: {sentence}")]).await;
        }
    });
}

#[test]
fn whoever_sends_something_else_is_closed_and_told_of() {
    let not_a_header = "Received something which does not look like a PROXY protocol header";
    let invalid = "Received an invalid PROXY protocol header";
    let truncated = "Truncated PROXY protocol header received";
    let too_long = [SIGNATURE, &[0x21, 0x11, 0xff, 0xff]].concat();
    for (sent, stays, sentence) in [
        (GET.as_bytes().to_vec(), true, not_a_header),
        (b"G".to_vec(), true, not_a_header),
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 99999\r\n".to_vec(), true, invalid),
        (v2(b"\x01\0\x09h2"), true, invalid),
        (v2(b"\x03\0\x04abcd"), true, invalid),
        (too_long, true, truncated),
        (V1.as_bytes()[..20].to_vec(), false, truncated),
        (v2(b"")[..14].to_vec(), false, truncated),
        (b"".to_vec(), false, "Connection closed while waiting for PROXY protocol header"),
    ] {
        refused("accept-proxy", sent, stays, sentence);
    }
    for (sent, stays, sentence) in [
        (GET.as_bytes().to_vec(), true, "Received an invalid NetScaler Client IP magic number"),
        (vec![0, 0, 0, 77, 0, 0, 0, 40, 0x45], false, "Truncated NetScaler Client IP header received"),
        (b"".to_vec(), false, "Connection closed while waiting for NetScaler Client IP header"),
    ] {
        refused("accept-netscaler-cip 77", sent, stays, sentence);
    }
}

/// `timeout client-hs`, else `timeout client`, counted from the accept, however the bytes arrive.
#[test]
fn a_header_has_its_time() {
    for (timeouts, millis) in [("timeout client 300ms", 300), ("timeout client 9s\n timeout client-hs 200ms", 200)] {
        let rows = [
            ("", "Timeout while waiting for PROXY protocol header"),
            ("PROXY TC", "Truncated PROXY protocol header received"),
        ];
        for (sent, sentence) in rows {
            behind_a_balancer("accept-proxy", timeouts).run(move |world| async move {
                let watch = Stopwatch::start();
                let mut client = Peer::connect(WEIR).await;
                client.send_slowly(sent, 1, 10).await;
                client.expect_eof().await;
                watch.took(millis);
                world.expect_log(&[&format!("l/1: {sentence}")]).await;
            });
        }
    }
}

/// The first request has its whole time after the header, and the log contains the time of the header separately.
#[test]
fn the_time_of_a_header_is_not_the_requests() {
    let format = r#"    log-format "[1] l Th %Th %ci:%cp %fi:%fp %ts""#;
    behind_a_balancer("accept-proxy", &format!("    timeout http-request 200ms\n{format}")).run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        sleep(150).await;
        client.send(V1).await;
        client.expect(reader_page(408)).await;
        watch.took(350);
        client.expect_eof().await;
        world.expect_log(&["l Th 150 192.0.2.7:4711 198.51.100.1:443 cR"]).await;
    });
}

#[test]
fn probes_that_send_nothing_are_not_logged_where_they_need_not_be() {
    behind_a_balancer("accept-proxy", "    option dontlognull\n    timeout client 100ms").run(|world| async move {
        Peer::connect(WEIR).await.expect_eof().await;
        let mut client = Peer::connect(WEIR).await;
        client.send("x").await;
        client.expect_end().await;
        let line = "l/1: Received something which does not look like a PROXY protocol header";
        world.expect_log(&[line]).await;
    });
}

/// Without a free descriptor new connections wait, the worker does not spin, established connections are served, and it
/// recovers.
#[test]
fn without_descriptors_newcomers_wait_and_others_are_served() {
    // EMFILE, ENFILE, ENOBUFS, ENOMEM.
    for code in [24, 23, 105, 12] {
        listen(&format!("server s1 {S1}")).run(move |world| async move {
            serve_one(&world, None);
            let (network, listener) = (rt::sim::network(), Address::Inet(WEIR.parse().unwrap()));
            let mut early = Peer::connect(WEIR).await;
            early.send(GET).await;
            early.expect(OK_AT_CLIENT).await;
            network.fail_accepts(&listener, Some(code));
            let mut late = Peer::connect(WEIR).await;
            late.send(GET).await;
            for _ in 0..10 {
                early.send(GET).await;
                early.expect(OK_AT_CLIENT).await;
                rt::sleep(Duration::from_millis(100)).await;
            }
            // About one attempt per worker in 100 ms.
            let attempts = network.failed_accepts(&listener);
            assert!((1..=12 * world.shared().workers() as u64).contains(&attempts), "{attempts}");
            network.fail_accepts(&listener, None);
            late.expect(OK_AT_CLIENT).await;
            early.close();
            late.close();
            world.forget_log();
        });
    }
}

/// For a connection redirected by the packet filter, the log contains the client's original destination.
#[test]
fn a_redirected_connection_is_known_by_what_the_client_meant() {
    let format = r#"    log-format "[1] l %fi:%fp""#;
    listen(&format!("server s1 {S1}\n{format}")).run(|world| async move {
        serve_one(&world, None);
        let (meant, here) = ("203.0.113.5:8080", Address::Inet(WEIR.parse().unwrap()));
        rt::sim::network().redirect(&Address::Inet(meant.parse().unwrap()), &here);
        for (address, told) in [(meant, "l 203.0.113.5:8080"), (WEIR, "l 10.0.0.1:80")] {
            let mut client = Peer::connect(address).await;
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            client.close();
            world.expect_log(&[told]).await;
        }
    });
}

/// `thread`: no other worker has a session of the address, even if it is idle.
#[test]
fn chosen_threads_serve_an_address_alone() {
    let text = format!("listen l\n    bind {WEIR} thread 2,4\n    server s1 {S1}\n");
    config(&text).global("    nbthread 4").workers(&[4]).run(|world| async move {
        serve_one(&world, None);
        let before = world.inventory().await;
        let mut clients = Vec::new();
        for _ in 0..20 {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
            clients.push(client);
        }
        let tasks: Vec<usize> =
            world.inventory().await.iter().zip(&before).map(|(now, before)| now.tasks - before.tasks).collect();
        assert_eq!(tasks, [0, 10, 0, 10]);
        clients.into_iter().for_each(Peer::close);
        world.forget_log();
    });
}
