//! Tests of `http-request auth-request` together with other features: HTTP/3, retries, the cache, copies, reloads in place, and
//! answers whose fields attack the request.

use testkit::{Peer, Service, sleep};

use crate::authorizing_cached::{ANN, ask, field, serve};
use crate::http3_client::Client;
use crate::messages::*;
use crate::world::*;

const RULE: &str = "http-request auth-request auth path /check copy remote-user";
const ALLOWED: &str = "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nContent-Length: 0\r\n\r\n";

fn asked_by(rules: &str, app: &str) -> Worlds {
    config(&format!(
        "frontend l\n bind {WEIR}\n {rules}\n default_backend app\nbackend app\n {app}\n server s1 10.0.1.1:80\n\
         backend auth\n timeout server 5s\n server a1 10.0.1.2:80\n"
    ))
}

#[test]
fn streams_of_http3_are_asked_about() {
    config(&format!(
        "listen l\n bind quic4@10.0.0.1:443 ssl crt a.pem\n {RULE} cache 10s key %[req.cook(session)]\n server s1 10.0.1.1:80\n\
         backend auth\n server a1 10.0.1.2:80\n"
    ))
    .run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Client::connect("10.0.9.1:5000", "10.0.0.1:443").await;
        for (session, status, body, count) in [("ann", 200, "ann ", 1), ("ann", 200, "ann ", 1), ("eve", 401, "no", 2)] {
            let head = format!("GET /1 HTTP/1.1\r\nHost: a\r\nCookie: session={session}\r\nRemote-User: root\r\n\r\n");
            let id = client.request(&head).await;
            let answered = client.answer(id).await;
            assert!(answered.heads[0].starts_with(&format!("HTTP/3.0 {status}\n")), "{:?}", answered.heads);
            assert_eq!((&*String::from_utf8_lossy(&answered.payload), asked.borrow().len()), (body, count));
        }
        client.close().await;
        world.forget_log();
    });
}

/// The application's server fails: the request is sent again, and its permission still holds.
#[test]
fn a_retry_is_not_asked_about_again() {
    asked_by(RULE, "retry-on 503\n retries 2").run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut auth = a1.accept().await;
        auth.receive_head().await;
        auth.send(ALLOWED).await;
        for answer in ["HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", OK] {
            let mut server = s1.accept().await;
            assert_eq!(field(&server.receive_head().await.unwrap(), "remote-user"), "ann");
            server.send(answer).await;
        }
        client.expect(OK_AT_CLIENT).await;
        auth.expect_silence(10).await;
        world.forget_log();
    });
}

/// A stored response is for those who are allowed to see it: the rule is above the cache's.
#[test]
fn a_stored_response_is_asked_about() {
    let rules = format!("{RULE}\n http-request cache-use c\n http-response cache-store c");
    let cache = "\ncache c\n total-max-size 1\n max-age 100\n";
    config(&format!(
        "listen l\n bind {WEIR}\n {rules}\n server s1 10.0.1.1:80\nbackend auth\n server a1 10.0.1.2:80{cache}"
    ))
    .run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Peer::connect(WEIR).await;
        for session in ["ann", "bob", "eve"] {
            let got = ask(&mut client, "/", &format!("Cookie: session={session}\r\n")).await;
            assert_eq!(got, if session == "eve" { "401 no" } else { "200 ann " });
        }
        assert_eq!(asked.borrow().len(), 3);
        world.forget_log();
    });
}

/// A copy is what the server of the request gets, and is sent for allowed requests only.
#[test]
fn a_copy_has_the_fields_of_the_answer() {
    config(&format!(
        "listen l\n bind {WEIR}\n {RULE}\n http-request mirror shadow\n server s1 10.0.1.1:80\nbackend auth\n server a1 10.0.1.2:80\n\
         backend shadow\n server m1 10.0.1.3:80\n"
    ))
    .run(|world| async move {
        let asked = serve(&world, "");
        let mut m1 = Service::at("10.0.1.3:80");
        let mut client = Peer::connect(WEIR).await;
        assert_eq!(ask(&mut client, "/", "Cookie: session=eve\r\n").await, "401 no");
        m1.is_left_alone();
        assert_eq!(ask(&mut client, "/", ANN).await, "200 ann root");
        let mut shadow = m1.accept().await;
        assert_eq!(field(&shadow.receive_head().await.unwrap(), "remote-user"), "ann");
        shadow.send(OK).await;
        assert_eq!(asked.borrow().len(), 2);
        world.forget_log();
    });
}

/// The server that is being asked is removed by a reload in place, and the rule as well: the request ends with its own rules.
#[test]
fn a_reload_in_place_does_not_disturb_a_subrequest() {
    let other = format!("{RULE} on-error allow");
    for rules in [RULE, "", &other] {
        let rules = rules.to_owned();
        asked_by(RULE, "").run(move |world| {
            let rules = rules.clone();
            async move {
                let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
                let mut client = Peer::connect(WEIR).await;
                client.send(get("/1")).await;
                let mut auth = a1.accept().await;
                auth.receive_head().await;
                let next = config(&format!(
                    "frontend l\n bind {WEIR}\n {rules}\n default_backend app\nbackend app\n server s1 10.0.1.1:80\n\
                     backend auth\n timeout server 5s\n server a2 10.0.1.3:80\n"
                ));
                assert_eq!(world.adopt(&next), Ok(()));
                sleep(5).await;
                auth.send(ALLOWED).await;
                let mut server = s1.accept().await;
                assert_eq!(field(&server.receive_head().await.unwrap(), "remote-user"), "ann");
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
                let mut new = Peer::connect(WEIR).await;
                new.send(get("/2")).await;
                if rules != RULE {
                    let mut server = s1.accept().await;
                    server.expect(get_at_server("/2")).await;
                    server.send(OK).await;
                    new.expect(OK_AT_CLIENT).await;
                } else {
                    new.expect(page(503)).await;
                }
                world.forget_log();
            }
        });
    }
}

/// A head that exceeds a buffer of the pool is read as well, up to 32 kB.
#[test]
fn an_answer_may_have_a_large_head() {
    asked_by(RULE, "").run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut auth = a1.accept().await;
        auth.receive_head().await;
        auth.send(ALLOWED.replace("\r\n\r\n", &format!("\r\nX-Other: {}\r\n\r\n", "x".repeat(30_000)))).await;
        let mut server = s1.accept().await;
        assert_eq!(field(&server.receive_head().await.unwrap(), "remote-user"), "ann");
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

/// Fields of the answer cannot become others of the request, nor exceed its size.
#[test]
fn fields_of_the_answer_do_not_attack_the_request() {
    let long = format!("HTTP/1.1 200 OK\r\nRemote-User: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(15_900));
    let huge = format!("HTTP/1.1 200 OK\r\nRemote-User: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(40_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "Remote-User: ann\r\n".repeat(2_000));
    let rows = [
        "HTTP/1.1 200 OK\r\nRemote-User: ann\0\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nRemote-User: ann\rX-Role: root\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nRemote-User: ann\r\n X-Role: root\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nRemote-User : ann\r\nContent-Length: 0\r\n\r\n".to_owned(),
        long,
        huge,
        many,
    ];
    for sent in rows {
        asked_by(RULE, "").run(move |world| {
            let sent = sent.clone();
            async move {
                let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
                let mut client = Peer::connect(WEIR).await;
                client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Fill: {}\r\n\r\n", "y".repeat(1_000))).await;
                let mut auth = a1.accept().await;
                auth.receive_head().await;
                auth.try_send(sent.as_str()).await;
                let scope = world.scope.clone();
                scope.spawn(async move {
                    let mut server = s1.accept().await;
                    let head = server.receive_head().await.unwrap();
                    let names: Vec<&str> = head.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
                    let known = ["", "host", "x-fill", "remote-user"];
                    assert!(names.iter().all(|name| known.contains(name)) && !head.contains('\0'), "{head}");
                    server.send(OK).await;
                });
                let head = client.receive_head().await.unwrap();
                assert!(
                    head.starts_with("HTTP/1.1 503 ") || head.starts_with("HTTP/1.1 200 ") && sent.len() < 100,
                    "{head}"
                );
                world.forget_log();
            }
        });
    }
}
