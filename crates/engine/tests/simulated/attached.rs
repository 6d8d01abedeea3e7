//! Tests of connections that servers have opened, and of events at their server: maintenance, checks, a reload in
//! place, many requests that wait for one.

use testkit::{Peer, sleep};

use crate::api;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

/// The address that servers connect to.
const EDGE: &str = "10.0.0.1:81";

/// The configuration under test; `server` is the rest of the server's line, `more` are additional lines of its backend.
fn served(server: &str, more: &str) -> Worlds {
    let sections = format!(
        "frontend pub\n bind 10.0.0.1:80\n use_backend edge\n\
         frontend priv\n bind 10.0.0.1:81 proto h2\n tcp-request session attach-srv edge/dev\n\
         backend edge\n{more}\n server dev rhttp@ {server}\n server other 10.0.1.9:80 disabled"
    );
    config(&sections).global(&format!("expose-experimental-directives\n{}", api::SOCKET))
}

/// Returns a server that has connected and was attached.
async fn attached() -> End {
    let mut end = End::open(EDGE).await;
    end.settle().await;
    end
}

/// Sends a request of this client, which the server answers.
async fn ask(client: &mut Peer, dev: &mut End, path: &str) {
    client.send(get(path)).await;
    let stream = dev.expect_request(&get_at_server(path), b"").await;
    dev.answer(stream, b"hello").await;
    client.expect(answer_at_client("hello")).await;
}

/// The numbers of idle connections in `show servers conn`: the total, and per worker.
async fn idle() -> Vec<String> {
    let shown = api::ask("show servers conn edge").await;
    let line = shown.lines().find(|line| line.starts_with("edge/dev ")).expect("the server");
    line.split(' ').skip(14).map(str::to_owned).collect()
}

#[test]
fn a_server_in_maintenance_has_no_connection() {
    served("", "").shuffled().seeds(0..8).run(|world| async move {
        let (mut one, mut two) = (attached().await, attached().await);
        let (mut client, mut other) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        client.send(get("/a")).await;
        other.send(get("/b")).await;
        // On whichever connection they are, requests in progress are answered.
        let mut answered = 0;
        for end in [&mut one, &mut two] {
            while let Some(stream) =
                end.messages.iter().find(|(_, asked)| asked.end.is_some()).map(|(stream, _)| *stream)
            {
                end.answer(stream, b"hello").await;
                answered += 1;
            }
        }
        api::order("set server edge/dev state maint").await;
        let serve = async |mut end: End, answered: &mut usize| {
            loop {
                match end.messages.iter().find(|(_, asked)| asked.end.is_some()).map(|(stream, _)| *stream) {
                    Some(stream) => {
                        end.answer(stream, b"hello").await;
                        *answered += 1;
                    }
                    None if !end.step().await => break,
                    None => {}
                }
            }
            assert!(world.is_shuffled() || end.gone.is_some(), "the server is told");
        };
        serve(one, &mut answered).await;
        serve(two, &mut answered).await;
        for client in [&mut client, &mut other] {
            let head = client.receive_head().await.unwrap();
            let ok = head.starts_with("HTTP/1.1 200 ");
            answered -= usize::from(ok);
            assert!(ok || head.starts_with("HTTP/1.1 503 "), "{head}");
        }
        assert_eq!(answered, 0);
        // A new connection is not attached either.
        let mut late = End::open(EDGE).await;
        late.expect_end().await;
        assert_eq!(idle().await[0], "0");
        api::order("set server edge/dev state ready").await;
        let mut dev = attached().await;
        let mut client = Peer::connect(WEIR).await;
        ask(&mut client, &mut dev, "/c").await;
        world.forget_log();
    });
}

#[test]
fn idle_connections_are_counted_where_they_lie() {
    served("", "").workers(&[1, 3]).seeds(0..4).run(|world| async move {
        let mut ends = Vec::new();
        for count in 0..4 {
            let shown = idle().await;
            assert_eq!(shown[0], count.to_string());
            let by_worker: usize = shown[1..].iter().map(|shown| shown.parse::<usize>().unwrap()).sum();
            assert_eq!(by_worker, count);
            ends.push(attached().await);
        }
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        sleep(5).await;
        assert_eq!(idle().await[0], "3");
        drop(ends);
        client.expect(page(503)).await;
        sleep(5).await;
        assert_eq!(idle().await[0], "0");
        world.forget_log();
    });
}

/// The number of event-loop iterations of all workers so far.
async fn turns() -> u64 {
    let shown = api::ask("show activity").await;
    let line = shown.lines().find(|line| line.starts_with("loops: ")).expect("the turns");
    let first = line.split_whitespace().nth(1).unwrap();
    first.parse().unwrap_or_else(|_| panic!("{line}"))
}

/// Waiting requests do not poll: workers without other work sleep. When the connection is free, all of them are served,
/// in the order in which they arrived at their worker.
#[test]
fn requests_that_wait_cost_nothing() {
    served("", "").workers(&[2]).seeds(0..4).run(|world| async move {
        let mut dev = attached().await;
        let mut one = Peer::connect(WEIR).await;
        one.send(get("/first")).await;
        let first = dev.expect_request(&get_at_server("/first"), b"").await;
        let mut clients = Vec::new();
        for _ in 0..40 {
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/second")).await;
            clients.push(client);
        }
        sleep(1_000).await;
        let before = turns().await;
        sleep(10_000).await;
        let spent = turns().await - before;
        assert!(spent < 500, "{spent} turns");
        dev.answer(first, b"first").await;
        one.expect(answer_at_client("first")).await;
        for _ in 0..40 {
            let second = dev.expect_request(&get_at_server("/second"), b"").await;
            dev.answer(second, b"second").await;
        }
        for client in &mut clients {
            client.expect(answer_at_client("second")).await;
        }
        world.forget_log();
    });
}

/// When the last connection ends, requests do not wait for another one.
#[test]
fn requests_that_wait_are_answered_when_the_last_connection_ends() {
    served("", "").workers(&[2, 4]).seeds(0..8).run(|world| async move {
        let mut dev = attached().await;
        let mut one = Peer::connect(WEIR).await;
        one.send(get("/first")).await;
        dev.expect_request(&get_at_server("/first"), b"").await;
        let mut clients = Vec::new();
        for _ in 0..12 {
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/second")).await;
            clients.push(client);
        }
        sleep(50).await;
        drop(dev);
        one.expect(page(503)).await;
        for client in &mut clients {
            client.expect(page(503)).await;
        }
        world.forget_log();
    });
}

/// Requests also wait for a connection on which the maximum number of requests is in progress.
#[test]
fn a_request_waits_for_room_on_the_connection_of_its_worker() {
    served("", "").global("tune.h2.be.max-concurrent-streams 1").workers(&[1, 2]).seeds(0..8).run(|world| async move {
        let mut dev = attached().await;
        let mut clients = Vec::new();
        for _ in 0..4 {
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/a")).await;
            clients.push(client);
        }
        for _ in 0..4 {
            let stream = dev.expect_request(&get_at_server("/a"), b"").await;
            sleep(20).await;
            assert_eq!(dev.messages.len(), 1, "one at a time");
            dev.answer(stream, b"hello").await;
        }
        for client in &mut clients {
            client.expect(answer_at_client("hello")).await;
        }
        world.forget_log();
    });
}

const CHECKED: &str = "option httpchk GET /check";

/// Answers checks, and returns their number when another request is received, which is answered as well.
async fn serve_checks(dev: &mut End) -> usize {
    let mut checks = 0;
    loop {
        // A check reads only the status of an answer.
        dev.messages.retain(|_, asked| asked.end != Some(Part::Reset));
        let done = dev.messages.iter().find(|(_, asked)| asked.end.is_some());
        match done.map(|(stream, asked)| (*stream, asked.head.starts_with("GET /check "))) {
            Some((stream, is_check)) => {
                dev.answer(stream, b"hello").await;
                if !is_check {
                    return checks;
                }
                checks += 1;
            }
            None => assert!(dev.step().await, "the end of the connection"),
        }
    }
}

#[test]
fn checks_go_over_the_connection_of_their_server() {
    served("check inter 1s fall 1 rise 1", CHECKED).workers(&[1, 2]).shuffled().seeds(0..8).run(|world| async move {
        sleep(1_500).await;
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        assert!(api::ask("show stat edge 4 -1").await.contains("SOCKERR"), "as HAProxy, which cannot connect");
        let mut dev = attached().await;
        let asked = async {
            sleep(5_500).await;
            client.send(GET).await;
        };
        let (checks, ()) = testkit::both(serve_checks(&mut dev), asked).await;
        assert!((4..=6).contains(&checks), "{checks}");
        client.expect(answer_at_client("hello")).await;
        assert!(api::ask("show stat edge 4 -1").await.contains("L7OK,200"));
        drop(dev);
        sleep(1_500).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        assert!(api::ask("show stat edge 4 -1").await.contains("SOCKERR"));
        world.forget_log();
    });
}

/// Checks without HTTP cannot be sent over the connection, and there is no address to connect to.
#[test]
fn checks_that_are_no_requests_fail() {
    for (server, more) in [("check inter 1s", ""), ("check inter 1s no-check-reuse-pool", CHECKED)] {
        served(&format!("{server} fall 1"), more).workers(&[1]).seeds(0..1).run(|world| async move {
            let dev = attached().await;
            sleep(2_500).await;
            assert!(api::ask("show stat edge 4 -1").await.contains("SOCKERR"));
            drop(dev);
            world.forget_log();
        });
    }
}

/// Connections stay with their server when the rest of the configuration changes, together with their requests.
#[test]
fn a_reload_in_place_loses_no_attached_connection() {
    served("", "").shuffled().seeds(0..8).run(|world| async move {
        let mut dev = attached().await;
        let (mut old, mut waiting) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        ask(&mut old, &mut dev, "/before").await;
        old.send(get("/under-way")).await;
        let stream = dev.expect_request(&get_at_server("/under-way"), b"").await;
        waiting.send(get("/second")).await;
        assert_eq!(world.adopt(&served("", "http-response set-header x-mark new")), Ok(()));
        sleep(5).await;
        dev.answer(stream, b"hello").await;
        old.expect(answer_at_client("hello")).await;
        let stream = dev.expect_request(&get_at_server("/second"), b"").await;
        dev.answer(stream, b"hello").await;
        waiting.expect(answer_at_client("hello")).await;
        ask(&mut old, &mut dev, "/after").await;
        let mut new = Peer::connect(WEIR).await;
        new.send(GET).await;
        let stream = dev.expect_request(GET_AT_SERVER, b"").await;
        dev.answer(stream, b"hello").await;
        new.expect("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-mark: new\r\n\r\nhello").await;
        assert!(dev.gone.is_none());
        world.forget_log();
    });
}

/// A server that has changed is a different one: the connection ends after its requests, and the next one is the new
/// server's.
#[test]
fn a_reload_in_place_ends_the_connections_of_a_server_that_has_changed() {
    served("", "").shuffled().seeds(0..8).run(|world| async move {
        let mut dev = attached().await;
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/under-way")).await;
        let stream = dev.expect_request(&get_at_server("/under-way"), b"").await;
        assert_eq!(world.adopt(&served("weight 7", "")), Ok(()));
        sleep(5).await;
        dev.answer(stream, b"hello").await;
        client.expect(answer_at_client("hello")).await;
        dev.expect_end().await;
        assert!(world.is_shuffled() || dev.gone.is_some());
        let mut dev = attached().await;
        let mut client = Peer::connect(WEIR).await;
        ask(&mut client, &mut dev, "/new").await;
        world.forget_log();
    });
}
