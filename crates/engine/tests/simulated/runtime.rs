//! Tests of the runtime API's protocol: lines, levels, prompts, payloads, limits, and clients that do not read.

use std::time::Duration;

use rt::sim::Link;
use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const ADMIN: &str = "10.0.0.2:9001";
const USER: &str = "10.0.0.2:9002";
const SOCKETS: &str = "stats socket 10.0.0.2:9001 level admin\nstats socket 10.0.0.2:9002 level user";

/// The answer to commands on a connection whose client closes its direction after them.
async fn ask(socket: &str, typed: impl AsRef<[u8]>) -> String {
    let mut peer = Peer::connect(socket).await;
    peer.try_send(typed).await;
    peer.half_close();
    String::from_utf8_lossy(&peer.receive_rest().await).into_owned()
}

fn served() -> Worlds {
    listen("server s1 10.0.1.1:80").global(SOCKETS)
}

#[test]
fn lines_are_answered_as_haproxy_answers_them() {
    let rows: &[(&str, &str)] = &[
        ("show cli level\n", "admin\n\n"),
        ("show cli level", ""),
        ("", ""),
        ("\n", "\n"),
        (";\n", "\n\n"),
        ("show cli level;;show cli level\n", "admin\n\n\nadmin\n\n"),
        ("  show \t cli   level  \nshow cli level\n", "admin\n\n"),
        ("show cli level;operator;show cli level;user;show cli level\n", "admin\n\n\noperator\n\n\nuser\n\n"),
        ("user;operator;show cli level\n", "\nPermission denied\n\nuser\n\n"),
        ("quit;show cli level\n", ""),
        ("prompt\nshow cli level\n\nquit\n", "\n> admin\n\n> \n> "),
        ("prompt i\nshow cli level\n\nquit\n", "\nadmin\n\n\n"),
        ("prompt n\nshow cli level\n", "\n"),
        ("prompt;show cli level\n", "\nadmin\n\n> "),
        ("prompt timed\nprompt\nshow cli level\n", "\n[0:00:00:00]> \n"),
        ("echo a b  c\\;d \\\\ e\\ f\n", "a b c;d \\ e f\n\n"),
        ("echo a <<\nfoo\nbar\n\nshow cli level\n", "a\n\n"),
        ("prompt i\necho a <<EOF\nfoo\n\nEOF\nshow cli level\n", "\na\n\nadmin\n\n"),
        ("expert-mode;expert-mode on;expert-mode\n", "expert-mode is OFF\n\n\nexpert-mode is ON\n\n"),
        ("user;expert-mode on\n", "\nPermission denied\n\n"),
        ("set severity-output number;user;expert-mode on\n", "\n\n[3]: Permission denied\n\n"),
        ("set severity-output string;show backend\n", "\n# name\nl\n\n"),
        ("set severity-output loud\n", "one of 'none', 'number', 'string' is a required argument\n\n"),
        (
            "set timeout cli 5s;set timeout cli;set timeout foo 5\n",
            "\nExpects an integer value.\n\n'set timeout' only supports 'cli'.\n\n",
        ),
        ("wait foo;wait 0;wait 10ms;show cli level\n", "Invalid duration.\n\nInvalid duration.\n\nDone.\n\nadmin\n\n"),
        ("show env nothing\n", "Variable not found\n\n"),
        ("get weight l/s1;set weight l/s1 5;get weight l/s1\n", "1 (initial 1)\n\n\n5 (initial 1)\n\n"),
        (
            "get weight l;get weight x/s1;get weight l/x\n",
            "Require 'backend/server'.\n\nNo such backend.\n\nNo such server.\n\n",
        ),
    ];
    served().workers(&[1, 4]).run(move |_| async move {
        for (typed, answer) in rows {
            assert_eq!(ask(ADMIN, typed).await, *answer, "{typed:?}");
        }
    });
}

#[test]
fn levels_forbid_what_is_above_them() {
    let commands = [
        "show env",
        "show startup-logs",
        "wait 1ms",
        "set rate-limit sessions global 0",
        "operator",
        "expert-mode",
        "experimental-mode",
        "show activity",
        "show sess",
        "clear counters",
        "clear counters all",
        "clear counters server l/s1",
        "set weight l/s1 3",
        "set server l/s1 state maint",
        "disable server l/s1",
        "enable server l/s1",
        "set maxconn server l/s1 3",
        "shutdown session 0x1",
        "shutdown sessions server l/s1",
        "disable frontend l",
        "enable frontend l",
        "shutdown frontend l",
        "set maxconn frontend l 3",
        "set maxconn global 3",
        "expert-mode on",
    ];
    served().workers(&[1]).seeds(0..1).run(move |_| async move {
        for command in commands {
            assert_eq!(ask(USER, format!("{command}\n")).await, "Permission denied\n\n", "{command}");
            assert!(!ask(ADMIN, format!("{command}\n")).await.contains("denied"), "{command}");
        }
    });
}

#[test]
fn unknown_commands_are_told_what_is_near_and_binary_ones_too() {
    served().workers(&[1]).seeds(0..2).run(|_| async move {
        let answer = ask(ADMIN, "show cli\n").await;
        assert!(
            answer.starts_with("Unknown command: 'show', but maybe one of the following ones is a better match:\n")
        );
        assert!(
            answer.contains("\n  show cli level                          : ") && answer.ends_with(": disconnect\n\n")
        );
        assert!(!answer.contains("show stat"));
        for typed in [&b"\0\xff\x01\n"[..], b"show\0stat\n", b"\xfe\xff;\x80\n", b"\\\n"] {
            assert!(ask(ADMIN, typed).await.starts_with("Unknown command: "), "{typed:?}");
        }
        let help = ask(USER, "help set\n").await;
        assert!(
            help.starts_with("The following commands are valid at this level:\n  set ")
                && help.contains("\n  set dynamic-cookie-key backend <bk> <k> "),
            "{help}"
        );
    });
}

#[test]
fn long_lines_words_and_payloads_are_bounded() {
    served().workers(&[1]).seeds(0..2).run(|_| async move {
        let words = |count: usize| format!("echo{}\n", " x".repeat(count - 1));
        assert_eq!(ask(ADMIN, words(64)).await, format!("{}\n\n", ["x"; 63].join(" ")));
        assert_eq!(ask(ADMIN, words(65)).await, "Too many arguments. Commands must have at most 64 arguments.\n\n");
        let long = ask(ADMIN, format!("echo {}\n", "x".repeat(20_000))).await;
        assert!(long.starts_with("The command line is too big for the buffer size."), "{long}");
        let payload = ask(ADMIN, format!("echo a <<\n{}", "y\n".repeat(100_000))).await;
        assert!(payload.starts_with("The payload is too big."), "{payload}");
    });
    let small = format!("{SOCKETS}\ntune.cli.max-payload-size 1k");
    listen("server s1 10.0.1.1:80").global(&small).workers(&[1]).seeds(0..2).run(|_| async move {
        let of = |lines: usize| format!("echo a <<\n{}\n", "y\n".repeat(lines));
        // Payload that fits into a buffer is never too big.
        assert_eq!(ask(ADMIN, of(5_000)).await, "a\n\n");
        let payload = ask(ADMIN, of(30_000)).await;
        assert!(payload.starts_with("The payload is too big."), "{payload}");
    });
}

#[test]
fn silence_ends_a_connection_and_a_full_house_waits() {
    let sockets = format!("{SOCKETS}\nstats timeout 5s\nstats maxconn 1");
    listen("server s1 10.0.1.1:80").global(&sockets).workers(&[1, 2]).run(|_| async move {
        let mut idle = Peer::connect(ADMIN).await;
        idle.send("prompt\nshow st").await;
        idle.expect("\n> ").await;
        // The other one is answered when this one's timeout has expired.
        let began = rt::now();
        assert_eq!(ask(ADMIN, "show cli level\n").await, "admin\n\n");
        assert!(rt::now().saturating_since(began) >= Duration::from_millis(4_900));
        idle.expect_end().await;
    });
}

/// A slow reader holds only a piece of its answer: requests and other commands are served, and when it aborts the dump
/// half-way nothing is left.
#[test]
fn a_reader_that_does_not_read_holds_nobody_up() {
    let servers: String = (0..300).map(|number| format!("server s{number} 10.0.1.1:80\n")).collect();
    let narrow = |_| Link { buffer: 4096, ..Link::default() };
    config(&format!("listen l\nbind {WEIR}\n{servers}")).global(SOCKETS).links(narrow).seeds(0..2).run(
        |_| async move {
            let mut s1 = Service::at(S1);
            let mut greedy = Peer::connect(ADMIN).await;
            greedy.send(format!("show stat{}\n", ";show stat typed".repeat(30))).await;
            greedy.receive(100).await;
            sleep(50).await;
            for _ in 0..3 {
                let mut client = Peer::connect(WEIR).await;
                client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
                let mut server = s1.accept().await;
                server.expect(GET_AT_SERVER).await;
                server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
                client.receive_rest().await;
                assert_eq!(ask(ADMIN, "show cli level\n").await, "admin\n\n");
            }
            greedy.reset();
        },
    );
}

#[test]
fn a_stop_closes_the_sockets() {
    served().run(|world| async move {
        assert_eq!(ask(ADMIN, "show cli level\n").await, "admin\n\n");
        world.stop();
        sleep(10).await;
        assert!(Peer::try_connect(ADMIN, testkit::PeerOptions::default()).await.is_err());
    });
}

/// A line of `show activity`: the first number, the total of all workers.
fn activity(answer: &str, name: &str) -> u64 {
    let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{name}: {answer}"))
}

#[test]
fn a_worker_tells_of_its_loop() {
    const NAMES: &str = "ctxsw tasksw empty_rq long_rq curr_rq loops wake_tasks poll_io poll_exp poll_drop_fd stream_calls \
                         buf_wait avg_cpu_pct avg_loop_us accepted accq_pushed fd_takeover check_started check_active \
                         check_running cpu_ms_tot tasks sessions buffers streams";
    served().run(move |_| async move {
        let first = ask(ADMIN, "show activity\n").await;
        let names: Vec<&str> = first.lines().skip(3).filter_map(|line| line.split(": ").next()).collect();
        assert_eq!(names.join(" ").trim(), NAMES);
        let second = ask(ADMIN, "show activity\n").await;
        for name in ["ctxsw", "tasksw", "loops", "poll_io"] {
            assert!(activity(&second, name) > activity(&first, name), "{name}: {first} {second}");
        }
        assert_eq!(activity(&second, "accepted"), activity(&first, "accepted") + 1);
        let threads = ask(ADMIN, "show threads\n").await;
        assert!(threads.starts_with("* Thread 1 : act="), "{threads}");
        for name in [" wq=1 rq=", "      1/1    loops=", " ctxsw=", " prof=0\n", "             cpu_ns: now="] {
            assert!(threads.contains(name), "{name}: {threads}");
        }
    });
}

#[test]
fn streams_handovers_and_checks_are_counted() {
    let global = format!("{SOCKETS}\ntune.listener.multi-queue fair");
    listen("option httpchk\nserver s1 10.0.1.1:80 check inter 1s").global(&global).workers(&[2]).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut check = s1.accept().await;
        check.receive_until("\r\n\r\n").await;
        let during = ask(ADMIN, "show activity\n").await;
        // The first one came before the server had a listener.
        for (name, count) in [("check_started", 2), ("check_active", 1), ("check_running", 1)] {
            assert_eq!(activity(&during, name), count, "{name}: {during}");
        }
        assert_eq!(activity(&during, "stream_calls"), 0, "{during}");
        check.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let mut clients = Vec::new();
        for _ in 0..4 {
            let mut client = Peer::connect(WEIR).await;
            client.send("BAD\r\n\r\n").await;
            client.receive_rest().await;
            clients.push(client);
        }
        let after = ask(ADMIN, "show activity\n").await;
        assert_eq!((activity(&after, "check_started"), activity(&after, "check_running")), (2, 0), "{after}");
        assert!(activity(&after, "stream_calls") >= 4, "{after}");
        assert_eq!(activity(&after, "accepted"), activity(&during, "accepted") + 4 + 1, "{after}");
        // Connections are passed to either worker in turn, whichever accepted them.
        assert!((1..=4).contains(&activity(&after, "accq_pushed")), "{after}");
    });
}

#[test]
fn connections_of_the_runtime_api_are_connections_and_streams_of_the_process() {
    served().run(|_| async move {
        let count = |answer: &str, name: &str| {
            let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|line| line.parse::<u64>().ok()).unwrap_or_else(|| panic!("{name}: {answer}"))
        };
        let first = ask(ADMIN, "show info\n").await;
        // Two that stay; the second command on one of them is not a stream of its own.
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut peer = Peer::connect(ADMIN).await;
            peer.send("prompt\n").await;
            peer.receive_until("> ").await;
            open.push(peer);
        }
        open[0].send("show version\n").await;
        open[0].receive_until("> ").await;
        let second = ask(ADMIN, "show info\n").await;
        for (name, more) in [("CumConns", 3), ("CumReq", 3), ("CumStreams", 3), ("CurrStreams", 2), ("Jobs", 2)] {
            assert_eq!(count(&second, name), count(&first, name) + more, "{name}");
        }
        for name in ["CurrConns", "ConnRate", "SessRate"] {
            assert_eq!(count(&second, name), count(&first, name), "{name}");
        }
        drop(open);
        sleep(10).await;
        let third = ask(ADMIN, "show info\n").await;
        assert_eq!(count(&third, "CurrStreams"), count(&first, "CurrStreams"));
        // The first two answers, and a few prompts.
        let sent = (first.len() + second.len()) as u64;
        assert!((sent..sent + 2_000).contains(&count(&third, "TotalBytesOut")), "{sent} {third}");
    });
}

#[test]
fn clearing_counters_has_the_counts_of_loops_begin_anew() {
    served().run(move |_| async move {
        for _ in 0..20 {
            ask(ADMIN, "show activity\n").await;
        }
        let before = ask(ADMIN, "show activity\n").await;
        ask(ADMIN, "clear counters\n").await;
        let after = ask(ADMIN, "show activity\n").await;
        for name in ["ctxsw", "tasksw", "loops", "poll_io", "accepted"] {
            assert!(activity(&before, name) > 20, "{name}: {before}");
            assert!(activity(&after, name) < 20, "{name}: {after}");
        }
        assert_eq!(activity(&after, "tasks"), activity(&before, "tasks"));
    });
}
