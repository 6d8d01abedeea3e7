//! Tests of `http-request auth-request` without a decision: the message and the variables that name the server and the reason, and
//! servers without a free slot.

use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const FORMAT: &str = "log-format \"%ST %[var(txn.auth_request.server)] %[var(txn.auth_request.error)]\"";

fn asked_by(rule: &str, auth: &str) -> Worlds {
    config(&format!(
        "frontend l\n bind {WEIR}\n {FORMAT}\n http-request auth-request auth {rule}\n default_backend app\n\
         backend app\n server s1 10.0.1.1:80\nbackend auth\n timeout server 5s\n timeout connect 2s\n {auth}\n"
    ))
}

/// Waits for a number of log lines, and returns them without their headers.
async fn logged(world: &World, count: usize) -> Vec<String> {
    let lines = world.lines(count).await.into_iter();
    lines.map(|line| line.split_once("]: ").map(|(_, text)| text.to_owned()).unwrap_or(line)).collect()
}

/// What the server does with a subrequest.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Absent,
    Silent,
    Sends(&'static str),
}

#[test]
fn a_message_and_variables_name_the_server_and_the_reason() {
    let rows = [
        (Fault::Absent, "connection failed: Connection refused (os error 111)"),
        (Fault::Silent, "no answer in time"),
        (Fault::Sends("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"), "status 502"),
        (Fault::Sends("SSH-2.0\r\n\r\n"), "invalid answer"),
        (
            Fault::Sends("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"),
            "connection closed before the end of the answer",
        ),
        (
            Fault::Sends("HTTP/1.1 403 No\r\nContent-Length: 90000\r\n\r\n"),
            "connection closed before the end of the answer",
        ),
    ];
    for (fault, reason) in rows {
        for (more, status) in [("", 503), ("on-error allow", 200)] {
            asked_by(more, "server a1 10.0.1.2:80").run(move |world| async move {
                serve_ok(&world.scope, S1);
                let mut a1 = (!matches!(fault, Fault::Absent)).then(|| Service::at(S2));
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                if let Some(a1) = &mut a1 {
                    let mut auth = a1.accept().await;
                    auth.receive_head().await;
                    match fault {
                        Fault::Sends(bytes) => auth.send(bytes).await,
                        _ => auth.expect_end().await,
                    }
                }
                assert!(client.receive_head().await.unwrap().starts_with(&format!("HTTP/1.1 {status} ")));
                let message = format!("Server auth/a1 has not decided on a request of l, reason: {reason}.");
                assert_eq!(logged(&world, 2).await, [message, format!("{status} auth/a1 {reason}")]);
            });
        }
    }
}

/// One message a second, with the number of requests that it stands for.
#[test]
fn messages_do_not_flood_the_log() {
    asked_by("", "server a1 10.0.1.2:80 disabled").run(|world| async move {
        let ask = async || {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect(page(503)).await;
        };
        for _ in 0..3 {
            ask().await;
        }
        sleep(1_000).await;
        ask().await;
        let first = "Backend auth has not decided on a request of l, reason: no server is available.";
        let second = "Backend auth has not decided on a request of l, reason: no server is available (2 more since the last message).";
        let own = "503 auth/<NOSRV> no server is available";
        assert_eq!(logged(&world, 6).await, [first, own, own, own, second, own]);
    });
}

#[test]
fn a_subrequest_waits_for_a_free_slot_within_timeout_queue() {
    asked_by("", "timeout queue 3s\n server a1 10.0.1.2:80 maxconn 1").run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let (mut first, mut second, mut third) =
            (Peer::connect(WEIR).await, Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        first.send(get("/1")).await;
        let mut auth = a1.accept().await;
        auth.receive_head().await;
        second.send(get("/2")).await;
        sleep(10).await;
        // A client that leaves gives its position up.
        third.send(get("/3")).await;
        sleep(10).await;
        third.reset();
        sleep(2_900).await;
        second.expect_silence(0).await;
        auth.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let head = auth.receive_head().await.unwrap();
        assert!(head.contains("x-forwarded-uri: /2\r\n"), "{head}");
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        server.send(OK).await;
        first.expect(OK_AT_CLIENT).await;
        // The slot is not free in time.
        first.send(get("/4")).await;
        sleep(2_990).await;
        first.expect_silence(0).await;
        first.expect(page(503)).await;
        auth.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/2")).await;
        server.send(OK).await;
        second.expect(OK_AT_CLIENT).await;
        let lines = logged(&world, 4).await;
        let late = "no free slot within 'timeout queue'";
        assert!(lines.iter().any(|line| *line == format!("503 auth/<NOSRV> {late}")), "{lines:?}");
        assert!(lines.iter().any(|line| line.ends_with(&format!("on a request of l, reason: {late}."))), "{lines:?}");
        world.forget_log();
    });
    asked_by("", "server a1 10.0.1.2:80 maxconn 1 maxqueue 1").run(|world| async move {
        let mut a1 = Service::at(S2);
        let mut clients = Vec::new();
        for _ in 0..2 {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            clients.push(client);
            sleep(5).await;
        }
        let mut auth = a1.accept().await;
        auth.receive_head().await;
        // `timeout connect` applies without `timeout queue`.
        clients[1].expect(page(503)).await;
        auth.expect_silence(2_000).await;
        drop(clients);
        auth.expect_end().await;
        world.forget_log();
    });
}
