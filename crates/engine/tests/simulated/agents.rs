//! Tests of what only Weir's agents say or speak: `nolb`, and HTTP (`agent-check http`).

use std::cell::RefCell;
use std::rc::Rc;

use live::health::Operation;
use live::{Admin, Checker, ServerStatus};
use testkit::{Peer, Service, sleep};

use crate::api::{SOCKET, ask, order};
use crate::messages::*;
use crate::world::*;

const CHECKS: &str = "10.0.1.1:81";
const AGENT: &str = "10.0.1.1:82";

fn status(world: &World) -> ServerStatus {
    world.shared().live.proxies[0].status(0).unwrap()
}

/// The text of the last answer of the agent, as shown.
fn info(world: &World) -> String {
    world.shared().live.proxies[0].health(0, Checker::Agent).unwrap().last().info.clone()
}

/// Starts a service that sends the text set last on every connection, after a head if it waits for one, and closes it.
fn says(world: &World, address: &str, text: &str, waits: bool) -> (Rc<RefCell<String>>, Rc<RefCell<String>>) {
    let (told, heads) = (Rc::new(RefCell::new(text.to_owned())), Rc::new(RefCell::new(String::new())));
    let inner = (Rc::clone(&told), Rc::clone(&heads));
    Service::at(address).serve(&world.scope, move |mut peer: Peer, _| {
        let (text, heads) = (inner.0.borrow().clone(), Rc::clone(&inner.1));
        async move {
            if waits && let Some(head) = peer.receive_head().await {
                *heads.borrow_mut() = head;
            }
            peer.try_send(text).await;
        }
    });
    (told, heads)
}

#[test]
fn an_agent_excludes_new_clients_until_it_says_up() {
    use Operation::{Down, Stopping, Up};
    let rows = [
        ("nolb", Stopping),
        ("NOLB #update", Stopping),
        ("nolb;50%", Stopping),
        ("nolb;nonsense", Stopping),
        ("nolb;up", Up),
        ("down;nolb", Stopping),
        ("down;nolb;up", Up),
        ("nolb;down", Down),
        ("nolb;down;up", Up),
        ("nolb;maint;ready", Stopping),
        ("nolb,drain;ready", Stopping),
        ("nolb;maint;up,ready", Up),
    ];
    for (lines, expected) in rows {
        let body = "server s1 10.0.1.1:80 agent-check agent-port 82 agent-inter 1s\n server s2 10.0.1.2:80 track s1";
        listen(body).workers(&[1]).seeds(0..2).run(move |world| async move {
            world.forget_log();
            let (said, _) = says(&world, AGENT, "\n", false);
            for line in lines.split(';') {
                *said.borrow_mut() = format!("{line}\n");
                sleep(1_200).await;
            }
            let found = status(&world);
            assert_eq!((found.operation(), found.admin), (expected, Admin::Ready), "{lines}");
            assert_eq!(found.takes_part, expected == Up, "{lines}");
            let follower = world.shared().live.proxies[0].status(1).unwrap();
            assert_eq!(follower.operation(), expected, "{lines}");
        });
    }
}

#[test]
fn checks_and_agents_may_both_exclude_new_clients() {
    use Operation::{Down, Stopping, Up};
    const WELL: &str = "HTTP/1.0 200 OK\r\n\r\n";
    const AWAY: &str = "HTTP/1.0 404 Away\r\n\r\n";
    const ILL: &str = "HTTP/1.0 500 Ill\r\n\r\n";
    let body = "option httpchk\n http-check disable-on-404\n server s1 10.0.1.1:80 check port 81 inter 1s rise 1 fall 1 \
                init-state fully-up agent-check agent-port 82 agent-inter 1s";
    listen(body).global(SOCKET).workers(&[1]).run(|world| async move {
        world.forget_log();
        let ((answer, _), (said, _)) = (says(&world, CHECKS, WELL, false), says(&world, AGENT, "up\n", false));
        let rows = [
            (WELL, "nolb", Stopping),
            (AWAY, "nolb", Stopping),
            (AWAY, "up", Stopping),
            (WELL, "up", Up),
            (ILL, "nolb", Down),
            (WELL, "100%", Stopping),
            (WELL, "up", Up),
            (WELL, "nolb", Stopping),
        ];
        for (health, word, expected) in rows {
            *answer.borrow_mut() = health.to_owned();
            *said.borrow_mut() = format!("{word}\n");
            sleep(2_500).await;
            assert_eq!(status(&world).operation(), expected, "{health} {word}");
        }
        // An administrator's stop is not the agent's, and a command ends that of the agent.
        *said.borrow_mut() = "100%\n".to_owned();
        sleep(1_200).await;
        order("set server l/s1 agent up").await;
        sleep(2_500).await;
        assert_eq!(status(&world).operation(), Up);
    });
}

/// Clients with a cookie stay, others get the other server; the statistics show the state.
#[test]
fn a_server_without_new_clients_keeps_those_with_a_cookie() {
    let body = "cookie SRV insert\n balance roundrobin\n server s1 10.0.1.1:80 cookie one agent-check agent-port 82 agent-inter 1s\n \
                server s2 10.0.1.2:80 cookie two";
    listen(body).global(SOCKET).workers(&[1]).seeds(0..2).run(|world| async move {
        world.forget_log();
        let _said = says(&world, AGENT, "nolb #update\n", false);
        for (address, name) in [(S1, "s1"), (S2, "s2")] {
            Service::at(address).serve(&world.scope, move |mut peer: Peer, _| async move {
                while peer.receive_head().await.is_some() && peer.try_send(answer(name)).await {}
            });
        }
        sleep(1_500).await;
        for (cookie, expected) in [("", "s2"), ("Cookie: SRV=one\r\n", "s1"), ("", "s2"), ("", "s2")] {
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{cookie}\r\n")).await;
            assert!(client.receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 200")));
            assert_eq!(client.receive(2).await, expected.as_bytes(), "{cookie}");
        }
        let shown = ask("show stat l -1 -1").await;
        let line = shown.lines().find(|line| line.starts_with("l,s1,")).unwrap();
        assert!(line.contains(",NOLB,") && line.contains("L7OKC"), "{line}");
        sleep(1_000).await;
    });
}

#[test]
fn agents_over_http_answer_requests() {
    let rows = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndown", Operation::Down, "via agent : down"),
        ("HTTP/1.1 200 OK\r\n\r\nnolb #update\nmore", Operation::Stopping, "via agent : nolb (update)"),
        (
            "HTTP/1.1 503 Not now\r\nContent-Length: 4\r\n\r\ndown",
            Operation::Up,
            "Agent answered with status 503 Not now",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Operation::Up, "Agent sent a body without a line"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndown", Operation::Up, "Agent sent an incomplete response"),
        ("down\n", Operation::Up, "Agent sent no valid HTTP response"),
        ("", Operation::Up, "Agent sent an empty response"),
    ];
    for (answer, expected, shown) in rows {
        let body =
            "server s1 10.0.1.1:80 agent-check http /load?of=s1 agent-addr 10.0.1.1 agent-port 82 agent-inter 1s";
        listen(body).workers(&[1]).seeds(0..2).run(move |world| async move {
            world.forget_log();
            let (_, heads) = says(&world, AGENT, answer, true);
            sleep(2_500).await;
            assert_eq!(*heads.borrow(), "GET /load?of=s1 HTTP/1.1\r\nhost: 10.0.1.1:82\r\nconnection: close\r\n\r\n");
            assert_eq!(status(&world).operation(), expected, "{answer}");
            assert_eq!(info(&world), shown, "{answer}");
        });
    }
}

/// An endless response ends at a limit, and one that does not come at the time limit.
#[test]
fn responses_of_agents_are_bounded() {
    let body = "timeout check 700\n server s1 10.0.1.1:80 agent-check http / agent-port 82 agent-inter 2s";
    listen(body).workers(&[1]).seeds(0..2).run(|world| async move {
        world.forget_log();
        let (said, _) = says(&world, AGENT, &format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(40_000)), true);
        sleep(3_000).await;
        let first = info(&world);
        assert!(first == "Buffer full" || first == "Agent sent no valid HTTP response", "{first}");
        *said.borrow_mut() = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(40_000));
        sleep(2_500).await;
        assert_eq!(info(&world), "Agent sent a line that is too long");
        assert_eq!(status(&world).operation(), Operation::Up);
    });
}

/// An agent that gets an HTTP request gets no text: the command is refused.
#[test]
fn a_text_for_an_agent_over_http_is_refused() {
    for (agent, expected) in [
        ("agent-check", "\n"),
        ("agent-check http /", "'agent-send' has no effect: the agent gets an HTTP request ('agent-check http').\n\n"),
    ] {
        let body = format!("server s1 10.0.1.1:80 {agent} agent-port 82 agent-inter 1s");
        listen(&body).global(SOCKET).workers(&[1]).run(move |world| async move {
            world.forget_log();
            assert_eq!(ask("set server l/s1 agent-send hello").await, expected, "{agent}");
        });
    }
}
