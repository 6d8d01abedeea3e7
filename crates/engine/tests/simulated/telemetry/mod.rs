//! Tests of spans of streams (`otel-trace`) and their export to a collector: the data for servers and collectors, and
//! that requests are not affected by a collector that is slow, hung, dead or refuses.

mod collector;
mod filter;
mod signals;

use crate::api;
use engine::telemetry;
use std::sync::atomic::Ordering;

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::h2::Client;
use crate::messages::*;
use crate::world::*;
use collector::{COLLECTOR, Got, Span, collect, collect_at, take_all};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The contents of a test's file: if there are two, a line of three percent signs separates them.
pub fn part(files: &str, name: &str) -> Vec<u8> {
    let (first, second) = files.split_once("\n%%%\n").unwrap_or((files, ""));
    if name.ends_with(".yml") { second } else { first }.as_bytes().to_vec()
}

fn traced_by(exporter: &str, lines: &str) -> Worlds {
    listen(lines).global(&format!("otel-exporter http://{COLLECTOR} interval 10ms {exporter}"))
}

fn traced(lines: &str) -> Worlds {
    traced_by("", lines)
}

/// The fields of a head with that name.
fn all<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(found, _)| *found == name)
        .map(|pair| pair.1)
        .collect()
}

/// The context of a span in a server's request: the trace, the span and the flags.
fn context(head: &str) -> (String, String, String) {
    let [parent] = all(head, "traceparent")[..] else { panic!("one traceparent: {head}") };
    let [_, trace, span, flags] = parent.split('-').collect::<Vec<_>>()[..] else { panic!("{parent}") };
    (trace.to_owned(), span.to_owned(), flags.to_owned())
}

/// The span of a stream, and those of its attempts in order.
fn family(spans: Vec<Span>) -> (Span, Vec<Span>) {
    let (mut servers, mut clients): (Vec<Span>, Vec<Span>) = spans.into_iter().partition(|span| span.kind == 2);
    assert_eq!(servers.len(), 1);
    let own = servers.remove(0);
    clients.sort_by_key(|span| span.start);
    for client in &clients {
        assert_eq!((client.kind, &client.trace, &client.parent), (3, &own.trace, &own.id));
        assert!(own.start <= client.start && client.start <= client.end && client.end <= own.end);
    }
    (own, clients)
}

fn counts(world: &World) -> [u64; 4] {
    let channels = world.shared().service::<telemetry::Registry>().channels();
    let counts = &channels.last().expect("a channel").counts;
    [&counts.sent, &counts.dropped, &counts.failed, &counts.requests].map(|count| count.load(Ordering::Relaxed))
}

#[test]
fn a_request_has_a_span_and_so_has_its_way_to_the_server() {
    let lines = "otel-trace name \"%HM %[path]\" attribute app.query %[query] attribute app.status %ST\n\
                 server s1 10.0.1.1:80";
    traced_by("service shop resource deployment.environment.name test header x-key secret", lines).run(
        |world| async move {
            let got = collect(&world, take_all);
            let (mut client, mut s1) = (Peer::connect(WEIR).await, Service::at(S1));
            client.send("GET /a/b?c=d HTTP/1.1\r\nHost: shop.example:8080\r\nUser-Agent: ua\r\n\r\n").await;
            let mut server = s1.accept().await;
            let head = server.receive_head().await.unwrap();
            sleep(20).await;
            server.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            let (own, attempts) = family(got.spans(2).await);
            let (trace, span, flags) = context(&head);
            assert_eq!((&*trace, &*span, &*flags), (&*own.trace, &*attempts[0].id, "01"));
            assert_eq!(all(&head, "tracestate"), [""; 0]);
            assert_eq!((&*own.name, &*own.parent, own.status), ("GET /a/b", "", 0));
            for (key, value) in [
                ("http.request.method", "GET"),
                ("http.response.status_code", "200"),
                ("url.scheme", "http"),
                ("url.path", "/a/b"),
                ("url.query", "c=d"),
                ("server.address", "shop.example"),
                ("server.port", "8080"),
                ("user_agent.original", "ua"),
                ("network.protocol.version", "1.1"),
                ("weir.frontend", "l"),
                ("weir.backend", "l"),
                ("weir.server", "s1"),
                ("weir.termination_state", "--"),
                ("app.query", "c=d"),
                ("app.status", "200"),
                ("error.type", ""),
            ] {
                assert_eq!(own.get(key), value, "{key}");
            }
            assert_eq!(own.get("client.address"), own.get("network.peer.address"));
            assert!(own.end - own.start >= 20_000_000);
            for (key, value) in [
                ("http.request.method", "GET"),
                ("http.response.status_code", "200"),
                ("server.address", "10.0.1.1"),
                ("server.port", "80"),
                ("url.full", "http://shop.example:8080/a/b?c=d"),
                ("weir.server", "s1"),
                ("http.request.resend_count", ""),
            ] {
                assert_eq!(attempts[0].get(key), value, "{key}");
            }
            let resource = got.resource.borrow().clone();
            assert_eq!(resource["service.name"], "shop");
            assert_eq!(resource["deployment.environment.name"], "test");
            let sent = got.head.borrow().clone();
            assert!(sent.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{sent}");
            assert_eq!(all(&sent, "content-type"), ["application/x-protobuf"]);
            assert_eq!(all(&sent, "x-key"), ["secret"]);
            assert_eq!(counts(&world), [2, 0, 0, 1]);
        },
    );
}

#[test]
fn a_trace_goes_on_from_the_client_to_the_server() {
    // The client's fields, whether the trace is continued, the state for the server, and the flags.
    let invalid = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
    let rows: &[(&str, bool, Option<&str>, &str)] = &[
        ("traceparent: P\r\n", true, None, "01"),
        ("traceparent: P\r\ntracestate: a=1\r\nTracestate: b=2\r\n", true, Some("a=1,b=2"), "01"),
        ("traceparent: P\r\ntracestate: A=1\r\n", true, None, "01"),
        ("traceparent: I\r\ntracestate: a=1\r\n", false, None, "01"),
        ("traceparent: P\r\ntraceparent: P\r\n", false, None, "01"),
        ("tracestate: a=1\r\n", false, None, "01"),
        ("traceparent: U\r\ntracestate: a=1\r\n", true, Some("a=1"), "00"),
    ];
    for (fields, goes_on, state, flags) in rows {
        let unsampled = PARENT.replace("-01", "-00");
        let fields = fields.replace(": P", &format!(": {PARENT}")).replace(": I", &format!(": {invalid}"));
        let fields = fields.replace(": U", &format!(": {unsampled}"));
        traced("otel-trace\nserver s1 10.0.1.1:80").seeds(0..2).run(move |world| {
            let fields = fields.clone();
            async move {
                let got = collect(&world, take_all);
                let (mut client, mut s1) = (Peer::connect(WEIR).await, Service::at(S1));
                client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
                let mut server = s1.accept().await;
                let head = server.receive_head().await.unwrap();
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
                let (trace, span, found) = context(&head);
                assert_eq!((trace == TRACE, &*found), (*goes_on, *flags), "{head}");
                assert_ne!(span, "00f067aa0ba902b7");
                assert_eq!(all(&head, "tracestate"), state.iter().copied().collect::<Vec<_>>(), "{head}");
                if *flags == "00" {
                    sleep(100).await;
                    return assert_eq!(got.requests.get(), 0);
                }
                let (own, attempts) = family(got.spans(2).await);
                assert_eq!((own.parent == "00f067aa0ba902b7", &own.trace), (*goes_on, &trace));
                assert_eq!((&*own.state, &attempts[0].id), (state.unwrap_or_default(), &span));
            }
        });
    }
}

#[test]
fn a_share_of_the_traces_is_recorded() {
    traced("otel-trace sample 0\nserver s1 10.0.1.1:80").run(|world| async move {
        let got = collect(&world, take_all);
        serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect(OK_AT_CLIENT).await;
        // The parent's decision takes precedence.
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\ntraceparent: {PARENT}\r\n\r\n")).await;
        client.expect(OK_AT_CLIENT).await;
        let (own, _) = family(got.spans(2).await);
        assert_eq!(own.trace, TRACE);
    });
}

#[test]
fn attempts_that_fail_have_spans_of_their_own() {
    let lines =
        "otel-trace\noption redispatch 1\nretries 1\nbalance first\nserver s1 10.0.1.1:80\nserver s2 10.0.1.2:80";
    traced(lines).run(|world| async move {
        let got = collect(&world, take_all);
        // The first one has no listener.
        let (mut client, mut s2) = (Peer::connect(WEIR).await, Service::at(S2));
        client.send(GET).await;
        let mut server = s2.accept().await;
        let head = server.receive_head().await.unwrap();
        server.send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").await;
        assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 503"));
        let (own, attempts) = family(got.spans(3).await);
        let found: Vec<_> = attempts.iter().map(|span| (span.get("weir.server"), span.get("error.type"))).collect();
        assert_eq!(found, [("s1", "connection_error"), ("s2", "503")]);
        assert_eq!(attempts[1].get("http.request.resend_count"), "1");
        assert_eq!(attempts.iter().map(|span| span.status).collect::<Vec<_>>(), [2, 2]);
        assert_eq!((own.status, own.get("error.type")), (2, "503"));
        assert_eq!(context(&head).1, attempts[1].id);
        world.forget_log();
    });
}

#[test]
fn answers_that_are_tried_again_have_spans_of_their_own() {
    traced("otel-trace\nretries 2\nretry-on empty-response 503\nserver s1 10.0.1.1:80").run(|world| async move {
        let got = collect(&world, take_all);
        let (mut client, mut s1) = (Peer::connect(WEIR).await, Service::at(S1));
        client.send(GET).await;
        let mut told = Vec::new();
        let mut server = s1.accept().await;
        told.push(context(&server.receive_head().await.unwrap()).1);
        server.close();
        let mut server = s1.accept().await;
        told.push(context(&server.receive_head().await.unwrap()).1);
        server.send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").await;
        let mut server = s1.accept().await;
        told.push(context(&server.receive_head().await.unwrap()).1);
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let (own, attempts) = family(got.spans(4).await);
        assert_eq!(attempts.iter().map(|span| span.id.clone()).collect::<Vec<_>>(), told);
        let found: Vec<_> = attempts.iter().map(|span| span.get("error.type")).collect();
        assert_eq!(found, ["bad_answer", "retried", ""]);
        assert_eq!((own.status, own.get("http.response.status_code")), (0, "200"));
        world.forget_log();
    });
}

#[test]
fn requests_that_reach_no_server_have_a_span() {
    let lines = "otel-trace\nhttp-request deny if { path /no }\nserver s1 10.0.1.1:80 disabled";
    traced(lines).run(|world| async move {
        let got = collect(&world, take_all);
        let mut client = Peer::connect(WEIR).await;
        for (path, status, error, letters) in [("/no", "403", "", "PR"), ("/", "503", "503", "SC")] {
            client.send(get(path)).await;
            client.receive_head().await.unwrap();
            let (own, _) = family(got.spans(1).await);
            assert_eq!((own.get("http.response.status_code"), own.get("weir.termination_state")), (status, letters));
            let expected = if error.is_empty() { letters } else { error };
            assert_eq!((own.get("error.type"), own.status), (expected, 2));
            client = Peer::connect(WEIR).await;
        }
        world.forget_log();
    });
}

#[test]
fn connections_carry_many_traces() {
    traced("otel-trace\nserver s1 10.0.1.1:80").run(|world| async move {
        let got = collect(&world, take_all);
        serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..3 {
            client.send(GET).await;
            client.expect(OK_AT_CLIENT).await;
        }
        let mut over_h2 = Client::connect().await;
        for stream in [1, 3, 5] {
            over_h2.get(stream, "/h2").await;
        }
        for stream in [1, 3, 5] {
            over_h2.expect(stream, 200, "ok").await;
        }
        let spans = got.spans(12).await;
        let mut traces: Vec<&str> = spans.iter().map(|span| &*span.trace).collect();
        traces.sort_unstable();
        traces.dedup();
        assert_eq!(traces.len(), 6);
        let versions = spans.iter().filter(|span| span.get("url.path") == "/h2" && span.kind == 2);
        let versions: Vec<&str> = versions.map(|span| span.get("network.protocol.version")).collect();
        assert_eq!(versions, ["2"; 3]);
    });
}

#[test]
fn a_second_attempt_has_a_span_that_its_server_is_told_of() {
    let lines =
        "otel-trace\nhedge-requests after 50ms\nbalance roundrobin\nserver s1 10.0.1.1:80\nserver s2 10.0.1.2:80";
    traced(lines).workers(&[1]).run(|world| async move {
        let got = collect(&world, take_all);
        let (mut client, mut s1, mut s2) = (Peer::connect(WEIR).await, Service::at(S1), Service::at(S2));
        client.send(GET).await;
        let mut first = s1.accept().await;
        let told = context(&first.receive_head().await.unwrap());
        let mut second = s2.accept().await;
        let won = context(&second.receive_head().await.unwrap());
        second.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        let (_, attempts) = family(got.spans(3).await);
        let found: Vec<_> =
            attempts.iter().map(|span| (&*span.id, span.get("weir.server"), span.get("weir.overtaken"))).collect();
        assert_eq!(found, [(&*told.1, "s1", "true"), (&*won.1, "s2", "")]);
        assert_eq!(attempts[1].get("http.response.status_code"), "200");
        world.forget_log();
    });
}

#[test]
fn sessions_in_tcp_mode_have_spans() {
    traced("mode tcp\notel-trace name tunnel\nserver s1 10.0.1.1:80").run(|world| async move {
        let got = collect(&world, take_all);
        let (mut s1, mut client) = (Service::at(S1), Peer::connect(WEIR).await);
        client.send("hello").await;
        let mut server = s1.accept().await;
        server.expect("hello").await;
        client.close();
        server.expect_eof().await;
        server.close();
        let (own, attempts) = family(got.spans(2).await);
        assert_eq!((&*own.name, own.get("network.transport"), own.get("weir.server")), ("tunnel", "tcp", "s1"));
        assert_eq!(attempts[0].get("server.address"), "10.0.1.1");
        world.forget_log();
    });
}

/// Sends that number of requests, none of which is delayed.
async fn ask(world: &World, count: usize) {
    let mut client = Peer::connect(WEIR).await;
    for _ in 0..count {
        let watch = Stopwatch::start();
        client.send(GET).await;
        client.expect(OK_AT_CLIENT).await;
        watch.took(0);
    }
    let _ = world;
}

async fn settled(world: &World, expected: [u64; 4]) {
    for _ in 0..200_000 {
        if counts(world) == expected {
            return;
        }
        sleep(1).await;
    }
    assert_eq!(counts(world), expected);
}

#[test]
fn a_collector_that_asks_for_patience_gets_it() {
    let answers = |number: usize| match number {
        0 => Some("HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n"),
        1 => Some("HTTP/1.1 429 Later\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"),
        _ => take_all(number),
    };
    traced("otel-trace\nserver s1 10.0.1.1:80").run(move |world| async move {
        let got = collect(&world, answers);
        serve_ok(&world.scope, S1);
        let watch = Stopwatch::start();
        ask(&world, 1).await;
        let (own, _) = family(got.spans(2).await);
        assert_eq!(own.get("http.response.status_code"), "200");
        assert!(watch.elapsed().as_millis() >= 7_500);
        settled(&world, [2, 0, 0, 3]).await;
        world.forget_log();
    });
}

#[test]
fn a_collector_that_refuses_is_not_asked_again() {
    let partly = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x0a\x02\x08\x01";
    for (answer, expected) in [
        ("HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n", [0, 0, 2, 1]),
        ("HTTP/1.1 302 There\r\nContent-Length: 0\r\n\r\n", [0, 0, 2, 1]),
        (partly, [1, 0, 1, 1]),
    ] {
        traced("otel-trace\nserver s1 10.0.1.1:80").seeds(0..2).run(move |world| async move {
            collect(&world, move |_| Some(answer));
            serve_ok(&world.scope, S1);
            ask(&world, 1).await;
            settled(&world, expected).await;
            world.forget_log();
        });
    }
}

#[test]
fn a_dead_collector_loses_spans_and_delays_nothing() {
    let global = format!("httpclient.retries 0\n{}", api::SOCKET);
    traced("otel-trace\nserver s1 10.0.1.1:80").global(&global).run(|world| async move {
        const HEAD: &str = "# signal url queued size sent dropped failed requests state last_error\n";
        serve_ok(&world.scope, S1);
        let shown = api::ask("show otel").await;
        assert_eq!(shown, format!("{HEAD}traces http://10.0.9.1:4318/v1/traces 0 8192 0 0 0 0 OK -\n\n"));
        ask(&world, 3).await;
        settled(&world, [0, 0, 6, 6]).await;
        let shown = api::ask("show otel").await;
        let failing = "traces http://10.0.9.1:4318/v1/traces 0 8192 0 0 6 6 FAILING \"";
        assert!(
            shown.starts_with(&format!("{HEAD}{failing}"))
                && shown.contains("Connection refused")
                && shown.contains("\" "),
            "{shown}"
        );
        let log = world.take_log().await;
        let told = log.iter().filter(|line| line.contains("OpenTelemetry: collector http://10.0.9.1:4318/v1/traces"));
        assert_eq!(told.count(), 1, "{log:#?}");
        // It returns.
        let got = collect(&world, take_all);
        ask(&world, 1).await;
        got.spans(2).await;
        settled(&world, [2, 0, 6, 7]).await;
        let shown = api::ask("show otel").await;
        assert!(shown.contains(" 0 8192 2 0 6 7 OK \"") && shown.contains("s ago\n"), "{shown}");
        world.forget_log();
    });
}

#[test]
fn a_hung_collector_fills_the_queue_and_no_more() {
    traced_by("queue 4 batch 2 timeout 2s", "otel-trace\nserver s1 10.0.1.1:80").workers(&[1, 2]).run(
        |world| async move {
            let got: std::rc::Rc<Got> = collect(&world, |_| None);
            serve_ok(&world.scope, S1);
            ask(&world, 1).await;
            while got.requests.get() == 0 {
                sleep(1).await;
            }
            // Two are in progress, four wait, and the others are dropped.
            ask(&world, 10).await;
            assert_eq!(counts(&world)[1], 16);
            // Each batch gets its six attempts.
            settled(&world, [0, 16, 6, 18]).await;
            world.forget_log();
        },
    );
}

#[test]
fn what_waits_is_sent_before_the_process_ends() {
    traced_by("interval 1h", "otel-trace\nserver s1 10.0.1.1:80").run(|world| async move {
        let got = collect(&world, take_all);
        serve_ok(&world.scope, S1);
        ask(&world, 2).await;
        sleep(1_000).await;
        assert_eq!(got.requests.get(), 0);
        world.stop();
        sleep(5).await;
        assert!(!world.is_drained().await);
        got.spans(4).await;
        sleep(20).await;
        assert!(world.is_drained().await);
        world.forget_log();
    });
}

#[test]
fn another_configuration_sends_its_spans_elsewhere() {
    const ELSEWHERE: &str = "10.0.9.2:4318";
    let lines = "otel-trace\nserver s1 10.0.1.1:80";
    let next = move || listen(lines).global(&format!("otel-exporter http://{ELSEWHERE} interval 10ms"));
    traced(lines).run(move |world| async move {
        let (here, elsewhere) = (collect(&world, take_all), collect_at(&world, ELSEWHERE, take_all));
        serve_ok(&world.scope, S1);
        let mut old = Peer::connect(WEIR).await;
        old.send(GET).await;
        old.expect(OK_AT_CLIENT).await;
        here.spans(2).await;
        assert_eq!(world.adopt(&next()), Ok(()));
        sleep(5).await;
        // A session keeps its configuration.
        old.send(GET).await;
        old.expect(OK_AT_CLIENT).await;
        here.spans(2).await;
        ask(&world, 1).await;
        elsewhere.spans(2).await;
        assert_eq!(world.shared().service::<telemetry::Registry>().channels().len(), 2);
        old.close();
        while world.shared().service::<telemetry::Registry>().channels().len() > 1 {
            sleep(1).await;
        }
    });
}
