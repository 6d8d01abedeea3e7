//! Tests of early data on both sides: requests served before the end of the handshake, and announced to servers; rules
//! that wait for the handshake; replays; servers that refuse early data.

use testkit::{Peer, Service, sleep};
use tls::Client;
use wire::h2::{FrameHeader, HEADER_LENGTH, Kind, PREFACE, flag, push_frame};

use crate::h2::block;
use crate::secure::{Secure, early_client, early_server};
use crate::world::*;

const SECURE: &str = "10.0.0.1:443";
const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A TLS listener in front of a plain server.
fn terminating(options: &str, rules: &str) -> Worlds {
    config(&format!("listen l\n bind {SECURE} ssl crt a.pem allow-0rtt {options}\n {rules}\n server s1 {S1}\n"))
}

/// Gives the client a session, with a request that is answered.
async fn meet(client: &Client, s1: &mut Service) {
    let mut first = Secure::connect(SECURE, client, 10_000).await.unwrap();
    first.send(GET).await;
    let mut peer = s1.accept().await;
    let head = peer.receive_head().await.unwrap();
    assert!(!head.contains("early-data"), "{head}");
    peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").await;
    first.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    first.say_goodbye().await;
}

#[test]
fn a_request_is_served_before_the_handshake_is_over() {
    terminating("alpn http/1.1", "http-request set-header x %[ssl_fc_has_early]%[ssl_fc_early_rcvd]").run(
        |world| async move {
            let mut s1 = Service::at(S1);
            let client = early_client(&["http/1.1"]);
            meet(&client, &mut s1).await;
            let (mut early, _) = Secure::connect_early(SECURE, &client, GET).await;
            // The client has not completed the handshake.
            let mut peer = s1.accept().await;
            let head = peer.receive_head().await.unwrap();
            assert!(head.contains("early-data: 1\r\n") && head.contains("x: 11\r\n"), "{head}");
            peer.send(OK).await;
            early.finish().await;
            early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            // The answer was received, and after the handshake the next request is not early.
            early.send(GET).await;
            let head = peer.receive_head().await.unwrap();
            assert!(!head.contains("early-data") && head.contains("x: 01\r\n"), "{head}");
            peer.send(OK).await;
            early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            early.say_goodbye().await;
            world.forget_log();
        },
    );
}

#[test]
fn a_rule_waits_for_the_end_of_the_handshake() {
    for (options, rule) in [
        ("alpn http/1.1", "http-request wait-for-handshake if { ssl_fc_has_early }"),
        // Without ALPN, early data is not read before the end of the handshake.
        ("", ""),
    ] {
        terminating(options, rule).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let client = early_client(if options.is_empty() { &[] } else { &["http/1.1"] });
            meet(&client, &mut s1).await;
            let two = format!("{GET}{GET}");
            let (mut early, _) = Secure::connect_early(SECURE, &client, &two).await;
            sleep(500).await;
            s1.is_left_alone();
            early.finish().await;
            let mut peer = s1.accept().await;
            for _ in 0..2 {
                let head = peer.receive_head().await.unwrap();
                assert!(!head.contains("early-data"), "{head}");
                peer.send(OK).await;
                early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            }
            world.forget_log();
        });
    }
}

/// A client that completes its handshake late, or disconnects.
#[test]
fn a_handshake_that_does_not_end_is_not_waited_for_forever() {
    for goes in [false, true] {
        terminating("alpn http/1.1", "timeout client-hs 2s\n http-request wait-for-handshake").run(
            move |world| async move {
                let mut s1 = Service::at(S1);
                let client = early_client(&["http/1.1"]);
                meet(&client, &mut s1).await;
                let (early, _) = Secure::connect_early(SECURE, &client, GET).await;
                if goes {
                    early.peer.close();
                } else {
                    sleep(3_000).await;
                    drop(early);
                }
                sleep(100).await;
                s1.is_left_alone();
                world.forget_log();
            },
        );
    }
}

#[test]
fn what_comes_a_second_time_is_not_served() {
    terminating("alpn http/1.1", "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let client = early_client(&["http/1.1"]);
        meet(&client, &mut s1).await;
        let (mut early, said) = Secure::connect_early(SECURE, &client, GET).await;
        let mut peer = s1.accept().await;
        peer.receive_head().await.unwrap();
        for _ in 0..3 {
            let mut again = Peer::connect(SECURE).await;
            again.send(&said).await;
            sleep(300).await;
            again.close();
        }
        s1.is_left_alone();
        peer.send(OK).await;
        early.finish().await;
        early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        world.forget_log();
    });
}

/// The sessions of one address are known to the other, which accepts no early data: the request is received once, after
/// the handshake.
#[test]
fn an_address_may_refuse_early_data() {
    let other = "10.0.0.1:8443";
    config(&format!(
        "listen l\n bind {SECURE} ssl crt a.pem allow-0rtt alpn http/1.1\n bind {other} ssl crt a.pem no-tls-tickets alpn http/1.1\n \
         http-request set-header x %[ssl_fc_has_early]%[ssl_fc_early_rcvd]%[ssl_fc_is_resumed]\n server s1 {S1}\n"
    ))
    .run(move |world| async move {
        let mut s1 = Service::at(S1);
        let client = early_client(&["http/1.1"]);
        meet(&client, &mut s1).await;
        let (mut early, _) = Secure::connect_early(other, &client, GET).await;
        sleep(300).await;
        s1.is_left_alone();
        early.finish().await;
        let mut peer = s1.accept().await;
        let head = peer.receive_head().await.unwrap();
        assert!(!head.contains("early-data") && head.contains("x: 001\r\n"), "{head}");
        peer.send(OK).await;
        early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        sleep(300).await;
        s1.is_left_alone();
        world.forget_log();
    });
}

/// The head is early with a part of the body, and the rest follows after the handshake.
#[test]
fn a_body_goes_on_after_early_data() {
    for rule in ["", "http-request wait-for-handshake", "http-request wait-for-body time 5s"] {
        terminating("alpn http/1.1", rule).run(|world| async move {
            let mut s1 = Service::at(S1);
            let client = early_client(&["http/1.1"]);
            meet(&client, &mut s1).await;
            let head = "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 20000\r\n\r\n";
            let (first, second) = ("a".repeat(8_000), "b".repeat(12_000));
            let (mut early, _) = Secure::connect_early(SECURE, &client, &format!("{head}{first}")).await;
            early.finish().await;
            early.send(&second).await;
            let mut peer = s1.accept().await;
            assert!(peer.receive_head().await.unwrap().starts_with("POST / "));
            peer.expect(format!("{first}{second}")).await;
            peer.send(OK).await;
            early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            world.forget_log();
        });
    }
}

#[test]
fn pipelined_requests_all_tell_that_they_are_early() {
    terminating("alpn http/1.1", "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let client = early_client(&["http/1.1"]);
        meet(&client, &mut s1).await;
        let (mut early, _) = Secure::connect_early(SECURE, &client, &format!("{GET}{GET}")).await;
        let mut peer = s1.accept().await;
        for _ in 0..2 {
            let head = peer.receive_head().await.unwrap();
            assert!(head.contains("early-data: 1\r\n"), "{head}");
            peer.send(OK).await;
        }
        early.finish().await;
        for _ in 0..2 {
            early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
        world.forget_log();
    });
}

/// A field sent by the client itself is kept, and a request refused by rules gets 425.
#[test]
fn rules_may_refuse_early_data() {
    terminating("alpn http/1.1", "http-request deny deny_status 425 if { ssl_fc_has_early }").run(|world| async move {
        let mut s1 = Service::at(S1);
        let client = early_client(&["http/1.1"]);
        meet(&client, &mut s1).await;
        let (mut early, _) = Secure::connect_early(SECURE, &client, GET).await;
        early.finish().await;
        let head = early.receive(22).await;
        assert_eq!(String::from_utf8_lossy(&head), "HTTP/1.1 425 Too Early");
        s1.is_left_alone();
        world.forget_log();
    });
}

#[test]
fn streams_come_early() {
    for waits in [false, true] {
        let rule = if waits { "http-request wait-for-handshake" } else { "" };
        terminating("alpn h2", rule).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let client = early_client(&["h2"]);
            let mut bytes = PREFACE.to_vec();
            push_frame(&mut bytes, Kind::Settings, 0, 0, &[]);
            let opening = bytes.clone();
            push_frame(
                &mut bytes,
                Kind::Headers,
                flag::END_HEADERS | flag::END_STREAM,
                1,
                &block("GET", "/early", &[]),
            );
            let bytes = String::from_utf8(bytes).unwrap();
            // The session is received with the first answer.
            let mut first = Secure::connect(SECURE, &client, 10_000).await.unwrap();
            first.send(&opening).await;
            first.receive(9).await;
            sleep(100).await;
            first.receive(9).await;
            first.peer.close();
            let (mut early, _) = Secure::connect_early(SECURE, &client, &bytes).await;
            if waits {
                sleep(500).await;
                s1.is_left_alone();
                early.finish().await;
            }
            let mut peer = s1.accept().await;
            let head = peer.receive_head().await.unwrap();
            assert!(head.starts_with("GET /early ") && head.contains("early-data: 1\r\n") != waits, "{head}");
            peer.send(OK).await;
            early.finish().await;
            early.receive(9).await;
            early.peer.close();
            sleep(100).await;
            world.forget_log();
        });
    }
}

/// Two proxies: the outer one opens a connection for each request, and resumes.
fn between(outer: &str, inner: &str, rules: &str) -> Worlds {
    config(&format!(
        "listen l\n bind {WEIR}\n {rules}\n http-reuse always\n http-response set-header resumed %[ssl_bc_is_resumed]\n \
         server inner {SECURE} ssl verify none sni str(a.example) alpn http/1.1 {outer}\n\
         listen inner\n bind {SECURE} ssl crt a.pem alpn http/1.1 {inner}\n \
         timeout http-keep-alive 100ms\n http-request return status 200 hdr early %[ssl_fc_has_early]%[ssl_fc_early_rcvd]\n"
    ))
}

async fn ask(request: &str) -> String {
    let mut client = Peer::connect(WEIR).await;
    client.send(request).await;
    let head = client.receive_head().await.unwrap();
    client.close();
    // The link is closed before the next request.
    sleep(300).await;
    head
}

#[test]
fn requests_go_early_to_servers_that_take_it() {
    let listed = "retry-on 0rtt-rejected";
    for (outer, inner, rules, request, early) in [
        ("allow-0rtt", "allow-0rtt", listed, GET, "11"),
        ("allow-0rtt", "allow-0rtt no-tls-tickets", listed, GET, "11"),
        ("", "allow-0rtt", listed, GET, "00"),
        ("allow-0rtt", "", listed, GET, "00"),
        // Not without permission to send it twice, nor if the method is not safe.
        ("allow-0rtt", "allow-0rtt", "", GET, "00"),
        ("allow-0rtt", "allow-0rtt", listed, "DELETE / HTTP/1.1\r\nHost: a.example\r\n\r\n", "00"),
        ("allow-0rtt ssl-max-ver TLSv1.2", "allow-0rtt", listed, GET, "00"),
    ] {
        between(outer, inner, rules).workers(&[1]).run(move |world| async move {
            // The session is received with the first answer.
            assert!(ask(request).await.contains("HTTP/1.1 200"));
            let head = ask(request).await;
            assert!(
                head.contains(&format!("early: {early}\r\n")) && head.contains("resumed: 1\r\n"),
                "{outer} {inner} {rules} {head}"
            );
            sleep(500).await;
            world.forget_log();
        });
    }
}

/// The outer proxy has a session of one address, and the other one refuses early data: the request is received once,
/// after the handshake.
#[test]
fn a_request_that_was_refused_early_is_sent_again() {
    config(&format!(
        "listen l\n bind {WEIR}\n retry-on 0rtt-rejected\n http-reuse never\n \
         server inner {SECURE} ssl verify none sni str(a.example) alpn http/1.1 allow-0rtt\n"
    ))
    .workers(&[1])
    .run(|world| async move {
        let mut service = Service::at(SECURE);
        let (knows, forgets) = (early_server(&["http/1.1"]), early_server(&["http/1.1"]));
        for (server, early) in [(&knows, None), (&knows, Some(true)), (&forgets, Some(false)), (&forgets, Some(true))] {
            let mut client = Peer::connect(WEIR).await;
            client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
            let mut peer = Secure::accept_with(service.accept().await, server).await.unwrap();
            let request = peer.receive_head().await;
            assert!(request.starts_with("GET / HTTP/1.1\r\n"), "{request}");
            assert!(early.is_none_or(|early| peer.was_early() == early), "{early:?}");
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            client.close();
            sleep(50).await;
            peer.peer.close();
        }
        service.is_left_alone();
        world.forget_log();
    });
}

/// A server that answers 425 gets the request again after the handshake, unnoticed by the client.
#[test]
fn a_server_may_say_that_a_request_is_too_early() {
    config(&format!(
        "listen l\n bind {WEIR}\n retry-on 0rtt-rejected\n http-reuse always\n \
         server inner {SECURE} ssl verify none sni str(a.example) alpn http/1.1 allow-0rtt\n\
         listen inner\n bind {SECURE} ssl crt a.pem alpn http/1.1 allow-0rtt\n timeout http-keep-alive 100ms\n \
         http-request return status 425 if {{ ssl_fc_early_rcvd }}\n http-request return status 200 hdr early %[ssl_fc_early_rcvd]\n"
    ))
    .workers(&[1])
    .run(|world| async move {
        for _ in 0..3 {
            let head = ask(GET).await;
            assert!(head.contains("HTTP/1.1 200") && head.contains("early: 0\r\n"), "{head}");
        }
        sleep(500).await;
        world.forget_log();
    });
}

/// From a client's early data to a server's: both may be replayed, and the server is informed.
#[test]
fn early_data_goes_on_as_early_data() {
    config(&format!(
        "listen l\n bind {SECURE} ssl crt a.pem alpn http/1.1 allow-0rtt\n http-reuse never\n \
         server inner 10.0.0.1:8443 ssl verify none sni str(a.example) alpn http/1.1 allow-0rtt\n\
         listen inner\n bind 10.0.0.1:8443 ssl crt a.pem alpn http/1.1 allow-0rtt\n server s1 {S1}\n"
    ))
    .run(|world| async move {
        let mut s1 = Service::at(S1);
        let client = early_client(&["http/1.1"]);
        meet(&client, &mut s1).await;
        let (mut early, _) = Secure::connect_early(SECURE, &client, GET).await;
        let mut peer = s1.accept().await;
        let head = peer.receive_head().await.unwrap();
        assert!(head.contains("early-data: 1\r\n"), "{head}");
        peer.send(OK).await;
        early.finish().await;
        early.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        sleep(500).await;
        world.forget_log();
    });
}

/// Two streams of one client are in its early data: both are served before the end of the handshake, and both servers
/// are informed. A replay is not served.
#[test]
fn two_streams_come_early() {
    terminating("alpn h2", "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let client = early_client(&["h2"]);
        let mut bytes = PREFACE.to_vec();
        push_frame(&mut bytes, Kind::Settings, 0, 0, &[]);
        let mut first = Secure::connect(SECURE, &client, 10_000).await.unwrap();
        first.send(&bytes).await;
        first.receive(9).await;
        sleep(100).await;
        first.receive(9).await;
        first.peer.close();
        for (stream, path) in [(1, "/one"), (3, "/two")] {
            let flags = flag::END_HEADERS | flag::END_STREAM;
            push_frame(&mut bytes, Kind::Headers, flags, stream, &block("GET", path, &[]));
        }
        let bytes = String::from_utf8(bytes).unwrap();
        let (mut early, said) = Secure::connect_early(SECURE, &client, &bytes).await;
        let mut asked = Vec::new();
        for _ in 0..2 {
            let mut peer = s1.accept().await;
            let head = peer.receive_head().await.unwrap();
            assert!(head.contains("early-data: 1\r\n"), "{head}");
            asked.push((head.split(' ').nth(1).unwrap().to_owned(), peer));
        }
        asked.sort_by(|one, two| one.0.cmp(&two.0));
        assert_eq!([&*asked[0].0, &*asked[1].0], ["/one", "/two"]);
        let mut again = Peer::connect(SECURE).await;
        again.send(&said).await;
        sleep(300).await;
        again.close();
        s1.is_left_alone();
        for (_, peer) in asked.iter_mut().rev() {
            peer.send(OK).await;
        }
        early.finish().await;
        let mut answered = Vec::new();
        while answered.len() < 2 {
            let header = FrameHeader::parse(&early.receive(HEADER_LENGTH).await).unwrap();
            early.receive(header.length).await;
            if header.kind == Kind::Headers {
                assert!(header.has(flag::END_STREAM));
                answered.push(header.stream);
            }
        }
        answered.sort_unstable();
        assert_eq!(answered, [1, 3]);
        // A later stream is not early.
        let mut later = Vec::new();
        push_frame(&mut later, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, 5, &block("GET", "/three", &[]));
        early.send(&later).await;
        let mut heads = Vec::new();
        for (_, peer) in &mut asked {
            heads.push(testkit::within(std::time::Duration::from_secs(1), peer.try_receive_head()).await);
        }
        let head = heads.into_iter().flatten().flatten().next().expect("the request on one of the links");
        assert!(head.starts_with("GET /three ") && !head.contains("early-data"), "{head}");
        world.forget_log();
    });
}
