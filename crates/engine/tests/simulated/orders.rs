//! Tests of runtime commands with traffic: frontends that pause and stop, sessions that are killed.

use testkit::{Peer, PeerOptions, Service, sleep};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

const OTHER: &str = "10.0.0.1:81";

/// The status of a frontend in the statistics.
async fn status(frontend: &str) -> String {
    let table = ask("show stat").await;
    let line = table.lines().find(|line| line.starts_with(&format!("{frontend},FRONTEND,"))).unwrap();
    line.split(',').nth(17).unwrap().to_owned()
}

async fn fetch(client: &mut Peer, s1: &mut Service) {
    client.send(GET).await;
    let mut server = s1.accept().await;
    server.expect(GET_AT_SERVER).await;
    server.send(OK).await;
    client.expect(OK_AT_CLIENT).await;
}

fn two_frontends() -> Worlds {
    config(&format!(
        "frontend f\n bind {WEIR}\n default_backend b\nfrontend g\n bind {OTHER}\n default_backend b\nbackend b\n \
         http-reuse never\n server s1 10.0.1.1:80"
    ))
    .global(SOCKET)
}

#[test]
fn orders_about_frontends_are_answered_as_haproxy_answers_them() {
    let rows: &[(&str, &str)] = &[
        ("disable frontend", "A frontend name is expected.\n\n"),
        ("disable frontend x", "No such frontend.\n\n"),
        ("disable frontend b", "No such frontend.\n\n"),
        ("enable frontend f", "All sockets are already enabled.\n\n"),
        ("disable frontend f", "\n"),
        ("disable frontend f", "All sockets are already disabled.\n\n"),
        ("enable frontend f", "\n"),
        ("shutdown frontend", "A frontend name is expected.\n\n"),
        ("disable frontend f;shutdown frontend f", "\n\n"),
        ("shutdown frontend f", "Frontend was already shut down.\n\n"),
        ("enable frontend f", "Frontend was previously shut down, cannot enable.\n\n"),
        ("disable frontend f", "Frontend was previously shut down, cannot disable.\n\n"),
        ("shutdown session", "Session pointer expected (use 'show sess').\n\n"),
        ("shutdown session x", "Session pointer expected (use 'show sess').\n\n"),
        ("shutdown session 0x1", "No such session (use 'show sess').\n\n"),
        ("shutdown session 0x1000000000000", "No such session (use 'show sess').\n\n"),
        ("shutdown session 0xffff000000000000", "No such session (use 'show sess').\n\n"),
        ("shutdown sessions server", "Require 'backend/server'.\n\n"),
        ("shutdown sessions server b/x", "No such server.\n\n"),
        ("shutdown sessions server b/s1", "\n"),
    ];
    two_frontends().seeds(0..2).run(move |_| async move {
        for (typed, answer) in rows {
            assert_eq!(ask(typed).await, *answer, "{typed:?}");
        }
    });
}

#[test]
fn a_frontend_pauses_alone_and_comes_back() {
    two_frontends().run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut old = Peer::connect(WEIR).await;
        fetch(&mut old, &mut s1).await;
        assert_eq!(ask("disable frontend f").await, "\n");
        sleep(1).await;
        assert_eq!((status("f").await, status("g").await), ("PAUSED".to_owned(), "OPEN".to_owned()));
        // Connected clients are served, the other frontend accepts, a new connection waits.
        fetch(&mut old, &mut s1).await;
        let mut other = Peer::connect(OTHER).await;
        fetch(&mut other, &mut s1).await;
        let mut new = Peer::connect(WEIR).await;
        new.send(GET).await;
        sleep(100).await;
        s1.is_left_alone();
        assert_eq!(ask("enable frontend f").await, "\n");
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        new.expect(OK_AT_CLIENT).await;
        assert_eq!(status("f").await, "OPEN");
        let lines = world.take_log().await;
        for sentence in ["Paused frontend f.", "Resumed frontend f."] {
            assert!(lines.iter().any(|line| line.contains(sentence)), "{lines:#?}");
        }
    });
}

#[test]
fn a_frontend_that_is_shut_down_closes_its_address_and_ends_nobody() {
    two_frontends().run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut old = Peer::connect(WEIR).await;
        fetch(&mut old, &mut s1).await;
        world.forget_log();
        assert_eq!(ask("shutdown frontend f").await, "\n");
        sleep(5).await;
        assert_eq!(status("f").await, "STOP");
        assert!(Peer::try_connect(WEIR, PeerOptions::default()).await.is_err());
        fetch(&mut old, &mut s1).await;
        let mut other = Peer::connect(OTHER).await;
        fetch(&mut other, &mut s1).await;
        let lines = world.take_log().await;
        let sentence = "Proxy f stopped (cumulated conns: FE: 1, BE: 0).";
        assert!(lines.iter().any(|line| line.contains(sentence)), "{lines:#?}");
    });
}

/// The identifier of the only session of a frontend.
async fn id(frontend: &str) -> String {
    let sessions = ask("show sess").await;
    let line = sessions.lines().find(|line| line.contains(&format!("fe={frontend} "))).unwrap();
    line.split(':').next().unwrap().to_owned()
}

#[test]
fn a_session_is_killed_by_its_id() {
    listen("server s1 10.0.1.1:80").global(SOCKET).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        let id = id("l").await;
        assert_eq!(ask(&format!("shutdown session {id}")).await, "\n");
        client.expect_eof().await;
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/# 500 0 - - KC-- #/#/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        assert_eq!(ask(&format!("shutdown session {id}")).await, "No such session (use 'show sess').\n\n");
        // The server's slot is free again.
        let mut next = Peer::connect(WEIR).await;
        fetch(&mut next, &mut s1).await;
        world.forget_log();
    });
}

#[test]
fn the_sessions_at_a_server_are_killed_and_no_others() {
    const EACH: usize = 5;
    listen("balance roundrobin\nserver s1 10.0.1.1:80\nserver s2 10.0.1.2:80").global(SOCKET).run(|world| async move {
        let (mut s1, mut s2) = (Service::at(S1), Service::at(S2));
        let mut clients = Vec::new();
        let (mut cut, mut kept) = (Vec::new(), Vec::new());
        for _ in 0..EACH {
            for (service, servers) in [(&mut s1, &mut cut), (&mut s2, &mut kept)] {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                let mut server = service.accept().await;
                server.expect(GET_AT_SERVER).await;
                server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await;
                client.expect("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab").await;
                servers.push(server);
                clients.push(client);
            }
        }
        assert_eq!(ask("shutdown sessions server l/s1").await, "\n");
        for mut server in cut {
            server.expect_end().await;
        }
        for server in &mut kept {
            server.send("cd").await;
        }
        for (at, client) in clients.iter_mut().enumerate() {
            if at % 2 == 0 {
                client.expect_eof().await;
            } else {
                client.expect("cd").await;
            }
        }
        let lines = world.lines(2 * EACH).await;
        let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
        assert_eq!((count(" KC-- "), count(" ---- ")), (EACH, EACH), "{lines:#?}");
    });
}

/// Requests in progress stay on their connections; neither they nor idle links lead to the old address afterwards.
#[test]
fn a_server_moves_and_nobody_goes_to_its_old_place_any_more() {
    listen("http-reuse always\nserver s1 10.0.1.1:80").global(SOCKET).run(|_| async move {
        let (mut s1, mut s2) = (Service::at(S1), Service::at(S2));
        // An idle link to the old address, and one in use.
        let mut first = Peer::connect(WEIR).await;
        let mut second = Peer::connect(WEIR).await;
        first.send(GET).await;
        let mut idle = s1.accept().await;
        idle.expect(GET_AT_SERVER).await;
        second.send(GET).await;
        let mut busy = s1.accept().await;
        busy.expect(GET_AT_SERVER).await;
        idle.send(OK).await;
        first.expect(OK_AT_CLIENT).await;
        sleep(5).await;
        let told = "IP changed from '10.0.1.1' to '10.0.1.2' by 'stats socket command'\n\n";
        assert_eq!(ask("set server l/s1 addr 10.0.1.2").await, told);
        idle.expect_end().await;
        busy.send(OK).await;
        second.expect(OK_AT_CLIENT).await;
        busy.expect_end().await;
        for client in [&mut first, &mut second] {
            client.send(GET).await;
            let mut server = s2.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
            client.expect(OK_AT_CLIENT).await;
        }
        s1.is_left_alone();
        let state = ask("show servers state").await;
        assert!(state.contains(" s1 10.0.1.2 2 0 1 1 ") && state.contains(" - 80 - "), "{state}");
        let stat = ask("show stat").await;
        assert!(stat.contains(",10.0.1.2:80,"), "{stat}");
    });
}

#[test]
fn links_of_a_session_s_own_do_not_outlive_a_move() {
    listen("http-reuse never\nserver s1 10.0.1.1:80").global(SOCKET).run(|_| async move {
        let (mut s1, mut s2) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        fetch(&mut client, &mut s1).await;
        ask("set server l/s1 addr 10.0.1.2").await;
        fetch(&mut client, &mut s2).await;
        s1.is_left_alone();
    });
}

#[test]
fn states_of_servers_are_shown_as_haproxy_shows_them() {
    // The command, then the state in `show servers state` up to the weight, and the statuses of server and backend.
    let rows: &[(&str, &str, &str, &str)] = &[
        ("set server l/s1 state drain", "2 8 1", "DRAIN", "DOWN"),
        ("set server l/s1 state maint", "0 1 1", "MAINT", "DOWN"),
        ("set server l/s1 state drain", "2 8 1", "DRAIN", "DOWN"),
        ("enable server l/s1", "2 0 1", "no check", "UP"),
        ("disable server l/s1", "0 1 1", "MAINT", "DOWN"),
        ("set server l/s1 state ready", "2 0 1", "no check", "UP"),
        ("set weight l/s1 0", "2 0 0", "no check", "DOWN"),
        ("set weight l/s1 1;set server l/s2 state maint", "2 0 1", "no check", "UP"),
    ];
    listen("server s1 10.0.1.1:80\nserver s2 10.0.1.2:80 disabled").global(SOCKET).seeds(0..2).run(
        move |_| async move {
            let state = ask("show servers state").await;
            assert!(state.contains(" s2 10.0.1.2 0 5 1 1 0 1 0 0 8 0 0 0 - 80 "), "{state}");
            for (typed, state, server, backend) in rows {
                ask(typed).await;
                let dump = ask("show servers state").await;
                assert!(dump.contains(&format!(" s1 10.0.1.1 {state} ")), "{typed}: {dump}");
                let table = ask("show stat").await;
                let shown = |name: &str| {
                    let line = table.lines().find(|line| line.starts_with(&format!("l,{name},"))).unwrap();
                    line.split(',').nth(17).unwrap().to_owned()
                };
                assert_eq!((shown("s1"), shown("BACKEND")), ((*server).to_owned(), (*backend).to_owned()), "{typed}");
            }
            sleep(3_000).await;
            ask("set server l/s2 state ready").await;
            // Seconds since each of them changed its state.
            sleep(2_000).await;
            let state = ask("show servers state").await;
            assert!(state.contains(" s2 10.0.1.2 2 4 1 1 2 1 0 0 8 "), "{state}");
            assert!(state.contains(" s1 10.0.1.1 2 0 1 1 5 1 0 0 0 "), "{state}");
        },
    );
}

#[test]
fn the_log_tells_what_becomes_of_servers_as_haproxy_does() {
    let rows: &[(&str, &[&str])] = &[
        (
            "s1 state drain",
            &[
                "<133>Server l/s1 enters drain state. 1 active and 1 backup servers online. 0 sessions requeued, 0 total in queue.",
            ],
        ),
        ("s1 state drain", &[]),
        (
            "s1 state maint",
            &[
                "<133>Server l/s1 is going DOWN for maintenance. 1 active and 1 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.",
            ],
        ),
        (
            "s1 state drain",
            &[
                "<133>Server l/s1 is UP/DRAIN (leaving forced maintenance).",
                "<133>Server l/s1 remains in forced drain mode.",
            ],
        ),
        ("s1 state ready", &["<133>Server l/s1 is UP (leaving forced drain)."]),
        (
            "s1 state maint",
            &[
                "<129>Server l/s1 is going DOWN for maintenance. 1 active and 1 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.",
            ],
        ),
        (
            "s2 state drain",
            &[
                "<133>Server l/s2 enters drain state. 0 active and 1 backup servers online. Running on backup. 0 sessions requeued, 0 total in queue.",
            ],
        ),
        (
            "s3 state maint",
            &[
                "<129>Backup Server l/s3 is going DOWN for maintenance. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.",
                "<128>proxy l has no server available!",
            ],
        ),
        ("s3 state ready", &["<133>Backup Server l/s3 is UP/READY (leaving forced maintenance)."]),
    ];
    let servers = "server s1 10.0.1.1:80\nserver s2 10.0.1.2:80\nserver s3 10.0.1.3:80 backup";
    listen(servers).global(SOCKET).workers(&[1]).seeds(0..2).run(move |world| async move {
        for (typed, lines) in rows {
            assert_eq!(ask(&format!("set server l/{typed}")).await, "\n");
            sleep(5).await;
            let told = world.lines(lines.len()).await;
            let is = |line: &String, end: &&str| {
                let (priority, sentence) = end.split_at(5);
                line.ends_with(sentence) && line.starts_with(priority)
            };
            assert!(told.len() == lines.len() && told.iter().zip(*lines).all(|(l, e)| is(l, e)), "{typed}: {told:#?}");
        }
    });
}
