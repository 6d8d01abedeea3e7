//! Tests of agents that are late, disconnect, or send invalid data: a stream continues without them, and the error is
//! in a variable.

use testkit::{Peer, Service, sleep};
use wire::spop::{Data, kind};

use crate::api::{SOCKET, ask};
use crate::messages::*;
use crate::spoe::*;
use crate::world::*;

/// Returns the error code as a field of the answer.
const REPORT: &str = " http-request return status 200 hdr x e%[var(txn.a.err)]";

fn world(lines: &str, agents: &str) -> Worlds {
    let lines = format!(" messages cs fh\n option set-on-error err\n log global\n{lines}");
    config(&proxies(REPORT, agents)).file(&engine(&lines))
}

/// Expects this code in the client's answer.
async fn reports(client: &mut Peer, code: &str) {
    let head = client.receive_head().await.unwrap();
    assert!(head.contains(&format!("x: e{code}\r\n")), "{head}, not {code}");
}

#[test]
fn a_late_agent_is_done_without_and_asked_no_more_for_the_transaction() {
    world("", "").run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let (stream, _) = notified(&mut agent).await;
        client.expect_silence(450).await;
        reports(&mut client, "1").await;
        logged(&world, 2, &["SPOE: [a] <EVENT:on-client-session> sid=0 st=1 500 1/1"]).await;
        // A late answer is ignored, and the connection is kept.
        acknowledge(&mut agent, stream, &set(2, "err", Data::Int64(9))).await;
        client.send(GET).await;
        for _ in 0..2 {
            let (stream, _) = notified(&mut agent).await;
            acknowledge(&mut agent, stream, &[]).await;
        }
        reports(&mut client, "").await;
        assert_eq!(agents.accepted(), 1);
        world.forget_log();
    });
}

#[test]
fn later_events_go_on_where_that_is_asked_for() {
    world(" option continue-on-error\n option dontlog-normal", "").run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        notified(&mut agent).await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "fh(path=/)");
        acknowledge(&mut agent, stream, &[]).await;
        reports(&mut client, "1").await;
        logged(&world, 2, &["<EVENT:on-client-session> sid=0 st=1 500 1/1"]).await;
    });
}

/// An agent's behaviour after it has received a message, and the resulting code in the variable and the log.
#[test]
fn an_agent_that_fails_is_done_without() {
    type Failing = fn(&mut Peer, u8) -> Vec<u8>;
    let rows: [(&str, Failing, &str, bool); 8] = [
        ("closes", |_, _| Vec::new(), "257", true),
        ("says that it leaves", |_, _| farewell(42), "298", true),
        ("says nothing wrong and leaves", |_, _| farewell(0), "257", true),
        ("sends what is no action", |_, stream| frame(kind::ACK, (stream, 1), &[7, 1, 2]), "260", false),
        ("sends a truncated action", |_, stream| frame(kind::ACK, (stream, 1), &[1, 3, 2, 9, b'x']), "260", false),
        ("sends a large frame", |_, _| vec![0, 1, 0, 0, kind::ACK], "259", false),
        ("sends what is no frame", |_, _| b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), "259", false),
        ("sends a fragment", |_, stream| vec![0, 0, 0, 7, kind::ACK, 0, 0, 0, 0, stream, 1], "266", false),
    ];
    for (what, answer, code, closes) in rows {
        world("", "").workers(&[1]).seeds(0..2).run(move |world| async move {
            let mut agents = Service::at(AGENT);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut agent = greeted(&mut agents, "pipelining").await;
            let (stream, _) = notified(&mut agent).await;
            let bytes = answer(&mut agent, stream);
            agent.send(bytes).await;
            if closes {
                agent.close();
            } else if code != "260" {
                let told = receive(&mut agent).await;
                assert_eq!(told.kind, kind::HAPROXY_DISCONNECT, "{what}");
                agent.expect_end().await;
            }
            reports(&mut client, code).await;
            logged(&world, 2, &[&format!("SPOE: [a] <EVENT:on-client-session> sid=0 st={code} ")]).await;
        });
    }
}

fn farewell(status: u32) -> Vec<u8> {
    let items = [item("status-code", Data::Uint32(status)), item("message", Data::Str(b"bye"))];
    frame(kind::AGENT_DISCONNECT, (0, 0), &items.concat())
}

/// Answers to frames that were never sent are ignored.
#[test]
fn answers_to_others_are_for_nobody() {
    world("", "").run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        for number in 0..2 {
            let (stream, _) = notified(&mut agent).await;
            acknowledge(&mut agent, stream + 2, &set(2, "err", Data::Int64(9))).await;
            agent.send(frame(kind::ACK, (stream, 2), &set(2, "err", Data::Int64(9)))).await;
            client.expect_silence(10).await;
            acknowledge(&mut agent, stream, &[]).await;
            if number == 0 {
                // The same answer a second time.
                acknowledge(&mut agent, stream, &set(2, "err", Data::Int64(9))).await;
            }
        }
        reports(&mut client, "").await;
        world.forget_log();
    });
}

/// Frames of unknown types are ignored after the agent's HELLO; so is a second HELLO.
#[test]
fn unknown_frames_are_passed_over() {
    world("", "").workers(&[1]).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        for _ in 0..2 {
            let (stream, _) = notified(&mut agent).await;
            for kind in [0, kind::HAPROXY_HELLO, kind::HAPROXY_DISCONNECT, kind::NOTIFY, 100, 104, 255] {
                agent.send(frame(kind, (stream, 1), b"more")).await;
            }
            agent.send(hello(1000, "")).await;
            acknowledge(&mut agent, stream, &[]).await;
        }
        reports(&mut client, "").await;
        assert_eq!(agents.accepted(), 1);
        world.forget_log();
    });
}

/// `timeout connect` is the limit for the agent's HELLO, whatever `timeout server` is.
#[test]
fn the_time_for_a_connection_covers_the_greeting() {
    for (limits, ends) in
        [("timeout connect 100ms\n timeout server 5s", true), ("timeout connect 5s\n timeout server 100ms", false)]
    {
        world(" option continue-on-error", &format!(" retries 0\n {limits}")).workers(&[1]).run(
            move |world| async move {
                let mut agents = Service::at(AGENT);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut agent = agents.accept().await;
                receive(&mut agent).await;
                if ends {
                    let told = receive(&mut agent).await;
                    assert_eq!(told.kind, kind::HAPROXY_DISCONNECT);
                    assert!(told.payload.starts_with(b"\x0bstatus-code\x03\x02"), "{told:?}");
                    reports(&mut client, "257").await;
                    let texts = [
                        "<EVENT:on-client-session> sid=0 st=257 100 1/1",
                        "<EVENT:on-frontend-http-request> sid=0 st=257",
                    ];
                    logged(&world, 3, &texts).await;
                } else {
                    agent.expect_silence(300).await;
                    agent.send(hello(1000, "")).await;
                    let (stream, _) = notified(&mut agent).await;
                    acknowledge(&mut agent, stream, &[]).await;
                }
                world.forget_log();
            },
        );
    }
}

/// Counters of the agents' backend in the statistics.
async fn counts<const N: usize>(names: [&str; N]) -> [u32; N] {
    let table = ask("show stat agents 2 -1").await;
    let columns: Vec<_> = table.lines().next().unwrap().trim_start_matches("# ").split(',').collect();
    let values: Vec<_> = table.lines().nth(1).unwrap().split(',').collect();
    names.map(|name| values[columns.iter().position(|column| *column == name).unwrap()].parse().unwrap())
}

/// Exchanges aborted by an agent are counted as in HAProxy, and so are those aborted by this side.
#[test]
fn aborted_exchanges_are_counted() {
    let names = ["eresp", "srv_abrt", "cli_abrt"];
    world("", "").global(SOCKET).workers(&[1]).run(move |world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        notified(&mut agent).await;
        agent.send(farewell(7)).await;
        agent.close();
        reports(&mut client, "263").await;
        assert_eq!(counts(names).await, [1, 1, 0]);
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        notified(&mut agent).await;
        reports(&mut client, "1").await;
        assert_eq!(counts(names).await, [1, 1, 1]);
        // This side closes the connection, not the agent.
        client.send(GET).await;
        let (stream, _) = notified(&mut agent).await;
        agent.send(vec![0, 0, 0, 7, kind::ACK, 0, 0, 0, 0, stream, 1]).await;
        reports(&mut client, "266").await;
        assert_eq!(counts(names).await, [2, 1, 1]);
        world.forget_log();
    });
}

/// An agent's HELLO with unsupported parameters ends the connection with its status.
#[test]
fn greetings_that_do_not_fit_are_refused() {
    let rows = [
        (hello(100, ""), b"\x03\x09"),
        (hello(16_381, ""), b"\x03\x09"),
        (frame(kind::AGENT_HELLO, (0, 0), &item("version", Data::Str(b"1.0"))), b"\x03\x08"),
        (frame(kind::AGENT_HELLO, (0, 0), &item("version", Data::Str(b"2.0"))), b"\x03\x06"),
        (frame(kind::ACK, (1, 1), &[]), b"\x03\x04"),
    ];
    for (greeting, status) in rows {
        // The connection is not retried: the agent would send the same HELLO.
        world("", "").workers(&[1]).seeds(0..1).run(move |world| {
            let greeting = greeting.clone();
            async move {
                let mut agents = Service::at(AGENT);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut agent = agents.accept().await;
                receive(&mut agent).await;
                agent.send(greeting).await;
                let told = receive(&mut agent).await;
                assert_eq!(told.kind, kind::HAPROXY_DISCONNECT);
                assert!(told.payload.starts_with(&[b"\x0bstatus-code", &status[..]].concat()), "{told:?}");
                reports(&mut client, &(256 + u32::from(status[1])).to_string()).await;
                world.forget_log();
            }
        });
    }
}

/// `timeout processing` covers the queue, the connection, its HELLO and the retries.
#[test]
fn the_time_for_an_event_covers_all_of_it() {
    // There is no listener; there is no HELLO; the server's slot is taken.
    world("", "").workers(&[1]).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect_silence(450).await;
        reports(&mut client, "1").await;
        world.forget_log();
    });
    world("", "").workers(&[1]).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = agents.accept().await;
        receive(&mut agent).await;
        reports(&mut client, "1").await;
        world.forget_log();
    });
    world(" option continue-on-error", " ").workers(&[1]).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "").await;
        notified(&mut agent).await;
        // It is busy with an abandoned request: another connection is opened.
        let mut other = greeted(&mut agents, "").await;
        let (stream, _) = notified(&mut other).await;
        acknowledge(&mut other, stream, &[]).await;
        reports(&mut client, "1").await;
        world.forget_log();
    });
}

/// If an agent cannot be reached, another one is used.
#[test]
fn another_agent_is_asked_where_one_cannot_be_reached() {
    world("", " option redispatch\n server a2 10.0.2.2:90").workers(&[1]).run(|world| async move {
        let mut agents = Service::at("10.0.2.2:90");
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        for _ in 0..2 {
            let (stream, _) = notified(&mut agent).await;
            acknowledge(&mut agent, stream, &[]).await;
        }
        reports(&mut client, "").await;
        world.forget_log();
    });
}

/// A message for the agent does not fit into a frame.
#[test]
fn frames_are_not_larger_than_the_agent_permits() {
    let file = "[e]\nspoe-agent a\n use-backend agents\n timeout processing 1s\n option set-on-error err\n messages \
                m\nspoe-message m\n args p=path\n event on-frontend-http-request\n";
    config(&proxies(REPORT, "")).file(file).run(|_| async {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(get(&format!("/{}", "x".repeat(600)))).await;
        let mut agent = agents.accept().await;
        receive(&mut agent).await;
        agent.send(hello(512, "pipelining")).await;
        reports(&mut client, "3").await;
        client.send(get("/y")).await;
        let (stream, told) = notified(&mut agent).await;
        assert_eq!(told, "m(p=/y)");
        acknowledge(&mut agent, stream, &[]).await;
        reports(&mut client, "").await;
    });
}

/// A client that disconnects has no effect on others; its request to the agent is abandoned.
#[test]
fn clients_leave_while_an_agent_is_asked() {
    world("", "").run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let (stream, _) = notified(&mut agent).await;
        client.close();
        sleep(600).await;
        acknowledge(&mut agent, stream, &[]).await;
        agent.close();
        world.forget_log();
    });
}

/// An agent that is silent for `timeout server` loses its connection.
#[test]
fn a_silent_agent_loses_its_connection() {
    world("", " timeout server 2s").workers(&[1]).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        notified(&mut agent).await;
        reports(&mut client, "1").await;
        let told = receive(&mut agent).await;
        assert_eq!(told.kind, kind::HAPROXY_DISCONNECT);
        assert!(told.payload.starts_with(b"\x0bstatus-code\x03\x02"), "{told:?}");
        agent.expect_end().await;
        world.forget_log();
    });
}

/// An agent that sends a frame byte by byte counts as silent.
#[test]
fn an_agent_whose_frame_does_not_come_loses_its_connection() {
    world("", " timeout server 2s").workers(&[1]).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        notified(&mut agent).await;
        let mut sent = 0;
        for byte in [0, 0, 1, 0].into_iter().chain([kind::ACK; 40]) {
            if !agent.try_send([byte]).await {
                break;
            }
            sent += 1;
            sleep(500).await;
        }
        assert!(sent < 10, "{sent} bytes");
        reports(&mut client, "1").await;
        world.forget_log();
    });
}

/// An agent that stops reading is not waited for, not even to send it the DISCONNECT frame.
#[test]
fn an_agent_that_does_not_read_loses_its_connection() {
    let narrow = |_| rt::sim::Link { buffer: 4_096, ..Default::default() };
    world("", " timeout server 2s").workers(&[1]).links(narrow).run(|world| async move {
        let mut agents = Service::at(AGENT);
        let mut client = Peer::connect(WEIR).await;
        client.send(get(&"/path".repeat(2_000))).await;
        let mut agent = greeted(&mut agents, "pipelining").await;
        let (stream, _) = notified(&mut agent).await;
        acknowledge(&mut agent, stream, &[]).await;
        reports(&mut client, "1").await;
        sleep(3_000).await;
        assert!(agent.receive_rest().await.len() < 10_000);
        world.forget_log();
    });
}
