//! Tests of servers that stop and start again between two requests: clients see no error. Must never let one stop while
//! it serves a request.

use std::rc::Rc;

use testkit::{Peer, Scope, Service, sleep};

use crate::messages::*;
use crate::world::*;

const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";

/// Starts a server that answers until its scope ends.
fn live(address: &str) -> Rc<Scope> {
    let scope = Rc::new(Scope::new());
    Service::at(address).serve(&scope, |mut server, _| async move {
        while let Some(head) = server.try_receive_head().await {
            let whole = !head.starts_with("POST") || server.try_receive(3).await;
            if !whole || !server.try_send(OK).await {
                return;
            }
        }
    });
    scope
}

/// Sends that number of these requests, all of which are answered.
async fn all_are_answered(client: &mut Peer, request: &str, times: usize) {
    for _ in 0..times {
        client.send(request).await;
        client.expect(OK_AT_CLIENT).await;
    }
}

/// One of two servers stops and starts again, then the other one; the next request follows after `pause` ms each time.
fn nobody_notices(body: &'static str, request: &'static str, pause: u64) {
    let servers = "option redispatch 1\n retries 3\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
    listen(&format!("{body}\n{servers}")).seeds(0..4).run(move |world| async move {
        let (mut s1, mut s2) = (Some(live(S1)), Some(live(S2)));
        let mut client = Peer::connect(WEIR).await;
        for round in 0..6 {
            all_are_answered(&mut client, request, 5).await;
            let (server, address) = if round % 2 == 0 { (&mut s1, S1) } else { (&mut s2, S2) };
            *server = None;
            sleep(pause).await;
            all_are_answered(&mut client, request, 5).await;
            *server = Some(live(address));
        }
        let lines = world.take_log().await;
        assert_eq!(lines.len(), 60);
        assert!(lines.iter().all(|line| line.contains(" 200 ") && line.contains(" ---- ")), "{lines:#?}");
        drop((s1, s2, client));
        sleep(1).await;
    });
}

#[test]
fn a_get_meets_the_end_of_a_server_half_way() {
    for reuse in ["http-reuse always", "http-reuse safe", "http-reuse never"] {
        nobody_notices(reuse, GET, 0);
    }
}

#[test]
fn a_post_comes_after_the_end_of_a_server() {
    for reuse in ["http-reuse always", "http-reuse safe", "http-reuse never"] {
        nobody_notices(reuse, POST, 100);
    }
}

#[test]
fn a_server_that_checks_find_dead_gets_nothing_until_it_is_back() {
    let servers = "balance roundrobin\n option redispatch 1\n default-server check inter 100ms rise 1 fall 1\n server s1 \
                   10.0.1.1:80\n server s2 10.0.1.2:80";
    listen(&format!("http-reuse always\n option dontlog-normal\n{servers}")).seeds(0..4).run(|world| async move {
        let (mut s1, s2) = (Some(live(S1)), live(S2));
        let mut client = Peer::connect(WEIR).await;
        let state = || world.shared().live.proxies[0].clone();
        for _ in 0..3 {
            all_are_answered(&mut client, GET, 10).await;
            drop(s1.take());
            while state().is_usable(0) {
                all_are_answered(&mut client, GET, 1).await;
                sleep(20).await;
            }
            all_are_answered(&mut client, POST, 10).await;
            s1 = Some(live(S1));
            while !state().is_usable(0) {
                all_are_answered(&mut client, POST, 1).await;
                sleep(20).await;
            }
        }
        drop((s1, s2, client));
        world.stop();
        sleep(2_000).await;
        world.forget_log();
    });
}
