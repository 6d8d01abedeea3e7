//! Tests of glitches: behaviour that a correct peer does not show is counted on its connection and in stick tables, and
//! too much of it ends the connection. Also of graceful ends of HTTP/2 connections.

use std::time::Duration;

use rt::sim::Link;
use testkit::{Peer, Service, sleep};
use wire::h2::{ErrorCode, Kind, flag, push_frame};

use crate::api::*;
use crate::h2::{Client, block, literal};
use crate::messages::*;
use crate::parts::End;
use crate::world::*;

/// Answers with the glitches of the connection, and those in its client's entry.
const TELL: &str = "stick-table type ip size 10 store glitch_cnt,glitch_rate(1m)
    tcp-request session track-sc0 src
    http-request wait-for-body time 10s if METH_POST
    http-request return status 200 content-type text/plain lf-string \
    %[fc_glitches],%[sc0_glitch_cnt],%[sc0_glitch_rate],%[fc_http_major]";

/// A frame sent by the client.
type SentFrame = (Kind, u8, u32, Vec<u8>);

fn headers(stream: u32, ends: bool, block: Vec<u8>) -> SentFrame {
    (Kind::Headers, flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 }, stream, block)
}

fn bad(stream: u32) -> SentFrame {
    headers(stream, true, block("GET", "hello", &[]))
}

fn reset(stream: u32) -> SentFrame {
    (Kind::RstStream, 0, stream, ErrorCode::Cancel.bytes().to_vec())
}

/// A request whose block is sent in that number of CONTINUATION frames of a byte each.
fn pieces(count: usize) -> Vec<SentFrame> {
    let block = block("GET", "/", &[]);
    let (first, rest) = block.split_at(block.len() - count);
    let mut frames = vec![(Kind::Headers, flag::END_STREAM, 1, first.to_vec())];
    frames.extend(rest.iter().map(|byte| (Kind::Continuation, 0, 1, vec![*byte])));
    frames.last_mut().unwrap().1 |= flag::END_HEADERS;
    frames
}

async fn send(client: &mut Client, frames: Vec<SentFrame>) {
    for (kind, flags, stream, payload) in frames {
        client.frame(kind, flags, stream, &payload).await;
    }
}

/// The same events as in HAProxy 3.5, and further floods.
#[test]
fn what_a_client_does_is_counted() {
    listen(TELL).shuffled().seeds(0..4).run(|world| async move {
        let post = |stream| headers(stream, false, block("POST", "/", &[]));
        let many = |count: usize, frame: SentFrame| vec![frame; count];
        let rows: Vec<(Vec<SentFrame>, u32)> = vec![
            (vec![headers(1, true, block("GET", "/", &[]))], 0),
            (vec![bad(1)], 1),
            (vec![bad(1), bad(3), bad(5)], 3),
            (vec![headers(1, true, block("GET", "/", &[("connection", "close")]))], 1),
            // Errors in a head are answered; they count for the connection only if that is impossible.
            (vec![headers(1, true, block("GE T", "/", &[]))], 0),
            (vec![headers(1, true, block("GET", "/", &[(":protocol", "x")]))], 1),
            (vec![post(1), reset(1)], 1),
            (vec![post(1), reset(1), reset(1)], 1),
            (vec![post(1), (Kind::WindowUpdate, 0, 1, vec![0; 4])], 1),
            (pieces(4), 0),
            (pieces(5), 1),
            (pieces(17), 2),
            // 128 frames without use, and as many as were earned.
            (many(100, (Kind::Ping, 0, 0, vec![0; 8])), 0),
            (many(150, (Kind::Ping, 0, 0, vec![0; 8])), 23),
            (many(150, (Kind::Settings, 0, 0, vec![])), 23),
            (many(150, (Kind::Priority, 0, 1, vec![0; 5])), 23),
            (many(150, (Kind::WindowUpdate, 0, 0, vec![0, 0, 0, 1])), 23),
            (many(150, (Kind::WindowUpdate, 0, 0, vec![0, 0, 4, 0])), 0),
            (many(150, (Kind::GoAway, 0, 0, vec![0; 8])), 23),
        ];
        let mut all = 0;
        for (frames, glitches) in rows {
            let mut client = Client::connect().await;
            send(&mut client, frames).await;
            client.get(1001, "/").await;
            all += glitches;
            client.expect(1001, 200, &format!("{glitches},{all},{all},2")).await;
            // An error of the connection counts as well.
            client.frame(Kind::Data, 0, 0, &[]).await;
            client.expect_gone(ErrorCode::ProtocolError).await;
            all += 1;
        }
        world.forget_log();
    });
}

/// Empty payload is a flood only beyond a certain rate, and keepalives are not.
#[test]
fn frames_that_others_pay_for_are_no_glitches() {
    listen(TELL).seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        client.request(1, false, &block("PUT", "/", &[])).await;
        for _ in 0..400 {
            client.frame(Kind::Data, 0, 1, b"x").await;
            client.frame(Kind::Ping, 0, 0, &[0; 8]).await;
        }
        client.get(3, "/").await;
        client.expect(3, 200, "0,0,0,2").await;
        for _ in 0..150 {
            client.frame(Kind::Ping, 0, 0, &[0; 8]).await;
            sleep(110).await;
        }
        client.get(5, "/").await;
        client.expect(5, 200, "0,0,0,2").await;
        world.forget_log();
    });
}

/// Without a threshold there is a budget: a client that provokes resets repeatedly gets a graceful GOAWAY, and then its
/// connection ends.
#[test]
fn a_budget_ends_a_connection() {
    listen(TELL).seeds(0..2).run(|world| async move {
        let mut client = Client::connect().await;
        client.pongs = false;
        send(&mut client, (0..200).map(|number| bad(2 * number + 1)).collect()).await;
        client.get(401, "/").await;
        client.expect(401, 200, "200,200,200,2").await;
        assert_eq!(client.departures, []);
        send(&mut client, (201..1200).map(|number| bad(2 * number + 1)).collect()).await;
        while client.departures.len() < 2 {
            client.step().await;
        }
        assert_eq!(client.departures[0].1, 0);
        assert_eq!(client.departures[1].1, ErrorCode::EnhanceYourCalm as u32);
        let _ = client.peer.receive_rest().await;
        world.forget_log();
    });
    // Any threshold replaces it, including 0, which disables it.
    listen(TELL).global("tune.h2.fe.glitches-threshold 0").seeds(0..2).run(|world| async move {
        let mut client = Client::connect().await;
        send(&mut client, (0..1200).map(|number| bad(2 * number + 1)).collect()).await;
        client.get(2401, "/").await;
        client.expect(2401, 200, "1200,1200,1200,2").await;
        assert_eq!(client.departures, []);
        world.forget_log();
    });
}

/// As in HAProxy, its rules are run, and it gets no server.
#[test]
fn a_request_that_is_reset_at_once_gets_no_server() {
    listen("server s1 10.0.1.1:80").seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        // The network may deliver a reset after its request, but not each time.
        for number in 0..20 {
            let mut sent = Vec::new();
            for (kind, flags, stream, payload) in [
                headers(4 * number + 1, true, block("GET", "/", &[])),
                reset(4 * number + 1),
                headers(4 * number + 3, false, block("POST", "/", &[])),
                reset(4 * number + 3),
            ] {
                wire::h2::push_frame(&mut sent, kind, flags, stream, &payload);
            }
            client.peer.send(sent).await;
            sleep(100).await;
        }
        let lines = world.lines(40).await;
        let mut early = lines.iter().filter(|line| line.contains(" - - CR-- "));
        assert!(early.clone().all(|line| line.starts_with("l l/<NOSRV> 0/-1/-1/-1/")), "{lines:?}");
        assert!(early.clone().any(|line| line.contains("/0 -1 0 ") && line.contains("\"GET ")), "{lines:?}");
        assert!(early.any(|line| line.contains("/0 400 0 ") && line.contains("\"POST ")), "{lines:?}");
    });
}

#[test]
fn three_quarters_of_a_threshold_end_a_connection_gracefully() {
    listen(TELL).global("tune.h2.fe.glitches-threshold 10").seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        send(&mut client, (0..7).map(|number| bad(2 * number + 1)).collect()).await;
        client.expect_reset(13, ErrorCode::ProtocolError).await;
        client.get(15, "/").await;
        client.expect(15, 200, "7,7,7,2").await;
        assert_eq!(client.departures, []);
        // Streams that it began before receiving the GOAWAY are served.
        client.pongs = false;
        client.frame(Kind::Headers, 5, 17, &block("GET", "hello", &[])).await;
        client.get(19, "/").await;
        client.expect(19, 200, "8,8,8,2").await;
        assert_eq!(client.departures, [(17 + 200, 0)]);
        client.get(21, "/").await;
        client.expect(21, 200, "8,8,8,2").await;
        let _ = client.peer.receive_rest().await;
        world.forget_log();
    });
}

#[test]
fn a_threshold_ends_a_connection() {
    listen(TELL).global("tune.h2.fe.glitches-threshold 10").seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        send(&mut client, (0..20).map(|number| bad(2 * number + 1)).collect()).await;
        while client.departures.len() < 2 {
            client.step().await;
        }
        assert_eq!(client.departures[1].1, ErrorCode::EnhanceYourCalm as u32);
        let _ = client.peer.receive_rest().await;
        world.forget_log();
    });
    // But not while the worker is idle.
    let lines = "tune.h2.fe.glitches-threshold 10\ntune.glitches.kill.cpu-usage 100";
    listen(TELL).global(lines).seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        client.pongs = false;
        send(&mut client, (0..20).map(|number| bad(2 * number + 1)).collect()).await;
        client.get(41, "/").await;
        client.expect(41, 200, "20,20,20,2").await;
        world.forget_log();
    });
}

#[test]
fn a_request_that_an_option_lets_pass_is_a_glitch_of_http_1() {
    let lines = format!("option accept-unsafe-violations-in-http-request\n {TELL}");
    listen(&lines).global("tune.h1.fe.glitches-threshold 4").seeds(0..4).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        let ask = |line: &str| format!("GET / HTTP/1.1\r\nhost: a\r\n{line}\r\n");
        let told = |glitches: &str, more: &str| {
            let length = glitches.len();
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ncontent-type: text/plain\r\n{more}\r\n{glitches}")
        };
        client.send(ask("")).await;
        client.expect(told("0,0,0,1", "")).await;
        for glitches in ["1,1,1,1", "2,2,2,1"] {
            client.send(ask("x y: 1\r\n")).await;
            client.expect(told(glitches, "")).await;
        }
        client.send(ask("")).await;
        client.expect(told("2,2,2,1", "")).await;
        client.send(ask("x\u{1}: 1\r\n")).await;
        client.expect(told("3,3,3,1", "connection: close\r\n")).await;
        client.expect_end().await;
        world.forget_log();
    });
    listen(&lines).global("tune.h1.fe.glitches-threshold 1").seeds(0..2).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\nx y: 1\r\n\r\n").await;
        client.expect_end().await;
        world.expect_log(&[r#"l l/<NOSRV> -1/-1/-1/-1/# -1 # - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#]).await;
    });
}

#[test]
fn a_server_s_glitches_of_http_1_end_its_connection() {
    let lines = "option accept-unsafe-violations-in-http-response\n http-reuse always\n server s1 10.0.1.1:80\n \
                 http-after-response set-header x-g %[bc_glitches]";
    listen(lines).global("tune.h1.be.glitches-threshold 3").workers(&[1]).seeds(0..4).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut server = None;
        for (odd, glitches) in [(true, 1), (false, 1), (true, 2), (false, 0), (true, 1)] {
            client.send(GET).await;
            let mut peer: Peer = match server.take() {
                Some(peer) => peer,
                None => s1.accept().await,
            };
            peer.expect(GET_AT_SERVER).await;
            let line = if odd { "x y: 1\r\n" } else { "" };
            peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{line}\r\n")).await;
            client.expect(format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-g: {glitches}\r\n\r\n")).await;
            if glitches == 2 {
                peer.expect_end().await;
            } else {
                server = Some(peer);
            }
        }
        assert_eq!(s1.accepted(), 2);
        world.forget_log();
    });
}

#[test]
fn a_server_s_glitches_of_http_2_end_its_connection() {
    let lines = "http-reuse always\n retries 0\n server p1 10.0.1.1:80 proto h2\n \
                 http-after-response set-header x-g %[bc_glitches],%[bc_http_major],%[bc_settings_streams_limit]";
    listen(lines).global("tune.h2.be.glitches-threshold 4").workers(&[1]).seeds(0..4).run(|world| async move {
        let mut p1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut origin = None;
        for (odd, glitches) in [(true, 1), (false, 1), (true, 2), (true, 3), (false, 0)] {
            client.send(GET).await;
            let mut end: End = match origin.take() {
                Some(end) => end,
                None => End::accept(&mut p1).await,
            };
            let stream = end.expect_request(&get_at_server("/"), b"").await;
            let pieces = if odd { 5 } else { 1 };
            let mut block = Vec::new();
            literal(&mut block, ":status", "204");
            end.frame(Kind::Headers, flag::END_STREAM, stream, &block).await;
            for piece in 1..=pieces {
                let flags = if piece == pieces { flag::END_HEADERS } else { 0 };
                end.frame(Kind::Continuation, flags, stream, &[]).await;
            }
            end.messages.clear();
            let head = client.receive_head().await.unwrap();
            assert!(head.contains(&format!("x-g: {glitches},2,100\r\n")), "{odd} {glitches} {head}");
            if glitches < 3 {
                origin = Some(end);
            }
        }
        world.forget_log();
    });
}

#[test]
fn requests_that_become_no_stream_are_logged() {
    const LINE: &str = r#"l l/<NOSRV> -1/-1/-1/-1/# 0 0 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#;
    let levels: [(&str, &'static [&str]); 3] = [("stream", &[LINE, LINE]), ("connection", &[LINE]), ("none", &[])];
    for (level, lines) in levels {
        listen("http-request return status 200").global(&format!("tune.h2.log-errors {level}")).seeds(0..2).run(
            move |world| async move {
                let mut client = Client::connect().await;
                send(&mut client, vec![bad(1)]).await;
                client.expect_reset(1, ErrorCode::ProtocolError).await;
                send(&mut client, vec![headers(3, true, vec![0xff; 3])]).await;
                client.expect_gone(ErrorCode::CompressionError).await;
                if lines.is_empty() {
                    world.expect_no_log();
                }
                world.expect_log(lines).await;
                // Errors in other frames are not logged.
                let mut client = Client::connect().await;
                send(&mut client, vec![(Kind::Data, 0, 0, vec![])]).await;
                client.expect_gone(ErrorCode::ProtocolError).await;
                world.expect_no_log();
            },
        );
    }
}

/// A stop sends GOAWAY to clients at once, and serves streams that they had begun before receiving it.
#[test]
fn a_stop_lets_clients_finish() {
    for (option, lasts) in [("", false), ("option idle-close-on-response\n timeout client 5s\n", true)] {
        listen(&format!("{option}http-request return status 200")).seeds(0..4).run(move |world| async move {
            let mut client = Client::connect().await;
            client.pongs = false;
            client.get(1, "/").await;
            client.expect(1, 200, "").await;
            world.stop();
            while client.departures.is_empty() {
                client.step().await;
            }
            client.get(3, "/").await;
            client.expect(3, 200, "").await;
            assert_eq!(client.departures, [(0x7fff_ffff, 0)]);
            // A client that acknowledges is closed at once, and one that does not a second later.
            let before = rt::now();
            client.get(5, "/").await;
            client.expect(5, 200, "").await;
            let _ = client.peer.receive_rest().await;
            let waited = rt::now().saturating_since(before).as_secs();
            assert_eq!(waited > 1, lasts, "the client's time, or a second");
            world.forget_log();
        });
    }
}

/// If a client continues beyond the streams that it may have begun before receiving the GOAWAY, its connection ends.
#[test]
fn streams_beyond_all_that_were_granted_end_the_connection() {
    let lines = "tune.h2.fe.max-total-streams 2\ntune.h2.fe.max-concurrent-streams 3";
    listen("http-request return status 200").global(lines).seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        client.pongs = false;
        for stream in [1, 3, 5, 7, 9] {
            client.get(stream, "/").await;
            client.expect(stream, 200, "").await;
        }
        assert_eq!(client.departures, [(9, 0)]);
        client.get(11, "/").await;
        while client.departures.len() < 2 {
            client.step().await;
        }
        assert_eq!(client.departures[1], (9, ErrorCode::EnhanceYourCalm as u32));
        let _ = client.peer.receive_rest().await;
        world.forget_log();
    });
}

#[test]
fn connections_share_what_streams_there_are() {
    let lines = "maxconn 20\ntune.streams-elasticity 1000";
    listen("http-request return status 200 content-type text/plain lf-string %[fc_settings_streams_limit]")
        .global(lines)
        .seeds(0..2)
        .run(|world| async move {
            let mut clients = Vec::new();
            for granted in [100, 45, 21, 10] {
                let mut client = Client::connect().await;
                client.get(1, "/").await;
                client.expect(1, 200, &granted.to_string()).await;
                assert_eq!(client.limit, Some(granted));
                clients.push(client);
            }
            drop(clients);
            sleep(1000).await;
            let mut client = Client::connect().await;
            client.get(1, "/").await;
            client.expect(1, 200, "100").await;
            world.forget_log();
        });
}

#[test]
fn frames_streams_and_stalls_are_in_the_statistics() {
    let lines = "option accept-unsafe-violations-in-http-request
    http-request return status 200 content-type text/plain string four";
    listen(lines).global(SOCKET).workers(&[1, 2]).seeds(0..4).run(|world| async move {
        let mut client = Client::with_settings(&wire::h2::Setting::InitialWindowSize.bytes(2)).await;
        client.get(1, "/").await;
        client.expect(1, 200, "four").await;
        send(&mut client, vec![bad(3)]).await;
        client.expect_reset(3, ErrorCode::ProtocolError).await;
        let mut plain = Peer::connect(WEIR).await;
        plain.send("GET / HTTP/1.1\r\nhost: a\r\nx y: 1\r\n\r\n").await;
        plain.receive_head().await;
        sleep(100).await;
        let table = ask("show stat").await;
        let header: Vec<&str> = table.lines().next().unwrap().split(',').collect();
        let line: Vec<&str> = table.lines().find(|line| line.starts_with("l,FRONTEND,")).unwrap().split(',').collect();
        let value = |name: &str| line[header.iter().position(|found| *found == name).unwrap()];
        for (name, expected) in [
            ("h2_headers_rcvd", "2"),
            ("h2_settings_rcvd", "2"),
            ("h2_detected_strm_protocol_errors", "1"),
            ("h2_rst_stream_resp", "1"),
            ("h2_goaway_resp", "0"),
            ("h2_open_connections", "1"),
            ("h2_backend_open_streams", "0"),
            ("h2_total_connections", "1"),
            ("h2_backend_total_streams", "1"),
            ("h1_open_connections", "1"),
            ("h1_total_connections", "1"),
            ("h1_total_streams", "1"),
            ("h1_bytes_in", "35"),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
        drop(client);
        sleep(1000).await;
        world.forget_log();
    });
}

/// A server has the same budget as a client, unless a threshold is set: one that floods with frames without use loses
/// its connection, one far below that does not.
#[test]
fn a_server_that_floods_loses_its_connection() {
    for (threshold, ends) in [("", true), ("tune.h2.be.glitches-threshold 0", false)] {
        let lines = "retries 0\n server p1 10.0.1.1:80 proto h2";
        listen(lines).global(threshold).workers(&[1]).seeds(0..2).run(move |world| async move {
            let mut p1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut end = End::accept(&mut p1).await;
            end.expect_request(&get_at_server("/"), b"").await;
            for number in 0..13 {
                let mut flood = Vec::new();
                (0..100).for_each(|_| push_frame(&mut flood, Kind::Settings, 0, 0, &[]));
                let taken = end.peer.try_send(flood).await;
                assert!(number > 8 || taken, "not before the budget is used up");
            }
            let head = client.try_receive_head();
            if ends {
                let head = head.await.unwrap();
                assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
            } else {
                assert_eq!(testkit::within(Duration::from_secs(1), head).await, None);
            }
            world.forget_log();
        });
    }
}

/// Acknowledgements of settings and pings from one read are sent in one write, whatever their number.
#[test]
fn answers_to_the_frames_of_one_read_leave_in_one_write() {
    // Bytes of two writes arrive at different times.
    let link = |_| Link { jitter: Duration::from_micros(50), fragment: false, ..Link::default() };
    listen("http-request return status 200").links(link).seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        client.get(1, "/").await;
        client.expect(1, 200, "").await;
        let (mut frames, mut answers) = (Vec::new(), Vec::new());
        for number in 0..50_u64 {
            push_frame(&mut frames, Kind::Ping, 0, 0, &number.to_be_bytes());
            push_frame(&mut frames, Kind::Settings, 0, 0, &[]);
            push_frame(&mut answers, Kind::Ping, flag::ACK, 0, &number.to_be_bytes());
            push_frame(&mut answers, Kind::Settings, flag::ACK, 0, &[]);
        }
        client.peer.send(frames).await;
        assert_eq!(client.peer.receive_some().await, answers);
        world.forget_log();
    });
}

/// A client that violates the protocol gets a GOAWAY with the reason. After it has received that, further input is
/// refused.
#[test]
fn a_client_at_fault_is_not_listened_to() {
    let link = |_| Link { fragment: false, ..Link::default() };
    listen("http-request return status 200").links(link).seeds(0..4).run(|world| async move {
        let mut client = Client::connect().await;
        client.frame(Kind::Priority, 0, 1, &[0, 0, 0, 1, 0]).await;
        while client.departures.is_empty() {
            client.step().await;
        }
        assert_eq!(client.departures[0].1, ErrorCode::ProtocolError as u32);
        sleep(50).await;
        client.peer.try_send("x").await;
        sleep(50).await;
        assert!(!client.peer.try_send("x").await, "the connection is closed");
        world.forget_log();
    });
}

/// POST / in eight bytes, and a trailer.
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 0x01, b'a'];
const TRAILER: &[u8] = &[0x00, 0x01, b'b', 0x01, b'c'];

/// Requests with trailers on so many streams.
fn posts_with_trailers(streams: std::ops::Range<u32>) -> Vec<u8> {
    let mut frames = Vec::new();
    for number in streams {
        push_frame(&mut frames, Kind::Headers, flag::END_HEADERS, 2 * number + 1, POST);
        push_frame(&mut frames, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, 2 * number + 1, TRAILER);
    }
    frames
}

/// Streams of a connection which the frames of one read end get no server, however long it takes to look at these.
#[test]
fn streams_of_a_connection_that_ends_with_their_read_get_no_server() {
    listen("server s1 10.0.1.1:80").workers(&[1]).seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        sleep(10).await;
        rt::sim::network().set_cost_of_work(Duration::from_micros(50));
        client.peer.send(posts_with_trailers(0..300)).await;
        while client.departures.last().is_none_or(|(_, code)| *code == ErrorCode::NoError as u32) {
            client.step().await;
        }
        assert_eq!(client.departures.last().map(|(_, code)| *code), Some(ErrorCode::EnhanceYourCalm as u32));
        sleep(100).await;
        s1.is_left_alone();
        world.forget_log();
    });
}

/// A client may send the rest of a request before it knows that its stream was refused (RFC 9113, section 5.1).
#[test]
fn trailers_of_a_refused_stream_are_no_fault() {
    listen("server s1 10.0.1.1:80").global("tune.h2.fe.max-concurrent-streams 2").workers(&[1]).run(
        |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Client::connect().await;
            sleep(10).await;
            client.peer.send(posts_with_trailers(0..3)).await;
            client.expect_reset(5, ErrorCode::RefusedStream).await;
            for _ in 0..2 {
                let mut server = s1.accept().await;
                assert!(server.receive_head().await.unwrap().starts_with("POST / "));
                server.expect("0\r\nb: c\r\n\r\n").await;
                server.send(OK).await;
                sleep(20).await;
            }
            client.expect(1, 200, "ok").await;
            client.expect(3, 200, "ok").await;
            client.get(7, "/").await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send(OK).await;
            client.expect(7, 200, "ok").await;
            world.forget_log();
        },
    );
}
