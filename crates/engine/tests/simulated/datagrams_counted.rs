//! Flows of datagrams (`udp-lb`): what keeps them, what is counted, and where their datagrams go.

use std::time::Duration;

use rt::net::{Address, ReceiveBatch};
use rt::sim::network;
use testkit::{Scope, sleep};

use crate::api;
use crate::datagrams::*;
use crate::world::*;

/// Returns the datagrams that a socket has got within ten milliseconds.
async fn bytes(peer: &Peer) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut batch = ReceiveBatch::new();
        let next = std::future::poll_fn(|cx| peer.0.poll_receive(cx, &mut batch));
        let Some(found) = testkit::within(Duration::from_millis(10), next).await else { return all };
        found.unwrap();
        all.extend(batch.iter().flat_map(|found| found.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()));
    }
}

/// Datagrams of the client alone keep a flow, and so do those of the server.
#[test]
fn datagrams_of_either_side_keep_a_flow() {
    section("    balance first").run(|world| async move {
        let server = Peer::at(U1);
        let client = Peer::at(CLIENT);
        for _ in 0..3 {
            client.send(DNS, b"x");
            sleep(1_500).await;
        }
        assert_eq!(world.sessions(), 1);
        let flow = server.receive().await[0].1;
        for _ in 0..3 {
            server.send_to(flow, b"answer");
            sleep(1_500).await;
        }
        assert_eq!(world.sessions(), 1);
        sleep(600).await;
        assert_eq!(world.sessions(), 0);
        world.forget_log();
    });
}

/// With `proxy-responses` a flow ends when each of its datagrams has its answers.
#[test]
fn a_flow_waits_for_the_answers_to_all_its_datagrams() {
    section("    balance first\n    proxy-responses 2").run(|world| async move {
        let server = Peer::at(U1);
        let client = Peer::at(CLIENT);
        client.send(DNS, b"1");
        client.send(DNS, b"2");
        sleep(10).await;
        let flow = server.receive().await[0].1;
        for expected in [1, 1, 1, 0] {
            server.send_to(flow, b"answer");
            sleep(10).await;
            assert_eq!(world.sessions(), expected);
        }
        world.forget_log();
    });
}

#[test]
fn each_datagram_is_balanced_with_one_request() {
    section("    proxy-requests 1").workers(&[1]).run(|world| async move {
        let _scope = both(&world);
        let client = Peer::at(CLIENT);
        for expected in ["a:q", "b:q", "a:q", "b:q"] {
            assert_eq!(client.ask("q").await, expected);
        }
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A large datagram of a client that has a flow is dropped.
#[test]
fn a_server_gets_no_large_datagram_of_a_flow() {
    section("    balance first\n    accepted-payload-size 100").global(api::SOCKET).workers(&[1]).run(
        |world| async move {
            let server = Peer::at(U1);
            let client = Peer::at(CLIENT);
            client.send(DNS, b"1");
            client.send(DNS, &[b'x'; 101]);
            client.send(DNS, &[b'y'; 100]);
            let found = bytes(&server).await;
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 100]);
            assert!(api::ask("show udp-lb").await.contains(" oversized 1 "));
            sleep(2_100).await;
            world.forget_log();
        },
    );
}

/// `harden.reject-privileged-ports`.
#[test]
fn clients_with_privileged_ports_begin_no_flow() {
    for (value, expected) in [("on", 0), ("off", 1)] {
        let global = format!("    harden.reject-privileged-ports.tcp {value}\n    {}", api::SOCKET);
        section("").global(&global).workers(&[1]).run(move |world| async move {
            let _scope = both(&world);
            Peer::at("10.0.9.1:1023").send(DNS, b"x");
            sleep(10).await;
            assert_eq!(world.sessions(), expected);
            let refused = format!(" refused {} ", 1 - expected);
            assert!(api::ask("show udp-lb").await.contains(&refused));
            sleep(2_100).await;
            world.forget_log();
        });
    }
}

/// `observe layer4`: rejections of traffic mark a server down, which no check has asked meanwhile.
#[test]
fn rejections_of_traffic_mark_a_server_down() {
    let text = format!(
        "udp-lb dns\n    dgram-bind {DNS}\n    timeout client 2s\n    balance first\n    server a {U1} check inter 1h init-state \
         fully-up observe layer4 error-limit 2 on-error mark-down\n    server b {U2}\n"
    );
    config(&text).global(api::SOCKET).workers(&[1]).run(|world| async move {
        let first = Scope::new();
        serve(&first, U1, "a", 1);
        serve(&world.scope, U2, "b", 1);
        let status = async || api::column(&api::ask("show stat").await, "dns,a", "status");
        assert_eq!(Peer::at("10.0.9.3:5000").ask("0").await, "a:0");
        assert!(status().await.starts_with("UP"));
        first.end();
        sleep(10).await;
        for _ in 0..3 {
            Peer::at(CLIENT).send(DNS, b"x");
            sleep(10).await;
        }
        assert_eq!(status().await, "DOWN");
        assert_eq!(Peer::at("10.0.9.2:5000").ask("1").await, "b:1");
        sleep(2_100).await;
        world.forget_log();
    });
}

#[test]
fn bytes_and_flows_are_counted() {
    section("    balance first").global(api::SOCKET).run(|world| async move {
        serve(&world.scope, U1, "a", 2);
        let client = Peer::at(CLIENT);
        client.ask("12345").await;
        client.send(DNS, b"678");
        sleep(2_100).await;
        let table = api::ask("show stat").await;
        for object in ["dns,FRONTEND", "dns,BACKEND", "dns,a"] {
            let of = |name| api::column(&table, object, name);
            assert_eq!((of("bin"), of("bout")), ("8".into(), "24".into()), "{object}");
            assert_eq!((of("scur"), of("smax"), of("stot")), ("0".into(), "1".into(), "1".into()), "{object}");
        }
        assert_eq!(api::column(&table, "dns,a", "lbtot"), "1");
        world.forget_log();
    });
}

/// What the system does not take is lost, in both directions.
#[test]
fn datagrams_that_the_system_does_not_take_are_counted() {
    let text =
        format!("udp-lb dns\n    dgram-bind {DNS}\n    timeout client 2s\n    server a {U1} source 10.0.0.7:7000\n");
    config(&text).global(api::SOCKET).workers(&[1]).run(|world| async move {
        serve(&world.scope, U1, "a", 1);
        let client = Peer::at(CLIENT);
        let full = |address: &str, on| network().fill_send_buffer(&Address::Inet(address.parse().unwrap()), on);
        assert_eq!(client.ask("1").await, "a:1");
        full("10.0.0.7:7000", true);
        client.send(DNS, b"2");
        sleep(10).await;
        assert!(api::ask("show udp-lb").await.contains(" unsent 1 "));
        full("10.0.0.7:7000", false);
        full(DNS, true);
        client.send(DNS, b"3");
        sleep(10).await;
        assert!(api::ask("show udp-lb").await.contains(" unsent 2 "));
        full(DNS, false);
        assert_eq!(client.ask("4").await, "a:4");
        let table = api::ask("show stat").await;
        assert_eq!(
            (api::column(&table, "dns,FRONTEND", "bin"), api::column(&table, "dns,a", "bin")),
            ("0".into(), "0".into())
        );
        sleep(2_100).await;
        world.forget_log();
    });
}

/// Offsets of ports, and the address that the client has sent to.
#[test]
fn addresses_of_servers_may_depend_on_the_client() {
    for server in ["10.0.1.1:+5247", "0.0.0.0:5300"] {
        let text = format!("udp-lb dns\n    dgram-bind {DNS}\n    timeout client 2s\n    server a {server}\n");
        config(&text).run(move |world| async move {
            serve(&world.scope, if server.starts_with('0') { "10.0.0.1:5300" } else { U1 }, "a", 1);
            assert_eq!(Peer::at(CLIENT).ask("1").await, "a:1", "{server}");
            sleep(2_100).await;
            world.forget_log();
        });
    }
}

/// A client of two addresses has two flows, and answers from the address that it has sent to.
#[test]
fn answers_come_from_the_address_that_the_client_has_sent_to() {
    let text = format!(
        "udp-lb dns\n    dgram-bind :53\n    timeout client 2s\n    balance static-rr\n    server a {U1}\n    server b {U2}\n"
    );
    config(&text).workers(&[1]).run(|world| async move {
        let _scope = both(&world);
        let client = Peer::at(CLIENT);
        for (to, expected) in [("10.0.0.1:53", "a:x"), ("10.0.0.2:53", "b:x"), ("10.0.0.1:53", "a:x")] {
            client.send(to, b"x");
            let found = testkit::within(Duration::from_secs(1), client.receive()).await.expect("an answer");
            assert_eq!(found, [(expected.to_owned(), to.parse().unwrap())]);
        }
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A server that expects a header gets it in front of checks as well: one without addresses.
#[test]
fn a_proxy_header_precedes_checks() {
    let text = format!(
        "udp-lb dns\n    dgram-bind {DNS}\n    option udp-check send ping\n    server a {U1} send-proxy-v2 check inter 1s\n"
    );
    config(&text).workers(&[1]).run(|world| async move {
        let server = Peer::at(U1);
        sleep(2_000).await;
        let found = bytes(&server).await;
        assert_eq!(found[0], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0ping");
        world.forget_log();
    });
}

/// A rule does not send datagrams to a server that is down.
#[test]
fn rules_choose_servers_that_are_up() {
    let lines = "    use-server b if { src 10.0.9.0/24 }\n    timeout check 200\n    option udp-check send q\n    default-server check inter 1s fall 2";
    let text = format!(
        "udp-lb dns\n    dgram-bind {DNS}\n    timeout client 2s\n    balance first\n{lines}\n    server a {U1}\n    server b {U2}\n"
    );
    config(&text).run(|world| async move {
        serve(&world.scope, U1, "a", 1);
        let first = Scope::new();
        serve(&first, U2, "b", 1);
        sleep(3_000).await;
        assert_eq!(Peer::at(CLIENT).ask("1").await, "b:1");
        first.end();
        sleep(5_000).await;
        assert_eq!(Peer::at("10.0.9.2:5000").ask("2").await, "a:2");
        sleep(2_100).await;
        world.forget_log();
    });
}
