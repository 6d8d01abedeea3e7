//! Tests of every termination state of a request (configuration manual, section 8.5) that needs neither rules nor TLS,
//! except for those in `timeouts`.

use rt::net::Address;
use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const S1_LINE: &str = "server s1 10.0.1.1:80";

/// Bytes of a client that are not a request: an error page for unparsed requests, and `state` in the log.
fn no_request(sent: &'static str, ends: impl Fn(&mut Peer) + Copy + 'static, status: u16, state: &'static str) {
    listen(S1_LINE).run(move |world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(sent).await;
        ends(&mut client);
        client.expect(reader_page(status)).await;
        client.expect_eof().await;
        let line = format!(r#"l l/<NOSRV> -1/-1/-1/-1/0 {status} 0 - - {state} 1/1/0/0/0 0/0 "<BADREQ>""#);
        world.expect_log(&[&line]).await;
        s1.is_left_alone();
    });
}

#[test]
fn cr_closed_before_a_request() {
    no_request("", Peer::half_close, 400, "CR--");
}

#[test]
fn cr_closed_in_the_head() {
    no_request("GET / HTT", Peer::half_close, 400, "CR--");
}

#[test]
fn pr_no_request() {
    no_request("NONSENSE\r\n\r\n", |_| (), 400, "PR--");
}

#[test]
fn cr_reset_in_the_head() {
    listen(S1_LINE).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTT").await;
        sleep(10).await;
        client.reset();
        world.expect_log(&[r#"l l/<NOSRV> -1/-1/-1/-1/10 400 0 - - CR-- 1/1/0/0/0 0/0 "<BADREQ>""#]).await;
    });
}

#[test]
fn sc_no_server() {
    config("listen l\n bind 10.0.0.1:80\nfrontend f\n bind 10.0.0.1:81\nlisten d\n bind 10.0.0.1:82\n server s1 10.0.1.1:80 disabled")
        .run(|world| async move {
            for (address, line) in [
                (WEIR, r#"l l/<NOSRV> 0/-1/-1/-1/0 503 # - - SC-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#),
                ("10.0.0.1:81", r#"f f/<NOSRV> -1/-1/-1/-1/0 503 # - - SC-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#),
                ("10.0.0.1:82", r#"d d/<NOSRV> 0/-1/-1/-1/0 503 # - - SC-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#),
            ] {
                let mut client = Peer::connect(address).await;
                client.send(GET).await;
                client.expect(page(503)).await;
                world.expect_log(&[line]).await;
                client.close();
                sleep(1).await;
            }
        });
}

#[test]
fn sc_refused() {
    listen("retries 0\n server s1 10.0.1.1:80").run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..2 {
            client.send(GET).await;
            client.expect(page(503)).await;
            world.expect_log(&[r#"l l/s1 0/0/-1/-1/0 503 # - - SC-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        }
        client.send("GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        client.expect(closing_page(503)).await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/s1 0/0/-1/-1/0 503 # - - SC-- 1/1/0/0/0 0/0 "GET /2 HTTP/1.1""#]).await;
    });
}

/// The client disconnects while its request is being sent to a server; `line` is logged, and nothing is sent to the
/// client.
fn client_goes(body: &'static str, before: fn(), ends: impl Fn(Peer) + Copy + 'static, line: &'static str) {
    listen(body).run(move |world| async move {
        before();
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        sleep(50).await;
        ends(client);
        world.expect_log(&[line]).await;
    });
}

fn black_hole() {
    rt::sim::network().black_hole(&Address::Inet(S1.parse().unwrap()), true);
}

#[test]
fn cc_while_connecting() {
    let line = r#"l l/s1 0/0/-1/-1/50 -1 0 - - CC-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#;
    client_goes(S1_LINE, black_hole, Peer::close, line);
    client_goes(S1_LINE, black_hole, Peer::reset, line);
}

#[test]
fn cc_between_two_attempts() {
    let line = r#"l l/s1 0/0/-1/-1/50 -1 0 - - CC-- 1/1/0/0/1 0/0 "GET / HTTP/1.1""#;
    client_goes("retries 3\n server s1 10.0.1.1:80", || (), Peer::close, line);
    client_goes("retries 3\n server s1 10.0.1.1:80", || (), Peer::reset, line);
}

#[test]
fn cc_in_tcp_mode() {
    listen("mode tcp\n option tcplog\n server s1 10.0.1.1:80").run(|world| async move {
        black_hole();
        let client = Peer::connect(WEIR).await;
        sleep(50).await;
        client.close();
        world.expect_log(&["l l/s1 0/-1/50 0 CC 1/1/0/0/0 0/0"]).await;
    });
}

#[test]
fn cq_gone_from_the_queue() {
    listen("server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let (mut first, mut server, _s1) = asked().await;
        for leave in [Peer::close, Peer::reset] {
            let mut second = Peer::connect(WEIR).await;
            second.send(get("/2")).await;
            sleep(50).await;
            leave(second);
            world.expect_log(&[r#"l l/<NOSRV> 0/50/-1/-1/50 -1 0 - - CQ-- 2/2/1/0/0 0/1 "GET /2 HTTP/1.1""#]).await;
        }
        server.send(OK).await;
        first.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/#/# 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn ch_closed_while_the_answer_is_awaited() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        sleep(50).await;
        client.half_close();
        client.expect(closing_page(400)).await;
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/50 400 # - - CH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn ch_closed_and_reset_in_the_body() {
    for leave in [Peer::close, Peer::reset] {
        listen(S1_LINE).run(move |world| async move {
            let (client, mut server, _s1) = uploading().await;
            sleep(50).await;
            leave(client);
            server.expect_end().await;
            let lines = world.take_log().await;
            let line = |status| format!(r#"l l/s1 0/0/0/-1/50 {status} # - - CH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#);
            // HAProxy's own result varies.
            assert!(["400", "-1"].iter().any(|status| testkit::line_matches(&lines[0], &line(status))), "{lines:?}");
        });
    }
}

#[test]
fn cd_reset_while_the_answer_is_awaited() {
    listen(S1_LINE).run(|world| async move {
        let (client, mut server, _s1) = asked().await;
        sleep(50).await;
        client.reset();
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/50 400 # - - CD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn cd_closed_and_reset_in_the_answer() {
    for leave in [Peer::close, Peer::reset] {
        listen(S1_LINE).run(move |world| async move {
            let (mut client, mut server, _s1) = asked().await;
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok").await;
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
            sleep(50).await;
            leave(client);
            server.expect_end().await;
            world.expect_log(&[r#"l l/s1 0/0/0/0/50 200 # - - CD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        });
    }
}

/// The server's behaviour instead of an answer results in 502 and `state`, and the client's connection is kept.
fn bad_answer(answer: &'static str, ends: impl Fn(Peer) + Copy + 'static, state: &'static str) {
    listen(S1_LINE).run(move |world| async move {
        let (mut client, mut server, mut s1) = asked().await;
        sleep(50).await;
        server.send(answer).await;
        sleep(10).await;
        ends(server);
        client.expect(page(502)).await;
        let line = format!(r#"l l/s1 0/0/0/-1/# 502 # - - {state} 1/1/0/0/0 0/0 "GET / HTTP/1.1""#);
        world.expect_log(&[&line]).await;
        client.send(GET).await;
        s1.accept().await.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn sh_closed_before_the_answer() {
    bad_answer("", Peer::close, "SH--");
}

#[test]
fn sh_reset_before_the_answer() {
    bad_answer("", Peer::reset, "SH--");
}

#[test]
fn ph_half_a_head() {
    bad_answer("HTTP/1.1 200 OK\r\nConte", Peer::close, "PH--");
}

#[test]
fn ph_no_answer() {
    bad_answer("NONSENSE\r\n\r\n", drop, "PH--");
}

#[test]
fn sh_reset_in_the_upload() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, server, _s1) = uploading().await;
        sleep(50).await;
        server.reset();
        client.expect(page(502)).await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/50 502 # - - SH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
        drop(client);
    });
}

#[test]
fn sd_closed_and_reset_in_the_answer() {
    for leave in [Peer::close, Peer::reset] {
        for (head, at_client) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
            ),
        ] {
            // In whole pieces, because the division of the chunks must not matter here.
            listen(S1_LINE).seeds(0..1).run(move |world| async move {
                let (mut client, mut server, _s1) = asked().await;
                server.send(head).await;
                client.expect(at_client).await;
                sleep(50).await;
                leave(server);
                client.expect_eof().await;
                world.expect_log(&[r#"l l/s1 0/0/0/0/50 200 # - - SD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
            });
        }
    }
}

#[test]
fn pd_bad_chunk_in_the_answer() {
    listen(S1_LINE).seeds(0..1).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n").await;
        client.expect("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n").await;
        sleep(50).await;
        server.send("ZZ\r\n").await;
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 200 # - - PD-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

const CHUNKED_POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n";
const CHUNKED_POST_AT_SERVER: &str = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";

#[test]
fn ph_bad_chunk_in_the_request() {
    listen(S1_LINE).seeds(0..1).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(CHUNKED_POST).await;
        let mut server = s1.accept().await;
        server.expect(CHUNKED_POST_AT_SERVER).await;
        sleep(50).await;
        client.send("ZZ\r\n").await;
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/50 400 # - - PH-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn pd_bad_chunk_in_the_request_after_the_answers_head() {
    listen(S1_LINE).seeds(0..1).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(CHUNKED_POST).await;
        let mut server = s1.accept().await;
        server.expect(CHUNKED_POST_AT_SERVER).await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nok").await;
        sleep(50).await;
        client.send("ZZ\r\n").await;
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 200 # - - PD-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn pr_bad_chunk_with_the_head() {
    // In one piece, because the chunk has to arrive with the head.
    listen(S1_LINE).seeds(0..1).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nok\r\n").await;
        client.expect(reader_page(400)).await;
        client.expect_eof().await;
        world.expect_log(&[r#"l l/<NOSRV> -1/-1/-1/-1/0 400 0 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>""#]).await;
        s1.is_left_alone();
    });
}

#[test]
fn ph_bad_chunk_with_the_answers_head() {
    listen(S1_LINE).seeds(0..1).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n").await;
        client.expect(page(502)).await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/0 502 # - - PH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn sl_the_server_dies_behind_an_early_answer() {
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, _s1) = uploading().await;
        server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
        client.expect("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await;
        sleep(50).await;
        server.reset();
        world.expect_log(&[r#"l l/s1 0/0/0/0/50 413 # - - SL-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
        client.expect_eof().await;
    });
}

#[test]
fn tcp_sessions_name_who_failed() {
    for (client_fails, line) in
        [(true, "l l/s1 0/0/50 0 CD 1/1/0/0/0 0/0"), (false, "l l/s1 0/0/50 0 SD 1/1/0/0/0 0/0")]
    {
        listen("mode tcp\n option tcplog\n server s1 10.0.1.1:80").run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("a").await;
            let mut server = s1.accept().await;
            server.expect("a").await;
            sleep(50).await;
            if client_fails {
                client.reset();
                server.expect_end().await;
            } else {
                server.reset();
                client.expect_end().await;
            }
            world.expect_log(&[line]).await;
        });
    }
}

#[test]
fn tcp_refused() {
    listen("mode tcp\n option tcplog\n retries 0\n server s1 10.0.1.1:80").run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.expect_end().await;
        world.expect_log(&["l l/s1 0/-1/0 0 SC 1/1/0/0/0 0/0"]).await;
    });
}

/// An upload that was answered already.
async fn answered_early() -> (Peer, Peer, Service) {
    let (mut client, mut server, s1) = uploading().await;
    server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
    client.expect("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await;
    (client, server, s1)
}

#[test]
fn cl_closed_and_reset_behind_an_early_answer() {
    for leave in [Peer::close, Peer::reset] {
        listen(S1_LINE).run(move |world| async move {
            let (client, mut server, _s1) = answered_early().await;
            sleep(50).await;
            leave(client);
            server.expect_end().await;
            world.expect_log(&[r#"l l/s1 0/0/0/0/50 413 # - - CL-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
        });
    }
    listen(S1_LINE).run(|world| async move {
        let (mut client, mut server, _s1) = answered_early().await;
        client.half_close();
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 413 # - - CL-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn cl_late_behind_an_early_answer() {
    listen("timeout client 300ms\n server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, _s1) = answered_early().await;
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/300 413 # - - cL-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
    });
}

#[test]
fn sd_the_server_takes_no_more_behind_an_early_answer() {
    listen("timeout server 300ms\n server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(30_000_000) + "abc").await;
        let mut server = s1.accept().await;
        server.expect(post_at_server(30_000_000) + "abc").await;
        server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
        client.expect("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno").await;
        // The rest is read and dropped: the answer is not lost to a reset.
        client.send(vec![b'x'; 3_000_000]).await;
        client.expect_eof().await;
        // No part of the body is taken for a request.
        world.expect_log(&[r#"l l/s1 0/0/0/0/# 413 # - - sD-- 1/1/0/0/0 0/0 "POST / HTTP/1.1""#]).await;
        sleep(1000).await;
        world.expect_no_log();
        server.close();
    });
}
