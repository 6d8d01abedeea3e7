//! Tests of copies of requests (`http-request mirror`): what their server receives, and that its behaviour affects
//! neither the client nor the server of the request.

use live::MirrorCounts;
use testkit::{Peer, Service, Stopwatch, sleep};

use crate::h2::Client;
use crate::messages::*;
use crate::secure::Secure;
use crate::world::*;

fn mirrored_by(rule: &str, shadow: &str) -> Worlds {
    config(&format!(
        "listen l\n bind {WEIR}\n {rule}\n server s1 10.0.1.1:80\nbackend shadow\n {shadow}\n server m1 10.0.1.2:80\n"
    ))
}

fn mirrored(shadow: &str) -> Worlds {
    mirrored_by("http-request mirror shadow", shadow)
}

fn counts(world: &World) -> MirrorCounts {
    world.shared().live.proxies[1].mirror_counts()
}

/// Waits until all copies have ended.
async fn settled(world: &World) -> MirrorCounts {
    loop {
        let found = counts(world);
        if found.begun == found.answered + found.failed + found.lagged {
            return found;
        }
        sleep(1).await;
    }
}

/// Sends a request over an existing connection, which its own server answers.
async fn ask(client: &mut Peer, server: &mut Peer, path: &str) {
    client.send(get(path)).await;
    server.expect(get_at_server(path)).await;
    server.send(OK).await;
    client.expect(OK_AT_CLIENT).await;
}

#[test]
fn a_copy_is_what_the_server_gets_and_connections_are_kept() {
    mirrored("").run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        server.expect(get_at_server("/1")).await;
        shadow.expect(get_at_server("/1")).await;
        shadow.send(OK).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        settled(&world).await;
        ask(&mut client, &mut server, "/2").await;
        shadow.expect(get_at_server("/2")).await;
        shadow
            .send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
            .await;
        shadow.send("0\r\n\r\n").await;
        let found = settled(&world).await;
        assert_eq!(found, MirrorCounts { begun: 2, answered: 2, ..MirrorCounts::default() });
        ask(&mut client, &mut server, "/3").await;
        shadow.expect(get_at_server("/3")).await;
        shadow.close();
        assert_eq!(settled(&world).await.failed, 1);
        world
            .expect_log(&[
                r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET /1 HTTP/1.1""#,
                r#"l l/s1 0/0/0/*/* 200 # - - ---- 1/1/0/0/0 0/0 "GET /2 HTTP/1.1""#,
                r#"l l/s1 0/0/0/*/* 200 # - - ---- 1/1/0/0/0 0/0 "GET /3 HTTP/1.1""#,
            ])
            .await;
    });
}

#[test]
fn bodies_are_copied_in_their_own_framing() {
    let rows = [
        (post(10) + "0123456789", post_at_server(10) + "0123456789"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_owned(),
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_owned(),
        ),
        ("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "HEAD / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
    ];
    for (request, at_server) in rows {
        mirrored("").run(move |world| {
            let (request, at_server) = (request.clone(), at_server.clone());
            async move {
                let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
                let mut client = Peer::connect(WEIR).await;
                client.send(&request).await;
                let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
                server.expect(&at_server).await;
                shadow.expect(&at_server).await;
                let is_head = request.starts_with("HEAD");
                let answer = if is_head { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" } else { OK };
                shadow.send(answer).await;
                server.send(answer).await;
                client.receive_head().await;
                let found = settled(&world).await;
                assert_eq!(found, MirrorCounts { begun: 1, answered: 1, ..MirrorCounts::default() });
                world.forget_log();
            }
        });
    }
}

#[test]
fn a_copy_in_pieces_ends_with_its_client() {
    mirrored("").run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(post(10) + "01234").await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        server.expect(post_at_server(10) + "01234").await;
        shadow.expect(post_at_server(10) + "01234").await;
        sleep(30_000 / 3).await;
        client.send("5").await;
        shadow.expect("5").await;
        server.expect("5").await;
        client.close();
        shadow.expect_end().await;
        server.expect_end().await;
        assert_eq!(settled(&world).await.failed, 1);
        world.forget_log();
    });
}

#[test]
fn nobody_listens_where_copies_go() {
    mirrored("").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let watch = Stopwatch::start();
        ask(&mut client, &mut server, "/2").await;
        watch.took(0);
        let found = settled(&world).await;
        assert_eq!(found, MirrorCounts { begun: 2, failed: 2, ..MirrorCounts::default() });
        world.forget_log();
    });
}

#[test]
fn a_slow_server_loses_its_copies_and_delays_nothing() {
    const LENGTH: usize = 2_000_000;
    mirrored("").workers(&[1]).run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(post(LENGTH)).await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        server.expect(post_at_server(LENGTH)).await;
        // It reads only the head.
        shadow.expect(post_at_server(LENGTH)).await;
        let sends = client.send(vec![b'x'; LENGTH]);
        let (_, body) = testkit::both(sends, server.receive(LENGTH)).await;
        assert!(body.iter().all(|byte| *byte == b'x'));
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let found = settled(&world).await;
        assert_eq!(found, MirrorCounts { begun: 1, lagged: 1, ..MirrorCounts::default() });
        drop(shadow);
        world.forget_log();
    });
}

#[test]
fn a_server_that_never_answers_has_its_own_time() {
    mirrored("timeout server 3s").run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        let watch = Stopwatch::start();
        server.expect(get_at_server("/1")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        shadow.expect(get_at_server("/1")).await;
        // A byte now and then does not restart the timeout.
        shadow.send("HTTP/1.1 200 OK\r\n").await;
        shadow.expect_end().await;
        watch.took(3_000);
        assert_eq!(settled(&world).await.failed, 1);
        world.forget_log();
    });
}

#[test]
fn what_is_no_answer_closes_the_connection() {
    let rows = [
        "NONSENSE\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ];
    for answer in rows {
        mirrored("").run(move |world| async move {
            let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/1")).await;
            let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
            shadow.send(answer).await;
            server.expect(get_at_server("/1")).await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            assert_eq!(settled(&world).await.failed, 1, "{answer}");
            shadow.expect(get_at_server("/1")).await;
            shadow.expect_end().await;
            world.forget_log();
        });
    }
    // Bytes after the answer must not become the answer to a later request.
    mirrored("").run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        server.expect(get_at_server("/1")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        shadow.expect(get_at_server("/1")).await;
        shadow.send(format!("{OK}{OK}")).await;
        shadow.expect_end().await;
        assert_eq!(settled(&world).await.answered, 1);
        world.forget_log();
    });
}

#[test]
fn a_server_without_a_free_slot_gets_none() {
    let sections = "listen l\n bind 10.0.0.1:80\n http-request mirror shadow\n server s1 10.0.1.1:80\n\
                    backend shadow\n server m1 10.0.1.2:80 maxconn 1\n";
    config(sections).run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        server.expect(get_at_server("/1")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        shadow.expect(get_at_server("/1")).await;
        ask(&mut client, &mut server, "/2").await;
        shadow.send(OK).await;
        let found = settled(&world).await;
        assert_eq!(found, MirrorCounts { begun: 1, answered: 1, dropped: 1, ..MirrorCounts::default() });
        world.forget_log();
    });
}

#[test]
fn a_request_goes_to_several_backends_and_rules_choose() {
    let sections = "frontend f\n bind 10.0.0.1:80\n http-request mirror one if { path /a }\n \
                    http-request mirror two sample 100% unless { path /b }\n default_backend own\n\
                    backend own\n http-request set-header x-own yes\n server s1 10.0.1.1:80\n\
                    backend one\n http-send-name-header x-name\n server o1 10.0.1.2:80\n\
                    backend two\n server t1 10.0.1.3:80\n";
    config(sections).run(|world| async move {
        let (mut s1, mut o1, mut t1) = (Service::at(S1), Service::at(S2), Service::at("10.0.1.3:80"));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/a")).await;
        let seen = "GET /a HTTP/1.1\r\nhost: a\r\nx-own: yes\r\n";
        let (mut server, mut one, mut two) = (s1.accept().await, o1.accept().await, t1.accept().await);
        server.expect(format!("{seen}\r\n")).await;
        // The backend's rules apply to copies as well: they equal the server's request.
        one.expect(format!("{seen}x-name: o1\r\n\r\n")).await;
        two.expect(format!("{seen}\r\n")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        client.send(get("/b")).await;
        server.receive_head().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        o1.is_left_alone();
        t1.is_left_alone();
        drop((one, two));
        world.forget_log();
    });
}

#[test]
fn requests_of_http2_are_copied_as_http1() {
    mirrored("").run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Client::connect().await;
        client.get(1, "/").await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        server.expect(GET_AT_SERVER).await;
        shadow.expect(GET_AT_SERVER).await;
        shadow.reset();
        server.send(OK).await;
        client.expect(1, 200, "ok").await;
        assert_eq!(settled(&world).await.failed, 1);
        world.forget_log();
    });
}

#[test]
fn copies_go_by_tls_where_their_server_does() {
    let sections = "listen l\n bind 10.0.0.1:80\n http-request mirror shadow\n server s1 10.0.1.1:80\n\
                    backend shadow\n server m1 10.0.1.2:80 ssl verify none\n";
    config(sections).run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let mut shadow = Secure::accept(m1.accept().await).await.unwrap();
        shadow.expect(GET_AT_SERVER).await;
        shadow.send(OK).await;
        assert_eq!(settled(&world).await.answered, 1);
        world.forget_log();
    });
}

#[test]
fn tunnels_are_not_copied() {
    mirrored("").run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await;
        server.send(OK).await;
        client.receive_head().await;
        m1.is_left_alone();
        assert_eq!(counts(&world), MirrorCounts::default());
        world.forget_log();
    });
}

/// Copies are sessions of their server and of its backend.
#[test]
fn a_copy_is_a_session_of_its_server_and_of_its_backend() {
    mirrored("").global(crate::api::SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let (mut s1, mut m1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/1")).await;
        let (mut server, mut shadow) = (s1.accept().await, m1.accept().await);
        shadow.expect(get_at_server("/1")).await;
        shadow.send(OK).await;
        server.expect(get_at_server("/1")).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        settled(&world).await;
        let shown = crate::api::ask("show stat").await;
        for name in ["shadow,m1,", "shadow,BACKEND,"] {
            let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
            assert_eq!(line.split(',').nth(7), Some("1"), "{line}");
        }
        world.forget_log();
    });
}
