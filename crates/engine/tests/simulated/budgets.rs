//! Tests with work that takes time: tasks with much work yield to others, and a request whose rules cost too much ends.

use std::time::Duration;

use testkit::{Peer, Service, sleep};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// From now on the clock advances by that number of microseconds whenever a task reads it.
fn work_takes(micros: u64) {
    rt::sim::network().set_cost_of_work(Duration::from_micros(micros));
}

/// The last part of a log line: the request line.
fn asked(line: &str) -> &str {
    line.split('"').nth(1).unwrap_or_default()
}

/// Spawns a client that sends `count` requests at once, and reads all answers.
fn pipelines(world: &World, mut client: Peer, path: &'static str, count: usize) {
    world.scope.spawn(async move {
        client.send(get(path).repeat(count)).await;
        client.expect(DONE.repeat(count)).await;
    });
}

#[test]
fn a_quiet_client_is_answered_before_the_bursts_of_others_end() {
    const CLIENTS: usize = 10;
    const REQUESTS: usize = 200;
    listen("http-request return status 200").workers(&[1]).run(|world| async move {
        let mut busy = Vec::new();
        for _ in 0..CLIENTS {
            busy.push(Peer::connect(WEIR).await);
        }
        let mut quiet = Peer::connect(WEIR).await;
        // For each of four requests: 50 ms in total.
        work_takes(100);
        busy.into_iter().for_each(|client| pipelines(&world, client, "/many", REQUESTS));
        sleep(1).await;
        quiet.send(get("/quiet")).await;
        quiet.expect(DONE).await;
        let lines = world.lines(CLIENTS * REQUESTS + 1).await;
        let place = lines.iter().position(|line| asked(line).contains("/quiet")).unwrap();
        assert!(place < lines.len() / 2, "after {place} of {}", lines.len());
    });
}

#[test]
fn pipelined_requests_take_turns_with_those_of_others() {
    listen("http-request return status 200").workers(&[1]).run(|world| async move {
        let (first, second) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        work_takes(250);
        pipelines(&world, first, "/first", 40);
        pipelines(&world, second, "/second", 40);
        let lines = world.lines(80).await;
        let changes = lines.windows(2).filter(|pair| asked(&pair[0]) != asked(&pair[1])).count();
        assert!(changes >= 10, "the clients took {changes} turns");
    });
}

/// Ten rules without a visible effect.
fn rules(set: &str) -> String {
    format!("{set} set-var(txn.x) int(1)\n").repeat(10)
}

#[test]
fn rules_let_others_run_when_so_many_have_been_evaluated() {
    for (most, calls) in [("", 1), ("tune.max-rules-at-once 5", 3), ("tune.max-rules-at-once 1", 12)] {
        // The variable and the answer are rules as well.
        let body = format!(
            "{}http-request set-var(txn.y) int(1)\nhttp-request return status 200 content-type text/plain lf-string \
             %[cpu_calls]",
            rules("http-request")
        );
        listen(&body).global(most).workers(&[1]).seeds(0..1).run(move |_| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let head = client.receive_head().await.unwrap();
            let body = client.receive(if calls > 9 { 2 } else { 1 }).await;
            assert_eq!(String::from_utf8(body).unwrap(), calls.to_string(), "{most}: {head}");
        });
    }
}

#[test]
fn rules_on_answers_do_so_too() {
    for (most, calls) in [("", 2), ("tune.max-rules-at-once 1", 12)] {
        let body =
            format!("{}http-response set-header calls %[cpu_calls]\nserver s1 10.0.1.1:80", rules("http-response"));
        listen(&body).global(most).workers(&[1]).seeds(0..1).run(move |_| async move {
            let mut servers = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = servers.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send(OK).await;
            let head = client.receive_head().await.unwrap();
            let found: u32 = head.split("calls: ").nth(1).unwrap().split("\r\n").next().unwrap().parse().unwrap();
            assert!(found >= calls && (calls > 2 || found < 8), "{most}: {head}");
            client.expect("ok").await;
        });
    }
}

#[test]
fn rules_on_bytes_go_on_where_they_were() {
    for sets in ["tcp-request content", "tcp-response content"] {
        let body = format!("mode tcp\n option tcplog\n {}server s1 10.0.1.1:80", rules(sets));
        listen(&body).global("tune.max-rules-at-once 3").workers(&[1]).run(|_| async move {
            let mut servers = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("hello").await;
            let mut server = servers.accept().await;
            server.expect("hello").await;
            server.send("welcome").await;
            client.expect("welcome").await;
        });
    }
}

/// A request with a header field of that many bytes.
fn long(bytes: usize) -> String {
    format!("GET /long HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n", "a".repeat(bytes))
}

/// The clock is read before each expensive converter.
const COSTLY: &str = "%[req.hdr(x-a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g),length]";

#[test]
fn a_request_whose_evaluation_takes_too_long_ends_alone() {
    let rules = [
        format!("http-request return status 200 content-type text/plain lf-string {COSTLY}"),
        format!("http-request set-var-fmt(txn.x) {COSTLY}\nhttp-request return status 200"),
        format!("http-request set-header x {COSTLY}\nhttp-request return status 200"),
        format!("http-request redirect location /{COSTLY} if {{ path /long }}\nhttp-request return status 200"),
        "http-request deny if { req.hdr(x-a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g) -m reg x }\nhttp-request return status 200".to_owned(),
        "http-request deny unless { req.hdr(x-a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g) -m found }\nhttp-request return status 200".to_owned(),
        "use_backend b if { req.hdr(x-a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g) -m str x }".to_owned(),
        "use-server s1 if { req.hdr(x-a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g) -m str x }\nserver s1 10.0.1.1:80".to_owned(),
        "balance hash req.hdr(x-a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g)\nserver s1 10.0.1.1:80\nserver s2 10.0.1.2:80".to_owned(),
    ];
    for rule in rules {
        let text = format!("listen l\nbind {WEIR}\n{rule}\nbackend b\nserver s1 10.0.1.1:80");
        let global = format!("{SOCKET}\ntune.eval.max-time 50");
        config(&text).global(&global).workers(&[1]).seeds(0..2).run(|world| async move {
            let mut other = Peer::connect(WEIR).await;
            let mut client = Peer::connect(WEIR).await;
            work_takes(20_000);
            client.send(long(10_000)).await;
            client.expect(page(500)).await;
            work_takes(0);
            let lines = world.take_log().await;
            assert!(lines[0].contains(" 500 ") && lines[0].contains(" IR-- "), "{lines:?}");
            other.send("GET /short HTTP/1.1\r\nHost: a\r\nX-A: a\r\nConnection: close\r\n\r\n").await;
            drop(other);
            client.send("GET /again HTTP/1.1\r\nHost: a\r\nX-A: a\r\nConnection: close\r\n\r\n").await;
            drop(client);
            sleep(100).await;
            world.forget_log();
            assert!(ask("show stat").await.contains("l,FRONTEND,"));
        });
    }
}

#[test]
fn an_answer_whose_evaluation_takes_too_long_is_replaced() {
    for set in ["http-response", "http-after-response"] {
        let body = format!(
            "{set} set-header x %[res.hdr(x-a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g),length]\nserver s1 10.0.1.1:80"
        );
        listen(&body).global("tune.eval.max-time 50").workers(&[1]).seeds(0..2).run(|world| async move {
            let mut servers = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = servers.accept().await;
            server.expect(GET_AT_SERVER).await;
            work_takes(20_000);
            server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: {}\r\n\r\n", "a".repeat(10_000))).await;
            client.expect(page(500)).await;
            let lines = world.take_log().await;
            assert!(lines[0].contains(" 500 ") && lines[0].contains(" IH-- "), "{lines:?}");
        });
    }
}

#[test]
fn a_log_line_whose_evaluation_takes_too_long_is_written_without_it() {
    let rules = "http-request set-var(txn.a) req.hdr(x-a)\nhttp-request return status 200";
    let body = format!(
        "log-format \"%[var(txn.a),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g),length] %ST %tsc\"\n{rules}"
    );
    listen(&body).global("tune.eval.max-time 50").workers(&[1]).seeds(0..2).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        work_takes(20_000);
        client.send(long(10_000)).await;
        client.expect(DONE).await;
        let lines = world.take_log().await;
        assert!(lines[0].ends_with("- 200 LR--"), "{lines:?}");
    });
}

#[test]
fn connections_whose_rules_take_too_long_are_closed() {
    let rule = "tcp-request content reject if { req.payload(0,0),regsub(a,b,g),regsub(b,a,g),regsub(a,b,g),regsub(b,a,g) -m str x }";
    let body = format!("mode tcp\noption tcplog\ntcp-request inspect-delay 1s\n{rule}\nserver s1 10.0.1.1:80");
    listen(&body)
        .global("tune.eval.max-time 50")
        .workers(&[1])
        .links(|_| rt::sim::Link { fragment: false, ..Default::default() })
        .seeds(0..2)
        .run(|world| async move {
            let mut client = Peer::connect(WEIR).await;
            work_takes(20_000);
            client.send("a".repeat(10_000)).await;
            client.expect_end().await;
            let lines = world.take_log().await;
            assert!(lines[0].contains(" IR "), "{lines:?}");
        });
}
