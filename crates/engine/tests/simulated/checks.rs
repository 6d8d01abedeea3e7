//! Health checks on the virtual clock: when they come, what they make of a server, what that makes of requests. The very
//! first check comes before the script has a server: it finds nobody, which `init-state fully-up` outlives.

use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const CHECK: &str = "OPTIONS / HTTP/1.0\r\n\r\n";

/// Answers the next check, which comes after so many milliseconds, give or take what the network takes.
async fn check(servers: &mut Service, status: &str, after: u64) {
    let begun = rt::now();
    let mut server = servers.accept().await;
    let waited = rt::now().saturating_since(begun).as_millis() as u64;
    assert_eq!((waited + 50) / 100 * 100, after, "{waited}");
    server.expect(CHECK).await;
    server.send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")).await;
    server.expect_end().await;
}

/// The log says these sentences next, whatever the durations.
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
                "backend l has no server available!",
                "Server l/s1 is UP, reason: Layer7 check passed, code: 200, check duration: -. 1 active and 0 backup \
                 servers online. 0 sessions requeued, 0 total in queue.",
            ],
        )
        .await;
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
            tells(&world, &[down, "backend l has no server available!"]).await;
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
        // Nothing else is left for the second request.
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
