//! Tests of TLS on connections that carry no request: to and from peers, to log servers, to name servers; and of the
//! properties of a client's TLS in PROXY headers to servers.

use testkit::{Peer, Service, sleep};
use tls::provider::Version;
use wire::proxy_protocol::{Header, ParsedHeader, decode, kind, ssl_client, ssl_kind};

use crate::api::{SOCKET, ask};
use crate::secure::{Secure, client};
use crate::world::*;

const ME: &str = "10.0.0.1:10000";
const YOU: &str = "10.0.5.1:10000";
const SYSLOG: &str = "10.0.5.2:6514";
const DNS: &str = "10.0.5.3:853";
const SECURE: &str = "10.0.0.1:443";
/// The certificate of the other end is verified.
const VERIFIED: &str = "ssl verify required ca-file ca.pem sni str(a.example)";

async fn request() {
    let mut own = Peer::connect(WEIR).await;
    own.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    own.receive_head().await.unwrap();
}

#[test]
fn peers_call_each_other_by_tls() {
    config(&format!(
        "peers p\n default-server {VERIFIED}\n bind {ME} ssl crt a.pem\n server me\n server you {YOU}\n\
         table t type string len 20 size 100 store gpc0\n"
    ))
    .global("localpeer me")
    .run(|world| async move {
        let pid = std::process::id();
        let mut you = Service::at(YOU);
        let mut called = Secure::accept(you.accept().await).await.unwrap();
        assert_eq!(called.asked_name().as_deref(), Some("a.example"));
        called.expect(format!("HAProxyS 2.1\nyou\nme {pid} 1\n")).await;
        called.send("200\n").await;
        world.forget_log();
    });
    config(&format!(
        "peers p\n bind {ME} ssl crt a.pem\n server me\n server you {YOU}\n table t type string len 20 size 100 store gpc0\n"
    ))
    .global("localpeer me")
    .run(|world| async move {
        let mut calling = Secure::connect(ME, &client((Version::Tls12, Version::Tls13)), 1_000).await.unwrap();
        calling.send("HAProxyS 2.1\nme\nyou 1 1\n").await;
        calling.expect("200\n").await;
        world.forget_log();
    });
}

/// A peer that uses plain bytes, or has another certificate, gets no data.
#[test]
fn a_peer_that_is_not_who_it_has_to_be_hears_nothing() {
    config(&format!(
        "peers p\n bind {ME} ssl crt a.pem\n server me\n server you {YOU} ssl verify required ca-file other.pem\n\
         table t type string len 20 size 100 store gpc0\n"
    ))
    .global("localpeer me")
    .workers(&[1])
    .run(|_| async move {
        let mut you = Service::at(YOU);
        assert!(Secure::accept(you.accept().await).await.is_err(), "whose certificate is signed by nobody known");
        let mut stranger = Peer::connect(ME).await;
        stranger.send("HAProxyS 2.1\nme\nyou 1 1\n").await;
        stranger.expect_end().await;
    });
}

#[test]
fn lines_reach_the_servers_of_rings_and_of_log_backends_by_tls() {
    for (section, target) in [
        (format!("ring r\n server s {SYSLOG} {VERIFIED}"), "ring@r"),
        (format!("backend lines\n mode log\n server s tcp@{SYSLOG} {VERIFIED}"), "backend@lines"),
    ] {
        let sections =
            format!("{section}\nfrontend f\n bind {WEIR}\n log {target} local0\n http-request return status 200\n");
        config(&sections).run(|world| async move {
            let mut syslog = Service::at(SYSLOG);
            request().await;
            let mut own = Secure::accept(syslog.accept().await).await.unwrap();
            assert_eq!(own.asked_name().as_deref(), Some("a.example"));
            let mut line = String::new();
            while !line.ends_with('\n') {
                line.push_str(&String::from_utf8(own.receive(1).await).unwrap());
            }
            assert!(line.ends_with("\"GET / HTTP/1.1\"\n"), "{line}");
            // Unsolicited records such as session tickets are not an end: the connection carries the next line as well.
            request().await;
            while !line.ends_with("\"\n\n") && line.lines().count() < 2 {
                line.push_str(&String::from_utf8(own.receive(1).await).unwrap());
            }
            world.forget_log();
        });
    }
}

#[test]
fn a_log_server_that_is_somebody_else_gets_no_line() {
    let sections = format!(
        "ring r\n server s {SYSLOG} ssl verify required ca-file other.pem\nfrontend f\n bind {WEIR}\n log ring@r local0\n\
         http-request return status 200\n"
    );
    config(&sections).workers(&[1]).run(|world| async move {
        let mut syslog = Service::at(SYSLOG);
        request().await;
        assert!(Secure::accept(syslog.accept().await).await.is_err());
        // It is retried.
        assert!(Secure::accept(syslog.accept().await).await.is_err());
        world.forget_log();
    });
}

#[test]
fn name_servers_are_asked_by_tls() {
    let sections = format!(
        "resolvers r\n nameserver n tcp@{DNS} {VERIFIED}\n timeout resolve 1h\nlisten l\n bind {WEIR}\n \
         server s name.example:80 resolvers r resolve-prefer ipv4 init-addr none\n"
    );
    config(&sections).global(SOCKET).workers(&[1]).run(|world| async move {
        let mut dns = Service::at(DNS);
        let mut own = Secure::accept(dns.accept().await).await.unwrap();
        assert_eq!(own.asked_name().as_deref(), Some("a.example"));
        for _ in 0..2 {
            let length = own.receive(2).await;
            let question = own.receive(usize::from(u16::from_be_bytes([length[0], length[1]]))).await;
            let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
            let is_v4 = question[end - 3] == 1;
            let mut answer = question[..2].to_vec();
            answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
            answer.extend(&question[12..end]);
            if is_v4 {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 1, 1]);
                let mut bytes = (answer.len() as u16).to_be_bytes().to_vec();
                bytes.extend(answer);
                own.send(bytes).await;
                break;
            }
            let mut bytes = (answer.len() as u16).to_be_bytes().to_vec();
            bytes.extend(answer);
            own.send(bytes).await;
        }
        // The connection is kept for five seconds.
        sleep(6_000).await;
        let state = ask("show servers state l").await;
        assert!(state.contains(" s 10.0.1.1 "), "{state}");
        world.forget_log();
    });
}

/// Returns the header at the beginning of a server's connection, and the connection after it.
async fn header(s1: &mut Service) -> (Header, Peer) {
    let mut server = s1.accept().await;
    let mut bytes = server.receive(16).await;
    bytes.extend(server.receive(usize::from(u16::from_be_bytes([bytes[14], bytes[15]]))).await);
    match decode(&bytes, 4_096).unwrap() {
        ParsedHeader::Complete { header, .. } => (header, server),
        ParsedHeader::Partial => panic!("{bytes:?}"),
    }
}

#[test]
fn servers_are_told_of_the_clients_tls() {
    let options = "send-proxy-v2-ssl-cn proxy-v2-options crc32c,ssl-cipher,cert-key,cert-sig,authority,unique-id";
    let sections = format!(
        "listen l\n bind {WEIR}\n bind {SECURE} ssl crt a.pem alpn http/1.1\n unique-id-format id\n server s {S1} {options}\n"
    );
    config(&sections).workers(&[1]).seeds(0..3).run(|world| async move {
        let mut s1 = Service::at(S1);
        for version in [Version::Tls12, Version::Tls13] {
            let mut own = Secure::connect(SECURE, &client((version, version)), 1_000).await.unwrap();
            own.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            let (header, mut server) = header(&mut s1).await;
            let kinds: Vec<u8> = header.tlvs.iter().map(|tlv| tlv.kind).collect();
            assert_eq!(kinds, [kind::CRC32C, kind::AUTHORITY, kind::UNIQUE_ID, kind::SSL]);
            assert_eq!(header.tlvs.first(kind::AUTHORITY), Some(&b"a.example"[..]));
            let ssl = header.tlvs.ssl().unwrap();
            assert_eq!((ssl.client, ssl.verify), (ssl_client::SSL, 0));
            let said = |kind| ssl.first(kind).map(|value| String::from_utf8_lossy(value).into_owned());
            let (version, cipher) = match version {
                Version::Tls12 => ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
                Version::Tls13 => ("TLSv1.3", "TLS_AES_128_GCM_SHA256"),
            };
            assert_eq!(said(ssl_kind::VERSION).as_deref(), Some(version));
            assert_eq!(said(ssl_kind::CIPHER).as_deref(), Some(cipher));
            assert_eq!(said(ssl_kind::KEY_ALG).as_deref(), Some("EC256"));
            assert_eq!(said(ssl_kind::SIG_ALG).as_deref(), Some("ecdsa-with-SHA256"));
            assert_eq!(said(ssl_kind::CN), None, "it has shown no certificate");
            server.receive_head().await.unwrap();
            server.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
            own.expect("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
        }
        // For a plain client, the header contains that there is no TLS.
        let mut own = Peer::connect(WEIR).await;
        own.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let (header, mut server) = header(&mut s1).await;
        let ssl = header.tlvs.ssl().unwrap();
        assert_eq!((ssl.client, ssl.verify, ssl.iter().count()), (0, 0, 0));
        server.receive_head().await.unwrap();
        server.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
        own.receive_head().await.unwrap();
        world.forget_log();
    });
}

/// Details of a handshake as seen by a listener, for a client that gets them from its own side as well.
#[test]
fn details_of_handshakes_are_those_of_the_other_side() {
    let shown = "%[ssl_fc_client_random,hex]/%[ssl_fc_server_random,hex]/%[ssl_fc_session_key,length]/\
                 %[ssl_fc_client_traffic_secret_0,length]/%[ssl_fc_exporter_secret,length]/\
                 %[ssl_fc_early_exporter_secret,length]";
    for keylog in ["off", "on"] {
        let sections = format!(
            "listen l\n bind {WEIR}\n server inner {SECURE} ssl verify none ssl-max-ver TLSv1.2\n \
             http-response set-header outer %[ssl_bc_client_random,hex]/%[ssl_bc_server_random,hex]/%[ssl_bc_session_key,hex]\n\
             listen inner\n bind {SECURE} ssl crt a.pem\n timeout http-keep-alive 300ms\n \
             http-request return status 200 hdr shown \"{shown}\" hdr inner \
             %[ssl_fc_client_random,hex]/%[ssl_fc_server_random,hex]/%[ssl_fc_session_key,hex]\n"
        );
        config(&sections).global(&format!("tune.ssl.keylog {keylog}")).workers(&[1]).seeds(0..2).run(
            move |world| async move {
                let field = |head: &str, name: &str| {
                    let line = head.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{head}"));
                    line.split_once(": ").unwrap().1.to_owned()
                };
                // With TLS 1.2 both sides agree on everything.
                let mut own = Peer::connect(WEIR).await;
                own.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                let head = own.receive_head().await.unwrap();
                let (inner, outer) = (field(&head, "inner"), field(&head, "outer"));
                assert_eq!(inner, outer);
                let lengths: Vec<usize> = inner.split('/').map(str::len).collect();
                assert_eq!(lengths, [64, 64, 96], "{inner}");
                // With TLS 1.3 there are other secrets, if they are kept.
                let mut own = Secure::connect(SECURE, &client((Version::Tls13, Version::Tls13)), 1_000).await.unwrap();
                own.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    head.push_str(&String::from_utf8(own.receive(1).await).unwrap());
                }
                let shown = field(&head, "shown");
                let shown: Vec<&str> = shown.split('/').collect();
                assert_ne!(shown[0], shown[1]);
                let secrets = if keylog == "on" { ["64", "64"] } else { ["", ""] };
                assert_eq!(shown[2..], ["", secrets[0], secrets[1], ""], "{head}");
                drop(own);
                sleep(1_000).await;
                world.forget_log();
            },
        );
    }
}

#[test]
fn failures_have_the_words_of_openssl() {
    let lines = format!(
        "listen l\n bind {SECURE} ssl crt a.pem ca-file ca.pem verify required ssl-min-ver TLSv1.3\n server s {S1}\n \
         error-log-format \"[1] l e %[fc_err] %[ssl_fc_err] %[ssl_fc_err_str] %[ssl_c_err] %[ssl_fc_sni] %[ssl_fc] %sslv\"\n"
    );
    config(&lines).workers(&[1]).run(|world| async move {
        let mut plain = Peer::connect(SECURE).await;
        plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        plain.expect_end().await;
        world.expect_log(&["l e 34 167772316 error:0A00009C:SSL routines::http request 0 - 1 -"]).await;
        assert!(Secure::connect(SECURE, &client((Version::Tls12, Version::Tls12)), 1_000).await.is_err());
        world.expect_log(&["l e 34 167772418 error:0A000102:SSL routines::unsupported protocol 0 a.example 1 -"]).await;
        if let Ok(mut own) = Secure::connect(SECURE, &client((Version::Tls13, Version::Tls13)), 1_000).await {
            own.peer.receive_rest().await;
        }
        let expected =
            "l e 34 167772359 error:0A0000C7:SSL routines::peer did not return a certificate 0 a.example 1 TLSv1.3";
        world.expect_log(&[expected]).await;
    });
}

/// JA3 and JA4 of a ClientHello are the same if it is terminated and if it is passed through.
#[test]
fn clients_are_told_apart_by_their_hellos() {
    let sections = format!(
        "listen through\n mode tcp\n bind {WEIR}\n tcp-request inspect-delay 5s\n \
         tcp-request content set-var(sess.ja) req.ssl_ja4 if {{ req.ssl_hello_type 1 }}\n \
         tcp-request content set-var(sess.ja3) req.ssl_ja3 if {{ req.ssl_hello_type 1 }}\n \
         tcp-request content accept if {{ req.ssl_hello_type 1 }}\n \
         log-format \"[1] l ja %[var(sess.ja)] %[var(sess.ja3)]\"\n server inner {SECURE}\n\
         listen inner\n bind {SECURE} ssl crt a.pem\n no log\n timeout http-keep-alive 300ms\n \
         http-request return status 200 content-type text/plain lf-string \"%[ssl_fc_ja4] %[ssl_fc_ja3]\"\n"
    );
    config(&sections).workers(&[1]).seeds(0..2).run(|world| async move {
        let mut own = Secure::connect(WEIR, &client((Version::Tls12, Version::Tls13)), 1_000).await.unwrap();
        own.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let mut answer = String::new();
        while !answer.ends_with("\r\n\r\n") {
            answer.push_str(&String::from_utf8(own.receive(1).await).unwrap());
        }
        let prints = String::from_utf8(own.receive(36 + 1 + 32).await).unwrap();
        assert!(prints.starts_with("t13d"), "{prints}");
        assert_eq!(prints.as_bytes()[10], b'_', "{prints}");
        drop(own);
        world.expect_log(&[&format!("l ja {prints}")]).await;
    });
}
