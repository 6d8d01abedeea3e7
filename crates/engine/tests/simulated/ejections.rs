//! Tests of failing servers that get no requests for some time (`eject-outliers`), and of retries within a budget
//! (`retry-budget`): to the millisecond, on the virtual clock.

use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
const BUSY_AT_CLIENT: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy";

/// Starts a server that answers one request on each of that number of connections; there must be no other connection.
fn answers(world: &World, address: &str, answer: &'static str, times: usize) {
    let mut service = Service::at(address);
    world.scope.spawn(async move {
        for _ in 0..times {
            let mut peer = service.accept().await;
            peer.expect(GET_AT_SERVER).await;
            peer.send(answer).await;
            peer.close();
        }
        service.is_left_alone();
    });
}

async fn ask(answer: impl AsRef<[u8]>) {
    let mut client = Peer::connect(WEIR).await;
    client.send(GET).await;
    client.expect(answer.as_ref()).await;
}

#[test]
fn a_server_that_fails_is_left_out_and_comes_back() {
    let options = "balance roundrobin\n eject-outliers errors 50 min-requests 4 time 10s\n http-reuse never";
    listen(&format!("{options}\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80")).run(|world| async move {
        answers(&world, S1, BUSY, 8);
        answers(&world, S2, OK, 17);
        for _ in 0..3 {
            ask(BUSY_AT_CLIENT).await;
            ask(OK_AT_CLIENT).await;
        }
        ask(BUSY_AT_CLIENT).await;
        let ejected = "Server l/s1 is ejected for 10s: 4 of its last 4 requests failed. 1 servers ejected, 1 left. 0 \
                       remaining in queue.";
        let line = |server: &str, status: u32| {
            format!(r#"l l/{server} 0/0/0/0/0 {status} # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#)
        };
        let found = world.lines(8).await;
        assert_eq!(found.iter().filter(|found| found.contains(ejected)).count(), 1, "{found:?}");
        for _ in 0..10 {
            ask(OK_AT_CLIENT).await;
            world.expect_log(&[&line("s2", 200)]).await;
        }
        sleep(10_000).await;
        let found = world.take_log().await;
        assert!(found.len() == 1 && found[0].ends_with("Server l/s1 is back: its ejection is over."), "{found:?}");
        let mut busy = 0;
        // It fails again, and is ejected for twice as long.
        for _ in 0..8 {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            busy += usize::from(client.receive_head().await.is_some_and(|head| head.contains(" 503 ")));
            world.lines(1).await;
        }
        assert_eq!(busy, 4);
        world.forget_log();
        let state = &world.shared().live.proxies[0];
        assert!(state.status(0).unwrap().ejected && !state.status(1).unwrap().ejected);
        sleep(19_000).await;
        assert!(state.status(0).unwrap().ejected, "for twice as long");
        sleep(1_100).await;
        assert!(!state.status(0).unwrap().ejected);
    });
}

#[test]
fn no_request_is_sent_again_beyond_the_budget() {
    // There is no listener. Two a second over ten seconds are twenty retries; ten requests with three each need thirty.
    for (budget, retries) in [("", 30), ("retry-budget 0 min 2", 20), ("retry-budget 100 min 0", 10)] {
        listen(&format!("retries 3\n timeout connect 10ms\n {budget}\n server s1 10.0.1.1:80")).run(
            move |world| async move {
                for _ in 0..10 {
                    ask(page(503)).await;
                }
                let lines = world.lines(10).await;
                let tried = |line: &String| {
                    let counts =
                        line.split_whitespace().find(|word| word.matches('/').count() == 4 && word.starts_with("1/1/"));
                    counts.and_then(|counts| counts.rsplit('/').next()?.parse::<u32>().ok()).unwrap()
                };
                assert_eq!(lines.iter().map(tried).sum::<u32>(), retries, "{budget}: {lines:?}");
            },
        );
    }
}

#[test]
fn a_slow_server_is_asked_once_by_ewma() {
    let servers = "server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
    listen(&format!("balance ewma\n http-reuse never\n {servers}")).run(|world| async move {
        for (address, millis, times) in [(S1, 500, 1), (S2, 10, 30)] {
            let mut service = Service::at(address);
            world.scope.spawn(async move {
                for _ in 0..times {
                    let mut peer = service.accept().await;
                    peer.expect(GET_AT_SERVER).await;
                    sleep(millis).await;
                    peer.send(OK).await;
                    peer.close();
                }
                service.is_left_alone();
            });
        }
        for _ in 0..31 {
            ask(OK_AT_CLIENT).await;
            // The result of an answer is known once it is logged.
            world.lines(1).await;
        }
        world.forget_log();
    });
}
