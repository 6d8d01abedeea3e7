//! Tests of TLS on both sides of the proxy, through the whole engine: requests, bodies, reused links, checks, the
//! runtime API; ClientHellos in pieces, and bytes that are not TLS.

use std::time::Duration;

use rt::sim::Link;
use testkit::{Peer, Service, sleep};
use tls::provider::Version;

use crate::api::{SOCKET, ask};
use crate::secure::{Secure, client};
use crate::world::*;

/// The TLS listener.
const SECURE: &str = "10.0.0.1:443";
const VERSIONS: [(Version, Version); 2] = [(Version::Tls12, Version::Tls12), (Version::Tls13, Version::Tls13)];

/// Links that deliver each send in one piece: if a `close_notify` is divided, the close does not wait for its last
/// piece.
fn whole(_: u64) -> Link {
    Link { latency: Duration::from_micros(20), fragment: false, ..Link::default() }
}

/// Plain clients reach plain servers over TLS between two proxies.
fn between(outer: &str, inner: &str) -> Worlds {
    config(&format!(
        "listen l\n bind {WEIR}\n http-reuse always\n server inner {SECURE} ssl {outer}\n\
         listen inner\n bind {SECURE} ssl crt a.pem {inner}\n timeout http-keep-alive 300ms\n server s1 {S1}\n"
    ))
}

/// A proxy that terminates TLS, in front of a plain server.
fn terminating(options: &str) -> Worlds {
    config(&format!("listen l\n bind {SECURE} ssl crt a.pem {options}\n server s1 {S1}\n"))
}

/// Waits until the links between the two proxies are closed after the last request.
async fn links_are_over() {
    sleep(1_000).await;
}

#[test]
fn requests_and_bodies_go_through() {
    let verified = "verify required ca-file ca.pem sni str(a.example)";
    for outer in [verified, "verify none ssl-max-ver TLSv1.2", "verify none no-sni-auto no-ssl-reuse"] {
        between(outer, "").seeds(0..6).run(|world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            let body = "0123456789".repeat(8_000);
            let mut server = None;
            for number in 0..3 {
                client
                    .send(format!("POST /{number} HTTP/1.1\r\nHost: a.example\r\nContent-Length: 80000\r\n\r\n"))
                    .await;
                client.send(&body).await;
                let mut peer = match server.take() {
                    Some(peer) => peer,
                    None => s1.accept().await,
                };
                assert!(peer.receive_head().await.unwrap().starts_with(&format!("POST /{number} HTTP/1.1\r\n")));
                peer.expect(&body).await;
                peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                for _ in 0..10 {
                    peer.send("5\r\nhello\r\n").await;
                }
                peer.send("0\r\n\r\n").await;
                client.expect("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
                let chunked = client.receive_chunked(1_000, 0).await;
                assert_eq!(chunked.body, b"hello".repeat(10));
                server = Some(peer);
            }
            links_are_over().await;
            world.forget_log();
        });
    }
}

/// A ticket after the first answer concerns only the transport: the link is reused.
#[test]
fn idle_links_are_used_again() {
    config(&format!(
        "listen l\n bind {WEIR}\n http-reuse always\n server inner {SECURE} ssl verify none\n\
         listen inner\n bind {SECURE} ssl crt a.pem\n timeout http-keep-alive 300ms\n http-request return status 200 hdr number %[fs.id]\n"
    ))
    .workers(&[1])
    .run(|world| async move {
        for number in 0..4 {
            let mut client = Peer::connect(WEIR).await;
            client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
            client.expect(format!("HTTP/1.1 200 OK\r\nnumber: {number}\r\ncontent-length: 0\r\n\r\n")).await;
            client.close();
            sleep(50).await;
        }
        links_are_over().await;
        world.forget_log();
    });
}

/// Requests for different hosts send different server names: their links are not shared.
#[test]
fn names_are_part_of_a_link() {
    config(&format!(
        "listen l\n bind {WEIR}\n http-reuse always\n server inner {SECURE} ssl verify none\n\
         listen inner\n bind {SECURE} ssl crt a.pem\n timeout http-keep-alive 300ms\n http-request return status 200 hdr said %[ssl_fc_sni]/%[fs.id]\n"
    ))
    .workers(&[1])
    .run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        for (host, said) in [("a.example", "a.example/0"), ("b.example:80", "b.example/0"), ("a.example", "a.example/1")] {
            client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            client.expect(format!("HTTP/1.1 200 OK\r\nsaid: {said}\r\ncontent-length: 0\r\n\r\n")).await;
        }
        links_are_over().await;
        world.forget_log();
    });
}

#[test]
fn a_server_that_is_not_who_it_has_to_be_gets_nothing() {
    for outer in [
        "verify required ca-file ca.pem verifyhost b.example no-sni-auto",
        "verify required ca-file ca.pem verifyhost a.example sni str(b.example)",
        "verify required ca-file other.pem no-sni-auto",
        "verify required ca-file ca.pem sni str(b.example)",
    ] {
        between(outer, "").workers(&[1]).run(|world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
            let head = client.receive_head().await.unwrap();
            assert!(head.starts_with("HTTP/1.1 503"), "{head}");
            s1.is_left_alone();
            world.forget_log();
        });
    }
}

/// A host that cannot be sent as a server name is verified in the certificate nevertheless: a client cannot disable
/// verification.
#[test]
fn hosts_that_cannot_be_asked_for_are_verified() {
    for certificate in ["a.pem", "address.pem"] {
        let lines = format!(
            "listen l\n bind {WEIR}\n http-reuse always\n retries 0\n server inner {SECURE} ssl verify required ca-file ca.pem\n\
             listen inner\n bind {SECURE} ssl crt {certificate}\n timeout http-keep-alive 300ms\n http-request return status 200\n"
        );
        config(&lines).workers(&[1]).seeds(0..2).run(move |world| async move {
            let rows = [
                ("a.example", "a.pem"),
                ("10.0.0.1", "address.pem"),
                ("10.0.0.1:80", "address.pem"),
                ("10.0.0.2", "none"),
                ("[::1]", "none"),
                ("a..example", "none"),
                ("10.0.0.1", "address.pem"),
            ];
            for (host, good) in rows {
                let mut client = Peer::connect(WEIR).await;
                client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await;
                let head = client.receive_head().await.unwrap();
                assert_eq!(head.starts_with("HTTP/1.1 200 "), good == certificate, "{certificate} {host}: {head}");
                client.receive_rest().await;
            }
            links_are_over().await;
            world.forget_log();
        });
    }
}

#[test]
fn a_hello_may_come_in_any_pieces() {
    for versions in VERSIONS {
        for piece in [1, 5, 100, 100_000] {
            terminating("").workers(&[1]).seeds(0..1).links(whole).run(move |world| async move {
                let mut s1 = Service::at(S1);
                let mut own = Secure::connect(SECURE, &client(versions), piece).await.unwrap();
                own.send_in("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", piece).await;
                let mut server = s1.accept().await;
                server.receive_head().await.unwrap();
                server.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it").await;
                server.close();
                own.expect("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it").await;
                own.expect_end().await;
                world.forget_log();
            });
        }
    }
}

/// Pipelined requests in one record, and one request in many records.
#[test]
fn records_have_no_meaning_for_requests() {
    config(&format!("listen l\n bind {SECURE} ssl crt a.pem\n http-request return status 200 hdr path %[path]\n"))
        .links(whole)
        .run(|world| async move {
            let mut own = Secure::connect(SECURE, &client(VERSIONS[1]), 1_000).await.unwrap();
            let requests: String = (0..20).map(|at| format!("GET /{at} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
            for most in [1, 17, 16_384] {
                own.send_in(&requests, most).await;
                for at in 0..20 {
                    own.expect(format!("HTTP/1.1 200 OK\r\npath: /{at}\r\ncontent-length: 0\r\n\r\n")).await;
                }
            }
            own.say_goodbye().await;
            own.expect_end().await;
            world.forget_log();
        });
}

#[test]
fn what_is_no_tls_is_told_of() {
    terminating("").workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut own = Peer::connect(SECURE).await;
        own.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        own.expect_end().await;
        world.expect_log(&["l/1: SSL handshake failure (error:0A00009C:SSL routines::http request)"]).await;
        s1.is_left_alone();
    });
}

#[test]
fn a_client_that_says_nothing_is_left_in_time() {
    for (sent, sentence) in
        [(&b""[..], "Timeout during SSL handshake"), (&[0x16, 3, 1], "Timeout during SSL handshake")]
    {
        let lines = format!("listen l\n bind {SECURE} ssl crt a.pem\n timeout client-hs 1s\n server s1 {S1}\n");
        config(&lines).workers(&[1]).run(move |world| async move {
            let mut own = Peer::connect(SECURE).await;
            own.send(sent).await;
            own.expect_end().await;
            world.expect_log(&[&format!("l/1: {sentence}")]).await;
        });
    }
}

#[test]
fn clients_show_certificates_where_they_have_to() {
    let options = "ca-file ca.pem verify required";
    let outer = "verify none crt client.pem no-sni-auto";
    between(outer, options).workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 204 No Content\r\n\r\n").await;
        client.expect("HTTP/1.1 204 No Content\r\n\r\n").await;
        links_are_over().await;
        world.forget_log();
    });
    terminating(options).workers(&[1]).run(|world| async move {
        // Without one the handshake fails at the server: a connection that the client considered established ends.
        if let Ok(mut own) = Secure::connect(SECURE, &client(VERSIONS[1]), 1_000).await {
            own.peer.receive_rest().await;
        }
        world
            .expect_log(&[
                "l/1: SSL handshake failure (error:0A0000C7:SSL routines::peer did not return a certificate)",
            ])
            .await;
    });
}

#[test]
fn tcp_sessions_and_their_ends_go_through() {
    let lines = format!(
        "listen l\n mode tcp\n bind {WEIR}\n server inner {SECURE} ssl verify none\n\
         listen inner\n mode tcp\n bind {SECURE} ssl crt a.pem\n server s1 {S1}\n"
    );
    config(&lines).seeds(0..6).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut server = s1.accept().await;
        // The server sends first.
        server.send("220 hello\r\n").await;
        client.expect("220 hello\r\n").await;
        let bulk = "x".repeat(300_000);
        client.send(&bulk).await;
        server.expect(&bulk).await;
        client.half_close();
        server.expect_eof().await;
        server.send("221 bye\r\n").await;
        server.close();
        client.expect("221 bye\r\n").await;
        client.expect_end().await;
        world.forget_log();
    });
}

#[test]
fn a_slow_reader_gets_all_of_a_large_answer() {
    between("verify none", "").workers(&[1]).seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n").await;
        let body: Vec<u8> = (0..2_000_000_u32).map(|at| (at % 251) as u8).collect();
        let sending = body.clone();
        rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
            server.send(sending).await;
            server.close();
        });
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2000000\r\n\r\n").await;
        let got = client.receive_slowly(2_000_000, 50_000, 5).await;
        assert!(got == body);
        links_are_over().await;
        world.forget_log();
    });
}

#[test]
fn the_runtime_api_and_checks_go_by_tls() {
    let sections = format!(
        "listen l\n bind {WEIR}\n option httpchk GET /health\n\
         server good {SECURE} check check-ssl ssl verify required ca-file ca.pem check-sni a.example inter 1s\n\
         server bad {S1} check ssl verify none inter 1s fall 1\n\
         listen inner\n bind {SECURE} ssl crt a.pem\n timeout http-keep-alive 300ms\n http-request return status 200\n"
    );
    config(&sections).global("stats socket 10.0.0.2:9001 ssl crt a.pem level admin").workers(&[1]).seeds(0..2).run(
        |world| async move {
            // It accepts connections and sends plain bytes instead of TLS.
            Service::at(S1).serve(&world.scope, |mut peer, _| async move {
                peer.try_send("220 plain\r\n").await;
                peer.receive_some().await;
            });
            sleep(5_000).await;
            let mut own = Secure::connect("10.0.0.2:9001", &client(VERSIONS[1]), 1_000).await.unwrap();
            own.send("show servers state\n").await;
            let mut text = String::new();
            while !text.ends_with("\n\n") {
                text.push_str(&String::from_utf8(own.receive(1).await).unwrap());
            }
            let state = |name: &str| {
                let line = text.lines().find(|line| line.split(' ').nth(3) == Some(name)).unwrap().to_owned();
                line.split(' ').nth(5).unwrap().to_owned()
            };
            assert_eq!((state("good"), state("bad")), ("2".to_owned(), "0".to_owned()), "{text}");
            own.expect_end().await;
            world.forget_log();
        },
    );
}

/// New connections get the replaced certificate; established ones keep theirs.
#[test]
fn a_certificate_is_exchanged_while_it_is_in_use() {
    let sections = format!(
        "listen l\n bind {WEIR}\n bind {SECURE} ssl crt a.pem\n\
         http-request return status 200 content-type text/plain lf-string %[ssl_f_sha1,hex]\n"
    );
    config(&sections).global(SOCKET).workers(&[1, 2]).seeds(0..2).run(|world| async move {
        async fn shown(own: &mut Secure) -> String {
            own.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 40\r\ncontent-type: text/plain\r\n\r\n";
            let answer = String::from_utf8(own.receive(head.len() + 40).await).unwrap();
            answer.strip_prefix(head).unwrap().to_owned()
        }
        let mut standing = Secure::connect(SECURE, &client(VERSIONS[1]), 1_000).await.unwrap();
        let former = shown(&mut standing).await;
        let refused = ask("set ssl cert a.pem <<\nnothing of the kind\n").await;
        assert!(refused.ends_with("Can't load the payload\nCan't update a.pem!\n\n"), "{refused}");
        assert_eq!(ask("commit ssl cert a.pem").await, "No ongoing transaction! !\nCan't commit a.pem!\n\n");
        // The worlds of a test share their program: a previous one has left one of both here.
        for (file, done) in [("other.pem", "created"), ("client.pem", "updated")] {
            let payload = String::from_utf8(crate::secure::read_file(file).unwrap()).unwrap();
            let set = ask(&format!("set ssl cert a.pem <<\n{payload}\n")).await;
            assert_eq!(set, format!("Transaction {done} for certificate a.pem!\n\n"));
            if !ask("show ssl cert *a.pem").await.contains(&former) {
                break;
            }
        }
        let mut before = Secure::connect(SECURE, &client(VERSIONS[1]), 1_000).await.unwrap();
        assert_eq!(shown(&mut before).await, former, "nothing has changed before the commit");
        assert_eq!(ask("commit ssl cert a.pem").await, "Committing a.pem.\nSuccess!\n\n");
        for versions in VERSIONS {
            let mut own = Secure::connect(SECURE, &client(versions), 1_000).await.unwrap();
            let found = shown(&mut own).await;
            assert_ne!(found, former);
            assert!(ask("show ssl cert a.pem").await.contains(&format!("SHA1 FingerPrint: {found}\n")));
        }
        assert_eq!(shown(&mut standing).await, former);
        assert_eq!(ask("abort ssl cert a.pem").await, "No ongoing transaction!\n\n");
        world.forget_log();
    });
}

/// A server added at run time sends an existing certificate: one used by lines, or one added before.
#[test]
fn added_servers_show_certificates_that_are_there() {
    let sections = format!(
        "listen l\n bind {WEIR}\n balance roundrobin\n\
         listen inner\n bind {SECURE} ssl crt a.pem ca-file ca.pem verify required\n timeout http-keep-alive 300ms\n\
         http-request return status 204\n"
    );
    config(&sections).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let add = |name: &str, file: &str| format!("add server l/{name} {SECURE} ssl verify none crt {file}");
        let missing = ask(&add("s0", "new.pem")).await;
        assert!(missing.contains("unable to stat SSL certificate from file 'new.pem'"), "{missing}");
        assert_eq!(ask("new ssl cert new.pem").await, "New empty certificate store 'new.pem'!\n\n");
        let payload = String::from_utf8(crate::secure::read_file("client.pem").unwrap()).unwrap();
        ask(&format!("set ssl cert new.pem <<\n{payload}\n")).await;
        assert_eq!(ask("commit ssl cert new.pem").await, "Committing new.pem\nSuccess!\n\n");
        assert_eq!(ask(&add("s1", "new.pem")).await, "New server registered.\n\n");
        ask("enable server l/s1").await;
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.expect("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert!(ask("show ssl cert new.pem").await.contains("Status: Used\n"));
        let refused = ask("del ssl cert new.pem").await;
        assert_eq!(refused, "Can't remove the certificate: certificate 'new.pem' in use, can't be deleted!\n\n");
        assert_eq!(ask(&add("s2", "a.pem")).await, "New server registered.\n\n");
        // The idle link ends with the timeout between two requests.
        drop(client);
        sleep(1_000).await;
        world.forget_log();
    });
}

/// A rule's connection uses TLS whatever the server's line contains, and the status shows the layer that the check has
/// reached.
#[test]
fn rules_of_checks_connect_by_tls() {
    let sections = format!(
        "backend tcp\n option tcp-check\n tcp-check connect ssl sni a.example\n\
         server t {SECURE} check verify none inter 1s\n\
         backend layers\n server secure {SECURE} check ssl verify none check-sni a.example inter 1s\n\
         server plain {WEIR} check inter 1s\n\
         backend answers\n option httpchk GET /\n http-check connect ssl sni a.example\n\
         server h {SECURE} check verify none inter 1s\n server refused {WEIR} check verify none inter 1s fall 1\n\
         listen l\n bind {WEIR}\n bind {SECURE} ssl crt a.pem strict-sni\n http-request return status 200\n"
    );
    config(&sections).global(SOCKET).workers(&[1]).seeds(0..2).run(|world| async move {
        sleep(5_000).await;
        let shown = ask("show stat").await;
        let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split(',').collect()).collect();
        let place = rows[0].iter().position(|name| *name == "check_status").unwrap();
        let status = |name: &str| rows.iter().find(|row| row.get(1) == Some(&name)).unwrap()[place];
        let found = ["t", "secure", "plain", "h", "refused"].map(status);
        assert_eq!(found, ["L6OK", "L6OK", "L4OK", "L7OK", "L6RSP"], "{shown}");
        world.forget_log();
    });
}

/// `maxsslrate` limits the TLS handshakes per second, and does not affect plain clients.
#[test]
fn the_rate_of_handshakes_is_bounded() {
    config(&format!("listen l\n bind {WEIR}\n bind {SECURE} ssl crt a.pem\n http-request return status 204\n"))
        .global("maxsslrate 2")
        .workers(&[1])
        .seeds(0..2)
        .run(|world| async move {
            let begun = rt::now();
            for number in 0..6 {
                let mut plain = Peer::connect(WEIR).await;
                plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                plain.expect("HTTP/1.1 204 No Content\r\n\r\n").await;
                let mut own = Secure::connect(SECURE, &client(VERSIONS[1]), 1_000).await.unwrap();
                own.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                own.expect("HTTP/1.1 204 No Content\r\n\r\n").await;
                if number == 0 {
                    assert!(rt::now().saturating_since(begun) < Duration::from_millis(100));
                }
            }
            let took = rt::now().saturating_since(begun);
            assert!((1_500..4_000).contains(&took.as_millis()), "{took:?} of the simulated clock");
            world.forget_log();
        });
}

/// `%ft` ends in a tilde, and `option httpslog` logs the result of the handshake.
#[test]
fn lines_tell_of_tls() {
    let lines = format!("listen l\n bind {SECURE} ssl crt a.pem\n option httpslog\n http-request return status 204\n");
    config(&lines).workers(&[1]).seeds(0..1).run(|world| async move {
        let mut own = Secure::connect(SECURE, &client(VERSIONS[0]), 1_000).await.unwrap();
        own.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        own.expect("HTTP/1.1 204 No Content\r\n\r\n").await;
        let suite = "ECDHE-ECDSA-AES128-GCM-SHA256";
        let behind = format!("0/0000000000000000/0/0/0 a.example/TLSv1.2/{suite}");
        let line = format!(r#"l~ l/<NOSRV> 0/-1/-1/-1/0 204 # - - LR-- 1/1/0/0/0 0/0 "GET / HTTP/1.1" {behind}"#);
        world.expect_log(&[&line]).await;
    });
}

/// New sessions, resumed ones and failed handshakes are counted separately, for the process and for each object.
#[test]
fn handshakes_are_counted() {
    config(&format!("listen l\n bind {SECURE} ssl crt a.pem\n http-request return status 204\n"))
        .global(SOCKET)
        .workers(&[1])
        .seeds(0..1)
        .run(|world| async move {
            let client = client(VERSIONS[0]);
            for _ in 0..3 {
                Secure::connect(SECURE, &client, 1_000).await.unwrap();
                sleep(10).await;
            }
            let mut plain = Peer::connect(SECURE).await;
            plain.send("GET / HTTP/1.1\r\n\r\n").await;
            plain.expect_end().await;
            let info = ask("show info").await;
            for line in ["CumSslConns: 4", "SslRate: 4", "SslFrontendKeyRate: 1", "SslFrontendSessionReuse_pct: 75"] {
                assert!(info.lines().any(|found| found == line), "{line}: {info}");
            }
            let statistics = ask("show stat").await;
            let mut rows = statistics.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let names = rows.next().unwrap();
            let front = rows.find(|row| row[1] == "FRONTEND").unwrap();
            let counted = ["ssl_sess", "ssl_reused_sess", "ssl_failed_handshake"]
                .map(|wanted| front[names.iter().position(|name| *name == wanted).unwrap()]);
            assert_eq!(counted, ["1", "2", "1"]);
            world.forget_log();
        });
}
