//! Tests of health checks on the virtual clock: their times, their effect on a server, and its effect on requests. The
//! first check comes before the script has a server: it is refused, which `init-state fully-up` outlasts.

use live::Checker;
use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

const CHECK: &str = "OPTIONS / HTTP/1.0\r\n\r\n";

/// Answers the next check, which is expected after that number of milliseconds, with a tolerance for the network.
async fn check(servers: &mut Service, status: &str, after: u64) {
    let begun = rt::now();
    let mut server = servers.accept().await;
    let waited = rt::now().saturating_since(begun).as_millis() as u64;
    assert_eq!((waited + 50) / 100 * 100, after, "{waited}");
    server.expect(CHECK).await;
    server.send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")).await;
    server.expect_end().await;
}

/// Expects these lines in the log next, ignoring durations.
async fn tells(world: &World, sentences: &[&str]) {
    let lines = world.lines(sentences.len()).await;
    let said = lines.iter().map(|line| {
        let text = line.split_once("]: ").map_or("", |(_, text)| text);
        match text.split_once("check duration: ") {
            Some((head, rest)) => {
                format!(
                    "{head}check duration: -{}",
                    rest.trim_start_matches(|c: char| c.is_ascii_digit())[2..].to_owned()
                )
            }
            None => text.to_owned(),
        }
    });
    assert_eq!(said.collect::<Vec<_>>(), sentences);
}

#[test]
fn checks_come_as_fast_as_the_state_wants() {
    let servers = "option httpchk\n server s1 10.0.1.1:80 check inter 10s fastinter 1s downinter 3s rise 2 fall 2 \
                   init-state fully-up";
    listen(servers).run(|world| async move {
        let mut servers = Service::at(S1);
        check(&mut servers, "200 OK", 1_000).await;
        check(&mut servers, "500 Ill", 10_000).await;
        check(&mut servers, "500 Ill", 1_000).await;
        check(&mut servers, "500 Ill", 3_000).await;
        check(&mut servers, "200 OK", 3_000).await;
        check(&mut servers, "200 OK", 1_000).await;
        check(&mut servers, "200 OK", 10_000).await;
        tells(
            &world,
            &[
                "Server l/s1 is DOWN, reason: Layer7 wrong status, code: 500, info: \"Ill\", check duration: -. 0 \
                 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.",
                "proxy l has no server available!",
                "Server l/s1 is UP, reason: Layer7 check passed, code: 200, check duration: -. 1 active and 0 backup \
                 servers online. 0 sessions requeued, 0 total in queue.",
            ],
        )
        .await;
    });
}

/// Two servers; the second one is checked half a second later, when the script already has it.
fn second(rest: &str) -> String {
    format!(
        "option httpchk\n option log-health-checks\n http-check disable-on-404\n server s1 10.0.1.1:80 check inter 60s \
         fastinter 1s init-state fully-up\n server s2 10.0.1.2:80 check inter 4s fastinter 1s downinter 3s rise 2 fall 3 {rest}"
    )
}

/// The answer to a check, the time of the check in milliseconds, and the server's state after it.
type TickRow = (&'static str, u64, &'static str);

#[test]
fn a_server_that_was_never_checked_is_asked_fast_until_it_is_known() {
    let rows: [(&str, &[TickRow]); 4] = [
        ("", &[("200 OK", 500, "1/2 DOWN"), ("200 OK", 1_000, "3/3 UP"), ("200 OK", 4_000, "3/3 UP")]),
        ("", &[("200 OK", 500, "1/2 DOWN"), ("500 Ill", 1_000, "0/2 DOWN"), ("200 OK", 3_000, "1/2 DOWN")]),
        ("init-state up", &[("200 OK", 500, "3/3 UP"), ("500 Ill", 4_000, "2/3 UP"), ("500 Ill", 1_000, "1/3 UP")]),
        (
            // Only a server that serves can leave for maintenance by a 404.
            "init-state fully-down",
            &[
                ("200 OK", 500, "1/2 DOWN"),
                ("404 Away", 1_000, "0/2 DOWN"),
                ("200 OK", 3_000, "1/2 DOWN"),
                ("200 OK", 1_000, "3/3 UP"),
                ("404 Away", 4_000, "3/3 UP"),
                ("200 OK", 4_000, "3/3 UP"),
            ],
        ),
    ];
    for (initial, checks) in rows {
        listen(&second(initial)).workers(&[1]).run(move |world| async move {
            let mut other = Service::at(S2);
            for (status, after, expected) in checks {
                check(&mut other, status, *after).await;
                let live = &world.shared().live.proxies[0];
                let (now, of, word) = live.health(1, Checker::Health).unwrap().progress();
                assert_eq!(format!("{now}/{of} {word}"), *expected, "{initial} {status}");
            }
            world.forget_log();
        });
    }
}

/// The times of `count` checks, in milliseconds since the first of them. Each connection counts, whatever is sent on
/// it.
async fn arrivals(servers: &mut Service, count: usize) -> Vec<u64> {
    let mut moments = Vec::new();
    for _ in 0..count {
        let mut server = servers.accept().await;
        moments.push(rt::now());
        server.expect_end().await;
    }
    moments.iter().map(|moment| moment.saturating_since(moments[0]).as_millis() as u64).collect()
}

/// The most of them within any interval of that number of milliseconds.
fn most_within(moments: &[u64], stretch: u64) -> usize {
    let within = |from: &u64| moments.iter().filter(|moment| (*from..from + stretch).contains(moment)).count();
    moments.iter().map(within).max().unwrap_or(0)
}

#[test]
fn what_a_turn_takes_adds_nothing_to_the_interval() {
    let server = "server s1 10.0.1.1:80 check inter 2s init-state fully-up";
    listen(server).workers(&[1]).run(|_| async move {
        let mut servers = Service::at(S1);
        let moments = arrivals(&mut servers, 201).await;
        // The first of them was not aligned to the interval yet.
        assert!((399_990..=400_010).contains(moments.last().unwrap()), "{:?}", moments.last());
    });
}

#[test]
fn checks_never_come_in_bursts() {
    // Two backends of a hundred: a check every ten milliseconds, in the first round and in all later ones.
    let farm = "default-server inter 2s check init-state fully-up\n server-template s 100 10.0.1.1:80";
    let other = format!("{farm}\nbackend other\n {farm}");
    listen(&other).workers(&[1]).run(|_| async move {
        let mut servers = Service::at(S1);
        let moments = arrivals(&mut servers, 600).await;
        assert!((5_900..6_100).contains(moments.last().unwrap()), "{:?}", moments.last());
        assert!(most_within(&moments, 10) <= 2, "ten milliseconds have one, with what the network adds");
        assert!(most_within(&moments, 100) <= 12);
        let least = moments.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(least <= Some(20), "nor is there a pause: {least:?}");
    });
}

#[test]
fn checks_that_vary_by_chance_stay_spread() {
    let farm = "default-server inter 2s check init-state fully-up\n server-template s 200 10.0.1.1:80";
    listen(farm).global("spread-checks 50").workers(&[1]).run(|_| async move {
        let mut servers = Service::at(S1);
        let moments = arrivals(&mut servers, 1_000).await;
        // From one to three seconds each, two on average.
        assert!((9_000..11_000).contains(moments.last().unwrap()), "{:?}", moments.last());
        // Ten are expected on average; by chance a few more, never a burst.
        assert!(most_within(&moments, 100) <= 25, "{}", most_within(&moments, 100));
    });
}

#[test]
fn the_first_checks_of_a_backend_are_spread() {
    let servers = "option httpchk\n default-server inter 10s check init-state fully-up\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
    for (global, second) in [("", 5_000), ("max-spread-checks 2s", 1_000)] {
        listen(servers).global(global).workers(&[1]).run(move |_| async move {
            let mut other = Service::at(S2);
            check(&mut other, "200 OK", second).await;
        });
    }
}

#[test]
fn a_check_that_takes_too_long_has_failed() {
    let lines = |timeout: &str| {
        format!("{timeout}\n option httpchk\n server s1 10.0.1.1:80 check inter 2s fall 2 init-state fully-up")
    };
    for (timeout, after) in [("", 2_000), ("timeout check 300ms", 300)] {
        listen(&lines(timeout)).run(move |world| async move {
            let mut servers = Service::at(S1);
            let mut server = servers.accept().await;
            let begun = rt::now();
            server.expect(CHECK).await;
            server.expect_end().await;
            let waited = rt::now().saturating_since(begun).as_millis() as u64;
            assert_eq!((waited + 50) / 100 * 100, after, "{waited}");
            let down = "Server l/s1 is DOWN, reason: Layer7 timeout, check duration: -. 0 active and 0 backup servers \
                 left. 0 sessions active, 0 requeued, 0 remaining in queue.";
            tells(&world, &[down, "proxy l has no server available!"]).await;
        });
    }
}

#[test]
fn a_check_may_take_the_time_between_two_of_them_however_soon_the_next_one_is_to_come() {
    let servers =
        "option httpchk\n server s1 10.0.1.1:80 check inter 2s downinter 1s rise 1 fall 1 init-state fully-down";
    listen(servers).run(|world| async move {
        let mut servers = Service::at(S1);
        let mut server = servers.accept().await;
        server.expect(CHECK).await;
        sleep(1_500).await;
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        server.expect_end().await;
        let up = "Server l/s1 is UP, reason: Layer7 check passed, code: 200, check duration: -. 1 active and 0 backup \
                  servers online. 0 sessions requeued, 0 total in queue.";
        tells(&world, &[up]).await;
    });
}

#[test]
fn an_answer_without_a_body_holds_no_text() {
    for (method, status) in [("HEAD", "200 OK"), ("GET", "204 No Content"), ("GET", "304 Not Modified")] {
        let servers = format!(
            "option httpchk {method} /\n http-check expect string OK\n option log-health-checks\n \
             server s1 10.0.1.1:80 check inter 2s fall 2 init-state fully-up"
        );
        listen(&servers).run(move |world| async move {
            let mut servers = Service::at(S1);
            let mut server = servers.accept().await;
            server.expect(format!("{method} / HTTP/1.0\r\n\r\n")).await;
            let length = if method == "HEAD" { "Content-Length: 2\r\n" } else { "" };
            server.send(format!("HTTP/1.1 {status}\r\n{length}\r\n")).await;
            server.expect_end().await;
            let lines = world.lines(2).await;
            let said = "reason: Layer7 invalid response, info: \"HTTP content check could not find a response body\"";
            assert!(lines.iter().any(|line| line.contains(said)), "{method} {status}: {lines:?}");
            world.forget_log();
        });
    }
}

#[test]
fn who_waits_for_a_server_that_goes_down_goes_to_another_one() {
    let servers = "timeout server 60s\n option httpchk\n balance roundrobin\n server s1 10.0.1.1:80 check inter 1s maxconn 1 fall 2 init-state fully-up\n \
                   server s2 10.0.1.2:80 disabled";
    listen(servers).workers(&[1]).run(|world| async move {
        let mut servers = Service::at(S1);
        check(&mut servers, "200 OK", 1_000).await;
        let mut first = Peer::connect(WEIR).await;
        first.send(GET).await;
        let mut busy = servers.accept().await;
        busy.expect(GET_AT_SERVER).await;
        let mut second = Peer::connect(WEIR).await;
        second.send(GET).await;
        check(&mut servers, "500 Ill", 1_000).await;
        check(&mut servers, "500 Ill", 1_000).await;
        // There is no other server for the second request.
        second.expect(page(503)).await;
        busy.send(OK).await;
        first.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

#[test]
fn a_server_in_maintenance_is_not_checked() {
    listen("option httpchk\n server s1 10.0.1.1:80 check inter 1s disabled").run(|world| async move {
        let mut servers = Service::at(S1);
        sleep(5_000).await;
        servers.is_left_alone();
        world.expect_no_log();
    });
}

#[test]
fn a_soft_stop_ends_the_checks() {
    listen("option httpchk\n server s1 10.0.1.1:80 check inter 1s init-state fully-up").run(|world| async move {
        let mut servers = Service::at(S1);
        check(&mut servers, "200 OK", 1_000).await;
        world.stop();
        sleep(5_000).await;
        servers.is_left_alone();
    });
}

/// An agent that answers the next check with this line.
async fn agent(agents: &mut Service, line: &str) {
    let mut agent = agents.accept().await;
    agent.send(format!("{line}\n")).await;
    agent.expect_end().await;
}

#[test]
fn an_agent_changes_what_its_server_gets() {
    let servers = "server s1 10.0.1.1:80 weight 10 agent-check agent-addr 10.0.1.2 agent-port 80 agent-inter 1s";
    listen(servers).run(|world| async move {
        let mut agents = Service::at(S2);
        agent(&mut agents, "down #out of memory").await;
        agent(&mut agents, "stopped").await;
        agent(&mut agents, "up 50%").await;
        agent(&mut agents, "drain").await;
        agent(&mut agents, "maint").await;
        // A line without its end is ignored.
        let mut cut = agents.accept().await;
        cut.send("drain").await;
        cut.close();
        // The agent is checked in maintenance as well: otherwise it could not end that.
        agent(&mut agents, "ready,maxconn:5").await;
        let left = "0 active and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.";
        tells(
            &world,
            &[
                &format!(
                    "Server l/s1 is DOWN, reason: Layer7 wrong status, code: 0, info: \"via agent : down (out of \
                     memory)\", check duration: -. {left}"
                ),
                "proxy l has no server available!",
                "Server l/s1 is UP, reason: Layer7 check passed, code: 0, info: \"via agent : up\", check duration: \
                 -. 1 active and 0 backup servers online. 0 sessions requeued, 0 total in queue.",
                "Server l/s1 enters drain state. 0 active and 0 backup servers online. 0 sessions requeued, 0 total \
                 in queue.",
                "proxy l has no server available!",
                &format!("Server l/s1 is going DOWN for maintenance. {left}"),
                "Server l/s1 is UP/READY (leaving forced maintenance).",
            ],
        )
        .await;
    });
}

#[test]
fn an_agent_that_is_gone_changes_nothing() {
    let servers = "server s1 10.0.1.1:80 agent-check agent-addr 10.0.1.2 agent-port 80 agent-inter 1s";
    listen(servers).run(|world| async move {
        // The first agent check is refused, because the script does not listen yet.
        sleep(500).await;
        let mut agents = Service::at(S2);
        let mut silent = agents.accept().await;
        silent.expect_end().await;
        drop(agents);
        sleep(3_000).await;
        world.expect_no_log();
    });
}

#[test]
fn servers_stand_as_the_one_that_they_track() {
    let servers = "option httpchk\n http-check disable-on-404\n server s1 10.0.1.1:80 check inter 1s rise 1 fall 1 init-state fully-up\n \
                   server s2 10.0.1.2:80 track s1\n server s3 10.0.1.2:80 backup track l/s2";
    listen(servers).run(|world| async move {
        let mut servers = Service::at(S1);
        // The first check comes before the script has a server.
        let down = [
            "Server l/s1 is DOWN, reason: Layer4 connection problem, info: \"ECONNREFUSED returned by OS (Connection \
             refused)\", check duration: -. 1 active and 1 backup servers left. 0 sessions active, 0 requeued, 0 \
             remaining in queue.",
            "Server l/s2 is DOWN via l/s1. 0 active and 1 backup servers left. Running on backup. 0 sessions active, \
             0 requeued, 0 remaining in queue.",
            "Backup Server l/s3 is DOWN via l/s2. 0 active and 0 backup servers left. 0 sessions active, 0 requeued, \
             0 remaining in queue.",
            "proxy l has no server available!",
        ];
        tells(&world, &down).await;
        check(&mut servers, "200 OK", 1_000).await;
        check(&mut servers, "404 Away", 1_000).await;
        tells(
            &world,
            &[
                "Server l/s1 is UP, reason: Layer7 check passed, code: 200, check duration: -. 1 active and 0 backup \
                 servers online. 0 sessions requeued, 0 total in queue.",
                "Server l/s2 is UP via l/s1. 2 active and 0 backup servers online. 0 sessions requeued, 0 total in \
                 queue.",
                "Backup Server l/s3 is UP via l/s2. 2 active and 1 backup servers online. 0 sessions requeued, 0 \
                 total in queue.",
                "Server l/s1 is stopping, reason: Layer7 check conditionally passed, code: 404, check duration: -. 1 \
                 active and 1 backup servers online. 0 sessions requeued, 0 total in queue.",
                "Server l/s2 is stopping via l/s1. 0 active and 1 backup servers online. Running on backup. 0 \
                 sessions requeued, 0 total in queue.",
                "Backup Server l/s3 is stopping via l/s2. 0 active and 0 backup servers online. 0 sessions requeued, \
                 0 total in queue.",
                "proxy l has no server available!",
            ],
        )
        .await;
    });
}

/// Sends a request that the only server answers with that status.
async fn answer(servers: &mut Service, status: &str) {
    let mut client = Peer::connect(WEIR).await;
    client.send(GET).await;
    let mut server = servers.accept().await;
    server.expect(GET_AT_SERVER).await;
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    server.send(answer).await;
    let head = client.receive_head().await;
    assert!(head.is_some_and(|head| head.starts_with(&format!("HTTP/1.1 {status}"))));
}

#[test]
fn traffic_that_fails_is_a_check_that_fails() {
    let rows = [
        ("fail-check", 3, false, 1_000),
        ("sudden-death", 3, false, 1_000),
        ("mark-down", 3, true, 1_000),
        ("fastinter", 3, false, 1_000),
    ];
    for (on_error, errors, down, after) in rows {
        let servers = format!(
            "option httpchk\n server s1 10.0.1.1:80 check inter 60s fastinter 1s rise 2 fall 3 init-state fully-up \
             observe layer7 error-limit 3 on-error {on_error}"
        );
        listen(&servers).workers(&[1]).run(move |world| async move {
            let mut servers = Service::at(S1);
            check(&mut servers, "200 OK", 1_000).await;
            answer(&mut servers, "500 Ill").await;
            answer(&mut servers, "404 Fine").await;
            for _ in 0..errors {
                answer(&mut servers, "500 Ill").await;
            }
            if down {
                let lines = world.lines(errors + 4).await;
                let text = "Server l/s1 is DOWN, reason: Health analyze, info: \"Detected 3 consecutive errors, last \
                            one was: Wrong http response\". 0 active and 0 backup servers left. 1 sessions active, 0 \
                            requeued, 0 remaining in queue.";
                assert!(lines.iter().any(|line| line.ends_with(text)), "{lines:?}");
            }
            // The next check does not wait for its interval of a minute.
            check(&mut servers, "200 OK", after).await;
            world.forget_log();
        });
    }
}

#[test]
fn what_becomes_of_servers_is_worth_a_mail() {
    let sections = "mailers m\n mailer a 10.0.1.2:80\n timeout mail 3s\nlisten l\n bind 10.0.0.1:80\n timeout client 10s\n \
                    timeout connect 5s\n timeout server 10s\n log global\n option httpchk\n email-alert mailers m\n \
                    email-alert from a@b.c\n email-alert to d@e.f\n email-alert myhostname lb\n server s1 10.0.1.1:80 \
                    check inter 60s fastinter 1s rise 1 fall 2 downinter 1s init-state fully-up";
    config(sections).workers(&[1]).run(|world| async move {
        let mut mails = Service::at(S2);
        let mut server = Service::at(S1);
        check(&mut server, "500 Ill", 1_000).await;
        let mut mail = mails.accept().await;
        mail.send("220-hi\r\n220 there\r\n").await;
        for (heard, said) in [
            ("HELO lb\r\n", "250 lb\r\n"),
            ("MAIL FROM:<a@b.c>\r\n", "250 ok\r\n"),
            ("RCPT TO:<d@e.f>\r\n", "250 ok\r\n"),
            ("DATA\r\n", "354 go on\r\n"),
        ] {
            mail.expect(heard).await;
            mail.send(said).await;
        }
        mail.expect("From: a@b.c\r\nTo: d@e.f\r\nDate: ").await;
        mail.receive_until("\r\n").await;
        let text = mail.receive_until("\r\n.\r\n").await;
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("Subject: [HAProxy Alert] Server l/s1 is DOWN, reason: Layer7 wrong status, code: 500"));
        assert!(text.ends_with("remaining in queue\r\n\r\n.\r\n"), "{text}");
        mail.send("250 queued\r\n").await;
        mail.expect("QUIT\r\n").await;
        mail.send("221 bye\r\n").await;
        mail.expect_end().await;
        // At this level no mail is sent for its recovery.
        check(&mut server, "200 OK", 1_000).await;
        sleep(5_000).await;
        mails.is_left_alone();
        world.forget_log();
    });
}

#[test]
fn a_mail_that_nobody_takes_is_told() {
    let sections = "mailers m\n mailer a 10.0.1.2:80\n timeout mail 3s\nlisten l\n bind 10.0.0.1:80\n timeout client 10s\n \
                    timeout connect 5s\n timeout server 10s\n log global\n email-alert mailers m\n email-alert from a\n \
                    email-alert to b\n server s1 10.0.1.1:80 check inter 60s fastinter 1s init-state fully-up fall 2";
    config(sections).workers(&[1]).run(|world| async move {
        let mut mails = Service::at(S2);
        let lines = world.lines(2).await;
        assert!(lines[0].contains("Server l/s1 is DOWN"), "{lines:?}");
        let mut mail = mails.accept().await;
        mail.expect_end().await;
        let lines = world.lines(1).await;
        assert!(lines[0].ends_with("A mail to b could not be sent by 10.0.1.2:80: it took too long."), "{lines:?}");
    });
}

/// Checks use the server's protocol, unless their own options set another.
#[test]
fn checks_go_by_http_2() {
    let rows = [
        ("proto h2 check", true),
        ("check check-proto h2", true),
        ("proto h2 check check-proto h1", false),
        ("proto h2 check port 80", false),
    ];
    for (words, by_streams) in rows {
        let sections = format!(
            "option log-health-checks\n option httpchk\n http-check send meth POST uri /c hdr Host b body abc\n \
             http-check expect string fine\n server s1 10.0.1.1:80 {words} inter 1s fall 1 rise 1 init-state fully-up"
        );
        listen(&sections).workers(&[1]).shuffled().seeds(0..3).run(move |world| async move {
            let mut s1 = Service::at(S1);
            for (body, word) in [("not", "failed"), ("all fine", "succeeded")] {
                if by_streams {
                    let mut origin = End::accept(&mut s1).await;
                    let head = "POST /c HTTP/1.1\r\nhost: b\r\ncontent-length: 3\r\n\r\n";
                    let stream = origin.expect_request(head, b"abc").await;
                    origin.send(Part::Head, stream, "HTTP/1.1 103 Early\r\n\r\n").await;
                    origin.send(Part::Head, stream, "HTTP/1.1 200 OK\r\n\r\n").await;
                    origin.upload(stream, body.as_bytes()).await;
                    origin.expect_end().await;
                } else {
                    let mut server = s1.accept().await;
                    server.receive_head().await.unwrap();
                    server.receive(3).await;
                    server.send(crate::messages::answer(body)).await;
                    server.expect_end().await;
                }
                let mut said = Vec::new();
                while !said.iter().any(|line: &String| line.contains(&format!("for server l/s1 {word}"))) {
                    let more = world.lines(1).await;
                    assert!(!more.is_empty(), "{word}: {said:?}");
                    said.extend(more);
                }
            }
            world.forget_log();
        });
    }
}
