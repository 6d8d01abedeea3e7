//! Tests of `http-request auth-request`: what its server is asked, and what its answers do to the request.

use rt::sim::Link;
use testkit::{Peer, Service, sleep};

use crate::h2::{Client, block};
use crate::messages::*;
use crate::world::*;

const RULE: &str = "http-request auth-request auth path /check copy remote-user,x-groups set-var(txn.mail) x-mail";

fn asked_by(rule: &str, auth: &str) -> Worlds {
    config(&format!(
        "listen l\n bind {WEIR}\n {rule}\n http-request set-header x-mail %[var(txn.mail)] if {{ var(txn.mail) -m found }}\n \
         server s1 10.0.1.1:80\nbackend auth\n timeout server 5s\n {auth}\n server a1 10.0.1.2:80\n"
    ))
}

fn asked() -> Worlds {
    asked_by(RULE, "")
}

/// Returns the subrequest for a request with this line and these fields at its end.
fn subrequest(method: &str, uri: &str, fields: &str, client: &str) -> String {
    format!(
        "GET /check HTTP/1.1\r\nhost: a\r\n{fields}x-forwarded-method: {method}\r\nx-forwarded-proto: http\r\n\
         x-forwarded-host: a\r\nx-forwarded-uri: {uri}\r\nx-forwarded-for: {client}\r\nx-real-ip: {client}\r\n\r\n"
    )
}

/// Returns the address of a client.
fn address(client: &Peer) -> String {
    client.local_address().inet().unwrap().ip().to_string()
}

#[test]
fn an_allowed_request_gets_the_fields_of_the_answer() {
    asked().run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        let own = address(&client);
        client
            .send(
                "GET /x?y HTTP/1.1\r\nHost: a\r\nRemote-User: root\r\nREMOTE_USER: root\r\nX-Groups: wheel\r\nCookie: c=1\r\n\
                 X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Uri: /public\r\nIf-None-Match: \"e\"\r\nConnection: x-hop\r\n\
                 X-Hop: 1\r\nX-Mail: m\r\n\r\n",
            )
            .await;
        let mut auth = a1.accept().await;
        auth.expect(subrequest("GET", "/x?y", "cookie: c=1\r\nx-mail: m\r\n", &own)).await;
        auth.send("HTTP/1.1 103 Early Hints\r\nRemote-User: no\r\n\r\n").await;
        auth.send("HTTP/1.1 200 OK\r\nRemote-User: ann\r\nX-Groups: a\r\nX-Groups: b\r\nX-Mail: ann@a\r\nX-Other: 1\r\n").await;
        auth.send("Content-Length: 2\r\n\r\nok").await;
        let mut server = s1.accept().await;
        let head = server.receive_head().await.unwrap();
        for field in ["remote-user: ann\r\n", "x-groups: a\r\nx-groups: b\r\n", "x-mail: ann@a\r\n", "if-none-match: \"e\"\r\n"] {
            assert!(head.contains(field), "{field}{head}");
        }
        for field in ["root", "wheel", "x-other", "REMOTE_USER", "remote_user"] {
            assert!(!head.contains(field), "{field}{head}");
        }
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        // The next one uses the same connection, and a variable without a field is unset.
        client.send(get("/2")).await;
        auth.expect(subrequest("GET", "/2", "", &own)).await;
        auth.send("HTTP/1.1 204 No\r\n\r\n").await;
        server.expect(get_at_server("/2")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        // The server has closed it: the subrequest is sent once more.
        auth.close();
        sleep(1).await;
        client.send(get("/3")).await;
        let mut auth = a1.accept().await;
        auth.expect(subrequest("GET", "/3", "", &own)).await;
        auth.close();
        client.expect(page(503)).await;
        const MESSAGE: &str = "* * * * * Server auth/a1 has not decided on a request of l, reason: connection closed before the end of the answer.";
        world
            .expect_log(&[
                r#"l l/s1 */0/0/*/* 200 # - - ---- 1/1/0/0/0 0/0 "GET /x?y HTTP/1.1""#,
                r#"l l/s1 */0/0/*/* 200 # - - ---- 1/1/0/0/0 0/0 "GET /2 HTTP/1.1""#,
                MESSAGE,
                r#"l l/<NOSRV> */-1/-1/-1/* 503 # - - PR-- 1/1/0/0/0 0/0 "GET /3 HTTP/1.1""#,
            ])
            .await;
    });
}

/// Answers that do not allow the request are passed on, with their fields and their body.
#[test]
fn refusals_are_passed_on() {
    let rows = [
        (
            "HTTP/1.1 302 Found\r\nLocation: /login?to=%2F\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: x\r\nX: 1\r\n\
             Content-Length: 0\r\n\r\n",
            "HTTP/1.1 302 Found\r\nlocation: /login?to=%2F\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 0\r\n\r\n",
            302,
        ),
        (
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nno \r\n2\r\nno\r\n0\r\n\r\n",
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic\r\ncontent-length: 5\r\n\r\nno no",
            401,
        ),
        ("HTTP/1.1 403 Not you\r\n\r\nclosed", "HTTP/1.1 403 Not you\r\ncontent-length: 6\r\n\r\nclosed", 403),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 304 Not Modified\r\ncontent-length: 0\r\n\r\n", 304),
    ];
    for (answer, at_client, status) in rows {
        asked().run(move |world| async move {
            let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
            let mut client = Peer::connect(WEIR).await;
            client.send(post(5) + "hello").await;
            let mut auth = a1.accept().await;
            auth.expect(subrequest("POST", "/", "", &address(&client))).await;
            auth.send(answer).await;
            auth.close();
            client.expect(at_client).await;
            s1.is_left_alone();
            let line = format!(r#"l l/<NOSRV> */-1/-1/-1/* {status} # - - PR-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#);
            world.expect_log(&[&line]).await;
        });
    }
}

/// The ways in which a server does not decide.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// It accepts no connection.
    Absent,
    Silent,
    /// It sends these bytes, and closes.
    Sends(&'static str),
    /// It sends this interim answer that many times, and then allows the request.
    Interim(&'static str, usize),
    /// It sends a body that exceeds `tune.bufsize`.
    Long,
}

/// `100 Continue`, which the subrequest has not asked for, and other interim answers precede a decision.
#[test]
fn interim_answers_are_skipped() {
    for interim in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\nRemote-User: root\r\n\r\n"] {
        asked().run(move |world| async move {
            let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
            let mut client = Peer::connect(WEIR).await;
            let mut auths: Option<Peer> = None;
            // The second subrequest has the same connection.
            for count in [1, 32] {
                client.send(GET).await;
                let mut auth = match auths.take() {
                    Some(auth) => auth,
                    None => a1.accept().await,
                };
                auth.receive_head().await;
                // In one segment with the answer, or before it.
                auth.send(interim.repeat(count - 1)).await;
                sleep(10).await;
                auth.send(format!("{interim}HTTP/1.1 200 OK\r\nRemote-User: ann\r\nContent-Length: 0\r\n\r\n")).await;
                let mut server = s1.accept().await;
                let head = server.receive_head().await.unwrap();
                assert!(head.ends_with("\r\nremote-user: ann\r\n\r\n") && !head.contains("root"), "{head}");
                server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
                client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
                auths = Some(auth);
            }
            assert_eq!(a1.accepted(), 1);
            world.forget_log();
        });
    }
}

#[test]
fn without_a_decision_on_error_decides() {
    let faults = [
        Fault::Absent,
        Fault::Silent,
        Fault::Sends("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
        Fault::Sends("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        Fault::Sends("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"),
        Fault::Sends("HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"),
        Fault::Sends("HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n"),
        Fault::Sends("HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n"),
        Fault::Sends("SSH-2.0\r\n\r\n"),
        Fault::Interim("HTTP/1.1 103 Early Hints\r\n\r\n", 33),
        Fault::Interim("HTTP/1.1 100 Continue\r\n\r\n", 1_000),
        Fault::Long,
    ];
    for fault in faults {
        for (more, allows) in [("", false), (" on-error deny", false), (" on-error allow", true)] {
            let rule = format!("{RULE}{more}");
            asked_by(&rule, "").run(move |world| async move {
                let mut s1 = Service::at(S1);
                let mut a1 = (!matches!(fault, Fault::Absent)).then(|| Service::at(S2));
                let mut client = Peer::connect(WEIR).await;
                client.send("GET / HTTP/1.1\r\nHost: a\r\nRemote-User: root\r\n\r\n").await;
                if let Some(a1) = &mut a1 {
                    let mut auth = a1.accept().await;
                    auth.receive_head().await;
                    match fault {
                        Fault::Absent => {}
                        Fault::Silent => {
                            sleep(4_990).await;
                            client.expect_silence(0).await;
                            auth.expect_end().await;
                        }
                        Fault::Sends(bytes) => auth.send(bytes).await,
                        Fault::Interim(bytes, times) => {
                            auth.try_send(format!(
                                "{}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                                bytes.repeat(times)
                            ))
                            .await;
                        }
                        Fault::Long => {
                            auth.send("HTTP/1.1 403 No\r\nContent-Length: 20000\r\n\r\n").await;
                            auth.try_send("x".repeat(20_000)).await;
                        }
                    }
                }
                if allows {
                    let mut server = s1.accept().await;
                    server.expect(GET_AT_SERVER).await;
                    server.send(OK).await;
                    client.expect(OK_AT_CLIENT).await;
                } else {
                    client.expect(page(503)).await;
                    s1.is_left_alone();
                }
                world.forget_log();
            });
        }
    }
}

/// What a client sends neither decides by `on-error`, nor does a former answer count.
#[test]
fn on_error_allows_nothing_that_was_not_asked_about() {
    let rule = "http-request auth-request auth path /check?u=%[req.hdr(x-u)] set-var(sess.user) x-user on-error allow\n \
                http-request set-header x-user %[var(sess.user)]";
    asked_by(rule, "").run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut auth = a1.accept().await;
        auth.receive_head().await;
        auth.send("HTTP/1.1 200 OK\r\nX-User: admin\r\nContent-Length: 0\r\n\r\n").await;
        let mut server = s1.accept().await;
        assert!(server.receive_head().await.unwrap().contains("x-user: admin\r\n"));
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.send(get("/2")).await;
        auth.receive_head().await;
        auth.send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n").await;
        assert!(server.receive_head().await.unwrap().contains("x-user: \r\n"));
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        // The target of the subrequest is not valid.
        client.send("GET /3 HTTP/1.1\r\nHost: a\r\nX-U: a b\r\n\r\n").await;
        client.expect(closing_page(400)).await;
        auth.expect_silence(10).await;
        world.forget_log();
    });
}

#[test]
fn the_server_gets_credentials_and_every_kind_of_target() {
    asked_by("http-request auth-request auth copy authorization,x-user", "").run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut auth: Option<Peer> = None;
        let mut server: Option<Peer> = None;
        let mut client = Peer::connect(WEIR).await;
        for (line, asked, uri) in [
            (
                "GET http://a?page=admin&x=/public HTTP/1.1",
                "GET /?page=admin&x=/public HTTP/1.1\r\n",
                "/?page=admin&x=/public",
            ),
            ("OPTIONS * HTTP/1.1", "GET / HTTP/1.1\r\n", "*"),
        ] {
            client.send(format!("{line}\r\nHost: a\r\nAuthorization: Bearer own\r\nX-User: root\r\n\r\n")).await;
            let mut asks = match auth.take() {
                Some(auth) => auth,
                None => a1.accept().await,
            };
            let head = asks.receive_head().await.unwrap();
            assert!(head.starts_with(asked) && head.contains(&format!("x-forwarded-uri: {uri}\r\n")), "{head}");
            assert!(head.contains("authorization: Bearer own\r\n") && !head.contains("root"), "{head}");
            asks.send("HTTP/1.1 200 OK\r\nAuthorization: Basic other\r\nContent-Length: 0\r\n\r\n").await;
            auth = Some(asks);
            let mut serves = match server.take() {
                Some(server) => server,
                None => s1.accept().await,
            };
            let head = serves.receive_head().await.unwrap();
            assert!(head.contains("authorization: Basic other\r\n") && !head.contains("own"), "{head}");
            serves.send(OK).await;
            server = Some(serves);
            client.expect(OK_AT_CLIENT).await;
        }
        world.forget_log();
    });
}

#[test]
fn bodies_wait_for_the_decision_and_are_not_sent_to_its_server() {
    let rule = "http-request auth-request auth method POST";
    asked_by(rule, "").run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(post(10) + "01234").await;
        let mut auth = a1.accept().await;
        let head = auth.receive_head().await.unwrap();
        assert!(head.starts_with("POST / HTTP/1.1\r\n") && head.ends_with("content-length: 0\r\n\r\n"), "{head}");
        auth.expect_silence(100).await;
        auth.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect(post_at_server(10) + "01234").await;
        client.send("56789").await;
        server.expect("56789").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

#[test]
fn a_client_that_leaves_ends_the_subrequest() {
    asked().run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut auth = a1.accept().await;
        auth.receive_head().await;
        client.reset();
        auth.expect_end().await;
        s1.is_left_alone();
        world.expect_log(&[r#"l l/<NOSRV> */-1/-1/-1/* -1 # - - CR-- */*/0/0/0 0/0 "GET /1 HTTP/1.1""#]).await;
    });
}

#[test]
fn upgrades_and_streams_of_http2_are_asked_about_as_well() {
    asked().run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client
            .send(
                "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            )
            .await;
        let mut auth = a1.accept().await;
        auth.expect(subrequest("GET", "/ws", "sec-websocket-version: 13\r\n", &address(&client))).await;
        auth.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nRemote-User: ann\r\n\r\n").await;
        let mut server = s1.accept().await;
        let head = server.receive_head().await.unwrap();
        assert!(head.contains("upgrade: websocket\r\n") && head.contains("remote-user: ann\r\n"), "{head}");
        server
            .send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
                 Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhi",
            )
            .await;
        assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 101 "));
        client.expect("hi").await;
        drop((client, server));
        world.forget_log();
    });
    config(&format!(
        "listen l\n bind {WEIR} proto h2\n {RULE}\n server s1 10.0.1.1:80\nbackend auth\n server a1 10.0.1.2:80\n"
    ))
    .run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Client::connect().await;
        client.request(1, true, &block("GET", "/1", &[("remote-user", "root")])).await;
        client.request(3, true, &block("GET", "/3", &[])).await;
        let (mut first, mut second) = (a1.accept().await, a1.accept().await);
        let heads = [first.receive_head().await.unwrap(), second.receive_head().await.unwrap()];
        assert!(heads.iter().all(|head| !head.contains("root")), "{heads:?}");
        assert!(
            heads[0].contains("x-forwarded-uri: /1\r\n") && heads[1].contains("x-forwarded-uri: /3\r\n"),
            "{heads:?}"
        );
        second.send("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno").await;
        client.expect(3, 403, "no").await;
        first.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await;
        server.send(OK).await;
        client.expect(1, 200, "ok").await;
        world.forget_log();
    });
}

/// Otherwise the rest of it would be taken for the start of the next one.
#[test]
fn a_connection_whose_request_was_not_sent_whole_is_not_used_again() {
    asked().run(|world| async move {
        rt::sim::network()
            .set_link(&rt::net::Address::Inet(S2.parse().unwrap()), Link { buffer: 64, ..Link::default() });
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        let own = address(&client);
        client.send(get("/1")).await;
        let mut first = a1.accept().await;
        // Nothing is read.
        first.send("HTTP/1.1 204 No\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.send(get("/2")).await;
        let mut second = a1.accept().await;
        second.expect(subrequest("GET", "/2", "", &own)).await;
        second.send("HTTP/1.1 204 No\r\n\r\n").await;
        server.expect(get_at_server("/2")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}
