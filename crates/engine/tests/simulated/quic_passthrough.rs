//! QUIC that is passed through (`udp-lb` with `option quic-passthrough`): which server gets a connection, and which one its
//! datagrams from another address.

use std::net::SocketAddr;
use std::time::Duration;

use rt::net::{Address, BindOptions, DatagramSocket, ReceiveBatch, Transmit};
use testkit::sleep;
use tls::quic::{Side, initial_keys};

use crate::api;
use crate::http3_client::Client;
use crate::world::*;

const WEB: &str = "10.0.0.1:443";
const U1: &str = "10.0.1.1:443";
const U2: &str = "10.0.1.2:443";
const CLIENT: &str = "10.0.9.1:5000";
const MOVED: &str = "10.0.9.1:6001";

/// A section with two servers and these lines.
fn text(lines: &str) -> String {
    format!(
        "udp-lb web\n    log global\n    dgram-bind {WEB}\n    option quic-passthrough\n    timeout client 5s\n    balance static-rr\n    \
         server a {U1}\n    server b {U2}\n{lines}\n"
    )
}

fn section(lines: &str) -> Worlds {
    config(&text(lines))
}

/// The section, and two servers of HTTP/3 whose answers name them.
fn with_servers(lines: &str) -> Worlds {
    config(&with_servers_text(lines))
}

fn with_servers_text(lines: &str) -> String {
    let serving = |name: &str, address: &str| {
        format!(
            "listen {name}\n    bind quic4@{address} ssl crt a.pem\n    http-request return status 200 hdr server {name}\n"
        )
    };
    format!("{}{}{}", text(lines), serving("a", U1), serving("b", U2))
}

/// Requests a page. Returns the name of the server.
async fn server_of(client: &mut Client) -> String {
    let id = client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let answer = client.answer(id).await;
    assert!(answer.ended, "{answer:?}");
    let head = &answer.heads[0];
    head.split("server: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_else(|| panic!("{head}")).to_owned()
}

fn rebind(from: &str, to: &str) {
    let address = |text: &str| Address::Inet(text.parse().unwrap());
    rt::sim::network().rebind(&address(from), &address(to));
}

/// Names and protocols of ClientHellos, which fill two datagrams, choose servers.
#[test]
fn the_client_hello_chooses_the_server() {
    for (rule, expected) in [
        ("use-server b if { req.ssl_sni a.example } { req.ssl_alpn h3 } { req.ssl_hello_type 1 }", "b"),
        ("use-server b if { req.ssl_sni b.example } || { req.ssl_alpn h2 }", "a"),
    ] {
        with_servers(&format!("    {rule}")).seeds(0..4).run(move |world| async move {
            let mut client = Client::connect(CLIENT, WEB).await;
            assert_eq!(server_of(&mut client).await, expected);
            client.close().await;
            sleep(6_000).await;
            world.forget_log();
        });
    }
}

/// A hash of the name keeps all clients of a name together.
#[test]
fn names_are_hashed() {
    with_servers("    balance hash req.ssl_sni").seeds(0..2).run(|world| async move {
        let mut servers = Vec::new();
        for port in 5_000..5_006 {
            let mut client = Client::connect(&format!("10.0.9.1:{port}"), WEB).await;
            servers.push(server_of(&mut client).await);
            client.close().await;
        }
        servers.dedup();
        assert_eq!(servers.len(), 1);
        sleep(6_000).await;
        world.forget_log();
    });
}

/// The address of a client changes twice: its connection goes on, on the server that it is known to, whichever worker receives
/// its datagrams.
#[test]
fn a_connection_survives_address_translation() {
    with_servers("    use-server b if { req.ssl_sni a.example }").workers(&[1, 3]).seeds(0..6).run(
        |world| async move {
            let mut client = Client::connect(CLIENT, WEB).await;
            assert_eq!(server_of(&mut client).await, "b");
            for outside in [MOVED, "10.0.9.1:6002"] {
                rebind(CLIENT, outside);
                assert_eq!(server_of(&mut client).await, "b");
                // The flow of the former address ends.
                for _ in 0..5 {
                    sleep(2_000).await;
                    assert_eq!(server_of(&mut client).await, "b");
                }
            }
            assert_eq!(client.closed, None);
            client.close().await;
            sleep(6_000).await;
            world.forget_log();
        },
    );
}

/// A reload in place keeps the connection and its IDs.
#[test]
fn connections_survive_a_reload_in_place() {
    let rule = "    use-server b if { req.ssl_sni a.example }";
    with_servers(rule).seeds(0..2).run(move |world| async move {
        let mut client = Client::connect(CLIENT, WEB).await;
        assert_eq!(server_of(&mut client).await, "b");
        assert_eq!(world.adopt(&with_servers("    use-server a if { req.ssl_sni a.example }")), Ok(()));
        assert_eq!(server_of(&mut client).await, "b");
        rebind(CLIENT, MOVED);
        assert_eq!(server_of(&mut client).await, "b");
        let mut other = Client::connect("10.0.9.2:5000", WEB).await;
        assert_eq!(server_of(&mut other).await, "a");
        // Without the option, the flow remains that of its client.
        let without = with_servers_text("").replace("    option quic-passthrough\n", "");
        assert_eq!(world.adopt(&config(&without)), Ok(()));
        assert_eq!(server_of(&mut client).await, "b");
        client.close().await;
        other.close().await;
        sleep(6_000).await;
        world.forget_log();
    });
}

/// A socket of a client or of a server.
struct Peer(DatagramSocket);

impl Peer {
    fn at(address: &str) -> Self {
        Self(DatagramSocket::bind(address.parse().unwrap(), &BindOptions::default()).unwrap())
    }

    fn send(&self, to: SocketAddr, contents: &[u8]) {
        let mut transmits = [Transmit { destination: to, source: None, ecn: None, contents, segment_size: None }];
        assert_eq!(self.0.try_send(&mut transmits), 1);
    }

    fn ask(&self, contents: &[u8]) {
        self.send(WEB.parse().unwrap(), contents);
    }

    /// Returns the datagrams that arrive within 100 ms, with the sender of the last one.
    async fn received(&self) -> (Vec<Vec<u8>>, Option<SocketAddr>) {
        let (mut all, mut from, mut batch) = (Vec::new(), None, ReceiveBatch::new());
        let mut receive = async || {
            loop {
                std::future::poll_fn(|cx| self.0.poll_receive(cx, &mut batch)).await.unwrap();
                for found in batch.iter() {
                    from = Some(found.peer);
                    all.extend(found.iter().map(<[u8]>::to_vec));
                }
                batch.clear();
            }
        };
        let _: Option<()> = testkit::within(Duration::from_millis(100), receive()).await;
        (all, from)
    }

    async fn datagrams(&self) -> Vec<Vec<u8>> {
        self.received().await.0
    }
}

/// Returns a ClientHello with a name.
fn hello(name: &str) -> Vec<u8> {
    let length = |bytes: usize| (bytes as u16).to_be_bytes();
    let entry = [&[0][..], &length(name.len()), name.as_bytes()].concat();
    let extension = [&[0, 0][..], &length(entry.len() + 2), &length(entry.len()), &entry].concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(length(extension.len()));
    body.extend(extension);
    [&[1, 0][..], &length(body.len()), &body].concat()
}

/// Returns a datagram with an Initial packet that contains a range of a message.
fn initial(id: &[u8; 8], number: u8, message: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    let keys = initial_keys(id, Side::Client).unwrap().local;
    let integer = |value: usize| (value as u16 | 0x4000).to_be_bytes();
    let mut packet = [&[0xc0, 0, 0, 0, 1, 8][..], id, &[0, 0], &integer(1_182), &[number]].concat();
    let begin = packet.len();
    let piece = &message[range.clone()];
    packet.extend([&[6][..], &integer(range.start), &integer(piece.len()), piece].concat());
    packet.resize(begin + 1_165, 0);
    let (header, content) = packet.split_at_mut(begin);
    let tag = keys.packet.encrypt_in_place(number.into(), header, content).unwrap();
    packet.extend_from_slice(tag.as_ref());
    let (header, rest) = packet.split_at_mut(begin - 1);
    let (number, rest) = rest.split_at_mut(1);
    keys.header.encrypt_in_place(&rest[3..19], &mut header[0], number).unwrap();
    assert_eq!(packet.len(), 1_200);
    packet
}

/// Returns a whole ClientHello in a datagram.
fn whole(id: &[u8; 8], name: &str) -> Vec<u8> {
    let message = hello(name);
    initial(id, 0, &message, 0..message.len())
}

/// Returns the answer of a server that has chosen an ID: a Handshake packet.
fn chosen(id: &[u8]) -> Vec<u8> {
    [&[0xe0, 0, 0, 0, 1, 0, id.len() as u8][..], id, &[0, 0]].concat()
}

fn short(id: &[u8], text: &str) -> Vec<u8> {
    [&[0x40][..], id, text.as_bytes()].concat()
}

const TO_B: &str = "    use-server b if { req.ssl_sni b.example }";

/// The pieces of a ClientHello arrive in another order, after data that needs it: the server gets all datagrams as they came.
#[test]
fn datagrams_are_held_until_the_client_hello_is_whole() {
    section(TO_B).run(|world| async move {
        let (a, b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        let message = hello("b.example");
        let early = [&[0xd0, 0, 0, 0, 1, 8][..], b"any id 8", &[0, 4, 1, 2, 3, 4]].concat();
        let pieces =
            [early, initial(b"any id 8", 2, &message, 60..message.len()), initial(b"any id 8", 1, &message, 20..60)];
        for piece in &pieces {
            client.ask(piece);
        }
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len(), world.sessions()), (0, 0, 0));
        let last = initial(b"any id 8", 0, &message, 0..20);
        client.ask(&last);
        let expected = [&pieces[..], &[last]].concat();
        assert_eq!((a.datagrams().await.len(), b.datagrams().await), (0, expected));
        sleep(6_000).await;
        world.forget_log();
    });
}

/// A datagram that no flow would pass on is not held either.
#[test]
fn large_datagrams_are_not_held() {
    section("    accepted-payload-size 1300").global(api::SOCKET).workers(&[1]).run(|_world| async move {
        let mut early = [&[0xd0, 0, 0, 0, 1, 8][..], b"any id 8", &[0, 4, 1, 2, 3, 4]].concat();
        early.resize(1_301, 0);
        Peer::at(CLIENT).ask(&early);
        sleep(10).await;
        assert!(api::ask("show udp-lb").await.contains(" oversized 1 unsent 0 rejected 0 held 0 "));
    });
}

/// A ClientHello that stays incomplete is passed on after two seconds, balanced without a name.
#[test]
fn an_incomplete_client_hello_is_passed_on_late() {
    section(TO_B).global(api::SOCKET).workers(&[1]).run(|world| async move {
        let (a, _b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        let message = hello("b.example");
        let pieces = [initial(b"any id 8", 0, &message, 0..20), initial(b"any id 8", 1, &message, 30..60)];
        client.ask(&pieces[0]);
        client.ask(&pieces[1]);
        sleep(1_900).await;
        assert_eq!(a.datagrams().await.len(), 0);
        assert_eq!(a.datagrams().await, pieces);
        // Later pieces belong to the flow.
        let rest = initial(b"any id 8", 2, &message, 20..30);
        client.ask(&rest);
        assert_eq!(a.datagrams().await, [rest]);
        let shown = api::ask("show udp-lb").await;
        assert_eq!(
            shown,
            "udp-lb web flows 1 evicted 0 refused 0 oversized 0 unsent 0 rejected 0 held 2 nameless 1\n\n"
        );
        sleep(6_000).await;
        world.forget_log();
    });
}

/// Whatever does not have a ClientHello that can be read is balanced, like any first datagram.
#[test]
fn hostile_first_datagrams_are_balanced() {
    let mut forged = whole(b"any id 8", "b.example");
    forged[700] ^= 1;
    let padded = |bytes: &[u8]| {
        let mut datagram = bytes.to_vec();
        datagram.resize(1_200, 0);
        datagram
    };
    let id = b"\x08any id 8\0";
    let rows: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("one byte", vec![0xc0]),
        ("zeros", vec![0; 1_200]),
        ("a changed packet", forged),
        ("a short datagram", whole(b"any id 8", "b.example")[..1_199].to_vec()),
        ("a short ID", padded(&[&[0xc0, 0, 0, 0, 1, 1, 7, 0, 0, 0x44, 0x00][..], &[7; 1_024]].concat())),
        ("an ID beyond the datagram", vec![0xc0, 0, 0, 0, 1, 255, 1, 2]),
        ("version negotiation", padded(&[&[0xc0, 0, 0, 0, 0][..], id].concat())),
        ("an unknown version", padded(&[&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a][..], id].concat())),
        ("a short header", short(b"any id 8", "x")),
        ("a Handshake packet", padded(&[&[0xe0, 0, 0, 0, 1][..], id].concat())),
    ];
    section(&format!("{TO_B}\n    balance first")).workers(&[1]).run(move |world| {
        let rows = rows.clone();
        async move {
            let (a, _b) = (Peer::at(U1), Peer::at(U2));
            for (number, (name, datagram)) in rows.iter().enumerate() {
                let client = Peer::at(&format!("10.0.9.1:{}", 5_000 + number));
                client.ask(datagram);
                assert_eq!(a.datagrams().await, std::slice::from_ref(datagram), "{name}");
            }
            assert_eq!(world.sessions(), rows.len());
            // Lengths that lead nowhere: nothing is found, and no packet follows. They are held as 0-RTT is.
            let client = Peer::at("10.0.9.2:5000");
            let token = padded(&[&[0xc0, 0, 0, 0, 1][..], id, &[0xff; 8]].concat());
            client.ask(&token);
            sleep(2_000).await;
            assert_eq!(a.datagrams().await, [token]);
            sleep(6_000).await;
            world.forget_log();
        }
    });
}

/// IDs of servers lead datagrams of unknown addresses, for as long as a flow uses them.
#[test]
fn connection_ids_lead_to_their_servers() {
    section(&format!("{TO_B}\n    balance first\n    maxconn 2")).workers(&[1]).run(|world| async move {
        let (a, b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        client.ask(&whole(b"any id 8", "b.example"));
        let (found, from) = b.received().await;
        assert_eq!(found.len(), 1);
        b.send(from.unwrap(), &chosen(b"server-id"));
        assert_eq!(client.datagrams().await.len(), 1);
        // The Initial packet is repeated from another address; packets with the server's ID come from there as well.
        rebind(CLIENT, MOVED);
        client.ask(&whole(b"any id 8", "b.example"));
        client.ask(&short(b"server-id", "1"));
        client.ask(&[&[0xe0, 0, 0, 0, 1, 9][..], b"server-id", &[0, 0]].concat());
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len(), world.sessions()), (0, 3, 2));
        // The client changes to an ID that was sent encrypted, and then its address.
        client.ask(&short(b"second-id", "2"));
        rebind(CLIENT, "10.0.9.1:6002");
        client.ask(&short(b"second-id", "3"));
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (0, 2));
        // An ID that is not known yet, from a third address.
        rebind(CLIENT, "10.0.9.1:6003");
        client.ask(&short(b"third--id", "4"));
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (1, 0));
        // All flows are evicted by others: their IDs lead nowhere.
        for port in 7_000..7_002 {
            Peer::at(&format!("10.0.8.1:{port}")).ask(&whole(b"other id", "c.example"));
        }
        assert_eq!(a.datagrams().await.len(), 2);
        rebind(CLIENT, "10.0.9.1:6004");
        client.ask(&short(b"second-id", "5"));
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (1, 0));
        sleep(6_000).await;
        world.forget_log();
    });
}

/// Datagrams with a forged source displace no ID of the client, neither those that the server has sent nor the one that the client
/// uses.
#[test]
fn forged_ids_displace_none_of_a_client() {
    section(&format!("{TO_B}\n    balance first")).workers(&[1]).run(|world| async move {
        let (a, b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        client.ask(&whole(b"any id 8", "b.example"));
        let from = b.received().await.1;
        b.send(from.unwrap(), &chosen(b"server-id"));
        assert_eq!(client.datagrams().await.len(), 1);
        for number in 0..20 {
            client.ask(&short(b"second-id", &number.to_string()));
        }
        for number in 10..30 {
            client.ask(&short(format!("forged-{number}").as_bytes(), "x"));
        }
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (0, 40));
        rebind(CLIENT, MOVED);
        client.ask(&short(b"second-id", "1"));
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (0, 1));
        rebind(CLIENT, "10.0.9.1:6002");
        client.ask(&short(b"server-id", "2"));
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (0, 1));
        sleep(6_000).await;
        world.forget_log();
    });
}

/// A client changes its ID before its handshake is complete, as quic-go does: its Initial packets begin no connection.
#[test]
fn an_id_may_change_during_the_handshake() {
    section(&format!("{TO_B}\n    balance first")).workers(&[1]).run(|world| async move {
        let (a, b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        client.ask(&whole(b"any id 8", "b.example"));
        let from = b.received().await.1;
        b.send(from.unwrap(), &chosen(b"server-id"));
        assert_eq!(client.datagrams().await.len(), 1);
        // Its keys are those of the client's first ID.
        let mut initial = [&[0xc0, 0, 0, 0, 1, 9][..], b"second-id", &[0, 0, 0x44, 0x90]].concat();
        initial.resize(1_200, 7);
        client.ask(&initial);
        assert_eq!((a.datagrams().await.len(), b.datagrams().await), (0, vec![initial]));
        rebind(CLIENT, MOVED);
        client.ask(&short(b"second-id", "1"));
        assert_eq!((a.datagrams().await.len(), b.datagrams().await.len(), world.sessions()), (0, 1, 2));
        sleep(6_000).await;
        world.forget_log();
    });
}

/// Connections of one port to two names have a flow each, and their datagrams are told apart by their IDs.
#[test]
fn connections_of_one_port_are_told_apart() {
    section(&format!("{TO_B}\n    balance first")).workers(&[1]).run(|world| async move {
        let (a, b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        for (server, first, id) in
            [(&a, whole(b"client-a", "a.example"), b"id-of-a"), (&b, whole(b"client-b", "b.example"), b"id-of-b")]
        {
            client.ask(&first);
            let (found, from) = server.received().await;
            assert_eq!(found, [first]);
            server.send(from.unwrap(), &chosen(id));
            assert_eq!(client.datagrams().await, [chosen(id)]);
        }
        for _ in 0..2 {
            client.ask(&short(b"id-of-a", "1"));
            client.ask(&short(b"id-of-b", "2"));
        }
        assert_eq!(
            (a.datagrams().await, b.datagrams().await),
            (vec![short(b"id-of-a", "1"); 2], vec![short(b"id-of-b", "2"); 2])
        );
        assert_eq!(world.sessions(), 2);
        sleep(6_000).await;
        world.forget_log();
    });
}

/// The `id` of the server is in the IDs that it gives out.
#[test]
fn server_ids_in_connection_ids_lead_to_servers() {
    let lines = text("    balance first").replace("quic-passthrough", "quic-passthrough server-id 1,2");
    config(&lines.replace(&format!("server b {U2}"), &format!("server b {U2} id 515"))).workers(&[1]).run(
        |world| async move {
            let (a, b) = (Peer::at(U1), Peer::at(U2));
            let rows: [(&[u8], usize, usize); 4] =
                [(b"x\x02\x03567", 0, 1), (b"x\0\x01567", 1, 0), (b"x\x02\x04567", 1, 0), (b"x\x02", 1, 0)];
            for (number, (id, to_a, to_b)) in rows.into_iter().enumerate() {
                Peer::at(&format!("10.0.9.1:{}", 5_000 + number)).ask(&short(id, ""));
                assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (to_a, to_b), "{id:?}");
            }
            // A client chooses the ID of its first packet: it contains no server.
            let client = Peer::at("10.0.9.2:5000");
            client.ask(&whole(b"x\x02\x0345678", "a.example"));
            assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (1, 0));
            // An ID of another server, although the address has a flow: that of another connection.
            client.ask(&short(b"x\x02\x03567", ""));
            assert_eq!((a.datagrams().await.len(), b.datagrams().await.len()), (0, 1));
            sleep(6_000).await;
            world.forget_log();
        },
    );
}

/// Datagrams that were held have the header as well.
#[test]
fn a_proxy_header_precedes_each_datagram_of_a_connection() {
    let lines = text(TO_B).replace(&format!("server b {U2}"), &format!("server b {U2} send-proxy-v2"));
    config(&lines).run(|world| async move {
        let (_a, b) = (Peer::at(U1), Peer::at(U2));
        let client = Peer::at(CLIENT);
        let message = hello("b.example");
        let pieces = [initial(b"any id 8", 0, &message, 0..20), initial(b"any id 8", 1, &message, 20..message.len())];
        client.ask(&pieces[0]);
        client.ask(&pieces[1]);
        let (found, from) = b.received().await;
        b.send(from.unwrap(), &chosen(b"server-id"));
        assert_eq!(client.datagrams().await.len(), 1);
        rebind(CLIENT, MOVED);
        client.ask(&short(b"server-id", "1"));
        let moved = b.datagrams().await;
        let header = |port: u16| {
            let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c".to_vec();
            header.extend([10, 0, 9, 1, 10, 0, 0, 1]);
            header.extend([port.to_be_bytes(), 443_u16.to_be_bytes()].concat());
            header
        };
        let expected: Vec<_> = pieces.iter().map(|piece| [header(5_000), piece.clone()].concat()).collect();
        assert_eq!((found, moved), (expected, vec![[header(6_001), short(b"server-id", "1")].concat()]));
        sleep(6_000).await;
        world.forget_log();
    });
}

/// A server that is gone loses its connections: a client that begins anew is balanced by its name again.
#[test]
fn a_rejected_connection_begins_anew() {
    section(TO_B).workers(&[1]).run(|world| async move {
        let client = Peer::at(CLIENT);
        client.ask(&whole(b"any id 8", "b.example"));
        sleep(100).await;
        world.expect_log(&["web web/b 0/0/* 0 SD 1/1/0/0/0 0/0"]).await;
        let b = Peer::at(U2);
        client.ask(&whole(b"any id 8", "b.example"));
        assert_eq!(b.datagrams().await.len(), 1);
        sleep(6_000).await;
        world.forget_log();
    });
}
