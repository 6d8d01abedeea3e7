//! Tests of the spans of `filter otel`: scopes at events, conditions, groups run by rules, and contexts from and to
//! other processes.

use testkit::{Peer, Service, sleep};

use super::collector::{COLLECTOR, Span, collect, take_all};
use super::{PARENT, TRACE, all};
use crate::messages::*;
use crate::world::*;

/// The YAML file of every test.
const PIPELINE: &str = "
exporters:
  to_collector:
    type: otlp_http
    endpoint: \"http://10.0.9.1:4318/v1/traces\"   # the signal's own
    http_headers:
      - X-Key: secret
samplers:
  whole:
    type: parent_based
    delegate: always_on
processors:
  soon:
    type: batch
    schedule_delay: 10
providers:
  own:
    resources:
      - service.name: \"shop\"
signals:
  traces:
    scope_name: test
    exporters: to_collector
    samplers: whole
    processors: soon
    providers: own
";

fn filtered(lines: &str, file: &str) -> Worlds {
    assert!(PIPELINE.contains(COLLECTOR));
    listen(&format!("filter otel id f config otel.cfg\n{lines}\nserver s1 10.0.1.1:80"))
        .file(&format!("[other]\notel-instrumentation i\n nonsense\n[f]\n{file}\n%%%\n{PIPELINE}"))
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found.next().unwrap_or_else(|| panic!("no span {name}: {spans:#?}"));
    assert!(found.next().is_none(), "two spans {name}");
    span
}

/// Sends a request with these fields, which the server answers. Returns the server's request.
async fn ask(fields: &str, answer: &str) -> String {
    let (mut s1, mut client) = (Service::at(S1), Peer::connect(WEIR).await);
    client.send(format!("GET /a?b HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    let mut server = s1.accept().await;
    let head = server.receive_head().await.unwrap();
    server.send(answer).await;
    client.receive_head().await.unwrap();
    client.receive(2).await;
    head
}

const SCOPES: &str = "
otel-instrumentation i
    config otel.yml
    option hard-errors
    scopes start request server answer bad end
otel-scope start
    extract \"ctx\" use-headers
    span \"session\" parent \"ctx\" root
        baggage \"tenant\" str(\"a b\")
        event \"client\" \"src\" src str(:) str(x)
    otel-event on-frontend-http-request
otel-scope request
    span \"request\" parent \"session\" link \"session\"
        attribute \"http.method\" method
        attribute \"http.version\" str(HTTP/) req.ver
        attribute \"count\" int(7)
        attribute \"flag\" bool(1)
        attribute \"absent\" req.hdr(nope)
    otel-event on-frontend-http-request
otel-scope server
    finish \"request\"
    span \"server\" parent \"session\"
        link \"session\" \"request\"
        inject \"out\" use-headers use-vars
    otel-event on-server-session-start
otel-scope answer
    acl bad status 500:599
    span \"server\"
        attribute \"http.status\" status
        status \"ok\"
    finish \"*res*\"
    otel-event on-http-response unless bad
otel-scope bad
    acl bad status 500:599
    span \"server\"
        status \"error\" str(status:) status
    otel-event on-http-response if bad
otel-scope end
    extract \"out\" use-vars
    span \"last\" parent \"out\"
    finish *
    otel-event on-stream-stop
";

#[test]
fn scopes_open_change_and_finish_spans() {
    let rows = [(OK, 1, "", "200"), ("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", 2, "status:500", "")];
    for (answer, status, description, told) in rows {
        filtered("", SCOPES).run(move |world| async move {
            let got = collect(&world, take_all);
            let fields = format!("ctx-traceparent: {PARENT}\r\nctx-tracestate: a=1\r\nctx-baggage: user=7\r\n");
            let head = ask(&fields, answer).await;
            let spans = got.spans(4).await;
            let (session, request) = (named(&spans, "session"), named(&spans, "request"));
            let (server, last) = (named(&spans, "server"), named(&spans, "last"));
            assert!(spans.iter().all(|span| span.trace == TRACE && span.state == "a=1"));
            assert_eq!((&*session.parent, session.kind, request.kind), ("00f067aa0ba902b7", 2, 1));
            assert_eq!([&request.parent, &server.parent], [&session.id; 2]);
            assert_eq!(last.parent, server.id);
            assert_eq!((server.status, &*server.description, server.get("http.status")), (status, description, told));
            let link = format!("{TRACE}-{}", session.id);
            assert_eq!(request.links, std::slice::from_ref(&link));
            // Spans that a scope finishes end after its own spans.
            assert_eq!(server.links, [link, format!("{TRACE}-{}", request.id)]);
            for (key, value) in
                [("http.method", "GET"), ("http.version", "HTTP/1.1"), ("count", "7"), ("flag", "true"), ("absent", "")]
            {
                assert_eq!(request.get(key), value, "{key}");
            }
            let (name, attributes) = &session.events[0];
            assert_eq!((&**name, attributes["src"].ends_with(":x")), ("client", true));
            assert_eq!(all(&head, "out-traceparent"), [format!("00-{TRACE}-{}-01", server.id)]);
            assert_eq!(all(&head, "out-tracestate"), ["a=1"]);
            assert_eq!(all(&head, "out-baggage"), ["user=7,tenant=a%20b"]);
            assert_eq!(got.resource.borrow()["service.name"], "shop");
            assert_eq!(all(&got.head.borrow(), "x-key"), ["secret"]);
            world.forget_log();
        });
    }
}

#[test]
fn errors_end_the_filter_where_that_is_asked_for() {
    let without = SCOPES.replace("option hard-errors", "no option hard-errors");
    // Without a context from the client, the first span has no parent; later ones are not affected.
    for (file, count) in [(SCOPES.to_owned(), 0), (without, 1)] {
        filtered("", &file).run(move |world| async move {
            let got = collect(&world, take_all);
            ask("", OK).await;
            sleep(100).await;
            assert_eq!(got.spans.borrow().len(), count);
        });
    }
}

#[test]
fn rules_run_groups() {
    let file = "
otel-instrumentation i
    config otel.yml
    groups g
    scopes start
otel-group g
    scopes one two
otel-scope one
    span \"one\" parent \"all\"
        attribute \"path\" path
otel-scope two
    span \"two\" parent \"one\"
        inject \"-\"
    finish \"one\"
otel-scope start
    span \"all\"
    otel-event on-client-session-start
";
    filtered("http-request otel-group f g if { path /a }", file).run(|world| async move {
        let got = collect(&world, take_all);
        let head = ask("", OK).await;
        let spans = got.spans(3).await;
        let (whole, one, two) = (named(&spans, "all"), named(&spans, "one"), named(&spans, "two"));
        assert_eq!((&one.parent, &two.parent, one.get("path")), (&whole.id, &one.id, "/a"));
        assert_eq!((whole.kind, &*whole.parent), (2, ""));
        assert_eq!(all(&head, "traceparent"), [format!("00-{}-{}-01", two.trace, two.id)]);
    });
}

#[test]
fn streams_are_told_of_at_a_rate_and_by_samplers() {
    let file = |lines: &str| {
        format!(
            "otel-instrumentation i\n config otel.yml\n scopes s\n{lines}\notel-scope s\n extract ctx\n span \"s\"\n  inject o\n \
             otel-event on-frontend-http-request\n"
        )
    };
    for (lines, sampler, count, injects) in [
        ("", "always_on", 1, true),
        (" rate-limit 0.0", "always_on", 0, false),
        (" option disabled", "always_on", 0, false),
        ("", "always_off", 0, true),
    ] {
        let pipeline = PIPELINE.replace("delegate: always_on", &format!("delegate: {sampler}"));
        let worlds = listen("filter opentelemetry config otel.cfg\nserver s1 10.0.1.1:80");
        worlds.file(&format!("{}\n%%%\n{pipeline}", file(lines))).seeds(0..2).run(move |world| async move {
            let got = collect(&world, take_all);
            let head = ask("", OK).await;
            sleep(100).await;
            assert_eq!(got.spans.borrow().len(), count, "{lines} {sampler}");
            assert_eq!(all(&head, "o-traceparent").len(), usize::from(injects), "{lines} {sampler}");
        });
    }
}

#[test]
fn events_come_in_their_order() {
    let events = [
        "on-stream-start",
        "on-client-session-start",
        "on-frontend-http-request",
        "on-switching-rules-request",
        "on-backend-http-request",
        "on-http-headers-request",
        "on-server-session-start",
        "on-tcp-response",
        "on-http-response",
        "on-http-end-request",
        "on-client-session-end",
        "on-server-session-end",
        "on-http-reply",
        "on-server-unavailable",
        "on-stream-stop",
    ];
    let scopes: String = events
        .iter()
        .enumerate()
        .map(|(at, event)| {
            format!("otel-scope s{at}\n span \"all\"\n  event \"{event}\" k str(v)\n otel-event {event}\n")
        })
        .collect();
    let used: Vec<String> = (0..events.len()).map(|at| format!("s{at}")).collect();
    let file = format!("otel-instrumentation i\n config otel.yml\n scopes {}\n{scopes}", used.join(" "));
    for is_up in [true, false] {
        filtered("retries 0", &file).run(move |world| async move {
            let got = collect(&world, take_all);
            if is_up {
                ask("", OK).await;
            } else {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                client.receive_head().await.unwrap();
                client.close();
            }
            let spans = got.spans(1).await;
            let found: Vec<&str> = spans[0].events.iter().map(|event| &*event.0).collect();
            let expected = match is_up {
                true => [&events[..12], &events[14..]].concat(),
                false => {
                    [&events[..6], &["on-http-reply", "on-server-unavailable"], &events[10..11], &events[14..]].concat()
                }
            };
            assert_eq!(found, expected);
            world.forget_log();
        });
    }
}
