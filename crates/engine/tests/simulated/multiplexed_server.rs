//! Tests of connections to HTTP/2 servers: which requests share one, their shares of it, and its end.

use std::rc::Rc;

use testkit::{Peer, Scope, Service, both, sleep, text};
use wire::h2::{ErrorCode, FrameHeader, HEADER_LENGTH, Kind, Setting, flag, push_frame};

use crate::api::*;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

/// Answers every request with its payload and its trailers.
async fn echo(peer: Peer, _: usize) {
    let mut origin = End::serve(peer).await;
    loop {
        let done = origin.messages.iter().find(|(_, asked)| asked.end.is_some()).map(|(stream, _)| *stream);
        match done {
            Some(stream) if origin.messages[&stream].end == Some(Part::End) => {
                let asked = origin.messages.remove(&stream).unwrap();
                let line = asked.head.lines().next().unwrap();
                let head = format!("HTTP/1.1 200 OK\r\nx-line: {line}\r\n\r\n");
                origin.send(Part::Head, stream, head).await;
                origin.stream(stream, &asked.payload).await;
                match &*asked.trailers {
                    "" => origin.send(Part::End, stream, "").await,
                    trailers => origin.send(Part::HeadAlone, stream, trailers).await,
                }
            }
            Some(stream) => drop(origin.messages.remove(&stream)),
            None if !origin.step().await => return,
            None => {}
        }
    }
}

/// Two requests at a time on a connection.
const TWO: &str = "tune.h2.be.max-concurrent-streams 2";

/// From `show servers conn`: requests in progress, connections in use, and idle ones.
async fn connections() -> [String; 3] {
    let shown = ask("show servers conn l").await;
    let line = shown.lines().find(|line| line.starts_with("l/p1 ")).expect("the server");
    let values: Vec<&str> = line.split(' ').collect();
    [6, 7, 14].map(|column| values[column].to_owned())
}

#[test]
fn requests_of_different_clients_share_a_connection_while_it_has_room() {
    let sections = "http-reuse always\n server p1 10.0.1.1:80 proto h2";
    let global = format!("{TWO}\n{SOCKET}");
    listen(sections).global(&global).workers(&[1]).shuffled().seeds(0..8).run(|world| async move {
        let mut p1 = Service::at(S1);
        let (mut one, mut two, mut three) =
            (Peer::connect(WEIR).await, Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/1")).await;
        let mut origin = End::accept(&mut p1).await;
        let first = origin.expect_request(&get_at_server("/1"), b"").await;
        two.send(get("/2")).await;
        let second = origin.expect_request(&get_at_server("/2"), b"").await;
        three.send(get("/3")).await;
        let mut other = End::accept(&mut p1).await;
        let third = other.expect_request(&get_at_server("/3"), b"").await;
        assert_eq!(connections().await, ["3", "2", "0"]);
        origin.answer(second, b"two").await;
        two.expect(answer_at_client("two")).await;
        other.answer(third, b"three").await;
        three.expect(answer_at_client("three")).await;
        origin.answer(first, b"one").await;
        one.expect(answer_at_client("one")).await;
        // Both are idle now, and none is opened for another request.
        assert_eq!(connections().await, ["0", "0", "2"]);
        two.send(get("/4")).await;
        let (answered, ()) = both(
            async {
                let fourth = origin.expect_request(&get_at_server("/4"), b"").await;
                origin.answer(fourth, b"four").await;
            },
            two.expect(answer_at_client("four")),
        )
        .await;
        let () = answered;
        assert_eq!(p1.accepted(), 2);
        world.forget_log();
    });
}

#[test]
fn payload_arrives_unchanged_on_its_own_stream() {
    let sections = "http-reuse always\n server p1 10.0.1.1:80 proto h2";
    listen(sections).global(TWO).shuffled().seeds(0..16).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        for round in 0..3 {
            let (first, second) = (text(30_000, round), text(9_000, round + 10));
            let chunked = "POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            let pieces: Vec<u8> = first
                .chunks(700)
                .flat_map(|piece| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat())
                .chain(*b"0\r\nx: y\r\n\r\n")
                .collect();
            let all = [chunked.as_bytes(), &pieces].concat();
            let sent = both(one.send(all), async {
                two.send(post(second.len())).await;
                two.send(&second).await;
            });
            sent.await;
            for (client, line, expected) in
                [(&mut one, "POST /1 HTTP/1.1", first), (&mut two, "POST / HTTP/1.1", second)]
            {
                let head = client.receive_head().await.unwrap();
                assert!(head.contains(&format!("x-line: {line}\r\ntransfer-encoding: chunked")), "{head}");
                assert!(client.receive_chunked(4096, 0).await.body == expected, "{line}");
            }
        }
        world.forget_log();
    });
}

/// Both ends are multiplexed, each with its own stream identifiers and windows.
#[test]
fn streams_of_a_client_are_streams_of_a_server() {
    listen("http-reuse always\n server p1 10.0.1.1:80 proto h2").global(TWO).shuffled().seeds(0..16).run(
        |world| async move {
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
                    assert!(answered.head.contains(line) && answered.payload == payload, "{}", answered.head);
                }
            }
            world.forget_log();
        },
    );
}

#[test]
fn heads_of_every_kind_are_understood() {
    listen("server p1 10.0.1.1:80 proto h2").global(TWO).shuffled().seeds(0..8).run(|world| async move {
        let mut p1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut origin = End::accept(&mut p1).await;
        let number = origin.expect_request(&get_at_server("/1"), b"").await;
        origin.send(Part::Head, number, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n").await;
        client.expect("HTTP/1.1 103 Informational\r\nlink: x\r\n\r\n").await;
        origin.send(Part::Head, number, "HTTP/1.1 103 Early\r\nLink: y\r\n\r\n").await;
        origin.send(Part::HeadAlone, number, "HTTP/1.1 204 None\r\n\r\n").await;
        client.expect("HTTP/1.1 103 Informational\r\nlink: y\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n").await;
        client.send("HEAD /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let number = origin.expect_request("HEAD /2 HTTP/1.1\r\nhost: a\r\n\r\n", b"").await;
        origin.send(Part::HeadAlone, number, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await;
        client.send(get("/3")).await;
        let number = origin.expect_request(&get_at_server("/3"), b"").await;
        origin.send(Part::Head, number, "HTTP/1.1 101 Switching\r\n\r\n").await;
        client.expect(page(502)).await;
        world.forget_log();
    });
}

/// An answer may precede the end of a request, whose rest the client may still send.
#[test]
fn an_early_answer_lets_the_rest_of_the_request_go() {
    listen("server p1 10.0.1.1:80 proto h2").global(TWO).shuffled().seeds(0..8).run(|world| async move {
        let mut p1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(20)).await;
        client.send("0123456789").await;
        let mut origin = End::accept(&mut p1).await;
        let number = origin.expect_head(&post_at_server(20)).await;
        origin.send(Part::HeadAlone, number, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n").await;
        client.expect("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
        client.send("0123456789").await;
        client.send(get("/next")).await;
        let next = origin.expect_request(&get_at_server("/next"), b"").await;
        origin.answer(next, b"next").await;
        client.expect(answer_at_client("next")).await;
        assert_eq!(p1.accepted(), 1);
        world.forget_log();
    });
}

#[test]
fn a_stream_that_its_server_resets_ends_alone() {
    let sections = "http-reuse always\n server p1 10.0.1.1:80 proto h2";
    listen(sections).global(TWO).workers(&[1]).shuffled().seeds(0..8).run(|world| async move {
        let mut p1 = Service::at(S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/1")).await;
        let mut origin = End::accept(&mut p1).await;
        let first = origin.expect_request(&get_at_server("/1"), b"").await;
        two.send(get("/2")).await;
        let second = origin.expect_request(&get_at_server("/2"), b"").await;
        origin.send(Part::Head, first, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await;
        origin.send(Part::Data, first, "part").await;
        origin.send(Part::Reset, first, "").await;
        one.expect("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart").await;
        one.expect_end().await;
        origin.answer(second, b"two").await;
        two.expect(answer_at_client("two")).await;
        let lines = world.lines(2).await;
        assert!(lines[0].contains(" 200 ") && lines[0].contains(" SD-- "), "{lines:?}");
        assert!(lines[1].contains(" ---- "), "{lines:?}");
    });
}

#[test]
fn requests_end_with_their_connection_and_those_that_may_be_are_sent_again() {
    let sections = "http-reuse always\n server p1 10.0.1.1:80 proto h2";
    listen(sections).global(TWO).workers(&[1]).seeds(0..8).run(|world| async move {
        let mut p1 = Service::at(S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/0")).await;
        let mut origin = End::accept(&mut p1).await;
        let number = origin.expect_request(&get_at_server("/0"), b"").await;
        origin.answer(number, b"zero").await;
        one.expect(answer_at_client("zero")).await;
        one.send(get("/1")).await;
        origin.expect_request(&get_at_server("/1"), b"").await;
        two.send(post(4)).await;
        two.send("body").await;
        let second = origin.expect_request(&post_at_server(4), b"body").await;
        origin.send(Part::Head, second, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await;
        origin.send(Part::Data, second, "part").await;
        two.expect("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart").await;
        drop(origin);
        two.expect_end().await;
        // No part of an answer was received, and the connection was used before: the request is retried on another one.
        let mut origin = End::accept(&mut p1).await;
        let number = origin.expect_request(&get_at_server("/1"), b"").await;
        origin.answer(number, b"one").await;
        one.expect(answer_at_client("one")).await;
        world.forget_log();
    });
}

/// A request that is retried is encoded for the server that gets it.
#[test]
fn a_body_changes_its_coding_from_server_to_server() {
    for first in ["p1", "s1"] {
        let sections = format!(
            "retry-on empty-response\n retries 1\n option redispatch 1\n balance roundrobin
             server {first} 10.0.1.1:80{}\n server {} 10.0.1.2:80{}",
            if first == "p1" { " proto h2" } else { "" },
            if first == "p1" { "s2" } else { "p2" },
            if first == "p1" { "" } else { " proto h2" },
        );
        for (came, ended) in [("5\r\nabcde\r\n0\r\n\r\n", ""), ("2\r\nab\r\n", "3\r\ncde\r\n0\r\n\r\n")] {
            listen(&sections).global(TWO).workers(&[1]).shuffled().seeds(0..8).run(move |world| async move {
                let (mut one, mut two) = (Service::at(S1), Service::at(S2));
                let mut client = Peer::connect(WEIR).await;
                let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
                client.send(format!("{head}{came}")).await;
                let coded = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
                let plain = "POST / HTTP/1.1\r\nhost: a\r\n\r\n";
                let mut last = None;
                if first == "p1" {
                    let mut origin = End::accept(&mut one).await;
                    let number = origin.expect_head(plain).await;
                    while ended.is_empty() && origin.messages[&number].end.is_none() {
                        origin.step().await;
                    }
                    origin.send(Part::Reset, number, "").await;
                    let mut second = two.accept().await;
                    second.expect(coded).await;
                    client.send(ended).await;
                    assert_eq!(second.receive_chunked(4096, 0).await.body, b"abcde");
                    second.send(OK).await;
                } else {
                    let mut server = one.accept().await;
                    server.expect(coded).await;
                    if ended.is_empty() {
                        assert_eq!(server.receive_chunked(4096, 0).await.body, b"abcde");
                    }
                    drop(server);
                    let mut origin = End::accept(&mut two).await;
                    let number = origin.expect_head(plain).await;
                    client.send(ended).await;
                    origin.expect_request(plain, b"abcde").await;
                    origin.answer(number, b"ok").await;
                    last = Some(origin);
                }
                client.expect(OK_AT_CLIENT).await;
                drop(last);
                world.forget_log();
            });
        }
    }
}

#[test]
fn connections_that_differ_are_not_shared_and_private_ones_stay_with_their_session() {
    let named = "http-reuse always\n server p1 10.0.1.1:80 proto h2 pool-conn-name hdr(x-name)";
    for (sections, connections) in [(named, 2), ("http-reuse never\n server p1 10.0.1.1:80 proto h2", 2)] {
        listen(sections).global(TWO).workers(&[1]).seeds(0..4).run(move |world| async move {
            let scope = Rc::new(Scope::new());
            let p1 = Service::at(S1);
            let accepted = p1.serve(&scope, echo);
            let mut clients = [Peer::connect(WEIR).await, Peer::connect(WEIR).await];
            for _ in 0..3 {
                for (name, client) in ["a", "b"].into_iter().zip(&mut clients) {
                    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Name: {name}\r\n\r\n")).await;
                    client.receive_head().await.unwrap();
                    client.receive_chunked(4096, 0).await;
                }
            }
            assert_eq!(accepted.get(), connections, "{sections}");
            world.forget_log();
        });
    }
}

#[test]
fn an_idle_connection_is_closed_when_nobody_needs_it() {
    let rows = [
        ("server p1 10.0.1.1:80 proto h2 pool-purge-delay 2s", ""),
        ("server p1 10.0.1.1:80 proto h2 pool-max-conn 0", ""),
        ("server p1 10.0.1.1:80 proto h2", "set server l/p1 addr 10.0.1.2"),
    ];
    for (server, typed) in rows {
        listen(server).global(SOCKET).workers(&[1]).seeds(0..4).run(move |world| async move {
            let mut p1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/")).await;
            let mut origin = End::accept(&mut p1).await;
            let number = origin.expect_request(&get_at_server("/"), b"").await;
            origin.answer(number, b"ok").await;
            client.expect(OK_AT_CLIENT).await;
            if !typed.is_empty() {
                ask(typed).await;
            }
            origin.expect_end().await;
            world.forget_log();
        });
    }
}

#[test]
fn a_killed_stream_resets_its_request_alone() {
    let sections = "http-reuse always\n server p1 10.0.1.1:80 proto h2";
    listen(sections).global(SOCKET).workers(&[1]).run(|world| async move {
        let mut p1 = Service::at(S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/1")).await;
        let mut origin = End::accept(&mut p1).await;
        let first = origin.expect_request(&get_at_server("/1"), b"").await;
        two.send(get("/2")).await;
        let second = origin.expect_request(&get_at_server("/2"), b"").await;
        origin.messages.remove(&first);
        let shown = ask("show sess show-uri").await;
        let line = shown.lines().find(|line| line.contains("uri=\"/1\"")).unwrap();
        order(&format!("shutdown session {}", line.split(':').next().unwrap())).await;
        origin.expect_reset(first).await;
        one.expect_end().await;
        origin.answer(second, b"two").await;
        two.expect(answer_at_client("two")).await;
        sleep(1).await;
        world.forget_log();
    });
}

/// A request that its server has not begun is retried on another connection, even if it is not idempotent (RFC 9113,
/// section 8.7).
#[test]
fn a_refused_request_is_sent_again() {
    for goes_away in [true, false] {
        listen("server s1 10.0.1.1:80 proto h2").workers(&[1]).shuffled().seeds(0..6).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(post(0)).await;
            let mut origin = End::accept(&mut s1).await;
            let stream = origin.expect_head(&post_at_server(0)).await;
            if goes_away {
                origin.frame(Kind::GoAway, 0, 0, &[0; 8]).await;
            } else {
                origin.frame(Kind::RstStream, 0, stream, &ErrorCode::RefusedStream.bytes()).await;
            }
            let mut other = End::accept(&mut s1).await;
            let stream = other.expect_request(&post_at_server(0), b"").await;
            other.answer(stream, b"ok").await;
            client.expect(OK_AT_CLIENT).await;
            let lines = world.lines(1).await;
            assert!(lines[0].contains(" 200 ") && lines[0].contains("/1 0/0 "), "{lines:?}");
        });
    }
}

/// Streams that were begun continue after a GOAWAY, and later requests use other connections.
#[test]
fn a_server_that_goes_away_ends_what_it_has_begun() {
    let sections = "http-reuse always\n server s1 10.0.1.1:80 proto h2";
    listen(sections).workers(&[1]).shuffled().seeds(0..6).run(|world| async move {
        let mut s1 = Service::at(S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(get("/1")).await;
        let mut origin = End::accept(&mut s1).await;
        let first = origin.expect_request(&get_at_server("/1"), b"").await;
        origin.frame(Kind::GoAway, 0, 0, &[0, 0, 0, first as u8, 0, 0, 0, 0]).await;
        sleep(10).await;
        two.send(get("/2")).await;
        let mut other = End::accept(&mut s1).await;
        let second = other.expect_request(&get_at_server("/2"), b"").await;
        origin.answer(first, b"one").await;
        one.expect(answer_at_client("one")).await;
        origin.expect_end().await;
        other.answer(second, b"two").await;
        two.expect(answer_at_client("two")).await;
        world.forget_log();
    });
}

/// The server's limit of concurrent streams and its window are respected.
#[test]
fn what_a_server_sets_holds() {
    let sections = "http-reuse always\n server s1 10.0.1.1:80 proto h2";
    listen(sections).workers(&[1]).shuffled().seeds(0..6).run(|world| async move {
        let mut s1 = Service::at(S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(post(1000)).await;
        let mut origin = End::accept(&mut s1).await;
        origin.gives = false;
        let settings = [Setting::MaxConcurrentStreams.bytes(1), Setting::InitialWindowSize.bytes(100)].concat();
        origin.frame(Kind::Settings, 0, 0, &settings).await;
        let first = origin.expect_head(&post_at_server(1000)).await;
        sleep(10).await;
        one.send(vec![b'x'; 1000]).await;
        while origin.messages[&first].payload.len() < 100 {
            origin.step().await;
        }
        two.send(get("/2")).await;
        let mut other = End::accept(&mut s1).await;
        let second = other.expect_request(&get_at_server("/2"), b"").await;
        assert_eq!(origin.messages[&first].payload.len(), 100);
        origin.frame(Kind::WindowUpdate, 0, first, &900_u32.to_be_bytes()).await;
        origin.expect_request(&post_at_server(1000), &[b'x'; 1000]).await;
        origin.answer(first, b"one").await;
        one.expect(answer_at_client("one")).await;
        other.answer(second, b"two").await;
        two.expect(answer_at_client("two")).await;
        world.forget_log();
    });
}

/// A reduced table size is signalled with the next head (RFC 7541, section 4.2): strict decoders require that.
#[test]
fn a_smaller_table_is_told() {
    listen("server s1 10.0.1.1:80 proto h2").workers(&[1]).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut peer = s1.accept().await;
        peer.expect(wire::h2::PREFACE).await;
        let mut frames = Vec::new();
        for round in 0..3 {
            loop {
                let header = FrameHeader::parse(&peer.receive(HEADER_LENGTH).await).unwrap();
                let payload = peer.receive(header.length).await;
                if matches!(header.kind, Kind::Headers | Kind::Continuation) {
                    frames.push((round, header.kind, header.flags, payload == [0x20]));
                    if header.has(flag::END_HEADERS) {
                        break;
                    }
                }
            }
            let mut out = Vec::new();
            if round == 0 {
                push_frame(&mut out, Kind::Settings, 0, 0, &Setting::HeaderTableSize.bytes(0));
            }
            out.extend(crate::parts::frame(Part::HeadAlone, 2 * round + 1, "HTTP/1.1 204 No Content\r\n\r\n"));
            peer.send(out).await;
            client.expect("HTTP/1.1 204 No Content\r\n\r\n").await;
            if round < 2 {
                client.send(get("/1")).await;
            }
        }
        let expected = [
            (0, Kind::Headers, 5, false),
            (1, Kind::Headers, 1, true),
            (1, Kind::Continuation, 4, false),
            (2, Kind::Headers, 5, false),
        ];
        assert_eq!(frames, expected);
        world.forget_log();
    });
}

/// Trailers are forwarded between all versions.
#[test]
fn trailers_go_on() {
    for (client_streams, server_streams) in [(true, true), (true, false), (false, true)] {
        let proto = if server_streams { " proto h2" } else { "" };
        listen(&format!("server s1 10.0.1.1:80{proto}")).workers(&[1]).shuffled().seeds(0..6).run(
            move |world| async move {
                let mut s1 = Service::at(S1);
                let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
                let (mut stream, mut plain) = (None, None);
                if client_streams {
                    let mut end = End::connect().await;
                    end.post(1, "POST / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                    end.stream(1, b"up").await;
                    end.send(Part::HeadAlone, 1, "x-up: 1\r\nhost: evil\r\n\r\n").await;
                    stream = Some(end);
                } else {
                    let mut peer = Peer::connect(WEIR).await;
                    peer.send(format!("{chunked}2\r\nup\r\n0\r\nX-Up: 1\r\n\r\n")).await;
                    plain = Some(peer);
                }
                if server_streams {
                    let mut origin = End::accept(&mut s1).await;
                    let number = origin.expect_request("POST / HTTP/1.1\r\nhost: a\r\n\r\n", b"up").await;
                    assert_eq!(origin.messages[&number].trailers, "x-up: 1\r\n\r\n");
                    origin.send(Part::Head, number, "HTTP/1.1 200 OK\r\n\r\n").await;
                    origin.stream(number, b"down").await;
                    origin.send(Part::HeadAlone, number, "grpc-status: 0\r\n\r\n").await;
                    finish(stream, plain).await;
                } else {
                    let mut origin = s1.accept().await;
                    origin.expect("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await;
                    let body = origin.receive_chunked(4096, 0).await;
                    assert_eq!((body.body, body.trailers), (b"up".to_vec(), vec![("x-up".to_owned(), "1".to_owned())]));
                    origin.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                    origin.send("4\r\ndown\r\n0\r\nGrpc-Status: 0\r\n\r\n").await;
                    finish(stream, plain).await;
                }
                world.forget_log();
            },
        );
    }
}

async fn finish(stream: Option<End>, plain: Option<Peer>) {
    if let Some(mut end) = stream {
        let answered = end.message(1).await;
        assert_eq!((&answered.payload[..], &answered.trailers[..]), (&b"down"[..], "grpc-status: 0\r\n\r\n"));
    }
    if let Some(mut peer) = plain {
        peer.receive_head().await.unwrap();
        let body = peer.receive_chunked(4096, 0).await;
        assert_eq!((body.body, body.trailers), (b"down".to_vec(), vec![("grpc-status".to_owned(), "0".to_owned())]));
    }
}

/// The server of an idle connection gets PINGs, and the connection is closed if they are not acknowledged.
#[test]
fn a_silent_server_is_left_where_it_is_asked() {
    for answers in [true, false] {
        let sections = "server s1 10.0.1.1:80 proto h2 idle-ping 2s pool-purge-delay 1h";
        listen(sections).workers(&[1]).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/")).await;
            let mut origin = End::accept(&mut s1).await;
            let stream = origin.expect_request(&get_at_server("/"), b"").await;
            origin.answer(stream, b"ok").await;
            client.expect(OK_AT_CLIENT).await;
            if answers {
                while origin.pings < 4 {
                    assert!(origin.step().await);
                }
                client.send(get("/2")).await;
                let stream = origin.expect_request(&get_at_server("/2"), b"").await;
                origin.answer(stream, b"ok").await;
                client.expect(OK_AT_CLIENT).await;
            } else {
                origin.peer.receive_rest().await;
            }
            world.forget_log();
        });
    }
}
