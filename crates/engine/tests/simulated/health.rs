//! Tests of a server's state by its checks, its agent and commands, and of the servers available: state by state, on
//! the virtual clock. Intervals, log lines and observed traffic are in `checks`.

use std::cell::RefCell;
use std::rc::Rc;

use live::{Admin, Checker, ServerStatus};
use testkit::{Peer, Service, sleep};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

/// Addresses of checks and agent checks.
const CHECKS: &str = "10.0.1.1:81";
const AGENT: &str = "10.0.1.1:82";

fn status(world: &World, server: usize) -> ServerStatus {
    world.shared().live.proxies[0].status(server).unwrap()
}

/// Starts a service that sends the text set last on every connection, and closes it.
fn says(world: &World, address: &str, text: &str) -> Rc<RefCell<String>> {
    let told = Rc::new(RefCell::new(text.to_owned()));
    let inner = Rc::clone(&told);
    Service::at(address).serve(&world.scope, move |mut peer: Peer, _| {
        let text = inner.borrow().clone();
        async move {
            peer.try_send(text).await;
        }
    });
    told
}

/// A server's answers to checks.
const WELL: &str = "HTTP/1.0 200 OK\r\n\r\n";
const ILL: &str = "HTTP/1.0 500 Ill\r\n\r\n";
const AWAY: &str = "HTTP/1.0 404 Away\r\n\r\n";

#[test]
fn a_server_begins_and_comes_out_of_maintenance_as_its_init_state_says() {
    // At first, then after each failed check; at first, then after each passed one.
    let rows = [
        ("none", "U DDDD", "U UUUU"),
        ("up", "U DDDD", "U UUUU"),
        ("fully-up", "U UUDD", "U UUUU"),
        ("down", "D DDDD", "D UUUU"),
        ("fully-down", "D DDDD", "D DUUU"),
    ];
    for (word, failing, passing) in rows {
        for (answer, course) in [(ILL, failing), (WELL, passing)] {
            // The other server gets the first check, which comes before the script has begun.
            let body = format!(
                "option httpchk\n default-server check port 81 inter 1s rise 2 fall 3\n server s1 10.0.1.2:80\n \
                 server s2 10.0.1.1:80 init-state {word}"
            );
            listen(&body).global(SOCKET).workers(&[1]).run(move |world| async move {
                world.forget_log();
                says(&world, CHECKS, answer);
                let letter = || if status(&world, 1).up { 'U' } else { 'D' };
                // Its checks come half a second after the other server's; the last one of each round is at 3.5 s.
                sleep(250).await;
                let mut found = format!("{} ", letter());
                for pause in [500, 1_000, 1_000, 1_000] {
                    sleep(pause).await;
                    found.push(letter());
                }
                assert_eq!(found, course, "{word}");
                order("set server l/s2 state maint").await;
                sleep(3_000).await;
                assert!(!status(&world, 1).takes_part);
                order("set server l/s2 state ready").await;
                assert_eq!(letter(), course.chars().next().unwrap(), "{word} after maintenance");
            });
        }
    }
}

/// Begins a request at each server, selected by cookie.
async fn under_way(cookies: &[&str], services: &mut [Service]) -> Vec<(Peer, Peer)> {
    let mut found = Vec::new();
    for (cookie, service) in cookies.iter().zip(services) {
        let mut client = Peer::connect(WEIR).await;
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: S={cookie}\r\n\r\n")).await;
        let mut server = service.accept().await;
        assert!(server.receive_head().await.is_some());
        found.push((client, server));
    }
    found
}

/// Whether a session continues: its server's answer reaches its client.
async fn goes_on(client: &mut Peer, server: &mut Peer) -> bool {
    server.try_send(OK).await && client.try_receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 200 "))
}

#[test]
fn a_server_that_is_marked_down_takes_its_sessions_with_it() {
    // The second server tracks the first one, without `shutdown-sessions`.
    let rows = [("", true), ("set server l/s1 health down", true), ("set server l/s1 state maint", true)];
    let spared = [("set server l/s1 state drain", false), ("set server l/s1 health stopping", false)];
    for (typed, ends) in rows.into_iter().chain(spared) {
        let body = "cookie S\n http-reuse never\n option httpchk\n server s1 10.0.1.1:80 cookie a check port 81 inter 1s fall 1 \
                    init-state fully-up on-marked-down shutdown-sessions\n server s2 10.0.1.2:80 cookie b track s1\n \
                    server s3 10.0.1.2:83 cookie c track s1 on-marked-down shutdown-sessions";
        listen(body).global(SOCKET).workers(&[1, 2]).seeds(0..2).run(move |world| async move {
            let answer = says(&world, CHECKS, WELL);
            world.forget_log();
            while !status(&world, 0).up
                || world.shared().live.proxies[0].health(0, Checker::Health).unwrap().level() < 2
            {
                sleep(100).await;
            }
            let mut services = [Service::at(S1), Service::at(S2), Service::at("10.0.1.2:83")];
            let mut sessions = under_way(&["a", "b", "c"], &mut services).await;
            world.take_log().await;
            if typed.is_empty() {
                *answer.borrow_mut() = ILL.to_owned();
                sleep(1_100).await;
            } else {
                order(typed).await;
                sleep(10).await;
            }
            for ((client, server), ends) in sessions.iter_mut().zip([ends, false, ends]) {
                assert_eq!(goes_on(client, server).await, !ends, "{typed}");
            }
            sleep(10).await;
            let lines = world.take_log().await;
            let killed = lines.iter().filter(|line| line.contains(" - - D")).count();
            assert_eq!(killed, if ends { 2 } else { 0 }, "{typed}: {lines:#?}");
            world.forget_log();
        });
    }
}

#[test]
fn a_server_that_is_marked_up_takes_all_from_the_backups() {
    let rows = [
        ("", "", true),
        ("set server l/s1 state maint", "set server l/s1 state ready", true),
        ("set server l/s1 health down", "set server l/s1 health up", true),
        ("set server l/s1 state drain", "set server l/s1 state ready", false),
        ("set server l/s1 health down", "set weight l/s1 0;set server l/s1 health up", false),
    ];
    for (away, back, ends) in rows {
        let body = "http-reuse never\n option httpchk\n server s1 10.0.1.1:80 check port 81 inter 1s fall 1 rise 1 \
                    init-state fully-up on-marked-up shutdown-backup-sessions\n server s2 10.0.1.2:80 backup";
        listen(body).global(SOCKET).workers(&[1, 2]).seeds(0..2).run(move |world| async move {
            let answer = says(&world, CHECKS, WELL);
            world.forget_log();
            sleep(1_500).await;
            if away.is_empty() {
                *answer.borrow_mut() = ILL.to_owned();
                sleep(1_000).await;
            } else {
                order(away).await;
            }
            assert!(!status(&world, 0).takes_part, "{away}");
            let mut services = [Service::at(S2)];
            let mut sessions = under_way(&["-"], &mut services).await;
            world.take_log().await;
            if back.is_empty() {
                *answer.borrow_mut() = WELL.to_owned();
                sleep(1_000).await;
            } else {
                for typed in back.split(';') {
                    order(typed).await;
                }
                sleep(10).await;
            }
            let (client, server) = &mut sessions[0];
            assert_eq!(goes_on(client, server).await, !ends, "{away} {back}");
            sleep(10).await;
            let lines = world.take_log().await;
            assert_eq!(lines.iter().any(|line| line.contains(" - - U")), ends, "{away} {back}: {lines:#?}");
            world.forget_log();
        });
    }
}

#[test]
fn a_server_that_wants_no_new_clients_keeps_its_own() {
    let body = "cookie S\n http-reuse never\n option httpchk\n http-check disable-on-404\n server s1 10.0.1.1:80 cookie a \
                check port 81 inter 1s rise 2 fall 2 init-state fully-up\n server s2 10.0.1.2:80 cookie b";
    listen(body).workers(&[1, 2]).run(|world| async move {
        world.forget_log();
        let answer = says(&world, CHECKS, WELL);
        serve_ok(&world.scope, S2);
        let mut services = [Service::at(S1)];
        for (text, up, stopping) in [(WELL, true, false), (AWAY, true, true), (ILL, false, false), (AWAY, false, false)]
        {
            *answer.borrow_mut() = text.to_owned();
            sleep(2_200).await;
            let one = status(&world, 0);
            assert_eq!((one.up, one.stopping, one.takes_part), (up, stopping, up && !stopping), "{text}");
            if up {
                let (mut client, mut server) = under_way(&["a"], &mut services).await.remove(0);
                assert!(goes_on(&mut client, &mut server).await);
            }
            if !one.takes_part {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                client.expect(OK_AT_CLIENT).await;
            }
        }
        *answer.borrow_mut() = WELL.to_owned();
        sleep(2_200).await;
        assert!(status(&world, 0).takes_part);
    });
}

#[test]
fn every_word_of_an_agent_counts_and_only_its_own_words_take_it_back() {
    // The agent's line; whether the server is up, its administrative state, weight and limit.
    let rows: &[(&str, bool, Admin, u32, u32)] = &[
        ("", true, Admin::Ready, 100, 50),
        ("nonsense", true, Admin::Ready, 100, 50),
        ("50%", true, Admin::Ready, 50, 50),
        ("0%", true, Admin::Ready, 0, 50),
        ("150%", true, Admin::Ready, 150, 50),
        ("weight:25%", true, Admin::Ready, 25, 50),
        ("weight:7", true, Admin::Ready, 7, 50),
        ("weight:257", true, Admin::Ready, 100, 50),
        ("50%;100%", true, Admin::Ready, 100, 50),
        ("maxconn:5", true, Admin::Ready, 100, 5),
        ("maxconn:many", true, Admin::Ready, 100, 50),
        ("down", false, Admin::Ready, 100, 50),
        ("fail", false, Admin::Ready, 100, 50),
        ("stopped", false, Admin::Ready, 100, 50),
        ("down;ready", false, Admin::Ready, 100, 50),
        ("down;50%", false, Admin::Ready, 50, 50),
        ("down;up", true, Admin::Ready, 100, 50),
        ("drain", true, Admin::Drain, 100, 50),
        ("drain;up", true, Admin::Drain, 100, 50),
        ("drain;ready", true, Admin::Ready, 100, 50),
        ("maint", true, Admin::Maintenance, 100, 50),
        ("maint;up", true, Admin::Maintenance, 100, 50),
        ("maint;ready", true, Admin::Ready, 100, 50),
        ("drain,75%\tmaxconn:9 down #gone, 3% #maint", false, Admin::Drain, 75, 9),
    ];
    for &(lines, up, admin, weight, limit) in rows {
        let body = "server s1 10.0.1.1:80 weight 100 maxconn 50 agent-check agent-port 82 agent-inter 1s\n \
                    server s2 10.0.1.2:80 track s1 weight 100 maxconn 50";
        listen(body).workers(&[1]).seeds(0..2).run(move |world| async move {
            world.forget_log();
            let said = says(&world, AGENT, "\n");
            for line in lines.split(';') {
                *said.borrow_mut() = format!("{line}\n");
                sleep(1_200).await;
            }
            let [one, other] = [0, 1].map(|server| status(&world, server));
            assert_eq!((one.up, one.admin, one.weight, one.load.limit), (up, admin, weight, limit), "{lines}");
            assert_eq!(one.takes_part, up && admin == Admin::Ready && weight > 0, "{lines}");
            // A tracking server has its state, but its own weight and limit.
            assert_eq!((other.up, other.admin, other.weight, other.load.limit), (up, admin, 100, 50), "{lines}");
        });
    }
}

#[test]
fn checks_and_agents_both_have_to_find_a_server_well() {
    let body = "option httpchk\n server s1 10.0.1.1:80 check port 81 inter 1s rise 1 fall 1 init-state fully-up agent-check \
                agent-port 82 agent-inter 1s";
    listen(body).workers(&[1]).run(|world| async move {
        world.forget_log();
        let (answer, said) = (says(&world, CHECKS, WELL), says(&world, AGENT, "up\n"));
        let rows =
            [(WELL, "up", true), (ILL, "up", false), (WELL, "down", false), (WELL, "100%", false), (WELL, "up", true)];
        for (health, word, up) in rows {
            *answer.borrow_mut() = health.to_owned();
            *said.borrow_mut() = format!("{word}\n");
            sleep(2_500).await;
            assert_eq!(status(&world, 0).up, up, "{health} {word}");
        }
    });
}

#[test]
fn no_more_servers_are_ejected_at_once_than_allowed() {
    for (most, expected) in [("", 1), ("max-ejected 50", 2), ("max-ejected 100", 3)] {
        let body = format!(
            "balance roundrobin\n http-reuse never\n eject-outliers errors 50 min-requests 2 {most}\n retries 0\n \
             server s1 10.0.1.1:80\n server s2 10.0.1.2:80\n server s3 10.0.1.3:80\n server s4 10.0.1.4:80"
        );
        listen(&body).workers(&[1]).run(move |world| async move {
            world.forget_log();
            // None of them listens.
            for _ in 0..40 {
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                assert!(client.receive_head().await.is_some_and(|head| head.contains(" 503 ")));
            }
            let ejected = (0..4).filter(|server| status(&world, *server).ejected).count();
            assert_eq!(ejected, expected, "{most}");
            sleep(3_600_000).await;
        });
    }
}

#[test]
fn servers_go_on_where_another_process_left_them() {
    let states = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight ...\n\
                  2 l 1 s1 10.0.1.1 1 0 1 1 2 6 3 1 6 0 0 0 - 80 - 0 0 - - 0\n\
                  2 l 2 s2 10.0.1.1 0 0 1 1 40 8 2 0 6 0 0 0 - 80 - 0 0 - - 0\n\
                  2 l 3 s3 10.0.1.1 2 0 7 1 40 6 3 4 6 0 0 0 - 80 - 0 0 - - 0\n\
                  2 l 4 s4 10.0.1.1 2 8 1 1 40 6 3 4 6 0 0 0 - 80 - 0 0 - - 0\n";
    let body = "option httpchk\n balance roundrobin\n default-server check inter 1s rise 2 fall 3\n \
                server s0 10.0.1.2:80\n server s1 10.0.1.1:80 port 81 slowstart 16s\n server s2 10.0.1.1:80 port 81\n \
                server s3 10.0.1.1:80 port 82\n server s4 10.0.1.1:80 port 81\n \
                server s5 10.0.1.1:80 no-check track s2";
    listen(body).saved(states).workers(&[1, 2]).run(|world| async move {
        world.forget_log();
        says(&world, CHECKS, WELL);
        says(&world, AGENT, ILL);
        // Their checks come a fifth of a second apart, once per second. From the second server on: whether it is up,
        // and whether it gets requests.
        let rows = [
            // The first one's slowstart begins at the start, the second one has to rise, the third one to fall.
            (100, 6, ["up on", "down", "up on", "up", "down"]),
            (1_000, 12, ["up on", "down", "up on", "up", "down"]),
            (1_000, 18, ["up on", "up on", "up on", "up", "up on"]),
            (1_000, 25, ["up on", "up on", "down", "up", "up on"]),
            (13_000, 100, ["up on", "up on", "down", "up", "up on"]),
        ];
        for (pause, throttle, expected) in rows {
            sleep(pause).await;
            let found = [1, 2, 3, 4, 5].map(|server| match status(&world, server) {
                one if !one.up => "down",
                one if one.takes_part => "up on",
                _ => "up",
            });
            assert_eq!((status(&world, 1).throttle, found), (throttle, expected), "{pause}");
        }
        assert_eq!((status(&world, 3).weight, status(&world, 4).admin), (7, Admin::Drain));
    });
}

#[test]
fn an_error_brings_a_server_as_near_to_its_end_as_on_error_says() {
    for (word, checks) in [("fastinter", 3), ("fail-check", 2), ("sudden-death", 1), ("mark-down", 0)] {
        let body = format!(
            "option httpchk\n http-reuse never\n server s1 10.0.1.1:80 check port 81 inter 60s fastinter 1s fall 3 init-state \
             fully-up observe layer7 error-limit 1 on-error {word}"
        );
        listen(&body).workers(&[1, 2]).run(move |world| async move {
            world.forget_log();
            // Its first check comes before there is a listener, and fails; one more check makes up for it.
            let answer = says(&world, CHECKS, WELL);
            sleep(5_000).await;
            let health = || world.shared().live.proxies[0].health(0, Checker::Health).unwrap();
            assert_eq!(health().progress(), (3, 3, "UP"));
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            *answer.borrow_mut() = ILL.to_owned();
            server.send("HTTP/1.1 500 Ill\r\nContent-Length: 0\r\n\r\n").await;
            assert!(client.receive_head().await.is_some());
            sleep(100).await;
            for _ in 0..checks {
                assert!(status(&world, 0).up, "{word}");
                sleep(1_000).await;
            }
            assert!(!status(&world, 0).up, "{word}");
        });
    }
}
