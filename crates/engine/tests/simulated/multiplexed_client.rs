//! Tests of a multiplexed HTTP/2 connection: each stream has its own request, state, log line and end, and delays no
//! other one.

use std::rc::Rc;

use testkit::{Peer, Scope, Service, both, sleep, text};
use wire::h2::Kind;

use crate::api::*;
use crate::messages::*;
use crate::parts::{End, Part, WINDOW};
use crate::services::with_streamer;
use crate::world::*;

#[test]
fn two_requests_of_a_connection_are_served_at_a_time() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.get(1, "/1").await;
        let mut first = s1.accept().await;
        first.expect(get_at_server("/1")).await;
        client.get(3, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        second.send(answer("two")).await;
        client.expect(3, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", "two").await;
        first.send(answer("one")).await;
        client.expect(1, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", "one").await;
        world
            .expect_log(&[
                r#"l l/s1 0/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET http://a/2 HTTP/2.0""#,
                r#"l l/s1 0/0/#/#/# 200 # - - ---- 1/1/#/#/0 0/0 "GET http://a/1 HTTP/2.0""#,
            ])
            .await;
    });
}

/// Sends back the payload of requests, and the method and target in a field.
pub async fn echo(mut server: Peer, _: usize) {
    while let Some(head) = server.try_receive_head().await {
        let line = head.lines().next().unwrap().to_owned();
        let payload = if head.contains("transfer-encoding: chunked") {
            let (payload, whole) = server.try_receive_chunked().await;
            if !whole {
                return;
            }
            payload
        } else {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let (payload, whole) = server.try_receive_up_to(length.map_or(0, |length| length.parse().unwrap())).await;
            if !whole {
                return;
            }
            payload
        };
        let head = format!("HTTP/1.1 200 OK\r\nx-line: {line}\r\ncontent-length: {}\r\n\r\n", payload.len());
        if !server.try_send(head).await || !server.try_send(payload).await {
            return;
        }
    }
}

/// Payload with and without a length, uploaded while the other stream downloads.
#[test]
fn payload_arrives_unchanged_and_on_its_own_stream() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..16).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = End::connect().await;
        for round in 0..3_u32 {
            let (one, two) = (4 * round + 1, 4 * round + 3);
            let (first, second) = (text(30_000, u64::from(one)), text(9_000, u64::from(two)));
            client.post(one, "POST /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
            client.post(two, post(second.len())).await;
            client.upload(one, &first).await;
            client.upload(two, &second).await;
            for (stream, payload, line) in [(two, second, "POST / HTTP"), (one, first, "POST /1 HTTP")] {
                let answered = client.message(stream).await;
                assert_eq!(answered.end, Some(Part::End));
                assert!(answered.head.contains(line), "{}", answered.head);
                assert!(answered.payload == payload, "{} of {} bytes", answered.payload.len(), payload.len());
            }
        }
        world.forget_log();
    });
}

#[test]
fn a_slow_reader_holds_its_own_window_alone() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.gives = false;
        client.frame(Kind::WindowUpdate, 0, 0, &1_000_000_u32.to_be_bytes()).await;
        client.get(1, "/long").await;
        let mut slow = s1.accept().await;
        slow.expect(get_at_server("/long")).await;
        slow.send(answer(&"x".repeat(100_000))).await;
        while client.messages.get(&1).is_none_or(|answered| answered.payload.len() < WINDOW) {
            assert!(client.step().await);
        }
        client.get(3, "/short").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/short")).await;
        server.send(answer("short")).await;
        client.expect(3, "HTTP/1.1 200 OK", "short").await;
        assert_eq!(client.messages[&1].payload.len(), WINDOW, "more than the client has given credit for");
        world.forget_log();
    });
}

#[test]
fn a_stream_that_its_client_resets_ends_alone() {
    listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.post(1, post(10)).await;
        let mut first = s1.accept().await;
        first.expect(post_at_server(10)).await;
        client.get(3, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        client.send(Part::Reset, 1, "").await;
        first.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/#/-1/# 400 # - - CH-- 1/1/#/#/0 0/0 "POST http://a/ HTTP/2.0""#]).await;
        second.send(answer("two")).await;
        client.expect(3, "HTTP/1.1 200 OK", "two").await;
        world.forget_log();
    });
}

/// Each stream has an identifier and a line of its own in `show sess`.
#[test]
fn a_stream_is_killed_by_its_id_and_the_other_goes_on() {
    listen("server s1 10.0.1.1:80").global(SOCKET).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.get(1, "/1").await;
        let mut first = s1.accept().await;
        first.expect(get_at_server("/1")).await;
        client.get(3, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        let shown = ask("show sess show-uri").await;
        let lines: Vec<_> = shown.lines().filter(|line| line.contains("fe=l ")).collect();
        assert_eq!(lines.len(), 2, "{shown}");
        let line = lines.iter().find(|line| line.contains("uri=\"http://a/1\"")).unwrap();
        order(&format!("shutdown session {}", line.split(':').next().unwrap())).await;
        client.expect_reset(1).await;
        first.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/#/-1/# 500 # - - KC-- #/#/#/#/0 0/0 "GET http://a/1 HTTP/2.0""#]).await;
        second.send(answer("two")).await;
        client.expect(3, "HTTP/1.1 200 OK", "two").await;
        world.forget_log();
    });
}

#[test]
fn a_panic_ends_its_own_stream() {
    // The service fails for such a target.
    let rules = "http-request use-service streamer if { path /one }\n server s1 10.0.1.1:80";
    let broken = with_streamer(listen(rules)).broken_by(|_| {});
    broken.run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.get(1, "/2").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/2")).await;
        client.get(3, "/one").await;
        client.expect_reset(3).await;
        server.send(answer("two")).await;
        client.expect(1, "HTTP/1.1 200 OK", "two").await;
        let lines = world.lines(2).await;
        assert!(lines[0].contains(" I--- ") && lines[1].contains(" ---- "), "{lines:?}");
        client.get(5, "/3").await;
        server.expect(get_at_server("/3")).await;
        server.send(answer("three")).await;
        client.expect(5, "HTTP/1.1 200 OK", "three").await;
        drop(client);
        sleep(10).await;
        assert_eq!(world.sessions(), 0, "places were given back");
        world.forget_log();
    });
}

#[test]
fn prepared_answers_are_messages_of_the_stream() {
    let rules = "http-request return status 200 content-type text/plain string ready if { path /ready }
        http-request deny if { path /deny }
        http-request redirect location /there if { path /redirect }
        server s1 10.0.1.1:80";
    listen(rules).shuffled().seeds(0..8).run(|world| async move {
        let mut client = End::connect().await;
        client.get(1, "/ready").await;
        client.get(3, "/deny").await;
        client.expect(1, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\n", "ready").await;
        let denied = client.message(3).await;
        assert!(denied.head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{}", denied.head);
        assert!(!denied.head.contains("connection:") && !denied.payload.is_empty(), "{}", denied.head);
        client.get(5, "/redirect").await;
        client.expect(5, "HTTP/1.1 302 Found\r\n", "").await;
        // There is no server listening.
        client.get(7, "/dead").await;
        let dead = client.message(7).await;
        assert!(dead.head.starts_with("HTTP/1.1 503 ") && dead.end == Some(Part::End), "{}", dead.head);
        // A request refused during its upload is answered nevertheless, and then reset.
        client.post(9, "POST /deny HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.send(Part::Data, 9, "part").await;
        let early = client.message(9).await;
        assert!(early.head.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{}", early.head);
        client.get(11, "/ready").await;
        client.expect(11, "HTTP/1.1 200 OK", "ready").await;
        world.forget_log();
    });
}

#[test]
fn services_answer_streams() {
    with_streamer(listen("http-request use-service streamer")).shuffled().seeds(0..8).run(|world| async move {
        let mut client = End::connect().await;
        client.get(1, "/30").await;
        client.post(3, "POST /echo HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.upload(3, b"payload").await;
        client.expect(3, "HTTP/1.1 200 OK\r\n", "payload").await;
        client.expect(1, "HTTP/1.1 200 OK\r\n", &"x".repeat(30_000)).await;
        client.get(5, "/5/cut").await;
        client.expect_reset(5).await;
        world.forget_log();
    });
}

#[test]
fn rules_see_the_payload_of_a_stream() {
    let rules = "http-request wait-for-body time 5s
        http-request return status 200 content-type text/plain lf-string \"%[req.body] %[req.body_size]\"";
    listen(rules).shuffled().seeds(0..8).run(|world| async move {
        let mut client = End::connect().await;
        client.post(1, "POST / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.send(Part::Data, 1, "5\r\nno").await;
        sleep(5).await;
        client.upload(1, b" chunk\r\n").await;
        client.expect(1, "HTTP/1.1 200 OK\r\n", "5\r\nno chunk\r\n 13").await;
        world.forget_log();
    });
}

#[test]
fn what_rules_of_a_stream_set_is_not_seen_by_the_other() {
    let rules = "log-format %ci
        http-request set-src hdr(x-from) if { req.hdr(x-from) -m found }
        server s1 10.0.1.1:80";
    listen(rules).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        let named = "GET /1 HTTP/1.1\r\nHost: a\r\nX-From: 192.0.2.7\r\n\r\n";
        client.send(Part::HeadAlone, 1, named).await;
        let mut first = s1.accept().await;
        first.receive_head().await.unwrap();
        client.get(3, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        second.send(OK).await;
        client.expect(3, "HTTP/1.1 200 OK", "ok").await;
        first.send(OK).await;
        client.expect(1, "HTTP/1.1 200 OK", "ok").await;
        let lines = world.lines(2).await;
        assert!(!lines[0].ends_with("192.0.2.7") && lines[1].ends_with("192.0.2.7"), "{lines:?}");
    });
}

#[test]
fn streams_end_with_their_connection() {
    for breaks in [false, true] {
        listen("server s1 10.0.1.1:80").shuffled().seeds(0..8).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = End::connect().await;
            client.get(1, "/1").await;
            let mut first = s1.accept().await;
            first.expect(get_at_server("/1")).await;
            client.get(3, "/2").await;
            let mut second = s1.accept().await;
            second.expect(get_at_server("/2")).await;
            if breaks {
                // Payload of stream 0.
                client.frame(Kind::Data, 0, 0, b"x").await;
                client.expect_end().await;
            }
            drop(client);
            let lines = world.lines(2).await;
            for line in &lines {
                assert!(line.contains(" CD-- ") || line.contains(" CH-- "), "{lines:?}");
            }
            both(first.expect_end(), second.expect_end()).await;
            sleep(1).await;
            assert_eq!(world.sessions(), 0, "places were given back");
        });
    }
}

#[test]
fn a_soft_stop_ends_the_connection_behind_its_last_stream() {
    listen("server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.get(1, "/1").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        world.stop();
        sleep(10).await;
        // It has not received the GOAWAY yet.
        client.get(3, "/2").await;
        let mut second = s1.accept().await;
        second.expect(get_at_server("/2")).await;
        second.send(OK).await;
        client.expect(3, "HTTP/1.1 200 OK", "ok").await;
        // Now it has acknowledged it.
        sleep(10).await;
        client.get(5, "/3").await;
        client.expect_reset(5).await;
        server.send(OK).await;
        client.expect(1, "HTTP/1.1 200 OK", "ok").await;
        client.expect_end().await;
        // The connection is kept until the client closes its direction.
        drop(client);
        sleep(2).await;
        assert!(world.is_drained().await);
        world.forget_log();
    });
}

#[test]
fn an_idle_connection_ends_with_the_time_between_two_requests() {
    listen("timeout http-keep-alive 3s\n server s1 10.0.1.1:80").workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.get(1, "/1").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        // While a stream is open, that timeout does not run.
        sleep(5_000).await;
        server.send(OK).await;
        client.expect(1, "HTTP/1.1 200 OK", "ok").await;
        client.peer.expect_silence(2_900).await;
        sleep(200).await;
        client.expect_end().await;
        world.forget_log();
    });
}
