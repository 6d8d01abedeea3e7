//! Tests of SPOE agents: the messages sent to them, their times and connections, and the effects of their answers.

use base::Moment;
use testkit::{Peer, Service, sleep};
use wire::spop::{Data, kind, next_frame, take_string};

use crate::messages::*;
use crate::world::*;

/// The address of agents.
pub const AGENT: &str = "10.0.2.1:90";

/// The configuration of an agent: these lines, and all messages by event, with the path if there is one.
pub fn engine(lines: &str) -> String {
    let mut text = format!("[e]\nspoe-agent a\n use-backend agents\n timeout processing 500ms\n{lines}\n");
    for (name, sample, event) in [
        ("cs", "ip=src", "on-client-session"),
        ("ft", "ip=src", "on-frontend-tcp-request"),
        ("fh", "path=path", "on-frontend-http-request"),
        ("bt", "n=int(1)", "on-backend-tcp-request"),
        ("bh", "path=path", "on-backend-http-request"),
        ("ss", "path=path", "on-server-session"),
        ("tr", "status=status", "on-tcp-response"),
        ("hr", "status=status", "on-http-response"),
    ] {
        text.push_str(&format!("spoe-message {name}\n args {sample}\n event {event}\n"));
    }
    text
}

/// A frontend with the engine, a backend of its own, and the backend of the agent.
pub fn proxies(front: &str, agents: &str) -> String {
    format!(
        "frontend f\n bind 10.0.0.1:80\n filter spoe engine e config f\n{front}\n default_backend b\nbackend b\n server s1 \
         10.0.1.1:80\nbackend agents\n mode spop\n server a1 10.0.2.1:90\n{agents}\n"
    )
}

/// Encodes a frame with its length.
pub fn frame(kind: u8, (stream, id): (u8, u8), payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 7).unwrap().to_be_bytes();
    [&length[..], &[kind, 0, 0, 0, 1, stream, id], payload].concat()
}

pub fn item(name: &str, value: Data<'_>) -> Vec<u8> {
    let mut out = vec![u8::try_from(name.len()).unwrap()];
    out.extend_from_slice(name.as_bytes());
    value.encode(&mut out);
    out
}

/// Encodes an AGENT-HELLO frame.
pub fn hello(size: u32, capabilities: &str) -> Vec<u8> {
    let items = [
        item("version", Data::Str(b"2.0")),
        item("max-frame-size", Data::Uint32(size)),
        item("capabilities", Data::Str(capabilities.as_bytes())),
    ];
    frame(kind::AGENT_HELLO, (0, 0), &items.concat())
}

/// Encodes a set-var action of an answer.
pub fn set(scope: u8, name: &str, value: Data<'_>) -> Vec<u8> {
    [vec![1, 3, scope], item(name, value)].concat()
}

/// A received frame.
#[derive(Debug, PartialEq, Eq)]
pub struct ReceivedFrame {
    pub kind: u8,
    pub stream: u8,
    pub payload: Vec<u8>,
}

/// Receives a frame.
pub async fn receive(peer: &mut Peer) -> ReceivedFrame {
    let length = peer.receive(4).await;
    let rest = peer.receive(u32::from_be_bytes(length.clone().try_into().unwrap()) as usize).await;
    let whole = [length, rest].concat();
    let (frame, _) = next_frame(&whole, 16_380).unwrap().unwrap();
    ReceivedFrame { kind: frame.kind, stream: frame.stream as u8, payload: frame.payload.to_vec() }
}

/// Accepts a connection, receives its HELLO frame and answers it.
pub async fn greeted(service: &mut Service, capabilities: &str) -> Peer {
    let mut peer = service.accept().await;
    let told = receive(&mut peer).await;
    assert_eq!((told.kind, told.stream), (kind::HAPROXY_HELLO, 0));
    let text = String::from_utf8_lossy(&told.payload).into_owned();
    assert!(text.contains("supported-versions\u{8}\u{3}2.0") && text.contains("engine-id"), "{text}");
    peer.send(hello(16_380, capabilities)).await;
    peer
}

/// Receives messages: returns the stream, and each message as `name(argument=value,...)`.
pub async fn notified(peer: &mut Peer) -> (u8, String) {
    let told = receive(peer).await;
    assert_eq!(told.kind, kind::NOTIFY, "{told:?}");
    let (mut rest, mut text) = (told.payload.as_slice(), String::new());
    while !rest.is_empty() {
        let name = take_string(&mut rest).unwrap();
        let (count, more) = rest.split_first().unwrap();
        rest = more;
        let mut arguments = Vec::new();
        for _ in 0..*count {
            let name = String::from_utf8(take_string(&mut rest).unwrap().to_vec()).unwrap();
            let value = match Data::take(&mut rest).unwrap() {
                Data::Null => "-".to_owned(),
                Data::Str(text) => String::from_utf8(text.to_vec()).unwrap(),
                Data::Ipv4(address) => address.to_string(),
                Data::Int64(number) => number.to_string(),
                Data::Bool(flag) => flag.to_string(),
                other => format!("{other:?}"),
            };
            arguments.push(format!("{name}={value}"));
        }
        text.push_str(&format!("{}({})", String::from_utf8_lossy(name), arguments.join(",")));
    }
    (told.stream, text)
}

/// Answers a NOTIFY frame.
pub async fn acknowledge(peer: &mut Peer, stream: u8, actions: &[u8]) {
    peer.send(frame(kind::ACK, (stream, 1), actions)).await;
}

/// Expects that number of log lines, of which those of agents contain these texts.
pub async fn logged(world: &World, count: usize, texts: &[&str]) {
    let lines = world.lines(count).await;
    let of_agents: Vec<&String> = lines.iter().filter(|line| line.contains("SPOE:")).collect();
    let right = of_agents.len() == texts.len() && of_agents.iter().zip(texts).all(|(line, text)| line.contains(text));
    assert!(right, "expected {texts:#?}, got {lines:#?}");
}

#[test]
fn a_request_has_seven_events() {
    let lines = " messages cs ft fh bt bh ss tr hr\n register-var-names n\n option var-prefix p";
    let rules = " http-request set-header x-n %[var(txn.p.n)]\n http-response set-header x-n %[var(txn.p.n)]";
    config(&proxies(rules, "")).file(&engine(lines)).run(|_| async {
        let (mut agents, mut s1) = (Service::at(AGENT), Service::at(S1));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/x")).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let before = ["cs(ip=10.9.0.1)", "ft(ip=10.9.0.1)", "fh(path=/x)", "bt(n=1)", "bh(path=/x)", "ss(path=/x)"]
            .iter()
            .enumerate();
        for (number, expected) in before {
            let (stream, told) = notified(&mut agent).await;
            let expected = expected.replace("10.9.0.1", &client.local_address().inet().unwrap().ip().to_string());
            assert_eq!(told, expected);
            assert_eq!(usize::from(stream), number * 2 + 1);
            acknowledge(&mut agent, stream, &set(2, "n", Data::Int64(number as i64))).await;
        }
        let mut server = s1.accept().await;
        // The value set last before the rules of the frontend.
        server.expect("GET /x HTTP/1.1\r\nhost: a\r\nx-n: 2\r\n\r\n").await;
        server.send(OK).await;
        for expected in ["tr(status=200)", "hr(status=200)"] {
            let (stream, told) = notified(&mut agent).await;
            assert_eq!(told, expected);
            acknowledge(&mut agent, stream, &set(2, "n", Data::Str(b"end"))).await;
        }
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-n: end\r\n\r\nok").await;
    });
}

#[test]
fn a_session_has_five_events() {
    let text = proxies(" mode tcp\n option tcplog\n tcp-request content reject unless { var(sess.a.ok) -m bool }", "")
        .replace("backend b\n", "backend b\n mode tcp\n");
    config(&text).file(&engine(" messages cs ft fh bt bh ss tr hr")).workers(&[1]).run(|_| async {
        let (mut agents, mut s1) = (Service::at(AGENT), Service::at(S1));
        let mut client = Peer::connect(WEIR).await;
        let mut agent = greeted(&mut agents, "").await;
        for name in ["cs(", "ft(", "bt(", "ss("] {
            let (stream, told) = notified(&mut agent).await;
            assert!(told.starts_with(name), "{told}");
            acknowledge(&mut agent, stream, &set(1, "ok", Data::Bool(true))).await;
        }
        let mut server = s1.accept().await;
        client.send("hello").await;
        let (stream, told) = notified(&mut agent).await;
        assert!(told.starts_with("tr("), "{told}");
        // Bytes of the client are not held back meanwhile by the agent's delay.
        server.expect("hello").await;
        server.send("world").await;
        client.expect_silence(10).await;
        acknowledge(&mut agent, stream, &[]).await;
        client.expect("world").await;
        let mut refused = Peer::connect(WEIR).await;
        for _ in 0..2 {
            let (stream, _) = notified(&mut agent).await;
            acknowledge(&mut agent, stream, &[]).await;
        }
        refused.expect_end().await;
    });
}

#[test]
fn filters_of_a_listen_section_and_of_a_backend_have_their_own_events() {
    let lines = " messages cs ft fh bt bh ss tr hr";
    let listen = "listen l\n bind 10.0.0.1:80\n filter spoe engine e config f\n server s1 10.0.1.1:80\nbackend agents\n \
                  mode spop\n server a1 10.0.2.1:90\n";
    let backend = proxies("", "")
        .replace(" filter spoe engine e config f\n", "")
        .replace("\nbackend b\n", "\nbackend b\n filter spoe engine e config f\n");
    for (text, expected) in [(listen, "cs ft fh ss tr hr"), (&backend, "bt bh ss tr hr")] {
        config(text).file(&engine(lines)).workers(&[1]).run(move |world| async move {
            let mut agents = Service::at(AGENT);
            let _served = serve_ok(&world.scope, S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut agent = greeted(&mut agents, "pipelining").await;
            for name in expected.split(' ') {
                let (stream, told) = notified(&mut agent).await;
                assert!(told.starts_with(name), "{told} for {name}");
                acknowledge(&mut agent, stream, &[]).await;
            }
            client.expect(OK_AT_CLIENT).await;
        });
    }
}

/// Requests of several connections share one to the agent, which may answer in any order; without pipelining they are
/// sent one after the other.
#[test]
fn connections_to_agents_are_shared_as_far_as_these_permit() {
    for pipelines in [true, false] {
        config(&proxies(" http-request return status 200 hdr x %[var(txn.a.x)]", ""))
            .file(&engine(" messages fh"))
            .workers(&[1])
            .run(move |_| async move {
                let mut agents = Service::at(AGENT);
                let capabilities = if pipelines { "other, pipelining" } else { "" };
                let mut first = Peer::connect(WEIR).await;
                let mut second = Peer::connect(WEIR).await;
                first.send(get("/1")).await;
                let mut agent = greeted(&mut agents, capabilities).await;
                let (one, told) = notified(&mut agent).await;
                assert_eq!(told, "fh(path=/1)");
                second.send(get("/2")).await;
                let mut other = if pipelines { None } else { Some(greeted(&mut agents, capabilities).await) };
                let carrier = other.as_mut().unwrap_or(&mut agent);
                let (two, told) = notified(carrier).await;
                assert_eq!((told.as_str(), two), ("fh(path=/2)", if pipelines { 3 } else { 1 }));
                acknowledge(carrier, two, &set(2, "x", Data::Str(b"two"))).await;
                assert!(second.receive_head().await.unwrap().contains("x: two\r\n"));
                acknowledge(&mut agent, one, &set(2, "x", Data::Str(b"one"))).await;
                assert!(first.receive_head().await.unwrap().contains("x: one\r\n"));
                assert_eq!(agents.accepted(), if pipelines { 1 } else { 2 });
            });
    }
}

/// Pipelined requests of a client are processed one after the other, on the connection that is kept.
#[test]
fn pipelined_requests_and_kept_connections_cross() {
    config(&proxies(" http-request set-header x-q %[var(req.a.q)]", "")).file(&engine(" messages fh hr")).run(
        |world| async move {
            let mut agents = Service::at(AGENT);
            let _served = serve_ok(&world.scope, S1);
            let mut client = Peer::connect(WEIR).await;
            client.send([get("/1"), get("/2"), get("/3")].concat()).await;
            let mut agent = greeted(&mut agents, "pipelining").await;
            for number in 1..=3 {
                let (stream, told) = notified(&mut agent).await;
                assert_eq!(told, format!("fh(path=/{number})"));
                acknowledge(&mut agent, stream, &set(3, "q", Data::Int64(number))).await;
                let (stream, told) = notified(&mut agent).await;
                assert_eq!(told, "hr(status=200)");
                acknowledge(&mut agent, stream, &[]).await;
                client.expect(OK_AT_CLIENT).await;
            }
            assert_eq!(agents.accepted(), 1);
        },
    );
}

#[test]
fn rules_send_groups() {
    let rules = " http-request send-spoe-group e g if { path /g }\n http-response send-spoe-group e g\n tcp-request \
                 content send-spoe-group e g";
    let file = format!(
        "{}spoe-message m\n args dir=str(x) n=int(-1) missing=var(txn.no)\nspoe-group g\n messages m\n",
        engine(" groups g\n log global")
    );
    config(&proxies(rules, "")).file(&file).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let _served = serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/g")).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        for _ in 1..=3 {
            let (stream, told) = notified(&mut agent).await;
            assert_eq!(told, "m(dir=x,n=-1,missing=-)");
            acknowledge(&mut agent, stream, &[]).await;
            logged(&world, 1, &["SPOE: [a] <GROUP:g> sid=0 st=0 "]).await;
        }
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

/// A message with the head and the body fits into a frame, whatever the length of the body: it contains the part of the
/// body that fits into HAProxy's buffer with the head.
#[test]
fn the_beginning_of_a_long_body_is_sent() {
    let file = format!(
        "{}spoe-message m\n args len=req.body_len size=req.body_size head=req.hdrs body=req.body\n event \
         on-frontend-http-request\n",
        engine(" messages m")
    );
    config(&proxies(" option http-buffer-request", "")).file(&file).workers(&[1]).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let _served = serve_ok(&world.scope, S1);
        let mut client = Peer::connect(WEIR).await;
        let head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 20000\r\n\r\n";
        client.send([head.as_bytes(), &[b'b'; 20_000]].concat()).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let (stream, told) = notified(&mut agent).await;
        assert!(told.starts_with("m(len=15230,size=20000,head=host: x\r\n"), "{}", &told[..80]);
        acknowledge(&mut agent, stream, &[]).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

/// A message whose condition is false is not sent; without messages the agent is not contacted.
#[test]
fn messages_have_conditions() {
    let file = "[e]\nspoe-agent a\n use-backend agents\n timeout processing 1s\n messages m n\nspoe-message m\n acl a path \
                /m\n args a=path\n event on-frontend-http-request if a\nspoe-message n\n event on-frontend-http-request \
                if { path /m /n }\n";
    config(&proxies(" http-request return status 200", "")).file(file).run(|_| async {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/x")).await;
        assert!(client.receive_head().await.is_some());
        assert_eq!(agents.accepted(), 0);
        client.send(get("/n")).await;
        let mut agent = greeted(&mut agents, "").await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "n()");
        acknowledge(&mut agent, stream, &[]).await;
        assert!(client.receive_head().await.is_some());
        client.send(get("/m")).await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "m(a=/m)n()");
        acknowledge(&mut agent, stream, &[]).await;
        assert!(client.receive_head().await.is_some());
    });
}

/// The condition of a message's event applies to its group as well, and headers are sent as text.
#[test]
fn messages_of_groups_have_conditions() {
    let file = "[e]\nspoe-agent a\n use-backend agents\n timeout processing 1s\n groups g\nspoe-group g\n messages m \
                n\nspoe-message m\n args all=req.hdrs\n event on-frontend-http-request if { path /m }\nspoe-message n\n";
    let rules = " http-request send-spoe-group e g\n http-request return status 200";
    config(&proxies(rules, "")).file(file).run(|_| async {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/x")).await;
        let mut agent = greeted(&mut agents, "").await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "n()");
        acknowledge(&mut agent, stream, &[]).await;
        assert!(client.receive_head().await.is_some());
        client.send(get("/m")).await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "m(all=host: a\r\n\r\n)n()");
        acknowledge(&mut agent, stream, &[]).await;
        assert!(client.receive_head().await.is_some());
    });
}

/// Variables that are unknown in both the configuration and the agent's section are not set; `option force-set-var`
/// permits them.
#[test]
fn agents_set_the_variables_that_are_known() {
    let rules = " http-request set-var(txn.out) var(txn.a.read),concat(/,sess.a.registered,),concat(/,proc.a.read,)\n \
                 http-request return status 200 hdr x %[var(txn.out)] hdr y %[var(txn.name),lower,length]";
    for lines in [" register-var-names registered", " option force-set-var"] {
        config(&proxies(rules, "")).file(&engine(&format!(" messages fh\n{lines}"))).workers(&[1]).run(
            move |_| async move {
                let mut agents = Service::at(AGENT);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut agent = greeted(&mut agents, "").await;
                let (stream, _) = notified(&mut agent).await;
                let actions = [
                    set(2, "read", Data::Str(b"r")),
                    set(1, "registered", Data::Uint32(7)),
                    set(0, "read", Data::Ipv4([1, 2, 3, 4].into())),
                    set(2, "nobodys", Data::Bool(true)),
                    set(2, "bad name", Data::Bool(true)),
                ];
                acknowledge(&mut agent, stream, &actions.concat()).await;
                let head = client.receive_head().await.unwrap();
                assert!(head.contains("x: r/7/1.2.3.4\r\n"), "{head}");
                client.send(GET).await;
                let (stream, _) = notified(&mut agent).await;
                let actions = [
                    vec![2, 2, 1, 10],
                    b"registered".to_vec(),
                    vec![2, 2, 0, 4],
                    b"read".to_vec(),
                    set(2, "read", Data::Null),
                ];
                acknowledge(&mut agent, stream, &actions.concat()).await;
                let head = client.receive_head().await.unwrap();
                assert!(!head.contains("x: "), "{head}");
            },
        );
    }
}

/// The durations are in variables, and an idle connection is closed after `pool-purge-delay`.
#[test]
fn times_are_told_and_idle_connections_end() {
    let lines = " messages cs fh\n option set-process-time last\n option set-total-time all\n log global\n";
    let rules = " http-request return status 200 hdr x %[var(txn.a.last)]/%[var(txn.a.all)]";
    let text = proxies(rules, "").replace("a1 10.0.2.1:90", "a1 10.0.2.1:90 pool-purge-delay 3s");
    config(&text).file(&engine(lines)).workers(&[1]).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "").await;
        for millis in [20, 30] {
            let (stream, _) = notified(&mut agent).await;
            sleep(millis).await;
            acknowledge(&mut agent, stream, &[]).await;
        }
        let head = client.receive_head().await.unwrap();
        let (last, all) = head.split("x: ").nth(1).unwrap().split_once("\r\n").unwrap().0.split_once('/').unwrap();
        let (last, all): (u64, u64) = (last.parse().unwrap(), all.parse().unwrap());
        assert!((30..40).contains(&last) && (50..80).contains(&all), "{head}");
        let lines = ["SPOE: [a] <EVENT:on-client-session> sid=0 st=0 2", "http-request> sid=0 st=0 3"];
        logged(&world, 3, &lines).await;
        let before: Moment = rt::now();
        let told = receive(&mut agent).await;
        assert_eq!(told.kind, kind::HAPROXY_DISCONNECT);
        assert!(told.payload.ends_with(b"normal"), "{told:?}");
        let idle = rt::now().saturating_since(before).as_millis();
        assert!((2900..3100).contains(&idle), "{idle}");
        agent.expect_end().await;
    });
}

/// Agents are servers: load balancing applies, a server's `maxconn` queues requests, and checks take one out.
#[test]
fn events_wait_in_the_queue_of_the_backend() {
    let text = proxies(" http-request return status 200", "").replace("a1 10.0.2.1:90", "a1 10.0.2.1:90 maxconn 1");
    config(&text).file(&engine(" messages fh")).run(|_| async {
        let mut agents = Service::at(AGENT);
        let (mut first, mut second) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        first.send(get("/1")).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let (stream, _) = notified(&mut agent).await;
        second.send(get("/2")).await;
        agent.expect_silence(100).await;
        assert_eq!(agents.accepted(), 1);
        acknowledge(&mut agent, stream, &[]).await;
        assert!(first.receive_head().await.is_some());
        // On another worker, it gets a connection of its own.
        let waited = testkit::within(std::time::Duration::from_millis(50), notified(&mut agent)).await;
        match waited {
            Some((stream, told)) => {
                assert_eq!(told, "fh(path=/2)");
                acknowledge(&mut agent, stream, &[]).await;
            }
            None => {
                let mut agent = greeted(&mut agents, "pipelining").await;
                let (stream, told) = notified(&mut agent).await;
                assert_eq!(told, "fh(path=/2)");
                acknowledge(&mut agent, stream, &[]).await;
            }
        }
        assert!(second.receive_head().await.is_some());
    });
}

/// Requests that wait for the same connection to open: if that carries one at a time, the others get connections of
/// their own.
#[test]
fn requests_that_wait_together_are_parted_where_an_agent_does_not_pipeline() {
    config(&proxies(" http-request return status 200", "")).file(&engine(" messages fh")).workers(&[1]).run(
        |_| async {
            let mut agents = Service::at(AGENT);
            let (mut first, mut second) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
            first.send(get("/1")).await;
            second.send(get("/2")).await;
            sleep(5).await;
            assert_eq!(agents.accepted(), 0);
            let mut one = greeted(&mut agents, "").await;
            let (stream, told) = notified(&mut one).await;
            assert_eq!(stream, 1);
            let mut two = greeted(&mut agents, "").await;
            let (stream, other) = notified(&mut two).await;
            assert_eq!(stream, 1);
            let mut both = [told, other];
            both.sort();
            assert_eq!(both, ["fh(path=/1)", "fh(path=/2)"]);
            for agent in [&mut one, &mut two] {
                acknowledge(agent, 1, &[]).await;
            }
            assert!(first.receive_head().await.is_some() && second.receive_head().await.is_some());
            assert_eq!(agents.accepted(), 2);
        },
    );
}

/// Another configuration sends its own messages, over connections of its own; exchanges in progress end as they began.
#[test]
fn another_configuration_has_connections_of_its_own() {
    let next = || {
        config(&proxies(" http-request return status 200", ""))
            .file(&engine(" messages fh").replace("path=path", "p=path"))
    };
    config(&proxies(" http-request return status 200", "")).file(&engine(" messages fh")).workers(&[1]).run(
        move |world| async move {
            let mut agents = Service::at(AGENT);
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/1")).await;
            let mut agent = greeted(&mut agents, "pipelining").await;
            let (stream, told) = notified(&mut agent).await;
            assert_eq!(told, "fh(path=/1)");
            assert!(world.adopt(&next()).is_ok());
            sleep(1).await;
            let mut other = Peer::connect(WEIR).await;
            other.send(get("/2")).await;
            let mut own = greeted(&mut agents, "pipelining").await;
            let (second, told) = notified(&mut own).await;
            assert_eq!(told, "fh(p=/2)");
            acknowledge(&mut own, second, &[]).await;
            acknowledge(&mut agent, stream, &[]).await;
            assert!(client.receive_head().await.is_some() && other.receive_head().await.is_some());
        },
    );
}
