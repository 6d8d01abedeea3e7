//! Load balancing of datagrams (`udp-lb`): which server gets them, and when a flow ends.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use rt::net::{BindOptions, DatagramSocket, ReceiveBatch, Transmit};
use testkit::{Scope, sleep};

use crate::api;
use crate::world::*;

pub const DNS: &str = "10.0.0.1:53";
pub const U1: &str = "10.0.1.1:5300";
pub const U2: &str = "10.0.1.2:5300";
pub const CLIENT: &str = "10.0.9.1:5000";

/// A socket of a client or of a server.
pub struct Peer(pub DatagramSocket);

impl Peer {
    pub fn at(address: &str) -> Self {
        Self(DatagramSocket::bind(address.parse().unwrap(), &BindOptions::default()).unwrap())
    }

    pub fn send(&self, to: &str, contents: &[u8]) {
        self.send_to(to.parse().unwrap(), contents);
    }

    pub fn send_to(&self, destination: SocketAddr, contents: &[u8]) {
        let mut transmits = [Transmit { destination, source: None, ecn: None, contents, segment_size: None }];
        assert_eq!(self.0.try_send(&mut transmits), 1);
    }

    /// Returns the next datagrams with their senders: at least one.
    pub async fn receive(&self) -> Vec<(String, SocketAddr)> {
        let mut batch = ReceiveBatch::new();
        std::future::poll_fn(|cx| self.0.poll_receive(cx, &mut batch)).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        batch.iter().flat_map(|found| found.iter().map(move |bytes| (text(bytes), found.peer))).collect()
    }

    /// Sends a datagram and returns its answer.
    pub async fn ask(&self, contents: &str) -> String {
        self.send(DNS, contents.as_bytes());
        let mut answers = testkit::within(Duration::from_secs(1), self.receive()).await.expect("an answer");
        assert_eq!(answers[0].1, DNS.parse().unwrap());
        answers.remove(0).0
    }

    /// Whether nothing arrives within a second.
    pub async fn is_silent(&self) -> bool {
        testkit::within(Duration::from_secs(1), self.receive()).await.is_none()
    }
}

/// Starts a server that answers each datagram with its name and the datagram, `times` times.
pub fn serve(scope: &Scope, address: &'static str, name: &'static str, times: usize) {
    let peer = Peer::at(address);
    scope.spawn(async move {
        loop {
            for (text, from) in peer.receive().await {
                (0..times).for_each(|_| peer.send_to(from, format!("{name}:{text}").as_bytes()));
            }
        }
    });
}

/// A section with two servers and these lines.
pub fn section(lines: &str) -> Worlds {
    config(&format!(
        "udp-lb dns\n    log global\n    dgram-bind {DNS}\n    timeout client 2s\n    server a {U1}\n    server b {U2}\n    balance static-rr\n{lines}\n"
    ))
}

/// Starts both servers.
pub fn both(world: &World) -> Rc<Scope> {
    serve(&world.scope, U1, "a", 1);
    serve(&world.scope, U2, "b", 1);
    Rc::clone(&world.scope)
}

/// Each client has a server for as long as it sends, and gets answers from the address that it has sent to.
#[test]
fn a_flow_stays_with_its_server_until_it_is_idle() {
    section("").workers(&[1]).run(|world| async move {
        let _scope = both(&world);
        let (one, two) = (Peer::at(CLIENT), Peer::at("10.0.9.2:5000"));
        assert_eq!(one.ask("1").await, "a:1");
        assert_eq!(two.ask("2").await, "b:2");
        for _ in 0..3 {
            sleep(1_500).await;
            assert_eq!(one.ask("3").await, "a:3");
        }
        world.expect_log(&["dns dns/b 0/0/2000 3 -- 2/2/1/0/0 0/0"]).await;
        sleep(1_900).await;
        assert_eq!(world.sessions(), 1);
        sleep(200).await;
        world.expect_log(&["dns dns/a 0/0/6500 12 -- 1/1/0/0/0 0/0"]).await;
        assert_eq!(one.ask("4").await, "a:4");
        sleep(2_100).await;
        world.forget_log();
    });
}

#[test]
fn a_server_that_never_answers_is_told_in_the_log() {
    section("").run(|world| async move {
        let (_a, _b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        client.send(DNS, b"1");
        sleep(2_100).await;
        world.expect_log(&["dns dns/* 0/0/2000 0 sD 1/1/0/0/0 0/0"]).await;
    });
}

#[test]
fn after_proxy_requests_another_server_is_chosen() {
    section("    proxy-requests 2").workers(&[1]).run(|world| async move {
        let _scope = both(&world);
        let client = Peer::at(CLIENT);
        let mut answers = Vec::new();
        for _ in 0..6 {
            answers.push(client.ask("q").await);
        }
        assert_eq!(answers, ["a:q", "a:q", "b:q", "b:q", "a:q", "a:q"]);
        sleep(2_100).await;
        world.forget_log();
    });
}

#[test]
fn after_proxy_responses_the_flow_ends() {
    section("    proxy-responses 2").run(|world| async move {
        serve(&world.scope, U1, "a", 2);
        serve(&world.scope, U2, "b", 2);
        let client = Peer::at(CLIENT);
        let answer = client.ask("q").await;
        sleep(10).await;
        assert_eq!(world.sessions(), 0);
        let (server, line) = answer.split_once(':').unwrap();
        assert_eq!(line, "q");
        world.expect_log(&[&format!("dns dns/{server} 0/0/0 6 -- 1/1/0/0/0 0/0")]).await;
        // Two datagrams have four answers.
        client.send(DNS, b"q");
        client.send(DNS, b"q");
        sleep(10).await;
        assert_eq!(world.sessions(), 0);
        world.forget_log();
    });
}

/// Messages that nobody answers: each of them is balanced.
#[test]
fn no_answer_is_expected_with_proxy_responses_of_zero() {
    section("    proxy-responses 0").workers(&[1]).run(|world| async move {
        let (a, b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        for text in ["1", "2", "3", "4"] {
            client.send(DNS, text.as_bytes());
            sleep(10).await;
            assert_eq!(world.sessions(), 0);
        }
        let texts = async |peer: &Peer| {
            let mut texts = Vec::new();
            while texts.len() < 2 {
                texts.extend(peer.receive().await.into_iter().map(|found| found.0));
            }
            texts
        };
        assert_eq!((texts(&a).await, texts(&b).await), (vec!["1".into(), "3".into()], vec!["2".into(), "4".into()]));
        // Several that arrive at once.
        for text in ["1", "2", "3", "4"] {
            client.send(DNS, text.as_bytes());
        }
        assert_eq!((texts(&a).await.len(), texts(&b).await.len()), (2, 2));
        world.forget_log();
    });
}

/// A server without a process rejects what it gets: the flow ends, and the client's next datagram goes to another one.
#[test]
fn a_rejected_datagram_ends_the_flow() {
    section("    balance first").run(|world| async move {
        let client = Peer::at(CLIENT);
        client.send(DNS, b"1");
        sleep(10).await;
        world.expect_log(&["dns dns/a 0/0/0 0 SD 1/1/0/0/0 0/0"]).await;
        serve(&world.scope, U1, "a", 1);
        assert_eq!(client.ask("2").await, "a:2");
        sleep(2_100).await;
        world.forget_log();
    });
}

/// The server of a flow goes away and comes back: at most one datagram is lost.
#[test]
fn a_flow_survives_the_restart_of_its_server() {
    section("    balance first").run(|world| async move {
        let client = Peer::at(CLIENT);
        let first = Scope::new();
        serve(&first, U1, "a", 1);
        assert_eq!(client.ask("1").await, "a:1");
        first.end();
        sleep(10).await;
        client.send(DNS, b"2");
        assert!(client.is_silent().await);
        serve(&world.scope, U1, "a", 1);
        assert_eq!(client.ask("3").await, "a:3");
        sleep(2_100).await;
        world.forget_log();
    });
}

/// Of a full table the flow ends whose client has proven nothing and has been silent for the longest time.
#[test]
fn a_full_table_evicts_what_may_be_forged_first() {
    section("    maxconn 3").workers(&[1]).run(|world| async move {
        let _scope = both(&world);
        let proven = Peer::at(CLIENT);
        proven.ask("1").await;
        proven.ask("2").await;
        let forged: Vec<_> = (0..4).map(|port| Peer::at(&format!("10.0.8.1:{}", 6_000 + port))).collect();
        for peer in &forged {
            peer.ask("x").await;
        }
        assert_eq!(world.sessions(), 3);
        world.expect_log(&["dns dns/* 0/0/0 3 RD 3/3/2/*/0 0/0", "dns dns/* 0/0/0 3 RD 3/3/2/*/0 0/0"]).await;
        let server = proven.ask("3").await;
        assert_eq!(server, "a:3");
        sleep(2_100).await;
        world.forget_log();
    });
}

#[test]
fn datagrams_above_accepted_payload_size_are_dropped() {
    section("    accepted-payload-size 100").run(|world| async move {
        let _scope = both(&world);
        let client = Peer::at(CLIENT);
        client.send(DNS, &[b'x'; 101]);
        assert!(client.is_silent().await);
        assert_eq!(world.sessions(), 0);
        // The answer is two bytes longer.
        client.send(DNS, &[b'x'; 99]);
        assert!(client.is_silent().await);
        assert_eq!(client.ask(&"x".repeat(98)).await.len(), 100);
        client.send(DNS, &[b'x'; 101]);
        assert!(client.is_silent().await);
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A datagram never waits for a server.
#[test]
fn a_full_server_gets_no_flow() {
    let lines = format!(
        "udp-lb dns\n    log global\n    dgram-bind {DNS}\n    timeout client 2s\n    server a {U1} maxconn 1\n"
    );
    config(&lines).run(|world| async move {
        serve(&world.scope, U1, "a", 1);
        let (one, two) = (Peer::at(CLIENT), Peer::at("10.0.9.2:5000"));
        assert_eq!(one.ask("1").await, "a:1");
        two.send(DNS, b"2");
        sleep(10).await;
        world.expect_log(&["dns dns/<NOSRV> -1/-1/0 0 SQ 2/2/1/0/0 0/0"]).await;
        sleep(2_100).await;
        world.forget_log();
        assert_eq!(two.ask("3").await, "a:3");
        sleep(2_100).await;
    });
}

#[test]
fn rules_and_hashes_choose_servers() {
    let lines = "    acl inside src 10.0.9.0/24\n    use-server b if inside\n    balance source";
    section(lines).run(|world| async move {
        let _scope = both(&world);
        for port in 5_000..5_004 {
            assert_eq!(Peer::at(&format!("10.0.9.1:{port}")).ask("1").await, "b:1");
        }
        let mut of_one_source = Vec::new();
        for port in 5_000..5_004 {
            of_one_source.push(Peer::at(&format!("10.0.7.1:{port}")).ask("1").await);
        }
        of_one_source.dedup();
        assert_eq!(of_one_source.len(), 1);
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A server in drain keeps its flows and gets no new one; a command ends them.
#[test]
fn commands_drain_servers_and_end_flows() {
    section("").global(api::SOCKET).workers(&[2]).run(|world| async move {
        let _scope = both(&world);
        let one = Peer::at(CLIENT);
        let server = one.ask("1").await.split(':').next().unwrap().to_owned();
        api::order(&format!("set server dns/{server} state drain")).await;
        assert_eq!(one.ask("2").await, format!("{server}:2"));
        for port in 6_000..6_004 {
            let other = Peer::at(&format!("10.0.8.1:{port}")).ask("3").await;
            assert_ne!(other, format!("{server}:3"));
        }
        world.forget_log();
        let table = api::ask("show stat").await;
        assert_eq!(api::column(&table, &format!("dns,{server}"), "scur"), "1");
        assert_eq!(api::column(&table, "dns,FRONTEND", "mode"), "udp");
        api::order(&format!("shutdown sessions server dns/{server}")).await;
        sleep(10).await;
        let table = api::ask("show stat").await;
        assert_eq!(api::column(&table, &format!("dns,{server}"), "scur"), "0");
        assert_ne!(one.ask("4").await, format!("{server}:4"));
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A reload in place keeps the flows; those that begin after it have the new settings.
#[test]
fn flows_survive_a_reload_in_place() {
    section("").run(|world| async move {
        let _scope = both(&world);
        let one = Peer::at(CLIENT);
        let answer = one.ask("1").await;
        assert_eq!(world.adopt(&section("    proxy-responses 1")), Ok(()));
        sleep(10).await;
        assert_eq!(one.ask("1").await, answer);
        assert_eq!(world.sessions(), 1);
        Peer::at("10.0.9.2:5000").ask("2").await;
        sleep(10).await;
        assert_eq!(world.sessions(), 1);
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A soft stop lasts until the flows have ended; no further one begins.
#[test]
fn a_soft_stop_waits_for_flows() {
    section("").run(|world| async move {
        let _scope = both(&world);
        let one = Peer::at(CLIENT);
        let answer = one.ask("1").await;
        world.stop();
        sleep(10).await;
        assert!(!world.is_drained().await);
        assert_eq!(one.ask("1").await, answer);
        let other = Peer::at("10.0.9.2:5000");
        other.send(DNS, b"2");
        assert!(other.is_silent().await);
        sleep(1_100).await;
        assert!(world.is_drained().await);
        world.forget_log();
    });
}

/// A server that rejects the datagram of its check is down; one that is silent is up, unless it has been asked something.
#[test]
fn checks_send_a_datagram() {
    let checked = |method: &str| {
        config(&format!(
            "udp-lb dns\n    log global\n    dgram-bind {DNS}\n    timeout client 2s\n    timeout check 500\n{method}\n    \
             default-server check inter 1s fall 2 rise 1\n    server a {U1}\n    server b {U2}\n"
        ))
        .global(api::SOCKET)
    };
    let status = async |server: &str| {
        let table = api::ask("show stat").await;
        let of = |name| api::column(&table, &format!("dns,{server}"), name);
        (of("status"), of("check_status"))
    };
    let is = |status: &str, check: &str| (status.to_owned(), check.to_owned());
    checked("").workers(&[2]).seeds(0..2).run(|world| async move {
        let _silent = Peer::at(U2);
        sleep(5_000).await;
        assert_eq!((status("a").await, status("b").await), (is("DOWN", "L4CON"), is("UP", "L4OK")));
        serve(&world.scope, U1, "a", 1);
        sleep(2_000).await;
        assert_eq!(status("a").await, is("UP", "L7OK"));
        world.forget_log();
    });
    checked("    option udp-check send-binary 7071").workers(&[2]).seeds(0..2).run(|world| async move {
        let silent = Peer::at(U2);
        serve(&world.scope, U1, "a", 1);
        sleep(5_000).await;
        assert_eq!((status("a").await, status("b").await), (is("UP", "L7OK"), is("DOWN", "L7TOUT")));
        assert_eq!(silent.receive().await[0].0, "pq");
        let client = Peer::at(CLIENT);
        assert_eq!((client.ask("1").await, client.ask("2").await), ("a:1".into(), "a:2".into()));
        sleep(2_100).await;
        world.forget_log();
    });
}

/// Each datagram has the header, so that a server needs no state.
#[test]
fn a_proxy_header_precedes_each_datagram() {
    let lines = format!("udp-lb dns\n    dgram-bind {DNS}\n    timeout client 2s\n    server a {U1} send-proxy-v2\n");
    config(&lines).run(|world| async move {
        let server = Peer::at(U1);
        let client = Peer::at(CLIENT);
        let sent: [&[u8]; 6] = [b"1", b"", b"abc", b"def", b"ghi", b"jk"];
        sent.iter().for_each(|contents| client.send(DNS, contents));
        let mut batch = ReceiveBatch::new();
        let mut found = Vec::new();
        while found.len() < sent.len() {
            std::future::poll_fn(|cx| server.0.poll_receive(cx, &mut batch)).await.unwrap();
            found.extend(batch.iter().flat_map(|found| found.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()));
        }
        let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c".to_vec();
        header.extend([10, 0, 9, 1, 10, 0, 0, 1]);
        header.extend([5_000_u16.to_be_bytes(), 53_u16.to_be_bytes()].concat());
        assert_eq!(found, sent.map(|contents| [&header[..], contents].concat()));
        sleep(2_100).await;
        world.forget_log();
    });
}

#[test]
fn lost_datagrams_and_evicted_flows_are_counted() {
    let exporter = format!("frontend f\n    bind {WEIR}\n    http-request use-service prometheus-exporter");
    let lines = format!("    maxconn 2\n    accepted-payload-size 100\n{exporter}");
    section(&lines).global(api::SOCKET).workers(&[1]).run(|world| async move {
        let _scope = both(&world);
        let client = Peer::at(CLIENT);
        client.send(DNS, &[b'x'; 101]);
        for port in 6_000..6_003 {
            Peer::at(&format!("10.0.8.1:{port}")).ask("x").await;
        }
        // The answer is too long.
        client.send(DNS, &[b'x'; 99]);
        sleep(10).await;
        let expected = "udp-lb dns flows 2 evicted 2 refused 0 oversized 2 unsent 0 rejected 0 held 0 nameless 0\n\n";
        assert_eq!(api::ask("show udp-lb").await, expected);
        assert_eq!(api::ask("show udp-lb dns").await, expected);
        assert_eq!(api::ask("show udp-lb other").await, "No such udp-lb section.\n\n");
        let mut peer = testkit::Peer::connect(WEIR).await;
        peer.send("GET /?scope=udp HTTP/1.0\r\n\r\n").await;
        let metrics = String::from_utf8(peer.receive_rest().await).unwrap();
        let found: Vec<_> = metrics.lines().filter(|line| line.starts_with("weir_")).collect();
        let names = [
            "flows_evicted",
            "datagrams_refused",
            "datagrams_oversized",
            "datagrams_unsent",
            "flows_rejected",
            "datagrams_held",
            "connections_nameless",
        ];
        let expected = names.iter().zip([2, 0, 2, 0, 0, 0, 0]);
        let expected: Vec<_> =
            expected.map(|(name, value)| format!("weir_udp_{name}_total{{proxy=\"dns\"}} {value}")).collect();
        assert_eq!(found, expected);
        world.forget_log();
        api::order("clear counters all").await;
        assert!(api::ask("show udp-lb").await.contains("evicted 0 refused 0 oversized 0"));
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A client that goes on sending does not keep its flow to a server that is down.
#[test]
fn flows_leave_a_server_that_goes_down() {
    let lines = "    timeout check 200\n    option udp-check send q\n    default-server check inter 1s fall 2";
    let text = format!(
        "udp-lb dns\n    dgram-bind {DNS}\n    timeout client 1m\n    balance first\n{lines}\n    server a {U1}\n    server b {U2}\n"
    );
    config(&text).run(|world| async move {
        let first = Scope::new();
        serve(&first, U1, "a", 1);
        serve(&world.scope, U2, "b", 1);
        let client = Peer::at(CLIENT);
        // The first checks may have been before the servers.
        sleep(5_000).await;
        assert_eq!(client.ask("1").await, "a:1");
        first.end();
        sleep(10).await;
        // It is there and answers nothing.
        let _silent = Peer::at(U1);
        let mut answers = Vec::new();
        for _ in 0..30 {
            client.send(DNS, b"2");
            answers.extend(testkit::within(Duration::from_millis(200), client.receive()).await.unwrap_or_default());
        }
        assert_eq!(answers.last().map(|found| found.0.as_str()), Some("b:2"));
        sleep(60_100).await;
        world.forget_log();
    });
}

/// A rate that is exceeded ends no flow.
#[test]
fn a_flow_beyond_a_rate_is_refused() {
    let global = format!("    maxconnrate 2\n    {}", api::SOCKET);
    section("").global(&global).workers(&[1]).run(|world| async move {
        let _scope = both(&world);
        let clients: Vec<_> = (0..3).map(|port| Peer::at(&format!("10.0.8.1:{}", 6_000 + port))).collect();
        for client in &clients {
            client.send(DNS, b"x");
        }
        sleep(10).await;
        assert_eq!(world.sessions(), 2);
        sleep(1_500).await;
        let found = api::ask("show udp-lb").await;
        assert!(found.contains("evicted 0 refused 1 "), "{found}");
        sleep(2_100).await;
        world.forget_log();
    });
}

/// A server that is added gets flows, and can be deleted once they have ended.
#[test]
fn servers_are_added_and_deleted_with_flows_open() {
    section("    balance roundrobin").global(api::SOCKET).workers(&[2]).run(|world| async move {
        let _scope = both(&world);
        serve(&world.scope, "10.0.1.3:5300", "c", 1);
        let one = Peer::at(CLIENT);
        let answer = one.ask("1").await;
        assert!(api::ask("add server dns/c 10.0.1.3:5300").await.contains("New server registered"));
        for command in ["enable server dns/c", "set server dns/a state drain", "set server dns/b state drain"] {
            api::order(command).await;
        }
        let other = Peer::at("10.0.9.2:5000");
        assert_eq!(other.ask("2").await, "c:2");
        assert_eq!(one.ask("1").await, answer);
        api::order("set server dns/a state ready").await;
        api::order("set server dns/c state drain").await;
        assert_eq!(other.ask("3").await, "c:3");
        assert!(api::ask("del server dns/c").await.contains("maintenance mode"));
        // That ends its flows.
        api::order("set server dns/c state maint").await;
        sleep(10).await;
        assert_eq!(api::ask("del server dns/c").await, "Server deleted.\n\n");
        assert_eq!(other.ask("4").await, "a:4");
        assert_eq!(one.ask("1").await, answer);
        sleep(2_100).await;
        world.forget_log();
    });
}

/// The limit is that of all threads; each evicts flows of its own.
#[test]
fn a_full_table_of_two_workers_refuses_or_evicts() {
    section("    maxconn 3").global(api::SOCKET).workers(&[2]).run(|world| async move {
        let _scope = both(&world);
        for port in 0..20_usize {
            Peer::at(&format!("10.0.8.1:{}", 6_000 + port)).send(DNS, b"x");
            sleep(10).await;
            assert_eq!(world.sessions(), 3.min(port + 1));
        }
        let found = api::ask("show udp-lb").await;
        let number = |name: &str| {
            let mut words = found.split_whitespace();
            words.find(|word| *word == name);
            words.next().and_then(|word| word.parse::<u32>().ok()).expect("a number")
        };
        assert_eq!((number("flows"), number("evicted") + number("refused")), (3, 17), "{found}");
        sleep(2_100).await;
        world.forget_log();
    });
}
