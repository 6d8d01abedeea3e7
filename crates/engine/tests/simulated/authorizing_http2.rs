//! Tests of `http-request auth-request` with a server of HTTP/2: its answers, the connection that its requests share, and its end.

use testkit::{Peer, Service, sleep};
use wire::h2::{ErrorCode, Kind};

use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

fn asked() -> Worlds {
    config(&format!(
        "frontend l\n bind {WEIR}\n log-format \"%ST %[var(txn.auth_request.server)] %[var(txn.auth_request.error)]\"\n \
         http-request auth-request auth path /check copy remote-user\n default_backend app\nbackend app\n server s1 10.0.1.1:80\n\
         backend auth\n timeout server 5s\n timeout connect 2s\n server a1 10.0.1.2:80 proto h2\n"
    ))
    .workers(&[1])
}

/// Returns the subrequest for a request with this path.
fn subrequest(path: &str, client: &Peer) -> String {
    let own = client.local_address().inet().unwrap().ip();
    format!(
        "GET /check HTTP/1.1\r\nhost: a\r\nx-forwarded-method: GET\r\nx-forwarded-proto: http\r\nx-forwarded-host: a\r\n\
         x-forwarded-uri: {path}\r\nx-forwarded-for: {own}\r\nx-real-ip: {own}\r\n\r\n"
    )
}

#[test]
fn subrequests_are_streams_of_one_connection() {
    asked().run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/1")).await;
        let mut auth = End::accept(&mut a1).await;
        let first = auth.expect_request(&subrequest("/1", &one), b"").await;
        two.send(get("/2")).await;
        let second = auth.expect_request(&subrequest("/2", &two), b"").await;
        // A refusal is passed on, with its body.
        auth.send(Part::Head, second, "HTTP/1.1 302 Found\r\nlocation: /login\r\n\r\n").await;
        auth.upload(second, b"log in").await;
        two.expect("HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 6\r\n\r\nlog in").await;
        // Interim answers and the body of a permission are skipped.
        auth.send(Part::Head, first, "HTTP/1.1 103 Early Hints\r\nremote-user: root\r\n\r\n").await;
        auth.send(Part::Head, first, "HTTP/1.1 200 OK\r\nremote-user: ann\r\n\r\n").await;
        auth.upload(first, b"allowed").await;
        let mut server = s1.accept().await;
        let head = server.receive_head().await.unwrap();
        assert!(head.ends_with("\r\nremote-user: ann\r\n\r\n") && !head.contains("root"), "{head}");
        server.send(OK).await;
        one.expect(OK_AT_CLIENT).await;
        // Without a body.
        auth.messages.clear();
        two.send(get("/3")).await;
        let third = auth.expect_request(&subrequest("/3", &two), b"").await;
        auth.send(Part::HeadAlone, third, "HTTP/1.1 204 No Content\r\n\r\n").await;
        server.expect(get_at_server("/3")).await;
        server.send(OK).await;
        two.expect(OK_AT_CLIENT).await;
        assert_eq!(a1.accepted(), 1);
        world.forget_log();
    });
}

#[test]
fn a_stream_without_a_whole_answer_is_no_decision() {
    const INTERIM: (Part, &str) = (Part::Head, "HTTP/1.1 103 Early Hints\r\n\r\n");
    let rows: [(&[(Part, &str)], &str); 7] = [
        (&[INTERIM; 40], "invalid answer"),
        (&[], "no answer in time"),
        (&[(Part::Reset, "")], "connection closed before the end of the answer"),
        (&[(Part::Head, "HTTP/1.1 200 OK\r\n\r\n"), (Part::Reset, "")], "connection broke: "),
        (&[(Part::HeadAlone, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")], "invalid answer"),
        (&[(Part::HeadAlone, "HTTP/1.1 500 No\r\n\r\n")], "status 500"),
        (&[(Part::Head, "HTTP/1.1 200 OK\r\n\r\n")], "no answer in time"),
    ];
    for (parts, reason) in rows {
        asked().run(move |world| async move {
            let mut a1 = Service::at(S2);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut auth = End::accept(&mut a1).await;
            let stream = auth.expect_head(&subrequest("/", &client)).await;
            for (part, text) in parts {
                auth.send(*part, stream, text).await;
                sleep(1).await;
            }
            client.expect(page(503)).await;
            let lines = world.lines(2).await;
            assert!(lines.iter().any(|line| line.contains(&format!("503 auth/a1 {reason}"))), "{reason} {lines:?}");
            world.forget_log();
        });
    }
}

/// A subrequest that the server has not processed, or whose idle connection has ended, is sent once more.
#[test]
fn a_subrequest_that_was_not_processed_is_sent_once_more() {
    asked().run(|world| async move {
        serve_ok(&world.scope, S1);
        let mut a1 = Service::at(S2);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut auth = End::accept(&mut a1).await;
        let first = auth.expect_head(&subrequest("/1", &client)).await;
        auth.frame(Kind::RstStream, 0, first, &ErrorCode::RefusedStream.bytes()).await;
        let mut other = End::accept(&mut a1).await;
        let again = other.expect_head(&subrequest("/1", &client)).await;
        other.answer(again, b"").await;
        client.expect(OK_AT_CLIENT).await;
        // The second refusal decides.
        client.send(get("/2")).await;
        auth.messages.clear();
        let stream = auth.expect_head(&subrequest("/2", &client)).await;
        auth.frame(Kind::RstStream, 0, stream, &ErrorCode::RefusedStream.bytes()).await;
        let mut third = End::accept(&mut a1).await;
        let stream = third.expect_head(&subrequest("/2", &client)).await;
        third.frame(Kind::RstStream, 0, stream, &ErrorCode::RefusedStream.bytes()).await;
        client.expect(page(503)).await;
        assert_eq!(a1.accepted(), 3);
        world.forget_log();
    });
}

/// The subrequest of a client that leaves is reset.
#[test]
fn a_client_that_leaves_resets_its_stream() {
    asked().run(|world| async move {
        let mut a1 = Service::at(S2);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut auth = End::accept(&mut a1).await;
        let stream = auth.expect_head(&subrequest("/", &client)).await;
        auth.messages.clear();
        client.reset();
        auth.expect_reset(stream).await;
        world.forget_log();
    });
}
