//! Tests of checks that share the idle links of their server (`check-reuse-pool`).

use rt::sim::Link;
use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const CHECK: &str = "GET /check HTTP/1.1\r\nhost: x\r\n\r\n";
const WELL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A server that is checked each second, over idle links if `mode` permits their reuse.
fn checked(mode: &str, more: &str) -> Worlds {
    listen(&format!(
        "http-reuse {mode}\n option httpchk\n http-check send meth GET uri /check ver HTTP/1.1 hdr host x hdr connection \
         keep-alive\n server s1 10.0.1.1:80 check inter 1s check-reuse-pool init-state fully-up {more}"
    ))
}

/// Answers a check over this link, and waits for its end.
async fn check(link: &mut Peer) {
    link.expect(CHECK).await;
    link.send(WELL).await;
    sleep(10).await;
}

/// Sends a client's request over the given link, or over a new one, and returns the link.
async fn traffic(servers: &mut Service, link: Option<Peer>) -> Peer {
    let mut client = Peer::connect(WEIR).await;
    client.send(GET).await;
    let mut link = match link {
        Some(link) => link,
        None => servers.accept().await,
    };
    link.expect(GET_AT_SERVER).await;
    link.send(OK).await;
    client.expect(OK_AT_CLIENT).await;
    client.close();
    sleep(10).await;
    link
}

#[test]
fn a_check_takes_an_idle_link_and_gives_it_back() {
    checked("always", "").run(|world| async move {
        let mut servers = Service::at(S1);
        let mut link = traffic(&mut servers, None).await;
        check(&mut link).await;
        assert_eq!(world.idle_links(), 1);
        check(&mut link).await;
        let link = traffic(&mut servers, Some(link)).await;
        assert_eq!(world.idle_links(), 1);
        drop(link);
    });
}

#[test]
fn a_check_that_finds_no_idle_link_leaves_its_own() {
    checked("always", "").run(|world| async move {
        let mut servers = Service::at(S1);
        let mut link = servers.accept().await;
        check(&mut link).await;
        assert_eq!(world.idle_links(), 1);
        let mut link = traffic(&mut servers, Some(link)).await;
        check(&mut link).await;
    });
}

#[test]
fn a_link_that_dies_under_a_check_says_nothing_about_the_server() {
    checked("always", "fall 1").run(|world| async move {
        let mut servers = Service::at(S1);
        // The first check failed, because the script had no server yet.
        let mut link = servers.accept().await;
        check(&mut link).await;
        check(&mut link).await;
        world.lines(2).await;
        link.expect(CHECK).await;
        link.close();
        // The same check, over a connection of its own.
        let mut link = servers.accept().await;
        check(&mut link).await;
        let mut link = traffic(&mut servers, Some(link)).await;
        check(&mut link).await;
        world.expect_log(&[r#"l l/s1 #/#/#/#/# 200 # - - ---- #/#/#/#/# 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn links_with_a_name_are_not_those_without() {
    checked("always", "check-pool-conn-name probe").run(|world| async move {
        let mut servers = Service::at(S1);
        let mut own = servers.accept().await;
        check(&mut own).await;
        let link = traffic(&mut servers, None).await;
        assert_eq!(world.idle_links(), 2);
        check(&mut own).await;
        check(&mut own).await;
        drop(link);
    });
}

#[test]
fn connections_that_are_not_like_idle_ones_are_closed() {
    for (mode, more) in
        [("never", ""), ("always", "port 80"), ("always", "check-proto h1"), ("always", "no-check-reuse-pool")]
    {
        checked(mode, more).run(|world| async move {
            let mut servers = Service::at(S1);
            for _ in 0..3 {
                let mut link = servers.accept().await;
                check(&mut link).await;
                link.expect_end().await;
            }
            assert_eq!(world.idle_links(), 0);
        });
    }
}

/// A network that delivers each send in one piece.
fn whole(_: u64) -> Link {
    Link { fragment: false, ..Link::default() }
}

#[test]
fn answers_that_are_not_here_whole_end_the_connection() {
    let rows = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", 0),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore", 0),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0),
        ("HTTP/1.1 200 OK\r\n\r\n", 0),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", 0),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n", 1),
        ("HTTP/1.1 500 Ill\r\nContent-Length: 2\r\n\r\nhe", 1),
    ];
    for (answer, kept) in rows {
        checked("always", "").workers(&[1]).links(whole).run(move |world| async move {
            let mut servers = Service::at(S1);
            let mut link = servers.accept().await;
            link.expect(CHECK).await;
            link.send(answer).await;
            sleep(10).await;
            assert_eq!(world.idle_links(), kept, "{answer:?}");
        });
    }
}

#[test]
fn modes_that_spare_first_requests_let_checks_leave_one_link_only() {
    for mode in ["safe", "aggressive"] {
        checked(mode, "").workers(&[1]).run(|world| async move {
            let mut servers = Service::at(S1);
            let mut kept = Vec::new();
            for _ in 0..4 {
                let mut link = servers.accept().await;
                check(&mut link).await;
                assert_eq!(world.idle_links(), 1);
                kept.push(link);
            }
        });
    }
}
