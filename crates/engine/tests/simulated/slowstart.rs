//! Tests of servers that come back and grow to their full share (`slowstart`), on the virtual clock: a sixteenth each
//! second here, of the weight and of `maxconn`, whatever has brought them back.

use std::cell::Cell;
use std::rc::Rc;

use base::moment::Moment;
use live::ServerStatus;
use testkit::{Peer, Service, sleep};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

/// Addresses of the first server's checks, and of its agent.
const CHECKS: &str = "10.0.1.1:81";
const AGENT: &str = "10.0.1.1:82";
/// The first server of most tests: it is down after two failed checks, back after one that passes.
const SLOW: &str =
    "server s1 10.0.1.1:80 weight 10 check port 81 inter 100ms rise 1 fall 2 init-state fully-up slowstart 16s";
const OTHER: &str = "server s2 10.0.1.2:80 weight 10";

/// A column of the statistics of a server of `l`.
async fn column(server: &str, name: &str) -> String {
    let table = ask("show stat").await;
    let at = table.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
    let line = table.lines().find(|line| line.starts_with(&format!("l,{server},"))).unwrap();
    line.split(',').nth(at).unwrap().to_owned()
}

fn status(world: &World, server: usize) -> ServerStatus {
    world.shared().live.proxies[0].status(server).unwrap()
}

/// Answers the checks of the first server: they pass as long as the cell is true.
fn checked(world: &World) -> Rc<Cell<bool>> {
    let well = Rc::new(Cell::new(true));
    let told = Rc::clone(&well);
    Service::at(CHECKS).serve(&world.scope, move |mut peer: Peer, _| {
        let status = if told.get() { "200 OK" } else { "500 Ill" };
        async move {
            if peer.receive_head().await.is_some() {
                peer.try_send(format!("HTTP/1.0 {status}\r\n\r\n")).await;
            }
        }
    });
    well
}

/// Waits until the first server is up, or down. Returns the time.
async fn until_up(world: &World, up: bool) -> Moment {
    for _ in 0..1_000 {
        if status(world, 0).up == up {
            return rt::now();
        }
        sleep(1).await;
    }
    panic!("the first server does not change");
}

/// Takes the first server down and up again. Returns the time of the latter.
async fn come_back(world: &World, well: &Cell<bool>) -> Moment {
    world.forget_log();
    well.set(false);
    until_up(world, false).await;
    well.set(true);
    until_up(world, true).await
}

/// Sleeps until that number of milliseconds after a time.
async fn reach(since: Moment, after: u64) {
    sleep(after.saturating_sub(rt::now().saturating_since(since).as_millis() as u64)).await;
}

/// Serves both servers: answers take long enough for requests to overlap. Returns the numbers of requests.
fn serve(world: &World) -> [Rc<Cell<usize>>; 2] {
    [S1, S2].map(|address| {
        Service::at(address).serve(&world.scope, |mut peer: Peer, _| async move {
            if peer.receive_head().await.is_some() {
                sleep(100).await;
                peer.try_send(OK).await;
            }
        })
    })
}

/// The number of requests that the first server gets, of that number.
async fn share(served: &[Rc<Cell<usize>>; 2], requests: usize) -> usize {
    let before = served[0].get();
    let mut clients = Vec::new();
    for _ in 0..requests {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        clients.push(client);
        sleep(1).await;
    }
    for client in &mut clients {
        client.expect(OK_AT_CLIENT).await;
    }
    served[0].get() - before
}

#[test]
fn the_share_and_maxconn_grow_step_by_step() {
    for (balance, heeds) in [("roundrobin", true), ("leastconn", true), ("static-rr", false)] {
        let body = format!("balance {balance}\n http-reuse never\n option httpchk\n {SLOW} maxconn 32\n {OTHER}");
        listen(&body).global(SOCKET).seeds(0..2).run(move |world| async move {
            let (served, well) = (serve(&world), checked(&world));
            world.forget_log();
            assert_eq!(share(&served, 34).await, 17, "{balance}: warm from the start");
            assert_eq!(column("s1", "throttle").await, "");
            let since = come_back(&world, &well).await;
            for level in 1..=16 {
                reach(since, level * 1_000 - 900).await;
                let one = status(&world, 0);
                assert_eq!((one.throttle, one.load.limit), (level as u32 * 100 / 16, level as u32 * 2), "{balance}");
                assert_eq!(status(&world, 1).throttle, 100);
                if level % 4 == 1 {
                    assert_eq!(column("s1", "throttle").await, one.throttle.to_string());
                    // Rounded up, and only if the balance algorithm uses dynamic weights.
                    let weight = if heeds { (10 * level).div_ceil(16) } else { 10 };
                    assert_eq!(column("s1", "weight").await, weight.to_string());
                    assert_eq!(column("BACKEND", "weight").await, (10 + weight).to_string());
                    assert_eq!(column("s1", "uweight").await, "10");
                    // A static algorithm only respects limits.
                    let due = if heeds { 34 * level / (16 + level) } else { 17.min(2 * level) };
                    let got = share(&served, 34).await;
                    assert!(got.abs_diff(due as usize) <= 1, "{balance}: {got} of {due} at {level}");
                }
            }
            reach(since, 16_100).await;
            assert_eq!((share(&served, 34).await, column("s1", "throttle").await), (17, String::new()));
        });
    }
}

#[test]
fn who_waits_is_let_in_at_the_next_step() {
    let body = format!("http-reuse never\n option httpchk\n timeout queue 20s\n {SLOW} maxconn 16");
    listen(&body).workers(&[1, 2]).run(|world| async move {
        let well = checked(&world);
        let since = come_back(&world, &well).await;
        let mut s1 = Service::at(S1);
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            clients.push(client);
        }
        let mut servers = vec![s1.accept().await];
        for step in 1..3 {
            reach(since, step * 1_000 - 50).await;
            s1.is_left_alone();
            servers.push(s1.accept().await);
            let waited = rt::now().saturating_since(since).as_millis() as u64;
            assert!(waited.abs_diff(step * 1_000) <= 5, "{waited}");
        }
        for server in &mut servers {
            server.expect(GET_AT_SERVER).await;
            server.send(OK).await;
        }
        for client in &mut clients {
            client.expect(OK_AT_CLIENT).await;
        }
        reach(since, 16_000).await;
    });
}

#[test]
fn however_often_a_server_comes_back_one_task_sees_to_it() {
    let body = format!("option httpchk\n {SLOW}");
    listen(&body).workers(&[1, 2]).run(|world| async move {
        let well = checked(&world);
        let mut tasks = Vec::new();
        for times in [1, 10] {
            let mut since = rt::now();
            for _ in 0..times {
                since = come_back(&world, &well).await;
            }
            // Between two checks.
            reach(since, 1_550).await;
            tasks.push(world.inventory().await.iter().map(|worker| worker.tasks).sum::<usize>());
        }
        assert_eq!(tasks[0], tasks[1]);
        sleep(16_000).await;
    });
}

#[test]
fn a_server_that_goes_down_meanwhile_begins_anew() {
    let body = format!("balance roundrobin\n http-reuse never\n option httpchk\n {SLOW} maxconn 32\n {OTHER}");
    listen(&body).seeds(0..2).run(|world| async move {
        let (served, well) = (serve(&world), checked(&world));
        let since = come_back(&world, &well).await;
        reach(since, 7_500).await;
        assert_eq!(status(&world, 0).throttle, 50);
        well.set(false);
        until_up(&world, false).await;
        assert_eq!(share(&served, 10).await, 0);
        // The remaining steps do not take place.
        reach(since, 12_500).await;
        let one = status(&world, 0);
        assert_eq!((one.throttle, one.load.limit), (100, 32), "who is down is not held back");
        well.set(true);
        let since = until_up(&world, true).await;
        for (after, throttle) in [(500, 6), (1_500, 12), (7_500, 50), (15_500, 100)] {
            reach(since, after).await;
            assert_eq!(status(&world, 0).throttle, throttle, "{after}");
        }
    });
}

#[test]
fn weights_that_change_meanwhile_grow_as_well() {
    // A command, an agent's percentage and an agent's weight: the full weight after 16 sixteenths, and the share after
    // half of them.
    for (word, weight, [half, full]) in [("", 20, [20, 26]), ("50%", 5, [8, 13]), ("weight:20", 20, [20, 26])] {
        let agent = if word.is_empty() { "" } else { "agent-check agent-port 82 agent-inter 100ms" };
        let body = format!("balance roundrobin\n http-reuse never\n option httpchk\n {SLOW} {agent}\n {OTHER}");
        listen(&body).global(SOCKET).seeds(0..2).workers(&[1, 2]).run(move |world| async move {
            let (served, well) = (serve(&world), checked(&world));
            let since = come_back(&world, &well).await;
            reach(since, 7_100).await;
            assert_eq!(status(&world, 0).weight, 10);
            if word.is_empty() {
                order(&format!("set weight l/s1 {weight}")).await;
            } else {
                Service::at(AGENT).serve(&world.scope, move |mut peer: Peer, _| async move {
                    peer.try_send(format!("{word}\n")).await;
                });
                sleep(200).await;
            }
            let one = status(&world, 0);
            assert_eq!((one.weight, one.throttle), (weight, 50), "{word}");
            assert!(share(&served, 40).await.abs_diff(half) <= 1, "{word}");
            reach(since, 16_000).await;
            assert!(share(&served, 40).await.abs_diff(full) <= 1, "{word}");
        });
    }
}

#[test]
fn servers_that_track_grow_by_their_own_slowstart() {
    let body = format!(
        "option httpchk\n {SLOW}\n server s2 10.0.1.2:80 track s1 slowstart 32s\n server s3 10.0.1.3:80 track s2\n"
    );
    listen(&body).global(SOCKET).seeds(0..2).run(|world| async move {
        let well = checked(&world);
        let since = come_back(&world, &well).await;
        let throttles = || [0, 1, 2].map(|server| status(&world, server).throttle);
        for (after, expected) in
            [(500, [6, 6, 100]), (1_500, [12, 6, 100]), (15_500, [100, 50, 100]), (31_000, [100, 100, 100])]
        {
            reach(since, after).await;
            assert_eq!(throttles(), expected, "{after}");
        }
        // The end of a maintenance counts as well.
        order("set server l/s1 state maint").await;
        assert!([0, 1, 2].iter().all(|server| !status(&world, *server).takes_part));
        order("set server l/s1 state ready").await;
        for (pause, expected) in [(500, [6, 6, 100]), (3_000, [25, 12, 100]), (29_000, [100, 100, 100])] {
            sleep(pause).await;
            assert_eq!(throttles(), expected, "{pause}");
        }
    });
}

#[test]
fn a_server_grows_after_an_ejection() {
    let body = "balance roundrobin\n http-reuse never\n eject-outliers errors 50 min-requests 4 time 10s\n \
                server s1 10.0.1.1:80 slowstart 16s\n server s2 10.0.1.2:80";
    listen(body).workers(&[1, 2]).run(|world| async move {
        world.forget_log();
        serve_ok(&world.scope, S2);
        Service::at(S1).serve(&world.scope, |mut peer: Peer, _| async move {
            if peer.receive_head().await.is_some() {
                peer.try_send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").await;
            }
        });
        while !status(&world, 0).ejected {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            assert!(client.receive_head().await.is_some());
        }
        let since = rt::now();
        for (after, ejected, throttle) in
            [(9_900, true, 100), (10_500, false, 6), (17_500, false, 50), (26_100, false, 100)]
        {
            reach(since, after).await;
            let one = status(&world, 0);
            assert_eq!((one.ejected, one.throttle), (ejected, throttle), "{after}");
        }
    });
}
