//! Tests of a server's `maxconn` and its queue: exact over all workers, first in first out, without lost requests.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

/// The current number of something, its maximum, and the total.
#[derive(Default)]
struct Gauge {
    now: Cell<usize>,
    most: Cell<usize>,
    total: Cell<usize>,
}

impl Gauge {
    fn up(&self) {
        self.now.set(self.now.get() + 1);
        self.total.set(self.total.get() + 1);
        self.most.set(self.most.get().max(self.now.get()));
    }

    fn down(&self) {
        self.now.set(self.now.get() - 1);
    }
}

/// Starts a server that takes up to 3 ms for each request, and counts the requests in progress.
fn count_requests(world: &World, address: &str) -> Rc<Gauge> {
    let gauge = Rc::new(Gauge::default());
    let counted = Rc::clone(&gauge);
    Service::at(address).serve(&world.scope, move |mut peer, _| {
        let gauge = Rc::clone(&counted);
        async move {
            while peer.receive_head().await.is_some() {
                gauge.up();
                rt::sleep(Duration::from_micros(rt::random() % 3000)).await;
                gauge.down();
                peer.send(OK).await;
            }
        }
    });
    gauge
}

/// Runs clients with that number of requests each; returns when all were answered.
async fn crowd(world: &World, clients: usize, requests: usize) {
    let done = Rc::new(Cell::new(0));
    for _ in 0..clients {
        let done = Rc::clone(&done);
        world.scope.spawn(async move {
            rt::sleep(Duration::from_micros(rt::random() % 2000)).await;
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..requests {
                client.send(GET).await;
                client.expect(OK_AT_CLIENT).await;
                rt::sleep(Duration::from_micros(rt::random() % 1000)).await;
            }
            done.set(done.get() + 1);
        });
    }
    while done.get() < clients {
        sleep(1).await;
    }
}

#[test]
fn a_server_never_has_more_requests_than_its_maxconn() {
    listen("server s1 10.0.1.1:80 maxconn 3").seeds(0..8).run(|world| async move {
        let gauge = count_requests(&world, S1);
        crowd(&world, 24, 4).await;
        assert_eq!((gauge.now.get(), gauge.most.get(), gauge.total.get()), (0, 3, 24 * 4));
    });
}

#[test]
fn servers_share_the_backends_queue() {
    let body = "balance leastconn\n server s1 10.0.1.1:80 maxconn 2\n server s2 10.0.1.2:80 maxconn 1";
    listen(body).seeds(0..8).run(|world| async move {
        let (one, two) = (count_requests(&world, S1), count_requests(&world, S2));
        crowd(&world, 24, 4).await;
        assert_eq!((one.most.get(), two.most.get()), (2, 1));
        assert_eq!(one.total.get() + two.total.get(), 24 * 4);
        assert!(two.total.get() > 10, "both work: {}", two.total.get());
    });
}

#[test]
fn closing_connections_release_their_places_exactly() {
    listen("option httpclose\n server s1 10.0.1.1:80 maxconn 2").seeds(0..8).run(|world| async move {
        let gauge = count_requests(&world, S1);
        let done = Rc::new(Cell::new(0));
        for _ in 0..30 {
            let done = Rc::clone(&done);
            world.scope.spawn(async move {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await;
                client.expect_eof().await;
                done.set(done.get() + 1);
            });
        }
        while done.get() < 30 {
            sleep(1).await;
        }
        assert_eq!((gauge.most.get(), gauge.total.get()), (2, 30));
    });
}

#[test]
fn first_in_first_out() {
    listen("server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let mut s1 = Service::at(S1);
        let answered = Rc::new(RefCell::new(Vec::new()));
        for number in 0..6 {
            let answered = Rc::clone(&answered);
            world.scope.spawn(async move {
                sleep(10 * number).await;
                let mut client = Peer::connect(WEIR).await;
                client.send(get(&format!("/{number}"))).await;
                client.expect(OK_AT_CLIENT).await;
                answered.borrow_mut().push(number);
            });
        }
        // Each is answered 100 ms after the previous one.
        let start = rt::now();
        for number in 0..6 {
            let mut server = s1.accept().await;
            server.expect(get_at_server(&format!("/{number}"))).await;
            rt::sleep_until(start + Duration::from_millis(100 * (number + 1) + 1)).await;
            server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        }
        let line = |number: u64| {
            // When a line is written, the next one has the slot, but is not counted yet.
            let (waited, left, queued) = (if number == 0 { 0 } else { 90 * number }, 6 - number, 5 - number);
            let (times, counts) = (format!("0/{waited}/*/*/{}", waited + 100), format!("{left}/{left}/{queued}/0/0"));
            format!(r#"l l/s1 {times} 200 # - - ---- {counts} 0/{number} "GET /{number} HTTP/1.1""#)
        };
        let lines: Vec<String> = (0..6).map(line).collect();
        world.expect_log(&lines.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(*answered.borrow(), [0, 1, 2, 3, 4, 5]);
    });
}

#[test]
fn a_waiter_that_leaves_makes_no_hole() {
    listen("timeout queue 150ms\n server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let (mut first, mut server, mut s1) = asked().await;
        let mut gone = Peer::connect(WEIR).await;
        gone.send(get("/gone")).await;
        sleep(10).await;
        let mut late = Peer::connect(WEIR).await;
        late.send(get("/late")).await;
        sleep(90).await;
        let mut next = Peer::connect(WEIR).await;
        next.send(get("/next")).await;
        sleep(10).await;
        gone.close();
        late.expect(page(503)).await;
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        first.expect(OK_AT_CLIENT).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/next")).await;
        server.send(OK).await;
        next.expect(OK_AT_CLIENT).await;
        world
            .expect_log(&[
                r#"l l/<NOSRV> 0/110/-1/-1/110 -1 0 - - CQ-- 4/4/3/0/0 0/1 "GET /gone HTTP/1.1""#,
                r#"l l/<NOSRV> 0/150/-1/-1/150 503 # - - sQ-- 3/3/2/0/0 0/1 "GET /late HTTP/1.1""#,
                r#"l l/s1 0/0/0/160/160 200 # - - ---- 3/3/1/0/0 0/0 "GET / HTTP/1.1""#,
                r#"l l/s1 0/60/0/0/60 200 # - - ---- 3/3/0/0/0 0/1 "GET /next HTTP/1.1""#,
            ])
            .await;
    });
}

#[test]
fn a_turn_that_comes_as_its_waiter_leaves_is_passed_on() {
    // The answer that frees the slot and the disconnection of the waiting client come within the same fraction of a
    // millisecond.
    listen("server s1 10.0.1.1:80 maxconn 1").workers(&[2, 4]).seeds(0..60).run(|_| async move {
        let (mut first, mut server, mut s1) = asked().await;
        let (mut leaves, mut stays) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        leaves.send(get("/leaves")).await;
        sleep(5).await;
        stays.send(get("/stays")).await;
        sleep(5).await;
        let reset = rt::random().is_multiple_of(2);
        let (answer, leave) = (rt::random() % 150, rt::random() % 150);
        let leaving = async {
            rt::sleep(Duration::from_micros(leave)).await;
            if reset { leaves.reset() } else { leaves.close() }
        };
        let answering = async {
            rt::sleep(Duration::from_micros(answer)).await;
            server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
            loop {
                let mut server = s1.accept().await;
                let head = server.receive_head().await;
                if head.as_deref() == Some(&*get_at_server("/stays")) {
                    return server.send(OK).await;
                }
            }
        };
        testkit::both(leaving, answering).await;
        first.expect(OK_AT_CLIENT).await;
        stays.expect(OK_AT_CLIENT).await;
    });
}

#[test]
fn a_turn_that_comes_as_its_waiter_is_late_is_passed_on() {
    listen("timeout queue 100ms\n server s1 10.0.1.1:80 maxconn 1").workers(&[2, 4]).seeds(0..40).run(|_| async move {
        let (mut first, mut server, s1) = asked().await;
        let mut late = Peer::connect(WEIR).await;
        late.send(get("/late")).await;
        sleep(5).await;
        let mut stays = Peer::connect(WEIR).await;
        stays.send(get("/stays")).await;
        rt::sleep(Duration::from_micros(94_000 + rt::random() % 3000)).await;
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        first.expect(OK_AT_CLIENT).await;
        let scope = Rc::new(testkit::Scope::new());
        s1.serve(&scope, |mut server, _| async move {
            while server.receive_head().await.is_some() {
                server.send(OK).await;
            }
        });
        let answer = late.receive_until("\r\n").await;
        assert!(answer.starts_with(b"HTTP/1.1 200") || answer.starts_with(b"HTTP/1.1 503"), "{answer:?}");
        stays.expect(OK_AT_CLIENT).await;
    });
}

#[test]
fn a_full_queue_of_a_bound_server() {
    let body = "balance source\n server s1 10.0.1.1:80 maxconn 1 maxqueue 1";
    listen(body).run(|world| async move {
        let (mut first, mut server, mut s1) = asked().await;
        let mut second = Peer::connect(WEIR).await;
        second.send(get("/2")).await;
        sleep(100).await;
        let mut third = Peer::connect(WEIR).await;
        let watch = Stopwatch::start();
        third.send(get("/3")).await;
        third.expect(page(503)).await;
        watch.took(0);
        world.expect_log(&[r#"l l/s1 0/-1/-1/-1/0 503 # - - SQ-- 3/3/2/1/0 0/0 "GET /3 HTTP/1.1""#]).await;
        server.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
        first.expect(OK_AT_CLIENT).await;
        s1.accept().await.send(OK).await;
        second.expect(OK_AT_CLIENT).await;
        world
            .expect_log(&[
                r#"l l/s1 0/0/0/100/100 200 # - - ---- 3/3/1/0/0 0/0 "GET / HTTP/1.1""#,
                r#"l l/s1 0/100/0/0/100 200 # - - ---- 3/3/0/0/0 1/0 "GET /2 HTTP/1.1""#,
            ])
            .await;
    });
}

#[test]
fn tcp_sessions_queue_as_well() {
    listen("mode tcp\n option tcplog\n server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut first = Peer::connect(WEIR).await;
        first.send("a").await;
        let mut one = s1.accept().await;
        one.expect("a").await;
        let mut second = Peer::connect(WEIR).await;
        second.send("b").await;
        sleep(100).await;
        s1.is_left_alone();
        first.close();
        one.expect_eof().await;
        one.close();
        let mut two = s1.accept().await;
        two.expect("b").await;
        two.send("B").await;
        second.expect("B").await;
        second.close();
        two.expect_eof().await;
        two.close();
        world.expect_log(&["l l/s1 0/0/100 0 -- 2/2/1/0/0 0/0", "l l/s1 100/0/100 1 -- 1/1/0/0/0 0/1"]).await;
    });
}

/// A request that waits for a server holds no buffer, not even with a part of its body; its whole body arrives in the
/// end.
#[test]
fn requests_that_wait_hold_no_buffers() {
    for chunked in [false, true] {
        listen("timeout queue 60s\n server s1 10.0.1.1:80 maxconn 1").run(move |world| async move {
            let mut service = Service::at(S1);
            let mut first = Peer::connect(WEIR).await;
            first.send(GET).await;
            let mut server = service.accept().await;
            server.expect(GET_AT_SERVER).await;
            sleep(5).await;
            let held = |all: Vec<Holdings>| all.iter().map(|one| one.buffers).sum::<usize>();
            let before = held(world.inventory().await);
            let (head, parts) = if chunked {
                let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
                (head, ["5\r\nhello\r\n6", "\r\n there\r\n0\r\n\r\n"])
            } else {
                (post(11), ["hello", " there"])
            };
            let mut clients = Vec::new();
            for _ in 0..6 {
                let mut client = Peer::connect(WEIR).await;
                client.send(format!("{head}{}", parts[0])).await;
                clients.push(client);
                sleep(2).await;
            }
            assert_eq!(held(world.inventory().await), before);
            server.send(OK).await;
            first.expect(OK_AT_CLIENT).await;
            for mut client in clients {
                let mut server = service.accept().await;
                assert!(server.receive_head().await.is_some());
                client.send(parts[1]).await;
                let body = if chunked { server.receive_chunked(100, 0).await.body } else { server.receive(11).await };
                assert_eq!(body, b"hello there");
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
            }
            world.forget_log();
        });
    }
}
