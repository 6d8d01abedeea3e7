//! Tests of messages and their bodies: early and interim answers, pipelines, answers without a body, both directions at
//! once.

use testkit::{Peer, Service, both, sleep};

use crate::messages::*;
use crate::world::*;

const S1_LINE: &str = "server s1 10.0.1.1:80";
const EARLY: &str = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";
const EARLY_AT_CLIENT: &str = "HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno";

#[test]
fn an_early_answer_goes_on_at_once_and_so_does_the_upload() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, mut s1) = uploading().await;
        server.send(EARLY).await;
        client.expect(EARLY_AT_CLIENT).await;
        sleep(100).await;
        world.expect_no_log();
        client.send("defghij").await;
        server.expect("defghij").await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/100 413 # - - ---- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
        // Both connections remain usable.
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        s1.is_left_alone();
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn an_early_answer_reaches_a_client_whose_server_is_gone() {
    for reset in [false, true] {
        listen(S1_LINE).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(post(2_000_000)).await;
            let mut server = s1.accept().await;
            server.expect(post_at_server(2_000_000)).await;
            server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno").await;
            if reset {
                sleep(2).await;
                server.reset();
            } else {
                server.close();
            }
            client.expect(EARLY_AT_CLIENT).await;
            sleep(10).await;
            client.try_send(vec![b'x'; 1_000_000]).await;
            client.close();
            let lines = world.take_log().await;
            // A server that has answered and closed in order needs no more of the request.
            let states: &[&str] = if reset { &["SL", "CD", "SD"] } else { &["--"] };
            let right =
                states.iter().any(|state| lines[0].contains(" 413 ") && lines[0].contains(&format!(" {state}-- ")));
            assert!(right, "{lines:?}");
        });
    }
}

#[test]
fn a_server_asks_for_the_body() {
    listen(S1_LINE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n").await;
        // The proxy sends no answer of its own.
        client.expect_silence(100).await;
        server.send("HTTP/1.1 100 Continue\r\n\r\n").await;
        client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
        client.send_slowly("abc", 1, 50).await;
        server.expect("abc").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/200/200 200 # - - ---- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_server_declines_the_body_or_gets_it_unasked() {
    listen(S1_LINE).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n").await;
        server.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n").await;
        client.expect("HTTP/1.1 417 No\r\ncontent-length: 0\r\n\r\n").await;
        client.send("abc").await;
        server.expect("abc").await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc").await;
        server.expect("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\nabc").await;
        server.send(format!("HTTP/1.1 100 Continue\r\n\r\n{OK}")).await;
        client.expect(format!("HTTP/1.1 100 Continue\r\n\r\n{OK_AT_CLIENT}")).await;
    });
}

#[test]
fn interim_answers_go_on_at_once() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        for _ in 0..3 {
            sleep(50).await;
            server.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").await;
            client.expect("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n").await;
        }
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/150/150 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// Interim answers wait at the server until the client reads them, whatever their number; only the client's timeout
/// runs then.
#[test]
fn interim_answers_wait_for_a_client_that_reads_slowly() {
    const MANY: usize = 1_000;
    listen(&format!("timeout server 300ms\n {S1_LINE}")).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        let hint = |name: &str| format!("HTTP/1.1 103 Early Hints\r\n{name}: {}\r\n\r\n", "x".repeat(1_000));
        let hints = hint("Link").repeat(MANY);
        world.scope.spawn(async move {
            server.send(hints).await;
            server.send(OK).await;
            server.expect_end().await;
        });
        sleep(1_000).await;
        for _ in 0..MANY {
            client.expect(hint("link")).await;
        }
        client.expect(OK_AT_CLIENT).await;
        client.close();
        world.forget_log();
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    listen(S1_LINE).run(|world| async move {
        let opened = Service::at(S1).serve(&world.scope, |mut server, _| async move {
            while let Some(head) = server.receive_head().await {
                rt::sleep(std::time::Duration::from_micros(rt::random() % 3000)).await;
                server.send(answer(head.split(' ').nth(1).unwrap())).await;
            }
        });
        let mut client = Peer::connect(WEIR).await;
        let paths: Vec<String> = (0..50).map(|number| format!("/{number}")).collect();
        client.send(paths.iter().map(|path| get(path)).collect::<String>()).await;
        for path in &paths {
            client.expect(answer_at_client(path)).await;
        }
        sleep(2).await;
        assert_eq!((opened.get(), world.take_log().await.len()), (1, 50));
    });
}

#[test]
fn a_pipeline_of_bodies() {
    listen(S1_LINE).run(|_| async move {
        let (mut client, mut server, mut s1) = uploading().await;
        // The rest of the body, a request without one, and one with chunks arrive together.
        let chunked = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        client.send(format!("defghij{}{chunked}{GET}", get("/2"))).await;
        server.expect("defghij").await;
        server.send(OK).await;
        server.expect(get_at_server("/2")).await;
        server.send(OK).await;
        let head = server.receive_head().await.unwrap();
        assert_eq!(head, "POST /c HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
        server.receive_until("0\r\n\r\n").await;
        server.send(OK).await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        for _ in 0..4 {
            client.expect(OK_AT_CLIENT).await;
        }
        s1.is_left_alone();
    });
}

#[test]
fn heads_that_come_byte_by_byte() {
    listen(S1_LINE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send_slowly(GET, 1, 1).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send_slowly(OK, 1, 1).await;
        client.expect(OK_AT_CLIENT).await;
        let (lines, (head, body)) = (world.take_log().await, (GET.len(), OK.len()));
        assert!(lines[0].contains(" 200 "), "{lines:?} {head} {body}");
    });
}

#[test]
fn answers_without_a_body() {
    let head = GET.replace("GET", "HEAD");
    let rows: [(&str, &str, &str); 4] = [
        (&head, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n"),
        (
            &head,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (GET, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"),
        (GET, "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", "HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n"),
    ];
    for (request, answer, at_client) in rows.map(|row| (row.0.to_owned(), row.1.to_owned(), row.2.to_owned())) {
        listen(S1_LINE).run(move |world| {
            let (request, answer, at_client) = (request.clone(), answer.clone(), at_client.clone());
            async move {
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(&request).await;
                let mut server = s1.accept().await;
                server.receive_head().await.unwrap();
                server.send(&answer).await;
                client.expect(&at_client).await;
                client.send(GET).await;
                server.expect(GET_AT_SERVER).await;
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
                sleep(2).await;
                assert_eq!(world.idle_links(), 1);
            }
        });
    }
}

#[test]
fn an_answer_flows_while_the_request_does() {
    listen(S1_LINE).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(6)).await;
        let mut server = s1.accept().await;
        server.expect(post_at_server(6)).await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n").await;
        for piece in ["ab", "cd", "ef"] {
            client.send(piece).await;
            server.expect(piece).await;
            server.send(piece).await;
            client.expect(piece).await;
        }
        client.send(GET).await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
    });
}

#[test]
fn full_buffers_in_both_directions_stop_neither() {
    // Neither side reads before it has sent everything: all bytes fit the buffers between them.
    listen(S1_LINE).seeds(0..2).run(|_| async move {
        const LENGTH: usize = 200_000;
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(LENGTH)).await;
        let mut server = s1.accept().await;
        server.expect(post_at_server(LENGTH)).await;
        server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n")).await;
        both(client.send(vec![b'u'; LENGTH]), server.send(vec![b'd'; LENGTH])).await;
        client.expect(format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n")).await;
        let (down, up) = both(client.receive(LENGTH), server.receive(LENGTH)).await;
        assert!(down.iter().all(|byte| *byte == b'd') && up.iter().all(|byte| *byte == b'u'));
    });
}
